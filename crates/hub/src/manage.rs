//! Management of sources by fronts: reconnect, enable or disable a source, read its transcript, and
//! log in. Each operation requires a permission.

use std::sync::Arc;
use std::time::SystemTime;

use crate::name::SourceName;
use crate::nearest::nearest;
use crate::permission::{MANAGE, OBSERVE};
use crate::principal::Principal;
use crate::source::Source;
use crate::yard::Yard;

/// A command to a source. The source executes it in the background and reports progress in its
/// status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceCommand {
    /// Reconnect immediately. Also enables a disabled source.
    Reconnect,
    /// Connect, unless the source is already enabled.
    Enable,
    /// Disconnect and offer nothing until enabled again. The configuration is not changed.
    Disable,
}

/// Why a management operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManageError {
    #[error("unknown source {name}")]
    Unknown {
        name: String,
        /// The most similar name, if there is one.
        nearest: Option<String>,
    },
    #[error("{}", crate::permission::missing_message("this", .0))]
    Forbidden(&'static str),
    #[error("this source has no connection to manage")]
    Unmanaged,
    #[error("a previous command is still running")]
    Busy,
    /// The source belongs to a remote yard that cannot be reached.
    #[error("the command cannot be sent: {0}")]
    Unreachable(String),
}

/// Why a login to a source cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    Manage(#[from] ManageError),
    #[error("login is not available: {0}")]
    NothingToDo(String),
    #[error("{message}")]
    Failed { message: String, suggestion: Option<String> },
}

/// One message exchanged with a source, as text. Long messages are truncated. Secrets are redacted
/// before fronts receive it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptEntry {
    /// Increases by one with each message of the source.
    pub number: u64,
    pub at: SystemTime,
    pub direction: TranscriptDirection,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptDirection {
    ToSource,
    FromSource,
}

impl Yard {
    /// Sends a command to a source.
    pub fn manage(&self, principal: &Principal, name: &str, order: SourceCommand) -> Result<(), ManageError> {
        require_permission(principal, MANAGE)?;
        self.with_source(principal, name, |source| source.manage(order))?
    }

    /// Returns the messages exchanged with a source after the message with this number, oldest
    /// first. Recording starts with the first request, and only the latest messages are kept.
    pub fn transcript(
        &self,
        principal: &Principal,
        name: &str,
        after: Option<u64>,
    ) -> Result<Vec<TranscriptEntry>, ManageError> {
        require_permission(principal, OBSERVE)?;
        let mut entries = self.with_source(principal, name, |source| source.transcript(after))?;
        for entry in &mut entries {
            entry.text = self.redaction().redact_message(&entry.text);
        }
        Ok(entries)
    }

    /// Starts a login to a source and returns the URL that the user has to open.
    pub async fn log_in(&self, principal: &Principal, name: &str) -> Result<String, LoginError> {
        require_permission(principal, MANAGE)?;
        let source = self.find_visible_source(principal, name)?;
        source.log_in().await
    }

    fn with_source<T>(
        &self,
        principal: &Principal,
        name: &str,
        work: impl FnOnce(&dyn Source) -> T,
    ) -> Result<T, ManageError> {
        self.find_visible_source(principal, name).map(|source| work(&*source))
    }

    /// Returns the source with this name, if it is visible to the principal.
    fn find_visible_source(&self, principal: &Principal, name: &str) -> Result<Arc<dyn Source>, ManageError> {
        let (known, visibility) = (SourceName::new(name), self.visibility(principal));
        let source = self.source(&known).filter(|_| visibility.sees_source(&known));
        source.ok_or_else(|| {
            let names = self.source_names();
            let seen = names.iter().filter(|name| visibility.sees_source(name)).map(SourceName::as_str);
            ManageError::Unknown { name: name.to_owned(), nearest: nearest(name, seen).map(str::to_owned) }
        })
    }
}

fn require_permission(principal: &Principal, permission: &'static str) -> Result<(), ManageError> {
    if principal.has_permission(permission) { Ok(()) } else { Err(ManageError::Forbidden(permission)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ManageError, SourceCommand};
    use crate::fake::ScriptedSource;
    use crate::principal::{AllowList, Permissions, Principal};
    use crate::source::SourceOffer;
    use crate::yard::Yard;

    #[test]
    fn managing_a_source_requires_permission_and_a_connection() {
        let yard = Yard::with_sources([ScriptedSource::echo("notes", SourceOffer::default()) as _]);
        let owner = Principal::owner();
        assert_eq!(yard.manage(&owner, "notes", SourceCommand::Reconnect), Err(ManageError::Unmanaged));
        assert_eq!(yard.transcript(&owner, "notes", None), Ok(Vec::new()));
        let nearest = Some("notes".to_owned());
        let unknown = ManageError::Unknown { name: "note".to_owned(), nearest };
        assert_eq!(yard.manage(&owner, "note", SourceCommand::Disable), Err(unknown));
        let unprivileged = Principal::new("eve", Permissions::Only(BTreeSet::new()));
        assert_eq!(
            yard.manage(&unprivileged, "notes", SourceCommand::Enable),
            Err(ManageError::Forbidden("manage"))
        );
        assert_eq!(yard.transcript(&unprivileged, "notes", None), Err(ManageError::Forbidden("observe")));
        let blind = Principal::owner().with_allow_list(AllowList { sources: Some(Vec::new()), tools: None });
        let hidden = ManageError::Unknown { name: "notes".to_owned(), nearest: None };
        assert_eq!(yard.manage(&blind, "notes", SourceCommand::Disable), Err(hidden));
    }
}
