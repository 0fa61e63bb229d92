//! The identity of a caller and its permissions. Authentication is the responsibility of the front.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::glob::Glob;
use crate::limits::ScopedLimits;
use crate::name::{FullName, SourceName};

/// A caller and its permissions. Two principals are equal if their IDs are equal.
#[derive(Debug, Clone)]
pub struct Principal {
    id: Arc<str>,
    rights: Arc<PrincipalRights>,
}

#[derive(Debug, Clone)]
struct PrincipalRights {
    permissions: Permissions,
    allowed: AllowList,
    bounds: ScopedLimits,
}

/// Restricts what a principal may use, independently of its permissions. Everything else does not
/// exist for the principal: it is not listed, and a call of it is a call of an unknown name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    /// Globs over source names. `None` allows every source.
    pub sources: Option<Vec<Glob>>,
    /// Globs over full tool names. `None` allows every tool of the allowed sources. If only `tools`
    /// is set, the principal may use tools but no resources or prompts.
    pub tools: Option<Vec<Glob>>,
}

impl AllowList {
    /// Returns whether a tool is allowed, by the name of its source and its full name.
    pub(crate) fn allows_tool(&self, source: &str, full_name: &str) -> bool {
        matches_globs(self.sources.as_ref(), source) && matches_globs(self.tools.as_ref(), full_name)
    }

    /// Returns whether resources and prompts of a source are allowed.
    pub(crate) fn allows_non_tools(&self, source: &str) -> bool {
        matches_globs(self.sources.as_ref(), source) && (self.tools.is_none() || self.sources.is_some())
    }
}

fn matches_globs(globs: Option<&Vec<Glob>>, name: &str) -> bool {
    globs.is_none_or(|globs| globs.iter().any(|glob| glob.matches(name)))
}

/// The permissions of a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permissions {
    /// All permissions, for the user who started this process.
    All,
    Only(BTreeSet<String>),
}

impl Principal {
    pub fn new(id: impl Into<Arc<str>>, permissions: Permissions) -> Self {
        let rights =
            PrincipalRights { permissions, allowed: AllowList::default(), bounds: ScopedLimits::default() };
        Self { id: id.into(), rights: Arc::new(rights) }
    }

    /// Restricts the principal to an allow list.
    #[must_use]
    pub fn with_allow_list(mut self, allowed: AllowList) -> Self {
        Arc::make_mut(&mut self.rights).allowed = allowed;
        self
    }

    /// Sets limits for this principal.
    #[must_use]
    pub fn with_limits(mut self, bounds: ScopedLimits) -> Self {
        Arc::make_mut(&mut self.rights).bounds = bounds;
        self
    }

    /// The user who started the process on this machine.
    pub fn owner() -> Self {
        Self::new("owner", Permissions::All)
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn shared_id(&self) -> &Arc<str> {
        &self.id
    }

    pub fn permissions(&self) -> &Permissions {
        &self.rights.permissions
    }

    pub fn limits(&self) -> &ScopedLimits {
        &self.rights.bounds
    }

    pub(crate) fn allow_list(&self) -> &AllowList {
        &self.rights.allowed
    }

    /// Returns whether this principal has the permission.
    pub fn has_permission(&self, permission: &str) -> bool {
        match &self.rights.permissions {
            Permissions::All => true,
            Permissions::Only(held) => held.contains(permission),
        }
    }

    /// Returns whether both principals have the same permissions and allow lists, regardless of
    /// their IDs and limits.
    pub fn has_same_rights_as(&self, other: &Self) -> bool {
        self.rights.permissions == other.rights.permissions && self.rights.allowed == other.rights.allowed
    }

    /// Returns whether this principal has an allow list, so that it may see other entries than the
    /// rest.
    pub fn is_restricted(&self) -> bool {
        self.rights.allowed != AllowList::default()
    }

    /// Returns whether the source exists for this principal, even if not all of its entries do.
    pub fn can_access_source(&self, source: &SourceName) -> bool {
        matches_globs(self.rights.allowed.sources.as_ref(), source.as_str())
    }

    /// Returns whether the tool exists for this principal, regardless of the permissions that it
    /// requires.
    pub fn can_access_tool(&self, source: &SourceName, name: &FullName) -> bool {
        self.rights.allowed.allows_tool(source.as_str(), name.as_str())
    }

    /// Returns whether resources and prompts of the source exist for this principal.
    pub fn can_access_non_tools(&self, source: &SourceName) -> bool {
        self.rights.allowed.allows_non_tools(source.as_str())
    }

    /// Returns the first of these permissions that the principal lacks. All of them are required.
    pub fn first_missing_permission<'a>(&self, needed: &'a [String]) -> Option<&'a str> {
        match &self.rights.permissions {
            Permissions::All => None,
            Permissions::Only(held) => needed.iter().find(|p| !held.contains(*p)).map(String::as_str),
        }
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Principal {}
