//! One record per call, for whoever keeps a history. How it is kept is not known here.

use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;

use crate::BoxFuture;
use crate::error::HubError;
use crate::events::CallEndReason;
use crate::execution::ExecutionId;
use crate::name::SourceName;
use crate::outcome::Outcome;
use crate::redact::Redaction;
use crate::request::{CallOrigin, EntryKind, Priority};

/// Keeps a record of every call that enters the corridor, refused ones included.
pub trait Recorder: Send + Sync {
    /// Whether records are to carry arguments, which then are copied for every call.
    fn wants_arguments(&self) -> bool {
        false
    }

    /// Whether calls may be made now; one that may not is refused before it reaches its source, and recorded as any
    /// other.
    fn admit(&self) -> Result<(), HubError> {
        Ok(())
    }

    /// Takes the record in at once; the future completes when it is safe. The corridor waits for that before the
    /// answer goes out, however long it takes. Where the caller has hung up, nobody waits, and the future is dropped:
    /// the record is to be kept all the same. An error goes out in place of the answer.
    fn record(&self, record: CallRecord<'_>) -> BoxFuture<'static, Result<(), HubError>>;

    /// How many records could not be kept since the start.
    fn lost(&self) -> u64 {
        0
    }
}

/// Who, what, when, how long, and how it ended.
#[derive(Debug, Clone, Copy)]
pub struct CallRecord<'a> {
    pub id: ExecutionId,
    pub thing: EntryKind,
    /// The full name or address; where it led nowhere, the beginning of what the caller said.
    pub subject: &'a str,
    /// Nothing where the name led nowhere.
    pub source: Option<&'a SourceName>,
    pub principal: &'a str,
    pub session_id: Option<&'a str>,
    pub user_id: Option<&'a str>,
    pub priority: Priority,
    pub made_by: CallOrigin,
    /// When it came in.
    pub at: SystemTime,
    pub duration: Duration,
    pub ended: CallEndReason,
    /// Why there is no outcome, if there is none.
    pub error: Option<&'a HubError>,
    pub outcome: Option<&'a Outcome>,
    /// What has to be hidden of everything in here that came from outside. The subject has been through it already.
    pub redaction: &'a Redaction,
    /// As the caller said them; only if the recorder wants arguments, and only of tools and prompts.
    pub arguments: Option<&'a RawValue>,
}
