//! Whose connection it is.

use std::sync::Arc;

use toolyard_hub::{Principal, SourceCall};

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
        Self::new(&call.principal, call.context.session_id.as_ref(), sharing)
    }

    pub(crate) fn new(principal: &Principal, session: Option<&Arc<str>>, sharing: TesterSharing) -> Self {
        match sharing {
            TesterSharing::Process => Self::Process,
            TesterSharing::Session => {
                Self::Session { principal: principal.id().to_owned(), session: session.cloned() }
            }
        }
    }
}
