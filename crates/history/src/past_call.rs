//! What the history stores of a call.

use toolyard_hub::{FinishedCall, PastCall};

use crate::audit_line::{error_message, truncate};

/// Length limits of stored texts, in characters.
const LONGEST_NAME: usize = 256;
const LONGEST_MESSAGE: usize = 500;

/// Returns the part of a finished call that is stored, with its texts truncated.
pub(crate) fn from_finished(finished: &FinishedCall<'_>) -> PastCall {
    let name = |text: &str| truncate(text, LONGEST_NAME).into_owned();
    let record = finished.call;
    PastCall {
        id: record.id,
        kind: record.kind,
        subject: name(&record.subject),
        source: record.source.as_ref().map(ToString::to_string),
        principal: name(record.principal.id()),
        session_id: record.context.session_id.as_deref().map(name),
        user_id: record.context.user_id.as_deref().map(name),
        at: record.accepted_at,
        duration: finished.duration,
        ended: finished.ended,
        error: finished.error.map(|error| error_message(finished, error, LONGEST_MESSAGE).into_owned()),
        replica: None,
    }
}
