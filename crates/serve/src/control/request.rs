//! The messages of a client: the envelope and the parameters of each request. Unknown members are
//! rejected, so that a misspelled parameter is not silently ignored.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::Raw;
use toolyard_hub::json::{Object, to_raw};

use super::errors::ControlError;

const LONGEST_ID: usize = 64;
const LONGEST_WORD: usize = 64;

/// The ID of a request, unique among the running requests of one socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum ControlRequestId {
    Number(i64),
    Text(String),
}

impl fmt::Display for ControlRequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// The kind of a request. Parsing looks it up in [`ControlRequest::ALL`], so a kind that is missing
/// there cannot be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlRequest {
    Hello,
    Subscribe,
    Unsubscribe,
    Servers,
    Tools,
    Tool,
    Prompts,
    List,
    Call,
    Read,
    Prompt,
    Complete,
    Cancel,
    Answer,
    History,
    Transcript,
    Stderr,
    Replicas,
    Reconnect,
    Enable,
    Disable,
    LogIn,
}

impl ControlRequest {
    /// Every request with its `subtype`.
    pub(super) const ALL: [(Self, &str); 22] = [
        (Self::Hello, "hello"),
        (Self::Subscribe, "subscribe"),
        (Self::Unsubscribe, "unsubscribe"),
        (Self::Servers, "mcp_servers"),
        (Self::Tools, "mcp_tools"),
        (Self::Tool, "mcp_tool"),
        (Self::Prompts, "mcp_prompts"),
        (Self::List, "mcp_list"),
        (Self::Call, "mcp_call"),
        (Self::Read, "mcp_read"),
        (Self::Prompt, "mcp_prompt"),
        (Self::Complete, "mcp_complete"),
        (Self::Cancel, "mcp_cancel"),
        (Self::Answer, "mcp_answer"),
        (Self::History, "mcp_history"),
        (Self::Transcript, "mcp_transcript"),
        (Self::Stderr, "mcp_stderr"),
        (Self::Replicas, "mcp_replicas"),
        (Self::Reconnect, "mcp_reconnect"),
        (Self::Enable, "mcp_enable"),
        (Self::Disable, "mcp_disable"),
        (Self::LogIn, "mcp_login"),
    ];

    /// Returns whether the response is a list. Lists count against the caller's rate limit, as
    /// calls do.
    pub(super) fn is_list(self) -> bool {
        matches!(
            self,
            Self::Servers
                | Self::Tools
                | Self::Prompts
                | Self::List
                | Self::History
                | Self::Transcript
                | Self::Stderr
                | Self::Replicas
        )
    }

    fn parse(subtype: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == subtype).map(|(request, _)| request)
    }
}

/// One request with unparsed parameters.
#[derive(Debug)]
pub(super) struct ControlEnvelope {
    pub(super) id: ControlRequestId,
    pub(super) subtype: String,
    /// The kind of the request, or `None` if the subtype is unknown.
    pub(super) request: Option<ControlRequest>,
    raw_params: Raw,
}

impl ControlEnvelope {
    /// Parses the envelope. Without a valid envelope there is no request to respond to.
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            subtype: Option<Value>,
        }
        let raw: &RawValue = serde_json::from_str(text).map_err(|_| "the message is not valid JSON")?;
        let envelope: Envelope<'_> =
            serde_json::from_str(raw.get()).map_err(|_| "the message is not a JSON object")?;
        let id = envelope.id.and_then(|id| serde_json::from_str(id.get()).ok()).filter(|id| match id {
            ControlRequestId::Number(_) => true,
            ControlRequestId::Text(text) => text.len() <= LONGEST_ID,
        });
        let id = id.ok_or("`id` must be an integer or a string of at most 64 bytes")?;
        let Some(Value::String(subtype)) = envelope.subtype else { return Err("`subtype` must be a string") };
        if subtype.len() > LONGEST_WORD {
            return Err("`subtype` exceeds the limit of 64 bytes");
        }
        let params =
            Object::parse_without(raw, &["id", "subtype"]).map_err(|_| "the message is not a JSON object")?;
        Ok(Self { id, request: ControlRequest::parse(&subtype), subtype, raw_params: params.to_raw() })
    }

    /// Parses the parameters of this request.
    pub(super) fn params<T: DeserializeOwned>(&self) -> Result<T, ControlError> {
        serde_json::from_str(self.raw_params.get()).map_err(|error| {
            ControlError::invalid(format!("invalid parameters of {}: {error}", self.subtype))
        })
    }
}

/// A message about a request.
#[derive(Serialize)]
pub(super) struct ControlRequestMessage<'a, T> {
    pub(super) r#type: &'static str,
    pub(super) id: &'a ControlRequestId,
    #[serde(flatten)]
    pub(super) more: T,
}

impl<T: Serialize> ControlRequestMessage<'_, T> {
    pub(super) fn write(&self) -> String {
        to_raw(self).get().to_owned()
    }
}

/// Renders a response. Concatenates text, because the body may be large.
pub(super) fn response(id: &ControlRequestId, subtype: &str, body: &str) -> String {
    format!(r#"{{"type":"response","id":{},"subtype":{},"response":{body}}}"#, to_raw(id), to_raw(subtype))
}

/// Renders an error response.
pub(super) fn error(id: &ControlRequestId, subtype: &str, failure: &ControlError) -> String {
    format!(
        r#"{{"type":"error","id":{},"subtype":{},"error":{}}}"#,
        to_raw(id),
        to_raw(subtype),
        to_raw(failure)
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyParams {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HelloParams {
    pub(super) token: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerFilterParams {
    pub(super) server_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerNameParams {
    pub(super) server_name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolNameParams {
    pub(super) tool: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TranscriptParams {
    pub(super) server_name: String,
    pub(super) after: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribeParams {
    pub(super) events: Vec<String>,
    pub(super) after: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnsubscribeParams {
    pub(super) events: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelParams {
    pub(super) request: ControlRequestId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerParams {
    pub(super) request: ControlRequestId,
    pub(super) answers: Object,
}

#[cfg(test)]
mod tests {
    use super::{ControlEnvelope, ControlRequestId, HelloParams};

    #[test]
    fn invalid_messages_are_rejected() {
        for wrong in [
            "",
            "x",
            "[]",
            "1",
            "null",
            "{}",
            r#"{"id":1}"#,
            r#"{"id":null,"subtype":"hello"}"#,
            r#"{"id":1.5,"subtype":"hello"}"#,
            r#"{"id":[1],"subtype":"hello"}"#,
            r#"{"id":1,"subtype":7}"#,
            r#"{"id":1,"subtype":"hello"} {}"#,
            r#"{"id":99999999999999999999,"subtype":"hello"}"#,
            &format!(r#"{{"id":"{}","subtype":"hello"}}"#, "x".repeat(65)),
            &format!(r#"{{"id":1,"subtype":"{}"}}"#, "x".repeat(65)),
        ] {
            assert!(ControlEnvelope::read(wrong).is_err(), "{wrong}");
        }
        let envelope = ControlEnvelope::read(r#"{"token":"t","id":"a","subtype":"hello"}"#).unwrap();
        assert_eq!(
            (envelope.id.clone(), envelope.subtype.as_str()),
            (ControlRequestId::Text("a".to_owned()), "hello")
        );
        assert_eq!(envelope.params::<HelloParams>().ok().and_then(|hello| hello.token), Some("t".to_owned()));
    }

    #[test]
    fn unknown_parameters_are_rejected() {
        let envelope = ControlEnvelope::read(r#"{"id":1,"subtype":"hello","tokken":"t"}"#).unwrap();
        assert!(envelope.params::<HelloParams>().is_err());
    }
}
