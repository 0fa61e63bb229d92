//! What is done with one server beside using it: its transcript, its last words, and telling it to come back, to stop, or
//! to be logged in to.

use serde_json::json;
use toolyard_hub::json::to_raw;
use toolyard_hub::{Direction, OBSERVE, Order as Told, Principal, SourceName, Timestamp};

use super::Control;
use super::errors::{Trouble, needs};
use super::lists::{nearest_server, one_server};
use super::order::{OneServer, Transcript};

impl Control {
    pub(super) fn transcript(&self, principal: &Principal, words: &Transcript) -> Result<String, Trouble> {
        let said = self.yard.transcript(principal, &words.server_name, words.after)?;
        let messages: Vec<_> = said
            .into_iter()
            .map(|said| {
                let direction = match said.direction {
                    Direction::ToSource => "to_server",
                    Direction::FromSource => "from_server",
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

    pub(super) fn stderr(&self, principal: &Principal, words: &OneServer) -> Result<String, Trouble> {
        if !principal.holds(OBSERVE) {
            return Err(needs(OBSERVE));
        }
        let name = SourceName::new(words.server_name.as_str());
        let status = self.yard.status_for(principal, &name);
        let status = status.ok_or_else(|| nearest_server(&self.yard, principal, &words.server_name))?;
        Ok(json!({"serverName": words.server_name, "lines": status.stderr}).to_string())
    }

    pub(super) fn manage(
        &self,
        principal: &Principal,
        words: &OneServer,
        order: Told,
    ) -> Result<String, Trouble> {
        self.yard.manage(principal, &words.server_name, order)?;
        let server = one_server(&self.yard, principal, &words.server_name)?;
        Ok(format!(r#"{{"server":{server}}}"#))
    }

    pub(super) async fn log_in(&self, principal: &Principal, words: &OneServer) -> Result<String, Trouble> {
        let address = self.yard.log_in(principal, &words.server_name).await?;
        Ok(format!(r#"{{"url":{}}}"#, to_raw(&address)))
    }
}
