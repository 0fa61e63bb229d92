//! The record of a call: its facts, put together once when the call is accepted, and how it ended. Sources, hooks, limits,
//! events, audit and history all read this one record.

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

/// Who calls what, for whom, and since when. Watchers keep many of these, so nothing large is in it: arguments, headers
/// and `_meta` travel beside it.
#[derive(Debug, Clone)]
pub struct CallRecord {
    pub id: ExecutionId,
    pub kind: EntryKind,
    /// The full name or URI, without secrets. If it leads nowhere, the beginning of what the caller sent.
    pub subject: Arc<str>,
    /// Not set if the name leads nowhere.
    pub source: Option<SourceName>,
    /// The full name of the tool, if it is one.
    pub tool: Option<FullName>,
    pub principal: Principal,
    /// Its `version` is the one that the name led to.
    pub context: CallContext,
    pub priority: Priority,
    pub accepted_at: SystemTime,
}

impl CallRecord {
    /// A call that was accepted just now. Fronts need none of these: [`Yard::call`](crate::Yard::call) makes them.
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

    /// The full name of the tool; empty for anything else.
    pub fn tool_name(&self) -> &str {
        self.tool.as_ref().map_or("", FullName::as_str)
    }

    /// The name of the source; empty if the name led nowhere.
    pub fn source_name(&self) -> &str {
        self.source.as_ref().map_or("", SourceName::as_str)
    }
}

/// Records every call that was accepted, including those that were refused.
pub trait Recorder: Send + Sync {
    /// Whether it wants the arguments, which are then copied for every call.
    fn wants_arguments(&self) -> bool {
        false
    }

    /// Whether calls may be made now. A call that may not is refused before it reaches its source, and is recorded.
    fn admit(&self) -> Result<(), HubError> {
        Ok(())
    }

    /// Takes the call in immediately; the future completes when the record is safe. The result goes out only after that,
    /// however long it takes. If the caller has hung up, the future is dropped, and the record must be kept all the same.
    /// An error goes out instead of the result.
    fn record(&self, call: FinishedCall<'_>) -> BoxFuture<'static, Result<(), HubError>>;

    /// How many records could not be kept since the start.
    fn lost_records(&self) -> u64 {
        0
    }
}

/// A call that is over, and how it ended.
#[derive(Debug, Clone, Copy)]
pub struct FinishedCall<'a> {
    pub call: &'a CallRecord,
    pub duration: Duration,
    pub ended: CallEndReason,
    /// Why there is no outcome, if there is none.
    pub error: Option<&'a HubError>,
    pub outcome: Option<&'a Outcome>,
    /// Hides secrets in what came from outside. The record's subject has been through it already.
    pub redaction: &'a Redaction,
    /// The arguments as the caller sent them. Only if the recorder wants arguments, and only for tools and prompts.
    pub arguments: Option<&'a RawValue>,
}
