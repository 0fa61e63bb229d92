//! JSON-RPC 2.0 messages. Only the envelope is parsed; `params`, `result` and `error` stay the text
//! that was received.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::RawJson;
use crate::rpc_error::RpcError;

/// The maximum nesting depth of a message. Deeper JSON is rejected before it is parsed, so that
/// recursion in later code cannot overflow the stack.
const DEEPEST: usize = 128;
/// The maximum number of messages in a batch.
const LARGEST_BATCH: usize = 100;

/// The ID of a request, as its original JSON text: a string or an integer of any size.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Returns the ID as JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    pub fn from_number(number: i64) -> Self {
        Self(number.to_string().into())
    }

    /// Reads an ID from JSON. Only strings and integers are valid IDs.
    pub fn from_json(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (integer || text.starts_with('"')).then(|| Self(text.into()))
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone)]
pub struct RpcRequest {
    pub id: RequestId,
    pub method: String,
    pub params: Option<RawJson>,
}

#[derive(Debug, Clone)]
pub struct RpcNotification {
    pub method: String,
    pub params: Option<RawJson>,
}

#[derive(Debug, Clone)]
pub struct RpcResponse {
    pub id: RequestId,
    /// The `result` or `error` member, unmodified.
    pub result: Result<RawJson, RawJson>,
}

#[derive(Debug, Clone)]
pub enum RpcMessage {
    Request(RpcRequest),
    Notification(RpcNotification),
    Response(RpcResponse),
}

/// One transmission: a single message or a batch.
#[derive(Debug)]
pub enum Packet {
    Single(RpcMessage),
    Batch(Vec<Result<RpcMessage, InvalidMessage>>),
}

/// An invalid message, with the ID to respond to if it could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidMessage {
    pub id: Option<RequestId>,
    pub error: RpcError,
}

impl From<RpcError> for InvalidMessage {
    fn from(error: RpcError) -> Self {
        Self { id: None, error }
    }
}

/// Parses a single message or a batch.
pub fn parse(bytes: &[u8]) -> Result<Packet, InvalidMessage> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| RpcError::parse(format!("invalid UTF-8: {error}")))?;
    if is_too_deep(bytes) {
        return Err(RpcError::invalid_request(format!(
            "message exceeds the nesting limit of {DEEPEST} levels"
        ))
        .into());
    }
    if !text.trim_start().starts_with('[') {
        return parse_message(text).map(Packet::Single);
    }
    let pieces: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| RpcError::parse(format!("invalid JSON: {error}")))?;
    if pieces.is_empty() {
        return Err(RpcError::invalid_request("empty batch").into());
    }
    if pieces.len() > LARGEST_BATCH {
        return Err(RpcError::invalid_request(format!(
            "batch exceeds the limit of {LARGEST_BATCH} messages"
        ))
        .into());
    }
    Ok(Packet::Batch(pieces.into_iter().map(|piece| parse_message(piece.get())).collect()))
}

/// Parses a single message or a batch into a list of messages.
pub(crate) fn parse_all(bytes: &[u8]) -> Vec<Result<RpcMessage, InvalidMessage>> {
    match parse(bytes) {
        Ok(Packet::Single(message)) => vec![Ok(message)],
        Ok(Packet::Batch(messages)) => messages,
        Err(refusal) => vec![Err(refusal)],
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` as a value: an ID of null differs from a missing ID.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn parse_message(text: &str) -> Result<RpcMessage, InvalidMessage> {
    let envelope: Envelope<'_> = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => {
            return Err(RpcError::invalid_request(format!("not a JSON-RPC message: {error}")).into());
        }
        Err(error) => return Err(RpcError::parse(format!("invalid JSON: {error}")).into()),
    };
    let id = envelope.id.and_then(RequestId::from_json);
    let refuse = |message: &str| InvalidMessage { id: id.clone(), error: RpcError::invalid_request(message) };
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(refuse("`jsonrpc` must be \"2.0\""));
    }
    if envelope.id.is_some() && id.is_none() {
        return Err(refuse("`id` must be a string or an integer"));
    }
    if let Some(method) = envelope.method {
        let method = serde_json::from_str::<Cow<'_, str>>(method.get())
            .map_err(|_| refuse("`method` must be a string"))?
            .into_owned();
        if envelope.params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err(refuse("`params` must be an object"));
        }
        let params = envelope.params.map(ToOwned::to_owned);
        return Ok(match id {
            Some(id) => RpcMessage::Request(RpcRequest { id, method, params }),
            None => RpcMessage::Notification(RpcNotification { method, params }),
        });
    }
    let result = match (envelope.result, envelope.error) {
        (Some(result), None) => Ok(result.to_owned()),
        (None, Some(error)) => Err(error.to_owned()),
        _ => return Err(refuse("not a request, a notification or a response")),
    };
    match id {
        Some(id) => Ok(RpcMessage::Response(RpcResponse { id, result })),
        None => Err(refuse("response has no `id`")),
    }
}

fn is_too_deep(bytes: &[u8]) -> bool {
    // Fast path: most messages have fewer brackets than the limit, wherever they are. The chunks
    // are small enough to count in a byte, which lets the compiler vectorize the loop.
    let brackets = |piece: &[u8]| piece.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    if bytes.chunks(usize::from(u8::MAX)).map(|piece| usize::from(brackets(piece))).sum::<usize>() <= DEEPEST
    {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > DEEPEST {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Serializes a response with a result.
pub(crate) fn write_result(id: &RequestId, result: &RawValue) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#, id.as_json(), one_line(result))
}

/// Serializes an error response. `id` is `None` if the ID of the request could not be read.
pub(crate) fn write_error(id: Option<&RequestId>, error: &RpcError) -> String {
    let mut body = serde_json::Map::new();
    body.insert("code".to_owned(), error.code.into());
    body.insert("message".to_owned(), error.message.clone().into());
    if let Some(data) = &error.data {
        body.insert("data".to_owned(), data.clone());
    }
    let body = serde_json::Value::Object(body);
    match id {
        Some(id) => format!(r#"{{"jsonrpc":"2.0","id":{},"error":{body}}}"#, id.as_json()),
        None => format!(r#"{{"jsonrpc":"2.0","error":{body}}}"#),
    }
}

pub(crate) fn write_outcome(id: &RequestId, outcome: &Result<RawJson, RpcError>) -> String {
    match outcome {
        Ok(result) => write_result(id, result),
        Err(error) => write_error(Some(id), error),
    }
}

pub(crate) fn write_notification(method: &str, params: &RawValue) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{}}}"#, one_line(params))
}

pub(crate) fn write_request(id: &RequestId, method: &str, params: &RawValue) -> String {
    let id = id.as_json();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{}}}"#, one_line(params))
}

/// Replaces line breaks with spaces. A message is one line on stdio and one `data:` line in an
/// event stream. Outside strings, a line break in JSON is only whitespace, and strings cannot
/// contain one.
fn one_line(raw: &RawValue) -> Cow<'_, str> {
    let text = raw.get();
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some() {
        Cow::Owned(text.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests;
