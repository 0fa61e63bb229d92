//! What records calls, such as an audit log or a history. The yard hands over each call when it is over.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::BoxFuture;
use crate::call_record::CallRecord;
use crate::error::HubError;
use crate::events::CallEndReason;
use crate::outcome::Outcome;
use crate::redact::Redaction;

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
    fn lost(&self) -> u64 {
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
