//! The record of a call: its facts, collected once when the call is accepted, and how it ended.
//! Sources, hooks, limits, events, audit and history all read this record.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;

use crate::BoxFuture;
use crate::error::HubError;
use crate::events::CallEndReason;
use crate::execution::ExecutionId;
use crate::name::{FullName, SourceName};
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::redact::Redaction;
use crate::request::{CallContext, EntryKind, Priority};

/// Who calls what, on whose behalf, and since when. Watchers keep many of these, so it contains
/// nothing large: arguments, headers and `_meta` are passed separately.
#[derive(Debug, Clone)]
pub struct CallRecord {
    pub id: ExecutionId,
    pub kind: EntryKind,
    /// The full name or URI, with secrets redacted. If the name is unknown, the beginning of what
    /// the caller sent.
    pub subject: Arc<str>,
    /// `None` if the name is unknown.
    pub source: Option<SourceName>,
    /// The full name of the tool, if the target is a tool.
    pub tool: Option<FullName>,
    pub principal: Principal,
    /// Its `version` is the version that the name resolved to.
    pub context: CallContext,
    pub priority: Priority,
    pub accepted_at: SystemTime,
}

impl CallRecord {
    /// Creates the record of a call that is accepted now. Fronts do not need this:
    /// [`Yard::call`](crate::Yard::call) creates the record.
    pub fn new(id: ExecutionId, kind: EntryKind, subject: impl Into<Arc<str>>, principal: Principal) -> Self {
        Self {
            id,
            kind,
            subject: subject.into(),
            source: None,
            tool: None,
            principal,
            context: CallContext::default(),
            priority: Priority::Normal,
            accepted_at: SystemTime::now(),
        }
    }

    /// The full name of the tool, or an empty string for other targets.
    pub fn tool_name(&self) -> &str {
        self.tool.as_ref().map_or("", FullName::as_str)
    }

    /// The name of the source, or an empty string if the name is unknown.
    pub fn source_name(&self) -> &str {
        self.source.as_ref().map_or("", SourceName::as_str)
    }
}

/// Records every accepted call, including calls that were refused afterwards.
pub trait Recorder: Send + Sync {
    /// Returns whether the recorder needs the arguments. They are then copied for every call.
    fn wants_arguments(&self) -> bool {
        false
    }

    /// Checks whether calls may be made now. Otherwise the call is refused before it reaches its
    /// source, and the refusal is recorded.
    fn admit(&self) -> Result<(), HubError> {
        Ok(())
    }

    /// Takes the record immediately. The future completes when the record is durable; only then is
    /// the result returned, however long that takes. If the caller has disconnected, the future is
    /// dropped, and the record must be kept anyway. An error is returned in place of the result.
    fn record(&self, call: FinishedCall<'_>) -> BoxFuture<'static, Result<(), HubError>>;

    /// The number of records that were lost since the start.
    fn lost_records(&self) -> u64 {
        0
    }
}

/// A call that has ended, and how it ended.
#[derive(Debug, Clone, Copy)]
pub struct FinishedCall<'a> {
    pub call: &'a CallRecord,
    pub duration: Duration,
    pub ended: CallEndReason,
    /// The error, if the call has no outcome.
    pub error: Option<&'a HubError>,
    pub outcome: Option<&'a Outcome>,
    /// Redacts secrets in untrusted text. The subject of the record is already redacted.
    pub redaction: &'a Redaction,
    /// The arguments as sent by the caller. Only set if the recorder needs arguments, and only for
    /// tools and prompts.
    pub arguments: Option<&'a RawValue>,
}
