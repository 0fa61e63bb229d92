//! What is done with one server beside using it: its transcript, its last words, and telling it to come back, to stop, or
//! to be logged in to.

use serde_json::json;
use toolyard_hub::json::to_raw;
use toolyard_hub::{OBSERVE, Principal, SourceCommand as Told, SourceName, Timestamp, TranscriptDirection};

use super::ControlFront;
use super::errors::{ControlError, missing_permission};
use super::lists::{render_server, unknown_server_error};
use super::request::{ServerNameParams, TranscriptParams};

impl ControlFront {
    pub(super) fn transcript(
        &self,
        principal: &Principal,
        words: &TranscriptParams,
    ) -> Result<String, ControlError> {
        let said = self.yard.transcript(principal, &words.server_name, words.after)?;
        let messages: Vec<_> = said
            .into_iter()
            .map(|said| {
                let direction = match said.direction {
                    TranscriptDirection::ToSource => "to_server",
                    TranscriptDirection::FromSource => "from_server",
                };
                json!({
                    "seq": said.number,
                    "at": Timestamp(said.at).to_string(),
                    "direction": direction,
                    "text": said.text,
                })
            })
            .collect();
        Ok(json!({"serverName": words.server_name, "messages": messages}).to_string())
    }

    pub(super) fn stderr(
        &self,
        principal: &Principal,
        words: &ServerNameParams,
    ) -> Result<String, ControlError> {
        if !principal.has_permission(OBSERVE) {
            return Err(missing_permission(OBSERVE));
        }
        let name = SourceName::new(words.server_name.as_str());
        let status = self.yard.status_for(principal, &name);
        let status = status.ok_or_else(|| unknown_server_error(&self.yard, principal, &words.server_name))?;
        Ok(json!({"serverName": words.server_name, "lines": status.stderr}).to_string())
    }

    pub(super) fn manage(
        &self,
        principal: &Principal,
        words: &ServerNameParams,
        order: Told,
    ) -> Result<String, ControlError> {
        self.yard.manage(principal, &words.server_name, order)?;
        let server = render_server(&self.yard, principal, &words.server_name)?;
        Ok(format!(r#"{{"server":{server}}}"#))
    }

    pub(super) async fn log_in(
        &self,
        principal: &Principal,
        words: &ServerNameParams,
    ) -> Result<String, ControlError> {
        let address = self.yard.log_in(principal, &words.server_name).await?;
        Ok(format!(r#"{{"url":{}}}"#, to_raw(&address)))
    }
}
