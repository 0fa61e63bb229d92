//! Which replicas are alive, and which of them holds a session. Every replica registers itself in
//! Redis once per second. Limits and leases belong to other modules.

mod servers;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use redis::Script;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use toolyard_hub::{
    BoxFuture, HomeLookup, Replica, ReplicaId, ReplicaState, Replicas, ServerClaim, ServerHolder,
    SessionHome, StoreUnavailable, StreamEntry,
};
use toolyard_random::RandomError;

use crate::store::{KEY_PREFIX, RedisStore};
use crate::stream_log::{self, StreamLogQueue};

/// The interval between two beats, and how long a replica without a beat counts as alive.
const BEAT: Duration = Duration::from_secs(1);
const DEAD_AFTER: Duration = Duration::from_secs(3);
/// After this time without a beat of any replica, the store was away, and no replica counts as dead
/// until all of them had the time to report themselves.
const STORE_AWAY_AFTER: Duration = Duration::from_millis(1_500);
/// What this replica knows of the others is not older than this when it looks for one of them.
const FRESH: Duration = Duration::from_millis(100);
/// How long dead replicas and the homes of sessions are remembered, which is the lifetime of a
/// session ID.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// If more homes of sessions than this are cached, the cache is emptied.
const MANY_HOMES: usize = 50_000;

static BEAT_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("membership/beat.lua")));
static CLAIM_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("membership/claim.lua")));
static LEAVE_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("membership/leave.lua")));

/// What a replica reports about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaRecord {
    pub name: String,
    pub url: String,
    pub version: String,
    /// The fingerprint of its keys.
    pub keys: String,
    /// A digest of its configuration files.
    pub config: String,
    /// Whether it accepts no new sessions.
    #[serde(default)]
    pub draining: bool,
}

/// The membership of this process.
#[derive(Debug)]
pub struct Membership {
    store: Arc<RedisStore>,
    state: Mutex<State>,
    losses: watch::Sender<u64>,
    server_changes: watch::Sender<u64>,
    streams: StreamLogQueue,
}

#[derive(Debug)]
struct State {
    id: ReplicaId,
    own: ReplicaRecord,
    others: HashMap<ReplicaId, ReplicaRecord>,
    /// When the last successful beat was sent.
    beat_at: Option<Instant>,
    /// When the last regular beat was due.
    tried_at: Option<Instant>,
    /// Whether no beat was even tried for so long that this replica counts as dead.
    was_stopped: bool,
    /// Homes of sessions that were taken over.
    homes: HashMap<Box<str>, AdoptedSession>,
    /// Sessions that this replica has given up. Another one may have taken them over.
    released: HashSet<Box<str>>,
    /// The last time at which the store came back, if this replica has told it again which sessions
    /// it has taken over.
    restored: String,
    /// Which replica runs which server, as the store knows it.
    server_holders: BTreeMap<String, String>,
}

/// The mark of the store, then the live replicas and the holders of servers, each as keys and values.
type BeatAnswer = (String, Vec<String>, BTreeMap<String, String>);

/// A session that has moved, and what was saved of it.
#[derive(Debug)]
struct AdoptedSession {
    home: ReplicaId,
    saved: Arc<str>,
}

/// What the absence of a replica in the store means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreState {
    /// It is dead.
    Settled,
    /// The store was away or has lost its data, and the replica has not reported itself since.
    Resumed,
}

impl StoreState {
    fn from_mark(mark: &str) -> Self {
        if mark.is_empty() { Self::Settled } else { Self::Resumed }
    }
}

impl Membership {
    pub fn new(store: Arc<RedisStore>, own: ReplicaRecord) -> Result<Self, RandomError> {
        let state = State {
            id: new_id()?,
            own,
            others: HashMap::new(),
            beat_at: None,
            tried_at: None,
            was_stopped: false,
            homes: HashMap::new(),
            released: HashSet::new(),
            restored: String::new(),
            server_holders: BTreeMap::new(),
        };
        Ok(Self {
            store,
            state: Mutex::new(state),
            losses: watch::Sender::new(0),
            server_changes: watch::Sender::new(0),
            streams: StreamLogQueue::default(),
        })
    }

    /// Stays registered until `stop` is canceled, then leaves.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::join!(self.stay_registered(&stop), self.streams.run(&self.store, &stop));
    }

    async fn stay_registered(&self, stop: &CancellationToken) {
        let mut interval = tokio::time::interval(BEAT);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(interval.tick()).await.is_some() {
            {
                let mut state = self.lock();
                state.notice_stop();
                state.tried_at = Some(Instant::now());
            }
            // The store logs that it cannot be reached. The next beat tries again.
            let _ = self.beat().await;
        }
        let id = self.lock().id.clone();
        let mut leave = LEAVE_SCRIPT.prepare_invoke();
        leave.key(seen_key()).key(records_key()).key(gone_key(id.as_str()));
        leave.arg(id.as_str()).arg(millis(SESSION_LIFETIME));
        let _ = self.store.run::<i64>(&leave).await;
    }

    /// Replaces the digest of the configuration.
    pub fn set_config(&self, digest: String) {
        self.lock().own.config = digest;
    }

    /// Sets the URL at which the other replicas reach this one, which is also its name if it has no
    /// other.
    pub fn set_url(&self, url: &str) {
        let own = &mut self.lock().own;
        own.url = url.trim_end_matches('/').to_owned();
        if own.name.is_empty() {
            own.name.clone_from(&own.url);
        }
    }

    /// Registers this replica and reads the others. If it was considered dead, it continues under a
    /// new ID.
    async fn beat(&self) -> Result<(), StoreUnavailable> {
        loop {
            let (id, own) = {
                let state = self.lock();
                (state.id.clone(), state.own.clone())
            };
            let record = serde_json::to_string(&own).unwrap_or_default();
            let mut beat = BEAT_SCRIPT.prepare_invoke();
            beat.key(seen_key()).key(records_key()).key(store_key()).key(servers_key());
            beat.arg(id.as_str()).arg(record).arg(&own.url).arg(millis(DEAD_AFTER)).arg(gone_key(""));
            beat.arg(millis(SESSION_LIFETIME)).arg(millis(STORE_AWAY_AFTER));
            let sent = Instant::now();
            match self.store.probe::<Option<BeatAnswer>>(&beat).await? {
                Some((mark, rows, servers)) => {
                    self.update(&id, sent, StoreState::from_mark(&mark), &rows);
                    self.update_servers(servers);
                    return self.restore_homes(&mark).await;
                }
                None => self.replace_id(&id)?,
            }
        }
    }

    fn update(&self, id: &ReplicaId, sent: Instant, store: StoreState, rows: &[String]) {
        let mut state = self.lock();
        if state.id != *id {
            return;
        }
        state.beat_at = Some(sent);
        state.was_stopped = false;
        let mut others: HashMap<ReplicaId, ReplicaRecord> = rows
            .chunks_exact(2)
            .filter(|row| row[0] != id.as_str())
            .filter_map(|row| Some((ReplicaId::new(&row[0]), serde_json::from_str(&row[1]).ok()?)))
            .collect();
        if store == StoreState::Resumed {
            // Those that have not reported themselves again yet, unless they were replaced.
            let urls: HashSet<String> = others.values().map(|other| other.url.clone()).collect();
            for (id, other) in &state.others {
                if !urls.contains(&other.url) {
                    others.insert(id.clone(), other.clone());
                }
            }
        }
        for (id, other) in &others {
            let differences = other.differences(&state.own);
            match state.others.get(id) {
                None => tracing::info!(replica = other.name, url = other.url, "another replica is alive"),
                Some(known) if known.differences(&state.own) == differences => continue,
                Some(_) => {}
            }
            if !differences.is_empty() {
                let differences = differences.join(", ");
                tracing::warn!(replica = other.name, differences, "another replica differs from this one");
            }
        }
        for (id, other) in &state.others {
            if !others.contains_key(id) {
                tracing::info!(replica = other.name, url = other.url, "another replica is gone");
            }
        }
        state.others = others;
    }

    /// Tells the store again which sessions this replica has taken over, because it may have lost
    /// its data.
    async fn restore_homes(&self, mark: &str) -> Result<(), StoreUnavailable> {
        let mut commands = redis::pipe();
        {
            let state = self.lock();
            if mark.is_empty() || state.restored == mark {
                return Ok(());
            }
            for (session, _) in state.homes.iter().filter(|(_, adopted)| adopted.home == state.id) {
                let set = commands.cmd("SET").arg(home_key(session)).arg(state.id.as_str());
                set.arg("NX").arg("PX").arg(millis(SESSION_LIFETIME)).ignore();
            }
        }
        if !commands.is_empty() {
            self.store.send(&commands).await?;
        }
        self.lock().restored = mark.to_owned();
        Ok(())
    }

    /// Asks the store who is alive, unless this replica has just done so.
    async fn refresh(&self) {
        let is_fresh = self.lock().beat_at.is_some_and(|at| at.elapsed() < FRESH);
        if !is_fresh && self.store.is_available() {
            let _ = self.beat().await;
        }
    }

    /// Continues under a new ID, unless a concurrent beat has already done so.
    fn replace_id(&self, old: &ReplicaId) -> Result<(), StoreUnavailable> {
        let new = new_id().map_err(|error| StoreUnavailable(error.to_string()))?;
        {
            let mut state = self.lock();
            if state.id != *old {
                return Ok(());
            }
            state.id = new;
            state.homes.clear();
        }
        tracing::warn!("the other replicas considered this one dead; its sessions may have moved");
        self.losses.send_modify(|losses| *losses += 1);
        Ok(())
    }

    /// Makes sure that the other replicas have not considered this one dead without its knowledge,
    /// for example while the process was stopped.
    async fn ensure_current(&self) -> Result<(), StoreUnavailable> {
        let (is_current, was_stopped) = {
            let mut state = self.lock();
            let is_current = state.beat_at.is_some_and(|at| at.elapsed() < DEAD_AFTER);
            (is_current, state.notice_stop())
        };
        if is_current {
            return Ok(());
        }
        if was_stopped {
            // The others have gone on without this replica, so its own view of the store, such as a
            // command that timed out meanwhile, says nothing.
            return self.beat().await;
        }
        // While the store is away, no replica can take over a session.
        if self.store.is_available() {
            let _ = self.beat().await;
        }
        Ok(())
    }

    /// Returns the home of a session if this replica knows it without asking the store.
    fn cached_home(&self, session: &str, opener: &ReplicaId) -> Option<SessionHome> {
        let state = self.lock();
        if state.released.contains(session) {
            return None;
        }
        let home = state.homes.get(session).map_or(opener, |adopted| &adopted.home);
        if *home == state.id {
            return Some(SessionHome::Here);
        }
        // A draining replica may have released the session.
        let replica = state.replica(home).filter(|replica| replica.state == ReplicaState::Ready)?;
        Some(SessionHome::Elsewhere(replica))
    }

    async fn claim(&self, session: &str, opener: &ReplicaId) -> Result<SessionHome, StoreUnavailable> {
        let id = self.lock().id.clone();
        let mut claim = CLAIM_SCRIPT.prepare_invoke();
        claim.key(seen_key()).key(home_key(session)).key(store_key()).key(saved_key(session));
        claim.arg(opener.as_str()).arg(id.as_str()).arg(millis(DEAD_AFTER)).arg(millis(SESSION_LIFETIME));
        claim.arg(gone_key(""));
        let home: Option<(String, String)> = self.store.run(&claim).await?;
        if let Some((home, _)) = home.as_ref().filter(|(home, _)| !home.is_empty() && home != id.as_str()) {
            // It may have started after the last beat.
            let home = ReplicaId::new(home);
            if self.find(&home).is_none() {
                self.refresh().await;
            }
        }
        let mut state = self.lock();
        match home {
            Some((home, _)) if home.is_empty() => {
                state.homes.remove(session);
                Ok(SessionHome::Ended)
            }
            Some((home, saved)) => {
                let home = ReplicaId::new(&home);
                if home != *opener {
                    if state.homes.len() >= MANY_HOMES {
                        state.homes.clear();
                    }
                    let adopted = AdoptedSession { home: home.clone(), saved: saved.into() };
                    state.homes.insert(session.into(), adopted);
                }
                if home == state.id {
                    state.released.remove(session);
                    return Ok(SessionHome::Here);
                }
                state.replica(&home).map(SessionHome::Elsewhere).ok_or_else(|| {
                    StoreUnavailable("the replica that holds the session is not known yet".to_owned())
                })
            }
            None => Err(StoreUnavailable("it is not known yet whether its replica is alive".to_owned())),
        }
    }

    async fn set_home(&self, session: &str, state: &str) -> Result<(), StoreUnavailable> {
        self.lock().homes.remove(session);
        self.set(&home_key(session), state).await
    }

    /// Stores something for the lifetime of a session.
    async fn set(&self, key: &str, value: &str) -> Result<(), StoreUnavailable> {
        let mut set = redis::cmd("SET");
        set.arg(key).arg(value).arg("PX").arg(millis(SESSION_LIFETIME));
        self.store.query::<()>(&set).await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Returns whether the process was stopped, and no beat has succeeded since.
    fn notice_stop(&mut self) -> bool {
        self.was_stopped |= self.tried_at.is_some_and(|at| at.elapsed() >= DEAD_AFTER);
        self.was_stopped
    }

    fn replica(&self, id: &ReplicaId) -> Option<Replica> {
        self.others.get(id).map(|record| record.describe(id, &self.own))
    }
}

impl ReplicaRecord {
    fn describe(&self, id: &ReplicaId, own: &Self) -> Replica {
        Replica {
            id: id.clone(),
            name: self.name.clone(),
            url: self.url.clone(),
            version: self.version.clone(),
            state: if self.draining { ReplicaState::Draining } else { ReplicaState::Ready },
            differences: self.differences(own),
        }
    }

    fn differences(&self, own: &Self) -> Vec<&'static str> {
        let compared = [
            ("version", self.version != own.version),
            ("keys", self.keys != own.keys),
            ("configuration", self.config != own.config),
        ];
        compared.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }
}

impl Replicas for Membership {
    fn own_id(&self) -> ReplicaId {
        self.lock().id.clone()
    }

    fn find(&self, id: &ReplicaId) -> Option<Replica> {
        self.lock().replica(id)
    }

    fn look_up<'a>(&'a self, id: &'a ReplicaId) -> BoxFuture<'a, Option<Replica>> {
        Box::pin(async move {
            if self.find(id).is_none() {
                self.refresh().await;
            }
            self.find(id)
        })
    }

    fn all(&self) -> Vec<Replica> {
        let state = self.lock();
        let mut others: Vec<_> = state.others.keys().filter_map(|id| state.replica(id)).collect();
        others.sort_by(|a, b| (&a.name, a.id.as_str()).cmp(&(&b.name, b.id.as_str())));
        others.insert(0, state.own.describe(&state.id, &state.own));
        others
    }

    fn is_store_available(&self) -> bool {
        self.store.is_available()
    }

    fn session_home<'a>(
        &'a self,
        session: &'a str,
        opener: &'a ReplicaId,
        lookup: HomeLookup,
    ) -> BoxFuture<'a, Result<SessionHome, StoreUnavailable>> {
        Box::pin(async move {
            self.ensure_current().await?;
            match self.cached_home(session, opener).filter(|_| lookup == HomeLookup::Cached) {
                Some(home) => Ok(home),
                None => self.claim(session, opener).await,
            }
        })
    }

    fn adopted(&self, session: &str) -> Option<Arc<str>> {
        let state = self.lock();
        let adopted = state.homes.get(session).filter(|adopted| adopted.home == state.id)?;
        Some(Arc::clone(&adopted.saved))
    }

    fn save_session<'a>(
        &'a self,
        session: &'a str,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreUnavailable>> {
        Box::pin(async move { self.set(&saved_key(session), &state).await })
    }

    fn log_stream(&self, session: &str, stream: u64, entry: StreamEntry) {
        self.streams.push(session, stream, entry);
    }

    fn read_stream<'a>(
        &'a self,
        session: &'a str,
        stream: u64,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, StoreUnavailable>> {
        Box::pin(stream_log::read(&self.store, session, stream))
    }

    fn release_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>> {
        self.lock().released.insert(session.into());
        Box::pin(self.set_home(session, "released"))
    }

    fn end_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>> {
        Box::pin(self.set_home(session, "ended"))
    }

    fn server_holder<'a>(
        &'a self,
        server: &'a str,
        claim: ServerClaim,
    ) -> BoxFuture<'a, Result<ServerHolder, StoreUnavailable>> {
        Box::pin(self.find_server_holder(server, claim))
    }

    fn release_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>> {
        Box::pin(self.give_up_server(server))
    }

    fn server_changes(&self) -> watch::Receiver<u64> {
        self.server_changes.subscribe()
    }

    fn confirm_id(&self) -> BoxFuture<'_, Result<ReplicaId, StoreUnavailable>> {
        Box::pin(async move {
            self.ensure_current().await?;
            Ok(self.own_id())
        })
    }

    fn start_draining(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.lock().own.draining = true;
            let _ = self.beat().await;
        })
    }

    fn losses(&self) -> watch::Receiver<u64> {
        self.losses.subscribe()
    }
}

fn new_id() -> Result<ReplicaId, RandomError> {
    toolyard_random::hex_id().map(|id| ReplicaId::new(&id))
}

fn seen_key() -> String {
    format!("{KEY_PREFIX}replicas:seen")
}

fn records_key() -> String {
    format!("{KEY_PREFIX}replicas:records")
}

fn store_key() -> String {
    format!("{KEY_PREFIX}replicas:store")
}

fn servers_key() -> String {
    format!("{KEY_PREFIX}replicas:servers")
}

fn gone_key(id: &str) -> String {
    format!("{KEY_PREFIX}replicas:gone:{id}")
}

fn home_key(session: &str) -> String {
    format!("{KEY_PREFIX}session:{session}")
}

fn saved_key(session: &str) -> String {
    format!("{KEY_PREFIX}session:{session}:saved")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
