//! The replicas of a yard, as the rest of the code sees them. A cluster implements this; a yard
//! that runs as one process has no replicas.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

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
    pub state: ReplicaState,
    /// How it differs from this replica although it must not, such as "keys".
    pub differences: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaState {
    Ready,
    /// It finishes its calls and accepts no new sessions.
    Draining,
}

impl ReplicaState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

/// The shared store cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the shared store is not available: {0}")]
pub struct StoreUnavailable(pub String);

/// Which replica holds a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionHome {
    /// This replica. If it did not open the session, it may open it from its ID.
    Here,
    /// Another live replica.
    Elsewhere(Replica),
    /// None: the client has ended the session.
    Ended,
}

/// Something that is logged of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEntry {
    /// The IDs, as JSON, of the requests whose responses are sent on the stream.
    Requests(Vec<String>),
    Event {
        number: u64,
        text: String,
    },
}

/// How a session's home is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeLookup {
    /// What this replica knows is sufficient.
    Cached,
    /// What this replica knows turned out to be wrong.
    Fresh,
}

/// Whether a replica that looks up who runs a server wants to run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerClaim {
    /// It does not.
    No,
    /// It does if no other replica runs the server.
    IfFree,
    /// It already runs the server.
    Held,
}

/// The replica that runs a server which must run only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerHolder {
    /// This replica.
    Here {
        /// The replica that ran it until it counted as dead. It may still be running it.
        previous: Option<PreviousHolder>,
    },
    /// Another live replica.
    Elsewhere(Replica),
    Nowhere,
}

/// A replica that counts as dead, and where it could be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousHolder {
    pub id: ReplicaId,
    pub url: String,
}

/// The live replicas of this yard and what they agree on. Sessions are identified by their label,
/// which is not secret.
pub trait Replicas: fmt::Debug + Send + Sync {
    /// The ID of this replica. It changes if the other replicas considered this one dead.
    fn own_id(&self) -> ReplicaId;

    /// Returns another replica if it is alive, as far as this one knows.
    fn find(&self, id: &ReplicaId) -> Option<Replica>;

    /// Like [`Replicas::find`], but asks the store if this replica does not know the other one.
    fn look_up<'a>(&'a self, id: &'a ReplicaId) -> BoxFuture<'a, Option<Replica>>;

    /// Returns all live replicas, this one first.
    fn all(&self) -> Vec<Replica>;

    /// Returns whether the shared store answers.
    fn is_store_available(&self) -> bool;

    /// Returns the home of a session that was opened by `opener`. If its home is gone, this replica
    /// becomes the new one.
    fn session_home<'a>(
        &'a self,
        session: &'a str,
        opener: &'a ReplicaId,
        lookup: HomeLookup,
    ) -> BoxFuture<'a, Result<SessionHome, StoreUnavailable>>;

    /// Returns what was last saved of a session that another replica opened, if this one has become
    /// its home. The text is empty if nothing was saved.
    fn adopted(&self, session: &str) -> Option<Arc<str>>;

    /// Saves what the next home of a session needs in addition to the session ID.
    fn save_session<'a>(
        &'a self,
        session: &'a str,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreUnavailable>>;

    /// Logs what is sent on a stream of a session, for the replica that continues it. Returns
    /// immediately.
    fn log_stream(&self, session: &str, stream: u64, entry: StreamEntry);

    /// Returns what was logged of a stream, in order.
    fn read_stream<'a>(
        &'a self,
        session: &'a str,
        stream: u64,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, StoreUnavailable>>;

    /// Lets another replica become the home of a session of this one.
    fn release_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>>;

    /// Makes every replica reject a session from now on.
    fn end_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>>;

    /// Returns which replica runs a server. If no live replica does, this one becomes the holder if
    /// it wants to.
    fn server_holder<'a>(
        &'a self,
        server: &'a str,
        claim: ServerClaim,
    ) -> BoxFuture<'a, Result<ServerHolder, StoreUnavailable>>;

    /// Lets another replica run a server that this one has stopped.
    fn release_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>>;

    /// Changes when another replica may run a server than before.
    fn server_changes(&self) -> watch::Receiver<u64>;

    /// Returns the ID of this replica after making sure that the others have not considered it dead
    /// without its knowledge, for example while the process was suspended.
    fn confirm_id(&self) -> BoxFuture<'_, Result<ReplicaId, StoreUnavailable>>;

    /// Tells the other replicas that this one accepts no new sessions.
    fn start_draining(&self) -> BoxFuture<'_, ()>;

    /// Counts how often the other replicas have considered this one dead and may have taken over
    /// its sessions.
    fn losses(&self) -> watch::Receiver<u64>;
}
