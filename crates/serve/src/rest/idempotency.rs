//! Idempotency keys: within a time window, requests of one principal with the same key for the same
//! tool share the first execution. Under memory pressure, outcomes are evicted before their keys,
//! because running a call twice is worse than losing its outcome. New keys are refused rather than
//! old ones evicted.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::executions::Execution;

/// A key of one principal for one tool.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct IdempotencyKey {
    pub(super) principal: String,
    pub(super) tool: String,
    pub(super) key: String,
}

/// The result of claiming a key.
#[derive(Debug)]
pub(super) enum IdempotencyClaim {
    /// The key is new and now belongs to the given execution.
    First,
    /// The key belongs to a running or finished execution.
    Replay(Arc<Execution>),
    /// The key belongs to an execution with different parameters.
    Different,
    /// The key belongs to a finished execution whose outcome is no longer stored.
    Evicted,
    /// There are too many keys.
    Full,
}

#[derive(Debug, Clone)]
pub(super) struct IdempotencyLimits {
    /// Maximum number of keys, and maximum total size of the stored outcomes.
    pub(super) most: usize,
    pub(super) bytes: usize,
    /// Lifetime of a key, from its first use.
    pub(super) time: Duration,
}

/// One principal may hold at most one `SHARE`th of all keys.
const SHARE: usize = 4;

#[derive(Debug)]
pub(super) struct IdempotencyStore {
    limits: IdempotencyLimits,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<Arc<IdempotencyKey>, Entry>,
    per_principal: HashMap<String, usize>,
    /// In the order of their claims.
    claimed: VecDeque<(Instant, Arc<IdempotencyKey>)>,
    /// In the order in which their executions finished.
    finished: VecDeque<Arc<IdempotencyKey>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    params: [u8; 32],
    execution: Option<Arc<Execution>>,
    bytes: usize,
}

impl IdempotencyStore {
    pub(super) fn new(limits: IdempotencyLimits) -> Self {
        Self { limits, inner: Mutex::default() }
    }

    pub(super) fn claim(
        &self,
        name: &Arc<IdempotencyKey>,
        params: &str,
        execution: &Arc<Execution>,
    ) -> IdempotencyClaim {
        let params: [u8; 32] = Sha256::digest(params.as_bytes()).into();
        let mut inner = self.lock();
        inner.expire(self.limits.time);
        match inner.entries.get(name) {
            Some(entry) if entry.params != params => return IdempotencyClaim::Different,
            Some(Entry { execution: Some(first), .. }) => return IdempotencyClaim::Replay(Arc::clone(first)),
            Some(_) => return IdempotencyClaim::Evicted,
            None => {}
        }
        let used = inner.per_principal.get(&name.principal).copied().unwrap_or_default();
        if inner.entries.len() >= self.limits.most || used >= (self.limits.most / SHARE).max(1) {
            return IdempotencyClaim::Full;
        }
        let since = Instant::now();
        let entry = Entry { params, execution: Some(Arc::clone(execution)), bytes: 0 };
        *inner.per_principal.entry(name.principal.clone()).or_default() += 1;
        inner.entries.insert(Arc::clone(name), entry);
        inner.claimed.push_back((since, Arc::clone(name)));
        IdempotencyClaim::First
    }

    /// Records that the execution has finished. Evicts the oldest outcomes if the size limit is
    /// exceeded.
    pub(super) fn retain_outcome(&self, name: &Arc<IdempotencyKey>, bytes: usize) {
        let mut inner = self.lock();
        let Some(entry) = inner.entries.get_mut(name) else { return };
        entry.bytes = bytes;
        inner.bytes += bytes;
        inner.finished.push_back(Arc::clone(name));
        while inner.bytes > self.limits.bytes {
            let Some(oldest) = inner.finished.pop_front() else { return };
            if let Some(entry) = inner.entries.get_mut(&oldest) {
                entry.execution = None;
                let freed = std::mem::take(&mut entry.bytes);
                inner.bytes -= freed;
            }
        }
    }

    /// Releases a key whose call was not executed.
    pub(super) fn release(&self, name: &IdempotencyKey) {
        let mut inner = self.lock();
        inner.remove(name);
        // It was claimed recently, so the search starts at the end.
        if let Some(at) = inner.claimed.iter().rposition(|(_, claimed)| **claimed == *name) {
            inner.claimed.remove(at);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn expire(&mut self, time: Duration) {
        let now = Instant::now();
        let before = self.entries.len();
        let mut running = Vec::new();
        while let Some((since, _)) = self.claimed.front() {
            if now.saturating_duration_since(*since) <= time {
                break;
            }
            let Some((since, name)) = self.claimed.pop_front() else { break };
            let Some(entry) = self.entries.get(&name) else { continue };
            // A call can outlast the window. Its key must stay valid until it ends.
            match &entry.execution {
                Some(execution) if execution.outcome().is_none() => running.push((since, name)),
                _ => self.remove(&name),
            }
        }
        running.into_iter().rev().for_each(|entry| self.claimed.push_front(entry));
        if self.entries.len() < before {
            self.finished.retain(|name| self.entries.contains_key(name));
        }
    }

    fn remove(&mut self, name: &IdempotencyKey) {
        let Some(entry) = self.entries.remove(name) else { return };
        self.bytes -= entry.bytes;
        if let Some(count) = self.per_principal.get_mut(&name.principal) {
            *count -= 1;
            if *count == 0 {
                self.per_principal.remove(&name.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use toolyard_hub::Outcome;
    use toolyard_hub::json::to_raw;

    use super::{IdempotencyClaim, IdempotencyKey, IdempotencyLimits, IdempotencyStore};
    use crate::rest::executions::tests::execution;
    use crate::rest::executions::{Chunks, Execution, Executions, RetentionLimits};

    fn keys() -> IdempotencyStore {
        IdempotencyStore::new(IdempotencyLimits { most: 12, bytes: 250, time: Duration::from_secs(60) })
    }

    fn name(key: &str) -> Arc<IdempotencyKey> {
        name_of("ada", key)
    }

    fn name_of(principal: &str, key: &str) -> Arc<IdempotencyKey> {
        Arc::new(IdempotencyKey {
            principal: principal.to_owned(),
            tool: "t".to_owned(),
            key: key.to_owned(),
        })
    }

    fn end(execution: &Arc<Execution>) {
        let keeping = RetentionLimits { running: 1, most: 1, bytes: 1_000, time: Duration::from_secs(1) };
        let executions = Executions::new(keeping);
        executions.end(execution, Ok(Outcome::success(to_raw("x"))), Chunks::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_replays_its_first_execution_until_it_expires() {
        let keys = keys();
        let first = execution();
        assert!(matches!(keys.claim(&name("k"), "{}", &first), IdempotencyClaim::First));
        let again = keys.claim(&name("k"), "{}", &execution());
        assert!(matches!(again, IdempotencyClaim::Replay(known) if Arc::ptr_eq(&known, &first)));
        assert!(matches!(keys.claim(&name("k"), "{ }", &execution()), IdempotencyClaim::Different));
        assert!(matches!(keys.claim(&name_of("bob", "k"), "{}", &execution()), IdempotencyClaim::First));
        // A running execution keeps its key beyond the window.
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(matches!(keys.claim(&name("k"), "{}", &execution()), IdempotencyClaim::Replay(_)));
        end(&first);
        assert!(matches!(keys.claim(&name("k"), "{}", &execution()), IdempotencyClaim::First));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_whose_call_was_not_executed_can_be_used_again() {
        let keys = keys();
        assert!(matches!(keys.claim(&name("k"), "1", &execution()), IdempotencyClaim::First));
        keys.release(&name("k"));
        tokio::time::advance(Duration::from_secs(40)).await;
        let second = execution();
        assert!(matches!(keys.claim(&name("k"), "2", &second), IdempotencyClaim::First));
        end(&second);
        // The window starts at the second claim.
        tokio::time::advance(Duration::from_secs(40)).await;
        assert!(matches!(keys.claim(&name("k"), "2", &execution()), IdempotencyClaim::Replay(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn outcomes_are_evicted_before_keys() {
        let keys = keys();
        let all = [name("a"), name("b"), name("c")];
        for name in &all {
            let execution = execution();
            assert!(matches!(keys.claim(name, "{}", &execution), IdempotencyClaim::First));
            end(&execution);
            keys.retain_outcome(name, 100);
        }
        assert!(matches!(keys.claim(&all[0], "{}", &execution()), IdempotencyClaim::Evicted));
        assert!(matches!(keys.claim(&all[1], "{}", &execution()), IdempotencyClaim::Replay(_)));
        assert!(matches!(keys.claim(&all[2], "{}", &execution()), IdempotencyClaim::Replay(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn no_principal_can_use_up_all_keys_and_no_key_is_evicted_for_a_new_one() {
        let keys = keys();
        for at in 0..3 {
            assert!(matches!(
                keys.claim(&name(&at.to_string()), "{}", &execution()),
                IdempotencyClaim::First
            ));
        }
        assert!(matches!(keys.claim(&name("more"), "{}", &execution()), IdempotencyClaim::Full));
        for (at, principal) in ["bob", "eve", "zoe"].iter().enumerate() {
            for key in 0..3 {
                let claim = keys.claim(&name_of(principal, &key.to_string()), "{}", &execution());
                assert!(matches!(claim, IdempotencyClaim::First), "{at} {key}");
            }
        }
        assert!(matches!(keys.claim(&name_of("max", "k"), "{}", &execution()), IdempotencyClaim::Full));
        assert!(matches!(keys.claim(&name("0"), "{}", &execution()), IdempotencyClaim::Replay(_)));
    }
}
