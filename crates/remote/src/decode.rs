//! From the words of the control socket to those of the hub: servers, tools, calls and errors. What a later version of the
//! yard says beside them is left alone, and what it says otherwise is left out.

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

/// A server as the yard shows it.
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
    auth: Option<String>,
    since: Option<String>,
    retry_in_ms: Option<u64>,
}

impl RemoteServerInfo {
    /// How it is doing. The yard's clock is so much ahead of ours.
    pub(super) fn status(self, clock: ClockOffset) -> SourceStatus {
        let state = SourceState::from_word(&self.state).unwrap_or(SourceState::Failed);
        let now = Instant::now();
        let since = self.since.as_deref().and_then(|since| since.parse::<Timestamp>().ok());
        let age = since.and_then(|Timestamp(since)| clock.remote_now().duration_since(since).ok());
        SourceStatus {
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
            since: age.and_then(|age| now.checked_sub(age)).unwrap_or(now),
            retry_at: self.retry_in_ms.and_then(|wait| now.checked_add(Duration::from_millis(wait))),
            ..SourceStatus::new(state, state != SourceState::Starting)
        }
    }
}

/// What the yard's clock says while ours says something else.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClockOffset {
    ahead: Duration,
    behind: Duration,
}

impl ClockOffset {
    pub(super) fn from_remote_time(theirs: Option<SystemTime>) -> Self {
        let (ours, theirs) = (SystemTime::now(), theirs.unwrap_or_else(SystemTime::now));
        Self {
            ahead: theirs.duration_since(ours).unwrap_or_default(),
            behind: ours.duration_since(theirs).unwrap_or_default(),
        }
    }

    /// The time there, as far as we know.
    fn remote_now(self) -> SystemTime {
        let now = SystemTime::now();
        now.checked_add(self.ahead).and_then(|now| now.checked_sub(self.behind)).unwrap_or(now)
    }
}

fn known(word: Option<&str>, words: &[&'static str]) -> Option<&'static str> {
    words.iter().find(|known| Some(**known) == word).copied()
}

/// A tool as the yard shows it.
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

/// What a message is about a request says.
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
            let said = value()?;
            RequestEvent::Log(LogLine {
                level: serde_json::from_value(said["level"].clone()).unwrap_or(LogLevel::Info),
                logger: said["logger"].as_str().map(str::to_owned),
                data: said["data"].clone(),
            })
        }
        "ask" => {
            let questions = serde_json::from_str::<Vec<Object>>(message.get("questions")?.get()).ok()?;
            RequestEvent::Questions(questions.iter().filter_map(question).collect())
        }
        _ => return None,
    })
}

pub(super) fn progress(said: &Value) -> Option<Progress> {
    Some(Progress {
        progress: said["progress"].as_f64()?,
        total: said["total"].as_f64(),
        message: said["message"].as_str().map(str::to_owned),
    })
}

fn question(said: &Object) -> Option<Question> {
    let word = |key: &str| serde_json::from_str::<String>(said.get(key)?.get()).ok();
    let kind = match word("kind")?.as_str() {
        "elicit_form" => QuestionKind::ElicitForm,
        "elicit_url" => QuestionKind::ElicitUrl,
        "sample" => QuestionKind::Sample,
        "roots" => QuestionKind::Roots,
        _ => return None,
    };
    Some(Question { key: word("key")?, kind, params: said.get("params")?.to_owned() })
}

/// The yard's codes are those of its REST front; where one stands for several kinds, the mildest is meant.
pub(super) fn error(said: &Value) -> HubError {
    let kind = match said["code"].as_str().unwrap_or_default() {
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
    let mut error = HubError::new(kind, said["message"].as_str().unwrap_or("it failed and does not say why"));
    if let Some(suggestion) = said["suggestion"].as_str() {
        error = error.with_suggestion(suggestion);
    }
    if said["details"].is_object() {
        error = error.with_details(said["details"].clone());
    }
    error
}

/// A call that is over, as `mcp_history` tells of it.
pub(super) fn decode_past_call(said: &Value) -> Option<PastCall> {
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    let status = CallStatus::from_word(said["status"].as_str()?)?;
    // Which kind of error it was is not told.
    let ended = CallEndReason::from_record(status, None)?;
    Some(PastCall {
        id: id(said)?,
        kind: EntryKind::from_word(said["thing"].as_str()?)?,
        subject: text("subject")?,
        source: text("serverName"),
        principal: text("principal").unwrap_or_default(),
        session_id: text("sessionId"),
        user_id: text("userId"),
        at: said["startedAt"].as_str()?.parse::<Timestamp>().ok()?.0,
        duration: Duration::from_millis(said["durationMs"].as_u64().unwrap_or_default()),
        ended,
        error: text("error"),
    })
}

fn id(said: &Value) -> Option<ExecutionId> {
    let id = said["id"].as_str()?;
    id.strip_prefix("exec-").unwrap_or(id).parse().ok()
}

/// The members of a request.
pub(super) fn request_fields<const N: usize>(members: [(&str, Value); N]) -> Object {
    let mut words = Object::default();
    for (key, value) in members {
        words.set(key, to_raw(&value));
    }
    words
}
