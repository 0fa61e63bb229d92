//! The messages that a replica sends to another one that follows its events: one JSON object per
//! line. What a call or a status means belongs to the journal.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallContext, CallEndReason, CallRecord, CallStatus, EntryKind, ErrorKind, FrontName, Permissions,
    Principal, Progress, SourceName, SourceState, SourceStatus, StderrLine,
};

use crate::control::journal::{
    EndCertainty, JournalCall, JournalCallEnd, JournalReplica, LogEntry, ServerElsewhere,
};

/// Longer messages are not sent.
pub(super) const LONGEST_MESSAGE: usize = 1024 * 1024;

const FRONTS: [FrontName; 5] =
    [FrontName::Mcp, FrontName::Rest, FrontName::Control, FrontName::Ui, FrontName::Cli];
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// A message of the feed. A feed starts with its state, `Call`s and `Server`s up to `Current`, or
/// with `Resumed`. Events follow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum FeedMessage<'a> {
    /// A running or recently finished call.
    #[serde(borrow)]
    Call(FeedCall<'a>),
    /// The state is complete.
    Current,
    /// The events after the requested position follow.
    Resumed,
    /// The status of a server. The state is `None` if the server was removed.
    Server {
        name: Cow<'a, str>,
        state: Option<Cow<'a, str>>,
        reason: Option<Cow<'a, str>>,
    },
    CallStarted(FeedCall<'a>),
    CallProgress {
        id: Cow<'a, str>,
        progress: f64,
        total: Option<f64>,
        message: Option<Cow<'a, str>>,
    },
    CallEnded(FeedCall<'a>),
    Log {
        at: u64,
        level: Cow<'a, str>,
        target: Cow<'a, str>,
        source: Option<Cow<'a, str>>,
        message: Cow<'a, str>,
    },
    Stderr {
        at: u64,
        source: Cow<'a, str>,
        line: Cow<'a, str>,
    },
    /// This many events were lost. If calls may be among them, the state follows.
    Lost {
        events: u64,
    },
    /// All events up to this number of the sender's journal were sent.
    Position {
        seq: u64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FeedCall<'a> {
    id: Cow<'a, str>,
    kind: Cow<'a, str>,
    subject: Cow<'a, str>,
    source: Option<Cow<'a, str>>,
    principal: Cow<'a, str>,
    session_id: Option<Cow<'a, str>>,
    user_id: Option<Cow<'a, str>>,
    front: Option<Cow<'a, str>>,
    /// In microseconds.
    accepted_at: u64,
    end: Option<FeedCallEnd<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FeedCallEnd<'a> {
    status: Cow<'a, str>,
    kind: Option<Cow<'a, str>>,
    error: Option<Cow<'a, str>>,
    /// In microseconds.
    duration: u64,
}

impl FeedMessage<'_> {
    /// Appends the message as one line. Returns false if it is too long.
    #[must_use]
    pub(super) fn write(&self, text: &mut String) -> bool {
        let raw = to_raw(self);
        let fits = raw.get().len() < LONGEST_MESSAGE;
        if fits {
            text.push_str(raw.get());
            text.push('\n');
        }
        fits
    }
}

impl<'a> FeedMessage<'a> {
    pub(super) fn from_status(name: &'a SourceName, status: Option<&'a SourceStatus>) -> Self {
        Self::Server {
            name: name.as_str().into(),
            state: status.map(|status| status.state.as_str().into()),
            reason: status.and_then(|status| status.reason.as_deref()).map(Into::into),
        }
    }

    pub(super) fn from_progress(call: &JournalCall, progress: &'a Progress) -> Self {
        Self::CallProgress {
            id: call.record.id.to_string().into(),
            progress: progress.progress,
            total: progress.total,
            message: progress.message.as_deref().map(Into::into),
        }
    }

    pub(super) fn from_log_line(line: &'a LogEntry) -> Self {
        Self::Log {
            at: micros(line.at),
            level: line.level.into(),
            target: line.target.as_str().into(),
            source: line.source.as_deref().map(Into::into),
            message: line.message.as_str().into(),
        }
    }

    pub(super) fn from_stderr_line(line: &'a StderrLine) -> Self {
        Self::Stderr {
            at: micros(line.at),
            source: line.source.as_str().into(),
            line: line.line.as_str().into(),
        }
    }
}

impl<'a> FeedCall<'a> {
    pub(super) fn from_call(call: &'a JournalCall) -> Self {
        let record = &call.record;
        let end = |end: &'a JournalCallEnd| FeedCallEnd {
            status: CallStatus::from(end.ended).as_str().into(),
            kind: end.ended.error_kind().map(|kind| kind.as_str().into()),
            error: end.error.as_deref().map(Into::into),
            duration: u64::try_from(end.duration.as_micros()).unwrap_or(u64::MAX),
        };
        Self {
            id: record.id.to_string().into(),
            kind: record.kind.as_str().into(),
            subject: (&*record.subject).into(),
            source: record.source.as_ref().map(|source| source.as_str().into()),
            principal: record.principal.id().into(),
            session_id: record.context.session_id.as_deref().map(Into::into),
            user_id: record.context.user_id.as_deref().map(Into::into),
            front: record.context.front.map(|front| front.as_str().into()),
            accepted_at: micros(record.accepted_at),
            end: call.end.as_ref().map(end),
        }
    }

    /// Returns the call as the journal keeps it, or `None` if a later version sent something that
    /// this one does not know. Its principal holds no permissions: it only says whose call it is.
    pub(super) fn into_call(self, replica: &Arc<JournalReplica>) -> Option<JournalCall> {
        let id = self.id.parse().ok()?;
        let caller = Principal::new(self.principal.as_ref(), Permissions::Only(Default::default()));
        let record = CallRecord {
            source: self.source.map(|source| SourceName::new(source.as_ref())),
            context: CallContext {
                session_id: self.session_id.map(|label| label.as_ref().into()),
                user_id: self.user_id.map(|label| label.as_ref().into()),
                front: self.front.and_then(|word| FRONTS.into_iter().find(|front| front.as_str() == word)),
                ..CallContext::default()
            },
            accepted_at: time(self.accepted_at)?,
            ..CallRecord::new(id, EntryKind::from_word(&self.kind)?, self.subject.as_ref(), caller)
        };
        let end = match self.end {
            Some(end) => Some(end.into_end()?),
            None => None,
        };
        Some(JournalCall { replica: Some(Arc::clone(replica)), record: Arc::new(record), end })
    }
}

impl FeedCallEnd<'_> {
    fn into_end(self) -> Option<JournalCallEnd> {
        let kind = self.kind.as_deref().and_then(ErrorKind::from_words);
        Some(JournalCallEnd {
            ended: CallEndReason::from_record(CallStatus::from_word(&self.status)?, kind)?,
            error: self.error.map(Cow::into_owned),
            duration: Duration::from_micros(self.duration),
            certainty: EndCertainty::Reported,
        })
    }
}

pub(super) fn read_log_line(
    at: u64,
    level: &str,
    (target, source, message): (Cow<'_, str>, Option<Cow<'_, str>>, Cow<'_, str>),
) -> Option<LogEntry> {
    Some(LogEntry {
        at: time(at)?,
        level: LEVELS.into_iter().find(|known| *known == level)?,
        target: target.into_owned(),
        source: source.map(Cow::into_owned),
        message: message.into_owned(),
    })
}

pub(super) fn read_stderr_line(at: u64, source: &str, line: Cow<'_, str>) -> Option<StderrLine> {
    Some(StderrLine { at: time(at)?, source: SourceName::new(source), line: line.into_owned() })
}

/// Returns the status of a server at another replica, unless its state is unknown to this version.
pub(super) fn read_server(
    replica: &Arc<JournalReplica>,
    state: &str,
    reason: Option<Cow<'_, str>>,
) -> Option<ServerElsewhere> {
    let state = SourceState::from_word(state)?;
    Some(ServerElsewhere { replica: Arc::clone(replica), state, reason: reason.map(Cow::into_owned) })
}

fn micros(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn time(micros: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_micros(micros))
}
