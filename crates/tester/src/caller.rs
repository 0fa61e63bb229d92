//! Whose connection it is.

use std::sync::Arc;

use toolyard_hub::{CallRecord, SourceCall};

/// Who shares a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TesterSharing {
    /// Everybody who talks to this process: it has one client.
    Process,
    /// The calls of one session; where there are no sessions, those of one principal.
    Session,
}

/// One that has a connection of its own.
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
