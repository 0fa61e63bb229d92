//! Whose connection it is.

use std::sync::Arc;

use toolyard_hub::{Call, Principal};

/// Who shares a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Everybody who talks to this process: it has one client.
    Process,
    /// The calls of one session; where there are no sessions, those of one principal.
    Session,
}

/// One that has a connection of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    Process,
    Session { principal: String, session: Option<Arc<str>> },
}

impl Caller {
    pub(crate) fn of(call: &Call, sharing: Sharing) -> Self {
        Self::new(&call.principal, call.context.session_id.as_ref(), sharing)
    }

    pub(crate) fn new(principal: &Principal, session: Option<&Arc<str>>, sharing: Sharing) -> Self {
        match sharing {
            Sharing::Process => Self::Process,
            Sharing::Session => {
                Self::Session { principal: principal.id().to_owned(), session: session.cloned() }
            }
        }
    }
}
