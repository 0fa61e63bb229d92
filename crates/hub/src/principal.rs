//! Who is calling and what they may do. How they proved who they are is the front's business.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::limits::Bounds;

/// Who is calling, with their permissions. Two principals are the same when their id is.
#[derive(Debug, Clone)]
pub struct Principal {
    id: Arc<str>,
    rights: Arc<Rights>,
}

#[derive(Debug, Clone)]
struct Rights {
    permissions: Permissions,
    bounds: Bounds,
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
        let rights = Rights { permissions, bounds: Bounds::default() };
        Self { id: id.into(), rights: Arc::new(rights) }
    }

    /// The same, with limits of its own.
    #[must_use]
    pub fn bounded(mut self, bounds: Bounds) -> Self {
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

    pub fn bounds(&self) -> &Bounds {
        &self.rights.bounds
    }

    /// The first of these permissions that this principal lacks: a list means *all* of them.
    pub fn lacks<'a>(&self, needed: &'a [String]) -> Option<&'a str> {
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
