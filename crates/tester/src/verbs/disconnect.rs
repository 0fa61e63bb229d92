//! `disconnect`

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;

use super::Use;
use crate::answer::{Answer, Metadata, now};
use crate::fault::Fault;

impl Use<'_> {
    pub(super) async fn disconnect(&self) -> Result<Answer, Fault> {
        let connection = self.tester.seats.leave(&self.caller)?;
        let gone = connection.lost();
        let ended = connection.close().await;
        let mut message = format!("Disconnected from {}", connection.url);
        if let Some(why) = gone {
            message.push_str(&format!("; its server was gone already: {why}"));
        }
        if let Some(ended) = ended {
            message.push_str(&format!("; its process {ended}"));
        }
        let statistics = connection.counts.told(connection.link.violations().total());
        let previous = json!({
            "server_url": connection.url,
            "connected_at": connection.connected_at(),
            "disconnected_at": now(),
            "statistics": serde_json::from_str::<Value>(statistics.get()).unwrap_or_default(),
        });
        Ok(Answer::success()
            .with("message", to_raw(&message))
            .with("previous_connection", to_raw(&previous))
            .metadata(Metadata::default()))
    }
}
