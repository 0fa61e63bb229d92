//! What a change of a schema means for clients, given the direction in which the data flows.

use super::schema::{SchemaChange, SchemaEffect};
use super::{ChangeClass, ItemChange};

/// The direction in which the data of a schema flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaRole {
    /// From the client to the server.
    Input,
    /// From the server to the client.
    Output,
}

impl SchemaRole {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Input => "/inputSchema",
            Self::Output => "/outputSchema",
        }
    }
}

/// Classifies a change and says why.
pub(super) fn describe_schema_change(role: SchemaRole, change: SchemaChange<'_>) -> ItemChange {
    use ChangeClass::{Breaking, Compatible, Wording};
    let (class, why) = match (role, change.effect) {
        (_, SchemaEffect::Wording) => (Wording, ""),
        (_, SchemaEffect::Undecided) => (Breaking, "this cannot be shown to be compatible"),
        (SchemaRole::Input, SchemaEffect::Narrowed | SchemaEffect::Replaced) => {
            (Breaking, "arguments that were valid are refused")
        }
        (SchemaRole::Input, SchemaEffect::Widened) => (Compatible, "all arguments that were valid still are"),
        (_, SchemaEffect::PropertyAdded) => (Compatible, ""),
        (SchemaRole::Input, SchemaEffect::PropertyRemoved) => {
            (Breaking, "arguments that contain it are refused, or it is ignored")
        }
        (SchemaRole::Output, SchemaEffect::Narrowed) => (Compatible, "results promise more than before"),
        (SchemaRole::Output, SchemaEffect::Widened | SchemaEffect::Replaced) => {
            (Breaking, "results can be what the old schema excluded")
        }
        (SchemaRole::Output, SchemaEffect::PropertyRemoved) => {
            (Breaking, "clients that read it find nothing")
        }
    };
    let reason = if why.is_empty() { change.what } else { format!("{}: {why}", change.what) };
    ItemChange {
        class,
        path: change.pointer,
        before: change.before.map(std::borrow::Cow::into_owned),
        after: change.after.map(std::borrow::Cow::into_owned),
        reason,
        undecided: change.effect == SchemaEffect::Undecided,
    }
}
