//! The idempotency keys of this replica: those whose calls are running, and how others ended, until
//! Redis knows it. It does not use Redis.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

use super::LIFETIME;

/// Maximum number and size of endings that wait for Redis. Beyond the size, outcomes are dropped
/// and their keys are kept; beyond the number, keys are left to expire, as those of a dead replica.
const MOST_ENDED: usize = 10_000;
const ENDED_BYTES: usize = 32 << 20;

/// A key that belongs to a call of this replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnedKey {
    pub(super) name: String,
    /// The name of the set of keys of the same principal.
    pub(super) of_principal: String,
    pub(super) owner: String,
    /// The digest of the parameters.
    pub(super) params: String,
    /// The time of the claim on the clock of Redis.
    pub(super) claimed: String,
}

/// How the call of a key ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyEnding {
    /// Nothing was called.
    Released,
    Unknown,
    /// With this outcome, or an empty text if it is not stored.
    Finished(String),
}

impl KeyEnding {
    fn bytes(&self) -> usize {
        match self {
            Self::Finished(outcome) => outcome.len(),
            Self::Released | Self::Unknown => 0,
        }
    }
}

/// An ending that Redis does not know yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndedKey {
    pub(super) key: OwnedKey,
    pub(super) ending: KeyEnding,
    at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct KeyTable {
    /// By owner. A key stays here until Redis knows how its call ended.
    running: HashMap<String, OwnedKey>,
    ended: VecDeque<EndedKey>,
    bytes: usize,
}

impl KeyTable {
    pub(super) fn begin(&mut self, key: OwnedKey) {
        self.running.insert(key.owner.clone(), key);
    }

    /// The keys whose leases are to be renewed.
    pub(super) fn running(&self) -> Vec<OwnedKey> {
        self.running.values().cloned().collect()
    }

    pub(super) fn end(&mut self, key: OwnedKey, ending: KeyEnding, at: Instant) {
        if self.ended.len() >= MOST_ENDED {
            self.running.remove(&key.owner);
            return;
        }
        let is_large = self.bytes + ending.bytes() > ENDED_BYTES;
        let ending = match ending {
            KeyEnding::Finished(_) if is_large => KeyEnding::Finished(String::new()),
            ending => ending,
        };
        self.bytes += ending.bytes();
        self.ended.push_back(EndedKey { key, ending, at });
    }

    /// Takes the oldest ending that Redis does not know and whose key has not expired.
    pub(super) fn next_ended(&mut self, now: Instant) -> Option<EndedKey> {
        loop {
            let ended = self.ended.pop_front()?;
            self.bytes -= ended.ending.bytes();
            if now.duration_since(ended.at) <= LIFETIME {
                return Some(ended);
            }
            self.running.remove(&ended.key.owner);
        }
    }

    /// Returns an ending that Redis could not be told.
    pub(super) fn put_back(&mut self, ended: EndedKey) {
        self.bytes += ended.ending.bytes();
        self.ended.push_front(ended);
    }

    /// Records that Redis knows how the call of the key ended.
    pub(super) fn mark_recorded(&mut self, key: &OwnedKey) {
        self.running.remove(&key.owner);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::super::LIFETIME;
    use super::{ENDED_BYTES, KeyEnding, KeyTable, OwnedKey};

    fn key(owner: &str) -> OwnedKey {
        let [name, of_principal, params, claimed] = ["n", "p", "d", "1"].map(str::to_owned);
        OwnedKey { name, of_principal, owner: owner.to_owned(), params, claimed }
    }

    #[test]
    fn a_key_is_renewed_until_redis_knows_how_its_call_ended() {
        let (mut table, now) = (KeyTable::default(), Instant::now());
        table.begin(key("a"));
        table.end(key("a"), KeyEnding::Finished("x".to_owned()), now);
        let ended = table.next_ended(now).unwrap();
        table.put_back(ended.clone());
        assert_eq!(table.running(), [key("a")]);
        assert_eq!(table.next_ended(now), Some(ended));
        table.mark_recorded(&key("a"));
        assert_eq!((table.running().len(), table.next_ended(now), table.bytes), (0, None, 0));
    }

    #[test]
    fn when_outcomes_that_wait_for_redis_are_too_large_only_their_keys_are_kept() {
        let (mut table, now) = (KeyTable::default(), Instant::now());
        let large = || KeyEnding::Finished("x".repeat(ENDED_BYTES / 2 + 1));
        table.end(key("a"), large(), now);
        table.end(key("b"), large(), now);
        table.end(key("c"), KeyEnding::Released, now);
        let endings: Vec<KeyEnding> =
            std::iter::from_fn(|| table.next_ended(now)).map(|ended| ended.ending).collect();
        assert_eq!(endings, [large(), KeyEnding::Finished(String::new()), KeyEnding::Released]);
    }

    #[test]
    fn an_ending_is_forgotten_when_its_key_has_expired() {
        let (mut table, now) = (KeyTable::default(), Instant::now());
        table.begin(key("a"));
        table.end(key("a"), KeyEnding::Unknown, now);
        table.end(key("b"), KeyEnding::Unknown, now + LIFETIME);
        let later = now + LIFETIME + Duration::from_secs(1);
        assert_eq!(table.next_ended(later).map(|ended| ended.key), Some(key("b")));
        assert_eq!(table.running(), []);
    }
}
