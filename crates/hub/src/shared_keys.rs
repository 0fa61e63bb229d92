//! Idempotency keys that several replicas share, as a front sees them. A cluster implements
//! [`SharedKeys`]; a yard that runs as one process has none, and its front keeps the keys itself.

use std::fmt;

use crate::BoxFuture;
use crate::replicas::StoreUnavailable;

/// A request to use an idempotency key.
#[derive(Debug, Clone, Copy)]
pub struct KeyRequest<'a> {
    /// Keys of different principals and tools have nothing to do with each other.
    pub principal: &'a str,
    pub tool: &'a str,
    pub key: &'a str,
    /// The parameters of the call. A key belongs to one call.
    pub params: &'a str,
    /// The execution that claims the key, if it is new.
    pub execution: &'a str,
}

/// The state of an idempotency key.
#[derive(Debug)]
pub enum SharedKeyState {
    /// The key is new and now belongs to the request. Its call may run.
    Claimed(Box<dyn ClaimedKey>),
    /// The call is running, on this or another replica.
    Running,
    /// The call has finished, with this outcome.
    Finished(String),
    /// The call has finished, and its outcome is not stored.
    Evicted,
    /// The replica that made the call stopped before it stored the outcome.
    Unknown,
    /// The key was used with different parameters.
    Different,
    /// There are too many keys.
    Full,
}

/// An idempotency key that belongs to a running call. If it is dropped, the outcome is unknown, and
/// no other call gets the key.
pub trait ClaimedKey: fmt::Debug + Send {
    /// Stores the outcome for other requests with the key.
    fn finish(self: Box<Self>, outcome: String);

    /// Makes the key usable again, because nothing was called.
    fn release(self: Box<Self>);
}

/// The idempotency keys that all replicas of a yard share.
pub trait SharedKeys: fmt::Debug + Send + Sync {
    /// Claims a key, or returns its state. An error means that the store is away and that nothing
    /// may be called.
    fn claim<'a>(
        &'a self,
        request: KeyRequest<'a>,
    ) -> BoxFuture<'a, Result<SharedKeyState, StoreUnavailable>>;
}
