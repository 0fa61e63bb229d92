//! The facts of one call. They are put together once, when the call is accepted; sources, hooks, limits, events, audit and
//! history all read this one record.

use std::sync::Arc;
use std::time::SystemTime;

use crate::execution::ExecutionId;
use crate::name::{FullName, SourceName};
use crate::principal::Principal;
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
