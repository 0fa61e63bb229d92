//! Idempotency keys that all replicas share, in Redis. A key is claimed before its call and has a
//! lease that its owner renews. If the owner dies, the outcome is unknown for the lifetime of the
//! key, and no other call gets it. A task renews the leases and stores the outcomes.
//! `key_table.rs` holds what this replica has to tell Redis.

mod key_table;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use redis::{Script, ScriptInvocation};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{
    BoxFuture, ClaimedKey, KeyRequest, ReplicaId, SharedKey, SharedKeyState, SharedKeys, StoreUnavailable,
};

use self::key_table::{KeyEnding, KeyTable, OwnedKey};
use crate::store::{KEY_PREFIX, RedisStore};

/// How long the owner of a running call may be silent.
const LEASE_TIME: Duration = Duration::from_secs(10);
const RENEWAL: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(500);
/// Lifetime of a key, from its first use.
const LIFETIME: Duration = Duration::from_secs(600);
/// Maximum number of keys. One principal may hold at most a quarter of them.
const MOST: usize = 10_000;
const MOST_OF_PRINCIPAL: usize = MOST / 4;
/// Maximum size of one outcome, and of all outcomes together. The outcome of a larger one is not
/// stored.
const OUTCOME_BYTES: usize = 1 << 20;
const TOTAL_BYTES: usize = 32 << 20;
/// Maximum number of keys in one script.
const BATCH: usize = 500;

/// The idempotency keys that all replicas share.
pub struct RedisKeys(Arc<KeyCore>);

struct KeyCore {
    store: Arc<RedisStore>,
    replica: ReplicaId,
    claim: Script,
    renew: Script,
    finish: Script,
    release: Script,
    table: Mutex<KeyTable>,
    /// Notified when there is something to tell Redis.
    changed: Notify,
}

/// The task that renews and finishes the keys of this replica.
#[derive(Debug)]
pub struct KeyTask {
    stop: CancellationToken,
    task: TaskTracker,
}

impl RedisKeys {
    /// Starts the task that renews keys.
    pub fn start(store: Arc<RedisStore>, replica: ReplicaId) -> (Arc<Self>, KeyTask) {
        let core = Arc::new(KeyCore {
            store,
            replica,
            claim: Script::new(include_str!("idempotency/claim.lua")),
            renew: Script::new(include_str!("idempotency/renew.lua")),
            finish: Script::new(include_str!("idempotency/finish.lua")),
            release: Script::new(include_str!("idempotency/release.lua")),
            table: Mutex::default(),
            changed: Notify::new(),
        });
        let (stop, task) = (CancellationToken::new(), TaskTracker::new());
        task.spawn(Arc::clone(&core).run(stop.clone()));
        (Arc::new(Self(core)), KeyTask { stop, task })
    }
}

impl KeyTask {
    /// Stores the remaining outcomes and ends the task.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.task.close();
        self.task.wait().await;
    }
}

impl SharedKeys for RedisKeys {
    fn claim<'a>(
        &'a self,
        request: KeyRequest<'a>,
    ) -> BoxFuture<'a, Result<SharedKeyState, StoreUnavailable>> {
        Box::pin(self.0.claim(request))
    }
}

impl KeyCore {
    async fn claim(self: &Arc<Self>, request: KeyRequest<'_>) -> Result<SharedKeyState, StoreUnavailable> {
        let key = OwnedKey::new(&self.replica, request);
        // From here on the key is released, even if this future is dropped before the answer. Redis
        // may have carried out a command that it did not answer.
        let mut guard = KeyGuard { core: Arc::clone(self), key: Some(key), if_dropped: KeyEnding::Released };
        let Some(key) = &guard.key else { return Err(unexpected("no answer")) };
        let mut script = self.claim.prepare_invoke();
        script.key(&key.name).key(all_keys()).key(&key.of_principal);
        script.arg(&key.owner).arg(&key.params).arg(micros(LEASE_TIME)).arg(millis(LIFETIME));
        script.arg(MOST).arg(MOST_OF_PRINCIPAL);
        let answer = self.store.run::<Vec<String>>(&script).await?;
        let mut words = answer.into_iter();
        let state = match (words.next().as_deref(), words.next()) {
            (Some("claimed"), Some(claimed)) => {
                if let Some(key) = &mut guard.key {
                    key.claimed = claimed;
                    self.table().begin(key.clone());
                }
                guard.if_dropped = KeyEnding::Unknown;
                return Ok(SharedKeyState::Claimed(Box::new(guard)));
            }
            (Some("finished"), Some(outcome)) => SharedKeyState::Finished(outcome),
            (Some("running"), _) => SharedKeyState::Running,
            (Some("evicted"), _) => SharedKeyState::Evicted,
            (Some("unknown"), _) => SharedKeyState::Unknown,
            (Some("different"), _) => SharedKeyState::Different,
            (Some("full"), _) => SharedKeyState::Full,
            (other, _) => return Err(unexpected(other.unwrap_or_default())),
        };
        // The key belongs to another call, so there is nothing to release.
        guard.key = None;
        Ok(state)
    }

    fn end(&self, key: OwnedKey, ending: KeyEnding) {
        self.table().end(key, ending, Instant::now());
        self.changed.notify_one();
    }

    fn table(&self) -> MutexGuard<'_, KeyTable> {
        self.table.lock()
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.changed.notified() => self.flush().await,
                _ = ticks.tick() => {
                    if renewed.elapsed() >= RENEWAL {
                        renewed = Instant::now();
                        self.renew().await;
                    }
                    self.flush().await;
                }
            }
        }
        self.flush().await;
    }

    async fn renew(&self) {
        let running = self.table().running();
        for batch in running.chunks(BATCH) {
            let mut script = self.renew.prepare_invoke();
            script.arg(micros(LEASE_TIME)).arg(millis(LIFETIME));
            for key in batch {
                script.key(&key.name).arg(&key.owner).arg(&key.params).arg(&key.claimed);
            }
            if self.store.run::<usize>(&script).await.is_err() {
                return;
            }
        }
    }

    /// Tells Redis how calls ended. What cannot be told is kept for the next time.
    async fn flush(&self) {
        loop {
            let next = self.table().next_ended(Instant::now());
            let Some(ended) = next else { return };
            let script = self.ending_script(&ended.key, &ended.ending);
            if self.store.run::<usize>(&script).await.is_err() {
                self.table().put_back(ended);
                return;
            }
            self.table().mark_recorded(&ended.key);
        }
    }

    fn ending_script(&self, key: &OwnedKey, ending: &KeyEnding) -> ScriptInvocation<'_> {
        let (state, outcome) = match ending {
            KeyEnding::Released => {
                let mut script = self.release.prepare_invoke();
                script.key(&key.name).key(all_keys()).key(&key.of_principal).arg(&key.owner);
                return script;
            }
            KeyEnding::Unknown => ("unknown", ""),
            KeyEnding::Finished(outcome) => ("finished", outcome.as_str()),
        };
        let mut script = self.finish.prepare_invoke();
        script.key(&key.name).key(name("outcomes")).key(name("outcome-sizes"));
        script.arg(&key.owner).arg(&key.params).arg(&key.claimed).arg(millis(LIFETIME));
        script.arg(state).arg(outcome).arg(TOTAL_BYTES);
        script
    }
}

/// A key that belongs to a request of this replica.
struct KeyGuard {
    core: Arc<KeyCore>,
    /// `None` if the key belongs to another request.
    key: Option<OwnedKey>,
    if_dropped: KeyEnding,
}

impl ClaimedKey for KeyGuard {
    fn finish(mut self: Box<Self>, outcome: String) {
        let outcome = if outcome.len() > OUTCOME_BYTES { String::new() } else { outcome };
        self.if_dropped = KeyEnding::Finished(outcome);
    }

    fn release(mut self: Box<Self>) {
        self.if_dropped = KeyEnding::Released;
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            let ending = std::mem::replace(&mut self.if_dropped, KeyEnding::Unknown);
            self.core.end(key, ending);
        }
    }
}

impl OwnedKey {
    fn new(replica: &ReplicaId, request: KeyRequest<'_>) -> Self {
        let key = SharedKey::new("key", &[request.principal, request.tool, request.key]);
        Self {
            name: name(key.as_str()),
            of_principal: name(SharedKey::new("keys", &[request.principal]).as_str()),
            owner: format!("{replica}:{}", request.execution),
            params: SharedKey::new("params", &[request.params]).as_str().to_owned(),
            claimed: String::new(),
        }
    }
}

fn name(key: &str) -> String {
    format!("{KEY_PREFIX}{key}")
}

fn all_keys() -> String {
    name("keys")
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn unexpected(answer: &str) -> StoreUnavailable {
    StoreUnavailable(format!("Redis answered `{answer}` to a script of this version"))
}

impl fmt::Debug for RedisKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisKeys").finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyGuard").field("key", &self.key).finish_non_exhaustive()
    }
}
