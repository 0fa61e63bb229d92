//! `get_connection_status`

use toolyard_hub::json::to_raw;

use super::ToolInvocation;
use crate::answer::{AnswerMetadata, TesterAnswer};
use crate::connection::ConnectionCounts;

impl ToolInvocation<'_> {
    pub(super) fn get_connection_status(&self) -> TesterAnswer {
        let answer = match self.tester.connections.connection(&self.caller) {
            Err(_) => {
                let nothing = ConnectionCounts::default().to_json(0);
                TesterAnswer::default().with("connected", to_raw(&false)).with("statistics", nothing)
            }
            Ok(connection) => {
                let (gone, violations) = (connection.lost_reason(), connection.link.violations());
                let mut answer = TesterAnswer::default()
                    .with("connected", to_raw(&gone.is_none()))
                    .with("connection", connection.details_json())
                    .with("statistics", connection.counts.to_json(violations.total()));
                if violations.total() > 0 && !connection.terms.hides_failures {
                    answer = answer.with("protocol_violations", to_raw(&violations.last()));
                }
                // A server that is gone is not connected, but the answer still describes it.
                gone.into_iter().fold(answer, |answer, why| answer.with("lost", to_raw(&why)))
            }
        };
        answer.with_metadata(AnswerMetadata::default())
    }
}
