//! `get_connection_status`

use toolyard_hub::json::to_raw;

use super::Use;
use crate::answer::{Answer, Metadata};
use crate::connection::Counts;

impl Use<'_> {
    pub(super) fn get_connection_status(&self) -> Answer {
        let answer = match self.tester.seats.connection(&self.caller) {
            Err(_) => {
                let nothing = Counts::default().told(0);
                Answer::default().with("connected", to_raw(&false)).with("statistics", nothing)
            }
            Ok(connection) => {
                let (gone, violations) = (connection.lost(), connection.link.violations());
                let mut answer = Answer::default()
                    .with("connected", to_raw(&gone.is_none()))
                    .with("connection", connection.full())
                    .with("statistics", connection.counts.told(violations.total()));
                if violations.total() > 0 && !connection.terms.hides_failures {
                    answer = answer.with("protocol_violations", to_raw(&violations.last()));
                }
                // A server that went away is not connected to, and whoever asks wants to know what it was.
                gone.into_iter().fold(answer, |answer, why| answer.with("lost", to_raw(&why)))
            }
        };
        answer.metadata(Metadata::default())
    }
}
