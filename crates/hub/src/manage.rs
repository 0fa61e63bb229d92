//! What a front may do with a source beside calling what it offers: tell it to come back or to stop, and read what was
//! said with it. Each needs a permission of the yard's own.

use std::sync::Arc;
use std::time::SystemTime;

use crate::name::SourceName;
use crate::nearest::nearest;
use crate::permission::{MANAGE, OBSERVE};
use crate::principal::Principal;
use crate::source::Source;
use crate::yard::Yard;

/// What a source can be told to do. It does so in the background; its status says how that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceCommand {
    /// Connect anew, at once; one that is disabled is enabled by it.
    Reconnect,
    /// Connect, if that is not what it does anyway.
    Enable,
    /// Disconnect, and offer nothing until it is enabled again. The configuration stays as it is.
    Disable,
}

/// Why a source was not told, or not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManageError {
    #[error("there is no source {name}")]
    Unknown {
        name: String,
        /// The name that was perhaps meant.
        nearest: Option<String>,
    },
    #[error("{}", crate::permission::missing_message("this", .0))]
    Forbidden(&'static str),
    #[error("it has no connection that could be told to")]
    Unmanaged,
    #[error("it has not done yet what it was told before")]
    Busy,
    /// It is not here, and who would have to be told there cannot be reached.
    #[error("it cannot be told: {0}")]
    Unreachable(String),
}

/// Why nobody can log in to a source now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    Manage(#[from] ManageError),
    #[error("there is nothing to log in to: {0}")]
    NothingToDo(String),
    #[error("{message}")]
    Failed { message: String, suggestion: Option<String> },
}

/// One message of a conversation with a source, as text, perhaps cut where it was long. Fronts get it without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptEntry {
    /// Grows by one with each message of the source.
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
    /// Tells a source to do something about its connection.
    pub fn manage(&self, principal: &Principal, name: &str, order: SourceCommand) -> Result<(), ManageError> {
        require_permission(principal, MANAGE)?;
        self.with_source(principal, name, |source| source.manage(order))?
    }

    /// What was said with a source after the message of this number, oldest first. Nothing is kept until somebody
    /// asks for the first time, and only the latest is.
    pub fn transcript(
        &self,
        principal: &Principal,
        name: &str,
        after: Option<u64>,
    ) -> Result<Vec<TranscriptEntry>, ManageError> {
        require_permission(principal, OBSERVE)?;
        let mut said = self.with_source(principal, name, |source| source.transcript(after))?;
        for one in &mut said {
            one.text = self.redaction().redact_message(&one.text);
        }
        Ok(said)
    }

    /// Begins to log in to a source; gives back the address that a person has to open.
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

    /// The source of this name, if it is there for this principal.
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
    fn a_source_is_managed_only_by_who_may_and_only_if_it_can_be() {
        let yard = Yard::with_sources([ScriptedSource::echo("notes", SourceOffer::default()) as _]);
        let owner = Principal::owner();
        assert_eq!(yard.manage(&owner, "notes", SourceCommand::Reconnect), Err(ManageError::Unmanaged));
        assert_eq!(yard.transcript(&owner, "notes", None), Ok(Vec::new()));
        let nearest = Some("notes".to_owned());
        let unknown = ManageError::Unknown { name: "note".to_owned(), nearest };
        assert_eq!(yard.manage(&owner, "note", SourceCommand::Disable), Err(unknown));
        let nobody = Principal::new("nobody", Permissions::Only(BTreeSet::new()));
        assert_eq!(
            yard.manage(&nobody, "notes", SourceCommand::Enable),
            Err(ManageError::Forbidden("manage"))
        );
        assert_eq!(yard.transcript(&nobody, "notes", None), Err(ManageError::Forbidden("observe")));
        let blind = Principal::owner().with_allow_list(AllowList { sources: Some(Vec::new()), tools: None });
        let hidden = ManageError::Unknown { name: "notes".to_owned(), nearest: None };
        assert_eq!(yard.manage(&blind, "notes", SourceCommand::Disable), Err(hidden));
    }
}
