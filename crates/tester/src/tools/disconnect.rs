//! `disconnect`

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;

use super::ToolInvocation;
use crate::answer::{AnswerMetadata, TesterAnswer, now};
use crate::error::TesterError;

impl ToolInvocation<'_> {
    pub(super) async fn disconnect(&self) -> Result<TesterAnswer, TesterError> {
        let connection = self.tester.connections.remove(&self.caller)?;
        let gone = connection.lost_reason();
        let ended = connection.close().await;
        let mut message = format!("Disconnected from {}", connection.url);
        if let Some(why) = gone {
            message.push_str(&format!("; the server was already gone: {why}"));
        }
        if let Some(ended) = ended {
            message.push_str(&format!("; its process {ended}"));
        }
        let statistics = connection.counts.to_json(connection.link.violations().total());
        let previous = json!({
            "server_url": connection.url,
            "connected_at": connection.connected_at(),
            "disconnected_at": now(),
            "statistics": serde_json::from_str::<Value>(statistics.get()).unwrap_or_default(),
        });
        let mut answer = TesterAnswer::success()
            .with("message", to_raw(&message))
            .with("previous_connection", to_raw(&previous));
        let mut metadata = AnswerMetadata::default();
        if let Some(file) = connection.saved_calls.render() {
            answer = answer.with("test_file", to_raw(&file));
            metadata.add_note(
                "test_file repeats these calls: save it as NAME.mcp.yaml and run it with `toolyard test`",
            );
        }
        Ok(answer.with_metadata(metadata))
    }
}
