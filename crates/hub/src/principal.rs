//! Who is calling and what they may do. How they proved who they are is the front's business.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::glob::Glob;
use crate::limits::ScopedLimits;
use crate::name::{FullName, SourceName};

/// Who is calling, with their permissions. Two principals are the same when their id is.
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

/// What a principal may use at all, whatever permissions it holds. To this principal the rest is not there: it is not
/// listed, and a call of it is a call of something unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    /// Globs over the names of sources; every source where this is not said.
    pub sources: Option<Vec<Glob>>,
    /// Globs over the full names of tools; every tool of those sources where this is not said. Whoever is given a
    /// list of tools, and none of sources, is given tools and nothing else.
    pub tools: Option<Vec<Glob>>,
}

impl AllowList {
    /// Whether a tool is on the lists, by the name of its source and its full name.
    pub(crate) fn allows_tool(&self, source: &str, full_name: &str) -> bool {
        matches_globs(self.sources.as_ref(), source) && matches_globs(self.tools.as_ref(), full_name)
    }

    /// Whether resources and prompts of a source are on the lists.
    pub(crate) fn allows_non_tools(&self, source: &str) -> bool {
        matches_globs(self.sources.as_ref(), source) && (self.tools.is_none() || self.sources.is_some())
    }
}

fn matches_globs(globs: Option<&Vec<Glob>>, name: &str) -> bool {
    globs.is_none_or(|globs| globs.iter().any(|glob| glob.matches(name)))
}

/// What a principal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permissions {
    /// Everything: the person who started this process.
    All,
    Only(BTreeSet<String>),
}

impl Principal {
    pub fn new(id: impl Into<Arc<str>>, permissions: Permissions) -> Self {
        let rights =
            PrincipalRights { permissions, allowed: AllowList::default(), bounds: ScopedLimits::default() };
        Self { id: id.into(), rights: Arc::new(rights) }
    }

    /// The same, for whom there is only what this list allows.
    #[must_use]
    pub fn with_allow_list(mut self, allowed: AllowList) -> Self {
        Arc::make_mut(&mut self.rights).allowed = allowed;
        self
    }

    /// The same, with limits of its own.
    #[must_use]
    pub fn with_limits(mut self, bounds: ScopedLimits) -> Self {
        Arc::make_mut(&mut self.rights).bounds = bounds;
        self
    }

    /// The person at this machine who started the process.
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

    /// Whether this principal has this permission.
    pub fn has_permission(&self, permission: &str) -> bool {
        match &self.rights.permissions {
            Permissions::All => true,
            Permissions::Only(held) => held.contains(permission),
        }
    }

    /// Whether both may see and do the same, whatever their names and limits are.
    pub fn has_same_rights_as(&self, other: &Self) -> bool {
        self.rights.permissions == other.rights.permissions && self.rights.allowed == other.rights.allowed
    }

    /// Whether for this principal there are other things than for everybody.
    pub fn is_restricted(&self) -> bool {
        self.rights.allowed != AllowList::default()
    }

    /// Whether this source is there for this principal, though perhaps not all that it offers.
    pub fn can_access_source(&self, source: &SourceName) -> bool {
        matches_globs(self.rights.allowed.sources.as_ref(), source.as_str())
    }

    /// Whether this tool is there for this principal; which permissions it needs is another matter.
    pub fn can_access_tool(&self, source: &SourceName, name: &FullName) -> bool {
        self.rights.allowed.allows_tool(source.as_str(), name.as_str())
    }

    /// The same of anything else that a source offers.
    pub fn can_access_non_tools(&self, source: &SourceName) -> bool {
        self.rights.allowed.allows_non_tools(source.as_str())
    }

    /// The first of these permissions that this principal lacks: a list means *all* of them.
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
