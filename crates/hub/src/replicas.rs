//! The replicas of a yard, as the rest of the code sees them. A cluster implements this; a yard
//! that runs as one process has no replicas.

use std::fmt;
use std::sync::Arc;

use crate::BoxFuture;

/// Identifies one run of one replica. A restarted replica has a new ID.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReplicaId(Arc<str>);

impl ReplicaId {
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One live replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    pub id: ReplicaId,
    /// The name in logs and lists.
    pub name: String,
    /// The base URL at which other replicas reach it, without a slash at the end.
    pub url: String,
    pub version: String,
    /// Whether it finishes its calls and accepts no new sessions.
    pub draining: bool,
    /// How it differs from this replica although it must not, such as "keys".
    pub differences: Vec<String>,
}

/// The shared store cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the shared store is not available: {0}")]
pub struct StoreUnavailable(pub String);

/// Which replica holds a session that is not open here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionHome {
    /// This replica. It may open the session from its ID.
    Here,
    /// Another live replica.
    Elsewhere(ReplicaId),
    /// None: the client has ended the session.
    Ended,
}

/// The live replicas of this yard and what they agree on.
pub trait Replicas: fmt::Debug + Send + Sync {
    fn own_id(&self) -> &ReplicaId;

    /// Returns another replica if it is alive, as far as this one knows.
    fn find(&self, id: &ReplicaId) -> Option<Replica>;

    /// Returns all live replicas, including this one.
    fn all(&self) -> Vec<Replica>;

    /// Returns whether the shared store answers.
    fn is_store_available(&self) -> bool;

    /// Notes that a replica does not accept connections, before the store notices.
    fn mark_unreachable(&self, id: &ReplicaId);

    /// Returns the home of a session. If its home is gone, this replica becomes the new one.
    fn claim_session<'a>(
        &'a self,
        session: &'a str,
        home: &'a ReplicaId,
    ) -> BoxFuture<'a, Result<SessionHome, StoreUnavailable>>;

    /// Makes every replica reject a session from now on.
    fn end_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>>;
}
