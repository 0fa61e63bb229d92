//! The owner of a connection.

use std::sync::Arc;

use toolyard_hub::{CallRecord, SourceCall};

/// Which calls share a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TesterSharing {
    /// All calls to this process: it has a single client.
    Process,
    /// The calls of one session, or of one principal if there are no sessions.
    Session,
}

/// A caller with a connection of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TesterCaller {
    Process,
    Session { principal: String, session: Option<Arc<str>> },
}

impl TesterCaller {
    pub(crate) fn from_call(call: &SourceCall, sharing: TesterSharing) -> Self {
        Self::from_record(&call.record, sharing)
    }

    pub(crate) fn from_record(record: &CallRecord, sharing: TesterSharing) -> Self {
        match sharing {
            TesterSharing::Process => Self::Process,
            TesterSharing::Session => {
                let (principal, session) = (&record.principal, &record.context.session_id);
                Self::Session { principal: principal.id().to_owned(), session: session.clone() }
            }
        }
    }
}
