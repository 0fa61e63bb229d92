//! Requests that manage one server: its transcript, its standard error, reconnect, enable, disable
//! and log in. Also the list of the replicas that servers run at.

use serde_json::json;
use toolyard_hub::json::to_raw;
use toolyard_hub::{OBSERVE, Principal, SourceCommand, SourceName, Timestamp, TranscriptDirection};

use super::ControlFront;
use super::errors::{ControlError, missing_permission};
use super::lists::unknown_server_error;
use super::request::{ServerNameParams, TranscriptParams};

impl ControlFront {
    pub(super) fn transcript(
        &self,
        principal: &Principal,
        params: &TranscriptParams,
    ) -> Result<String, ControlError> {
        let transcript = self.yard.transcript(principal, &params.server_name, params.after)?;
        let messages: Vec<_> = transcript
            .into_iter()
            .map(|message| {
                let direction = match message.direction {
                    TranscriptDirection::ToSource => "to_server",
                    TranscriptDirection::FromSource => "from_server",
                };
                json!({
                    "seq": message.number,
                    "at": Timestamp(message.at).to_string(),
                    "direction": direction,
                    "text": message.text,
                })
            })
            .collect();
        Ok(json!({"serverName": params.server_name, "messages": messages}).to_string())
    }

    pub(super) fn stderr(
        &self,
        principal: &Principal,
        params: &ServerNameParams,
    ) -> Result<String, ControlError> {
        if !principal.has_permission(OBSERVE) {
            return Err(missing_permission(OBSERVE));
        }
        let name = SourceName::new(params.server_name.as_str());
        let status = self.yard.status_for(principal, &name);
        let status =
            status.ok_or_else(|| unknown_server_error(&self.yard, principal, &params.server_name))?;
        Ok(json!({"serverName": params.server_name, "lines": status.stderr}).to_string())
    }

    /// Renders the replicas of the yard, or none if it runs as one process.
    pub(super) fn replicas(&self, principal: &Principal) -> Result<String, ControlError> {
        if !principal.has_permission(OBSERVE) {
            return Err(missing_permission(OBSERVE));
        }
        let list = self.cluster.as_ref().map_or_else(|| json!({"replicas": []}), |cluster| cluster.list());
        Ok(list.to_string())
    }

    pub(super) fn manage(
        &self,
        principal: &Principal,
        params: &ServerNameParams,
        command: SourceCommand,
    ) -> Result<String, ControlError> {
        self.yard.manage(principal, &params.server_name, command)?;
        let server = self.render_server(principal, &params.server_name)?;
        Ok(format!(r#"{{"server":{server}}}"#))
    }

    pub(super) async fn log_in(
        &self,
        principal: &Principal,
        params: &ServerNameParams,
    ) -> Result<String, ControlError> {
        let url = self.yard.log_in(principal, &params.server_name).await?;
        Ok(format!(r#"{{"url":{}}}"#, to_raw(&url)))
    }
}
