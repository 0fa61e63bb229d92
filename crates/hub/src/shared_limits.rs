//! Limits that several replicas share, as the call path sees them. A cluster implements
//! [`SharedLimits`]; a yard that runs as one process has none, and counts in `rate_limit.rs` and
//! `concurrency.rs`.

use std::fmt;
use std::time::Duration;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::error::{ErrorKind, HubError};
use crate::replicas::StoreUnavailable;

/// When a caller should retry while the shared store is away.
const RETRY: Duration = Duration::from_secs(1);

/// Identifies a counter or a set of permits in the shared store. It contains only a kind and a
/// digest, so names may contain anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SharedKey(String);

impl SharedKey {
    pub fn new(kind: &str, parts: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            // With the length, so that no two lists of parts have the same bytes.
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part.as_bytes());
        }
        Self(format!("{kind}:{}", HEXLOWER.encode(&digest.finalize()[..16])))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A rate that replicas count together, for the generic cell rate algorithm. Times are in
/// nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedRate {
    pub key: SharedKey,
    pub interval: u128,
    /// How far in the future the counter may be.
    pub ahead: u128,
}

/// A number of permits that replicas hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLimit {
    pub key: SharedKey,
    /// At least one.
    pub most: usize,
}

/// What a call asks of the shared store, in one round trip.
#[derive(Debug, Clone, Copy)]
pub struct SharedDemand<'a> {
    /// The call is counted in all of these or in none.
    pub rates: &'a [SharedRate],
    /// The call takes a permit of all of these or of none. Not taken if a rate is exhausted.
    pub permits: &'a [SharedLimit],
    /// Canceled when permits of the call may belong to another call, so that it has to end.
    pub lost: &'a CancellationToken,
}

/// How the shared store admitted a call.
#[derive(Debug)]
pub struct SharedAdmission {
    pub rates: SharedCount,
    pub permits: SharedTake,
}

/// How a call was counted. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedCount {
    /// For each rate, how long until its full burst is available again.
    Counted(Vec<u128>),
    /// The call comes this much too early for the rate with this index, and was not counted.
    Exhausted { index: usize, whole_in: u128, early: u128 },
    /// The store is away. Each of this many replicas counts its share of every rate.
    Local { replicas: usize },
}

/// Whether a call got its permits.
#[derive(Debug)]
pub enum SharedTake {
    /// It asked for none, or a rate was exhausted.
    Nothing,
    Held(SharedPermit),
    /// All permits of the limit with this index are taken.
    Full(usize),
}

/// The permits of one call, which are released when this is dropped.
pub struct SharedPermit(Option<Box<dyn FnOnce() + Send>>);

impl SharedPermit {
    pub fn new(release: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(release)))
    }
}

impl Drop for SharedPermit {
    fn drop(&mut self) {
        if let Some(release) = self.0.take() {
            release();
        }
    }
}

impl fmt::Debug for SharedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPermit").finish_non_exhaustive()
    }
}

/// Rates and permits that all replicas of a yard share.
pub trait SharedLimits: fmt::Debug + Send + Sync {
    /// Counts a call and takes its permits, without waiting for one. An error means that the store
    /// is away and that the call must be refused.
    fn admit<'a>(
        &'a self,
        demand: SharedDemand<'a>,
    ) -> BoxFuture<'a, Result<SharedAdmission, StoreUnavailable>>;

    /// Completes when this replica has released a permit of the limit.
    fn released<'a>(&'a self, limit: &'a SharedLimit) -> BoxFuture<'a, ()>;
}

/// The refusal of a call or list whose shared limits cannot be checked.
pub(crate) fn store_unavailable_error(error: &StoreUnavailable) -> HubError {
    HubError::new(ErrorKind::NotConnected, format!("cannot check the limits of this call: {error}"))
        .with_suggestion(
            "retry later; the administrator of this yard can check the store that its replicas share",
        )
        .with_retry_after(RETRY)
}

#[cfg(test)]
mod tests {
    use super::SharedKey;

    #[test]
    fn keys_differ_by_kind_and_by_every_part_and_contain_no_name() {
        let keys = [
            SharedKey::new("rate:caller", &["ab", "c"]),
            SharedKey::new("rate:caller", &["a", "bc"]),
            SharedKey::new("rate:caller", &["abc"]),
            SharedKey::new("calls:caller", &["ab", "c"]),
            SharedKey::new("rate:caller", &["ü\r\n {x}"]),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key:?}");
            let plain = |c: char| c.is_ascii_alphanumeric() || c == ':';
            assert!(key.as_str().chars().all(plain), "{key:?}");
        }
    }
}
