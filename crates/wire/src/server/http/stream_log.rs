//! What is written down of the streams of a session, so that another process can finish them after
//! this one has died. Where it is written is the responsibility of the service.

use std::collections::HashSet;
use std::fmt::{Debug, Write};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::message::{RequestId, write_error};
use crate::rpc_error::{RpcError, code};

/// The log of the streams of one session. Its methods return immediately.
pub trait StreamLog: Debug + Send + Sync {
    /// Records the requests whose responses are sent on a stream.
    fn open(&self, stream: u64, requests: &[RequestId]);

    /// Records an event before it is sent.
    fn append(&self, stream: u64, event: u64, text: &str);
}

/// A stream of a process that has died.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoggedStream {
    pub requests: Vec<RequestId>,
    /// With their numbers, in order.
    pub events: Vec<(u64, String)>,
}

impl LoggedStream {
    /// Returns the events after `last`, and an error for each request that was not answered.
    pub(crate) fn replay(&self, stream: u64, last: u64) -> String {
        let answered: HashSet<RequestId> =
            self.events.iter().filter_map(|(_, text)| answered_request(text)).collect();
        let mut text = String::new();
        let mut add = |number: u64, message: &str| {
            let _ = write!(text, "id: {stream}-{number}\ndata: {message}\n\n");
        };
        for (number, message) in self.events.iter().filter(|(number, _)| *number > last) {
            add(*number, message);
        }
        let end = self.events.last().map_or(0, |(number, _)| *number);
        let lost = self.requests.iter().filter(|id| !answered.contains(*id));
        for (number, id) in (end + 1..).zip(lost).filter(|(number, _)| *number > last) {
            let message =
                "the process that executed this request has died; the request may have been executed";
            add(number, &write_error(Some(id), &RpcError::new(code::INTERNAL, message)));
        }
        text
    }
}

/// Returns the ID of the request that this message responds to.
fn answered_request(text: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        result: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    envelope.result.or(envelope.error)?;
    RequestId::from_json(envelope.id?)
}

#[cfg(test)]
mod tests {
    use super::LoggedStream;
    use crate::message::RequestId;

    #[test]
    fn a_stream_is_replayed_and_every_request_gets_a_response() {
        let id = RequestId::from_number;
        let events = [
            (1, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":8}}"#),
            (2, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            (3, r#"{"jsonrpc":"2.0","id":8,"method":"roots/list"}"#),
        ];
        let events = events.map(|(number, text)| (number, text.to_owned())).into();
        let stream = LoggedStream { requests: vec![id(7), id(8)], events };
        let error = r#"{"code":-32603,"message":"the process that executed this request has died; the request may have been executed"}"#;
        let lost = format!("id: 5-4\ndata: {{\"jsonrpc\":\"2.0\",\"id\":8,\"error\":{error}}}\n\n");
        let answer = "id: 5-2\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n";
        let question = "id: 5-3\ndata: {\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"roots/list\"}\n\n";
        assert_eq!(stream.replay(5, 1), format!("{answer}{question}{lost}"));
        assert_eq!(stream.replay(5, 3), lost);
        assert_eq!(stream.replay(5, 4), "", "the client has already received everything");
        assert_eq!(LoggedStream::default().replay(5, 0), "");
    }
}
