//! Rates and permits that all replicas share, in Redis. Rates are counters of the generic cell rate
//! algorithm. A permit is a lease: a member of the sorted set of its limit, whose score is the time
//! on the clock of Redis when it expires. A task renews the leases of this replica and releases
//! them. `leases.rs` holds what this replica knows of its leases; nothing in it uses Redis.

mod invocation;
mod leases;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{
    BoxFuture, ReplicaId, SharedAdmission, SharedCount, SharedDemand, SharedLimit, SharedLimits,
    SharedPermit, SharedTake, StoreUnavailable,
};

use self::invocation::{AdmitReply, LimitScripts};
use self::leases::{LeaseNumber, LeaseTable};
use crate::settings::StoreLossPolicy;
use crate::store::RedisStore;

/// How long a lease lives in Redis after it was taken or renewed.
const LEASE_TIME: Duration = Duration::from_secs(10);
/// How long its holder relies on it, from before it was taken or renewed. The rest of the time is
/// for the holder to notice and to cancel the call.
const RELIABLE_TIME: Duration = Duration::from_secs(9);
const RENEWAL: Duration = Duration::from_secs(2);
/// How often the task looks for expired leases and, while Redis is away, for Redis.
const TICK: Duration = Duration::from_millis(500);
/// How long calls wait for Redis before each replica grants its share of the permits. A single slow
/// answer must not make replicas exceed a limit.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of keys in one script, because Redis does nothing else while it runs.
const BATCH: usize = 500;

/// The limits that all replicas share.
pub struct RedisLimits {
    /// Separates the limits of several yards of one process.
    yard: &'static str,
    core: Arc<LimitCore>,
}

struct LimitCore {
    store: Arc<RedisStore>,
    scripts: LimitScripts,
    replica: ReplicaId,
    policy: StoreLossPolicy,
    /// The number of live replicas, as Redis last told.
    replicas: AtomicUsize,
    leases: Mutex<LeaseTable>,
    /// Notified when there are leases to release.
    released: Notify,
    /// Since when Redis has been away.
    away_since: Mutex<Option<Instant>>,
}

/// The task that renews and releases the leases of this replica.
#[derive(Debug)]
pub struct LimitTask {
    stop: CancellationToken,
    task: TaskTracker,
}

impl RedisLimits {
    /// Starts the task that renews the leases of this replica.
    pub fn start(
        store: Arc<RedisStore>,
        replica: ReplicaId,
        policy: StoreLossPolicy,
    ) -> (Arc<Self>, LimitTask) {
        let core = Arc::new(LimitCore {
            store,
            scripts: LimitScripts::default(),
            replica,
            policy,
            replicas: AtomicUsize::new(1),
            leases: Mutex::default(),
            released: Notify::new(),
            away_since: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let task = TaskTracker::new();
        task.spawn(Arc::clone(&core).run(stop.clone()));
        (Arc::new(Self { yard: "", core }), LimitTask { stop, task })
    }

    /// The limits of another yard of this process, which has counters of its own.
    #[must_use]
    pub fn for_yard(&self, yard: &'static str) -> Arc<Self> {
        Arc::new(Self { yard, core: Arc::clone(&self.core) })
    }
}

impl LimitTask {
    /// Releases the remaining leases and ends the task.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.task.close();
        self.task.wait().await;
    }
}

impl SharedLimits for RedisLimits {
    fn admit<'a>(
        &'a self,
        demand: SharedDemand<'a>,
    ) -> BoxFuture<'a, Result<SharedAdmission, StoreUnavailable>> {
        Box::pin(self.core.admit(self.yard, demand))
    }

    fn released<'a>(&'a self, limit: &'a SharedLimit) -> BoxFuture<'a, ()> {
        let name = invocation::limit_key(self.yard, limit);
        let released = self.core.leases().watch(&name);
        Box::pin(async move { released.notified().await })
    }
}

impl LimitCore {
    async fn admit(
        self: &Arc<Self>,
        yard: &str,
        demand: SharedDemand<'_>,
    ) -> Result<SharedAdmission, StoreUnavailable> {
        let names: Vec<String> =
            demand.permits.iter().map(|limit| invocation::limit_key(yard, limit)).collect();
        let mut counted = None;
        loop {
            if !self.store.is_available() {
                let error = StoreUnavailable("Redis does not answer".to_owned());
                return self.admit_without_store(&names, &demand, counted, error);
            }
            // From here on the lease is released, even if this future is dropped before the answer.
            let lease = (!names.is_empty()).then(|| self.begin_lease(&names, &demand));
            let number = lease.as_ref().map(|lease| lease.number);
            let member = number.map(|number| self.member(number)).unwrap_or_default();
            let rates = if counted.is_none() { demand.rates } else { &[] };
            let sent = Instant::now();
            let script = self.scripts.admit(yard, rates, &names, demand.permits, &member);
            let reply = match self.store.run::<Vec<String>>(&script).await {
                Ok(reply) => AdmitReply::parse(&reply)?,
                Err(error) => {
                    drop(lease);
                    return self.admit_without_store(&names, &demand, counted, error);
                }
            };
            *self.away_since.lock() = None;
            let reject = |lease: Option<&LeaseGuard>| {
                lease.into_iter().for_each(|lease| self.leases().reject(lease.number));
            };
            let (whole_in, full) = match reply {
                AdmitReply::Exhausted { index, whole_in, early } => {
                    reject(lease.as_ref());
                    let rates = SharedCount::Exhausted { index, whole_in, early };
                    return Ok(SharedAdmission { rates, permits: SharedTake::Nothing });
                }
                AdmitReply::Counted { whole_in, full } => (whole_in, full),
            };
            let count = counted.unwrap_or(SharedCount::Counted(whole_in));
            let permits = match (lease, full) {
                (None, _) => SharedTake::Nothing,
                (lease @ Some(_), Some(index)) => {
                    reject(lease.as_ref());
                    SharedTake::Full(index)
                }
                (Some(lease), None) => {
                    let until = sent + RELIABLE_TIME;
                    if until <= Instant::now() {
                        // The process was stopped, so the lease may have expired.
                        counted = Some(count);
                        continue;
                    }
                    self.leases().confirm(lease.number, until);
                    SharedTake::Held(SharedPermit::new(move || drop(lease)))
                }
            };
            return Ok(SharedAdmission { rates: count, permits });
        }
    }

    /// Admits a call while Redis is away.
    fn admit_without_store(
        self: &Arc<Self>,
        names: &[String],
        demand: &SharedDemand<'_>,
        counted: Option<SharedCount>,
        error: StoreUnavailable,
    ) -> Result<SharedAdmission, StoreUnavailable> {
        if self.policy == StoreLossPolicy::Refuse {
            return Err(error);
        }
        let replicas = self.live_replicas();
        let rates = counted.unwrap_or(SharedCount::Local { replicas });
        let Some(last) = names.len().checked_sub(1) else {
            return Ok(SharedAdmission { rates, permits: SharedTake::Nothing });
        };
        let since = *self.away_since.lock().get_or_insert_with(Instant::now);
        let permits = if since.elapsed() < PATIENCE {
            SharedTake::Full(last)
        } else {
            let limits = names.iter().cloned().zip(demand.permits.iter().map(|limit| limit.most));
            match self.leases().grant_share(limits.collect(), demand.lost.clone(), replicas) {
                Ok(number) => {
                    let lease = LeaseGuard { core: Arc::clone(self), number };
                    SharedTake::Held(SharedPermit::new(move || drop(lease)))
                }
                Err(index) => SharedTake::Full(index),
            }
        };
        Ok(SharedAdmission { rates, permits })
    }

    fn begin_lease(self: &Arc<Self>, names: &[String], demand: &SharedDemand<'_>) -> LeaseGuard {
        let limits = names.iter().cloned().zip(demand.permits.iter().map(|limit| limit.most));
        let number = self.leases().begin(limits.collect(), demand.lost.clone());
        LeaseGuard { core: Arc::clone(self), number }
    }

    /// The name of a lease in Redis.
    fn member(&self, number: LeaseNumber) -> String {
        format!("{}:{number}", self.replica)
    }

    fn live_replicas(&self) -> usize {
        self.replicas.load(Ordering::Relaxed).max(1)
    }

    fn leases(&self) -> MutexGuard<'_, LeaseTable> {
        self.leases.lock()
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renewed: Option<Instant> = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.released.notified() => self.release().await,
                _ = ticks.tick() => {
                    self.expire();
                    let is_due = renewed.is_none_or(|at| at.elapsed() >= RENEWAL);
                    if is_due || !self.store.is_available() {
                        renewed = Some(Instant::now());
                        self.renew().await;
                    }
                    self.release().await;
                    self.leases().sweep();
                }
            }
        }
        self.release().await;
    }

    /// Cancels the calls whose leases may have expired. While Redis is away, the oldest of them
    /// keep the share of this replica.
    fn expire(&self) {
        let is_away = !self.store.is_available();
        let share = (is_away && self.policy == StoreLossPolicy::LocalShare).then(|| self.live_replicas());
        let lost = self.leases().expire(Instant::now(), share);
        if lost > 0 {
            tracing::warn!(calls = lost, "permits expired because Redis was not reached in time");
        }
    }

    /// Renews all leases and adds those that were granted while Redis was away. Sends a script even
    /// if there are none, so that the store knows of this replica and this replica of the store.
    async fn renew(&self) {
        let batches = self.leases().renewals(BATCH);
        for batch in batches {
            let sent = Instant::now();
            let members = batch.iter().map(|renewal| self.member(renewal.number));
            let members: Vec<String> = members.collect();
            let script = self.scripts.renew(&self.replica, batch.iter().zip(&members));
            let Ok(answer) = self.store.probe::<Vec<String>>(&script).await else { return };
            *self.away_since.lock() = None;
            let Some((replicas, expired)) = answer.split_first() else { return };
            if let Ok(replicas) = replicas.parse() {
                self.replicas.store(replicas, Ordering::Relaxed);
            }
            let is_expired = |at: usize| expired.contains(&members[at]);
            let renewals = batch.iter().enumerate();
            let renewals = renewals.map(|(at, renewal)| (renewal.number, is_expired(at)));
            let lost = self.leases().finish_renewal(renewals, sent + RELIABLE_TIME);
            if lost > 0 {
                tracing::warn!(
                    calls = lost,
                    "permits were given to other calls because they were renewed too late"
                );
            }
        }
    }

    /// Releases leases in Redis. What cannot be released expires.
    async fn release(&self) {
        loop {
            let batch = self.leases().take_released(BATCH);
            if batch.is_empty() {
                return;
            }
            let members: Vec<String> = batch.iter().map(|lease| self.member(lease.number)).collect();
            let script = self.scripts.release(batch.iter().map(|lease| &lease.limit).zip(&members));
            let done = self.store.run::<usize>(&script).await;
            let mut leases = self.leases();
            match done {
                Ok(_) => batch.iter().for_each(|lease| leases.notify(&lease.limit)),
                Err(_) => {
                    leases.put_back(batch, Instant::now());
                    return;
                }
            }
        }
    }
}

/// Releases a lease when dropped.
struct LeaseGuard {
    core: Arc<LimitCore>,
    number: LeaseNumber,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if self.core.leases().release(self.number, Instant::now()) {
            self.core.released.notify_one();
        }
    }
}

impl fmt::Debug for RedisLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLimits").field("yard", &self.yard).finish_non_exhaustive()
    }
}
