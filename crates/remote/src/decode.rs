//! Decodes messages of the control socket into types of the hub: servers, tools, calls and errors.
//! Unknown fields and values of later versions are ignored.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{
    AuthStatus, CallEndReason, CallStatus, EntryKind, ErrorKind, ExecutionId, HubError, LogLevel, LogLine,
    PastCall, Progress, Question, QuestionKind, Raw, SourceState, SourceStatus, Timestamp, ToolListing,
    ToolOffer,
};

use super::control_client::RequestEvent;

/// A server in the responses of the yard.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteServerInfo {
    pub(super) name: String,
    state: String,
    reason: Option<String>,
    transport: Option<String>,
    era: Option<String>,
    protocol_version: Option<String>,
    server_info: Option<Raw>,
    replica: Option<String>,
    auth: Option<String>,
    since: Option<String>,
    retry_in_ms: Option<u64>,
    #[serde(default)]
    replicas: Vec<RemoteServerElsewhere>,
}

/// A server at another replica of the yard.
#[derive(Debug, Deserialize)]
struct RemoteServerElsewhere {
    name: String,
    state: String,
    reason: Option<String>,
}

impl RemoteServerElsewhere {
    /// Returns what is different there, compared with the replica that the socket is connected to.
    fn difference(&self, here: SourceState) -> Option<String> {
        let state = SourceState::from_word(&self.state)?;
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        (state != here).then(|| format!("{} at replica {}{reason}", state.label(), self.name))
    }
}

impl RemoteServerInfo {
    /// Returns the status. `clock` is the offset of the yard's clock.
    pub(super) fn status(self, clock: ClockOffset) -> SourceStatus {
        let state = SourceState::from_word(&self.state).unwrap_or(SourceState::Failed);
        let now = Instant::now();
        let since = self.since.as_deref().and_then(|since| since.parse::<Timestamp>().ok());
        let age = since.and_then(|Timestamp(since)| clock.remote_now().duration_since(since).ok());
        SourceStatus {
            warnings: self.replicas.iter().filter_map(|there| there.difference(state)).collect(),
            reason: self.reason,
            transport: known(self.transport.as_deref(), &["stdio", "streamable-http", "sse", "openapi"]),
            version: known(
                self.protocol_version.as_deref(),
                &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
            ),
            era: known(self.era.as_deref(), &["legacy", "modern"]),
            authorization: self
                .auth
                .as_deref()
                .and_then(AuthStatus::from_word)
                .unwrap_or(AuthStatus::Unsupported),
            server_info: self.server_info,
            replica: self.replica,
            since: age.and_then(|age| now.checked_sub(age)).unwrap_or(now),
            retry_at: self.retry_in_ms.and_then(|wait| now.checked_add(Duration::from_millis(wait))),
            ..SourceStatus::new(state, state != SourceState::Starting)
        }
    }
}

/// The difference between the clock of the yard and the local clock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClockOffset {
    ahead: Duration,
    behind: Duration,
}

impl ClockOffset {
    pub(super) fn from_remote_time(remote: Option<SystemTime>) -> Self {
        let (local, remote) = (SystemTime::now(), remote.unwrap_or_else(SystemTime::now));
        Self {
            ahead: remote.duration_since(local).unwrap_or_default(),
            behind: local.duration_since(remote).unwrap_or_default(),
        }
    }

    /// Returns the estimated current time of the yard.
    fn remote_now(self) -> SystemTime {
        let now = SystemTime::now();
        now.checked_add(self.ahead).and_then(|now| now.checked_sub(self.behind)).unwrap_or(now)
    }
}

fn known(word: Option<&str>, words: &[&'static str]) -> Option<&'static str> {
    words.iter().find(|known| Some(**known) == word).copied()
}

/// A tool in the responses of the yard.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteToolInfo {
    pub(super) name: String,
    pub(super) full_name: String,
    pub(super) server_name: String,
    #[serde(default)]
    permissions: Vec<String>,
    #[serde(default)]
    tags: Vec<Value>,
    version: Option<String>,
    definition: Raw,
}

impl RemoteToolInfo {
    pub(super) fn into_offer(self) -> ToolOffer {
        let mut metadata = Map::new();
        if let Some(version) = self.version {
            metadata.insert("version".to_owned(), version.into());
        }
        if !self.tags.is_empty() {
            metadata.insert("tags".to_owned(), self.tags.into());
        }
        ToolOffer {
            definition: self.definition,
            permissions: self.permissions,
            metadata,
            hooks: Vec::new(),
            listing: ToolListing::Listed,
        }
    }
}

/// Decodes a message about a request.
pub(super) fn decode_event(kind: &str, message: &Object) -> Option<RequestEvent> {
    let value = || serde_json::from_str::<Value>(message.to_raw().get()).ok();
    Some(match kind {
        "response" => RequestEvent::Response(Ok(message.get("response")?.to_owned())),
        "error" => {
            let error = serde_json::from_str::<Value>(message.get("error")?.get()).ok()?;
            RequestEvent::Response(Err(self::error(&error)))
        }
        "progress" => RequestEvent::Progress(progress(&value()?)?),
        "chunk" => RequestEvent::Chunk(serde_json::from_str(message.get("chunk")?.get()).ok()?),
        "log" => {
            let log = value()?;
            RequestEvent::Log(LogLine {
                level: serde_json::from_value(log["level"].clone()).unwrap_or(LogLevel::Info),
                logger: log["logger"].as_str().map(str::to_owned),
                data: log["data"].clone(),
            })
        }
        "ask" => {
            let questions = serde_json::from_str::<Vec<Object>>(message.get("questions")?.get()).ok()?;
            RequestEvent::Questions(questions.iter().filter_map(question).collect())
        }
        _ => return None,
    })
}

pub(super) fn progress(message: &Value) -> Option<Progress> {
    Some(Progress {
        progress: message["progress"].as_f64()?,
        total: message["total"].as_f64(),
        message: message["message"].as_str().map(str::to_owned),
    })
}

fn question(members: &Object) -> Option<Question> {
    let string = |key: &str| serde_json::from_str::<String>(members.get(key)?.get()).ok();
    let kind = match string("kind")?.as_str() {
        "elicit_form" => QuestionKind::ElicitForm,
        "elicit_url" => QuestionKind::ElicitUrl,
        "sample" => QuestionKind::Sample,
        "roots" => QuestionKind::Roots,
        _ => return None,
    };
    Some(Question { key: string("key")?, kind, params: members.get("params")?.to_owned() })
}

/// Decodes an error. The codes are those of the REST front; a code that stands for several kinds is
/// mapped to the mildest.
pub(super) fn error(members: &Value) -> HubError {
    let kind = match members["code"].as_str().unwrap_or_default() {
        "TOOL_NOT_FOUND" => ErrorKind::UnknownTool,
        "NOT_FOUND" => ErrorKind::UnknownResource,
        "VALIDATION_ERROR" => ErrorKind::InvalidArguments,
        "AUTHENTICATION_ERROR" => ErrorKind::Unauthenticated,
        "PERMISSION_ERROR" => ErrorKind::Forbidden,
        "RATE_LIMIT_ERROR" => ErrorKind::RateLimited,
        "PAYLOAD_TOO_LARGE" => ErrorKind::TooLarge,
        "TIMEOUT_ERROR" => ErrorKind::TimedOut,
        "CANCELLED" => ErrorKind::Cancelled,
        "INTERNAL_ERROR" => ErrorKind::Bug,
        _ => ErrorKind::ToolFailed,
    };
    let message = members["message"].as_str().unwrap_or("the request failed without an error message");
    let mut error = HubError::new(kind, message);
    if let Some(suggestion) = members["suggestion"].as_str() {
        error = error.with_suggestion(suggestion);
    }
    if members["details"].is_object() {
        error = error.with_details(members["details"].clone());
    }
    error
}

/// Decodes a finished call from the response of `mcp_history`.
pub(super) fn decode_past_call(call: &Value) -> Option<PastCall> {
    let text = |key: &str| call[key].as_str().map(str::to_owned);
    let status = CallStatus::from_word(call["status"].as_str()?)?;
    // The response does not contain the kind of error.
    let ended = CallEndReason::from_record(status, None)?;
    Some(PastCall {
        id: id(call)?,
        kind: EntryKind::from_word(call["thing"].as_str()?)?,
        subject: text("subject")?,
        source: text("serverName"),
        principal: text("principal").unwrap_or_default(),
        session_id: text("sessionId"),
        user_id: text("userId"),
        at: call["startedAt"].as_str()?.parse::<Timestamp>().ok()?.0,
        duration: Duration::from_millis(call["durationMs"].as_u64().unwrap_or_default()),
        ended,
        error: text("error"),
        replica: text("replica"),
    })
}

fn id(call: &Value) -> Option<ExecutionId> {
    let id = call["id"].as_str()?;
    id.strip_prefix("exec-").unwrap_or(id).parse().ok()
}

/// Returns the parameters of a request.
pub(super) fn request_fields<const N: usize>(members: [(&str, Value); N]) -> Object {
    let mut params = Object::default();
    for (key, value) in members {
        params.set(key, to_raw(&value));
    }
    params
}
