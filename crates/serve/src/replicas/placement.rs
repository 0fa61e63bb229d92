//! Servers that run on exactly one replica (`placement = "one"`). That replica holds a lease and
//! serves the calls of the others, which see the server as a source like any other. Where a server
//! runs is decided in `assignment.rs`; `link.rs` is the side of a replica that does not run it, and
//! `peer_routes.rs` that of the one that does.

mod assignment;
mod foreign_call;
mod frames;
mod link;
mod local_run;
mod message;
mod peer;
mod peer_routes;
mod state_stream;
mod watches;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolyard_hub::{
    BoxFuture, ClientEra, DefinitionBudget, ErrorKind, HubError, LoginError, ManageError, Outcome, ReplicaId,
    Source, SourceCall, SourceCommand, SourceName, SourceNotifier, SourceOffer, SourceState, SourceStatus,
    TranscriptEntry, YardEvent,
};

use self::assignment::assign_server;
use self::link::{NotExecuted, ServerLink};
use self::local_run::LocalRun;
use self::peer::{PeerClient, PeerRequest};
pub(crate) use self::peer_routes::peer_router;
use self::watches::WatchedResources;
use super::ReplicaSettings;

/// How long to wait before a call is sent again that was not executed.
const RETRY: Duration = Duration::from_millis(100);

/// The servers of this yard that run on one replica only.
#[derive(Debug)]
pub struct PlacedServers {
    peers: Arc<PeerClient>,
    /// The newest server of each name.
    servers: Mutex<HashMap<SourceName, Weak<PlacedServer>>>,
    /// Held while a server of this name runs or may run.
    turns: Mutex<HashMap<SourceName, Arc<Semaphore>>>,
    hand_over: watch::Sender<Option<Instant>>,
}

/// A server that can run here or on another replica.
pub struct PlaceableServer {
    pub name: SourceName,
    /// Permissions that every entry requires.
    pub permissions: Vec<String>,
    /// How long a call waits until a replica runs the server.
    pub start_timeout: Duration,
    pub definitions: DefinitionBudget,
    /// Starts the server on this replica.
    pub start: Box<dyn Fn() -> StartedServer + Send + Sync>,
}

/// A server that has been started on this replica.
pub struct StartedServer {
    pub source: Arc<dyn Source>,
    /// Stops it. Its processes are gone when this completes.
    pub stop: BoxFuture<'static, ()>,
}

/// A server that runs on one replica, as a source of this one.
#[derive(Debug)]
pub struct PlacedServer {
    state: Arc<PlacedState>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct PlacedState {
    name: SourceName,
    permissions: Vec<String>,
    start_timeout: Duration,
    definitions: DefinitionBudget,
    start: Box<dyn Fn() -> StartedServer + Send + Sync>,
    peers: Arc<PeerClient>,
    created: Instant,
    placement: watch::Sender<Placement>,
    notifier: OnceLock<SourceNotifier>,
    /// What the server offered when it was last ready.
    known: Mutex<KnownOffers>,
    watches: Mutex<WatchedResources>,
    is_settled: AtomicBool,
    /// Set when this replica drains, to the time at which calls in flight are aborted.
    hand_over: watch::Sender<Option<Instant>>,
    stop: CancellationToken,
}

#[derive(Default)]
struct KnownOffers {
    offer: Arc<SourceOffer>,
    legacy_offer: Option<Arc<SourceOffer>>,
}

/// Where the server runs.
#[derive(Clone)]
enum Placement {
    Here(Arc<LocalRun>),
    Elsewhere(Arc<ServerLink>),
    /// Nowhere, or on a replica that is not known yet, for this reason.
    Unknown(Arc<str>),
}

impl Placement {
    fn is_run(&self, run: &Arc<LocalRun>) -> bool {
        matches!(self, Self::Here(current) if Arc::ptr_eq(current, run))
    }
}

impl PlacedServers {
    pub(super) fn new(settings: &ReplicaSettings) -> Arc<Self> {
        let ReplicaSettings { replicas, keys, tls } = settings.clone();
        Arc::new(Self {
            peers: Arc::new(PeerClient::new(replicas, keys, tls)),
            servers: Mutex::default(),
            turns: Mutex::default(),
            hand_over: watch::Sender::new(None),
        })
    }

    /// Adds a server. It starts on this replica in the background if no other replica runs it. A
    /// server of the same name stops first.
    pub fn add(&self, server: PlaceableServer) -> Arc<PlacedServer> {
        let PlaceableServer { name, permissions, start_timeout, definitions, start } = server;
        let turn =
            Arc::clone(self.turns.lock().entry(name.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))));
        let state = Arc::new(PlacedState {
            name: name.clone(),
            permissions,
            start_timeout,
            definitions,
            start,
            peers: Arc::clone(&self.peers),
            created: Instant::now(),
            placement: watch::Sender::new(Placement::Unknown("this replica is starting".into())),
            notifier: OnceLock::new(),
            known: Mutex::default(),
            watches: Mutex::default(),
            is_settled: AtomicBool::new(false),
            hand_over: self.hand_over.clone(),
            stop: CancellationToken::new(),
        });
        let task = tokio::spawn(assign_server(Arc::clone(&state), turn));
        let placed = Arc::new(PlacedServer { state, task: Mutex::new(Some(task)) });
        self.servers.lock().insert(name, Arc::downgrade(&placed));
        placed
    }

    fn find(&self, name: &SourceName) -> Option<Arc<PlacedServer>> {
        self.servers.lock().get(name).and_then(Weak::upgrade)
    }

    fn all(&self) -> Vec<Arc<PlacedServer>> {
        self.servers.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Stops all servers that this replica runs. The other replicas must still count it as alive, so
    /// that they start none of them before it has stopped.
    pub async fn stop(&self) {
        let servers = self.all();
        join_all(servers.iter().map(|server| server.stop())).await;
    }

    /// Gives up all servers, so that other replicas run them before this one stops. Calls in flight
    /// finish first, until `until`.
    pub(crate) async fn hand_over(&self, until: Instant) {
        self.hand_over.send_replace(Some(until));
        let servers = self.all();
        let moved = servers.iter().map(|server| async {
            let mut placement = server.state.subscribe_placement();
            while server.state.has_ready_successor() {
                let is_gone = |placement: &Placement| !matches!(placement, Placement::Here(_));
                // The last successor may disappear.
                if tokio::time::timeout(RETRY, placement.wait_for(is_gone)).await.is_ok() {
                    return;
                }
            }
        });
        join_all(moved).await;
    }
}

impl PlacedServer {
    fn state(&self) -> &Arc<PlacedState> {
        &self.state
    }

    /// Stops the server if this replica runs it, so that another one can, and stops following it
    /// otherwise. Calls in flight finish first, for a limited time.
    pub async fn stop(&self) {
        self.state.stop.cancel();
        let task = self.task.lock().take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }

    /// Stops the server because the sender of the request has become its holder. The result completes
    /// when it has stopped. Returns `None` if this replica does not run it.
    fn surrender(&self, request: &PeerRequest) -> Option<BoxFuture<'static, ()>> {
        let run = self.state.local_run().filter(|run| run.holder == request.to)?;
        run.surrender_to(&request.from);
        let mut placement = self.state.subscribe_placement();
        Some(Box::pin(async move {
            let _ = placement.wait_for(|placement| !placement.is_run(&run)).await;
        }))
    }
}

impl PlacedState {
    /// Notes why it is not known where the server runs.
    fn set_unknown(&self, reason: &str) {
        if !matches!(&*self.placement.borrow(), Placement::Unknown(known) if **known == *reason) {
            self.set_placement(Placement::Unknown(reason.into()));
        }
    }

    fn set_placement(&self, placement: Placement) {
        self.placement.send_replace(placement);
        if let Some(notifier) = self.notifier.get() {
            notifier.offer_changed();
            notifier.status_changed();
        }
    }

    fn current(&self) -> Placement {
        self.placement.borrow().clone()
    }

    fn subscribe_placement(&self) -> watch::Receiver<Placement> {
        self.placement.subscribe()
    }

    fn subscribe_changes(&self) -> Option<broadcast::Receiver<Arc<YardEvent>>> {
        self.notifier.get()?.subscribe_changes()
    }

    fn local_run(&self) -> Option<Arc<LocalRun>> {
        match self.current() {
            Placement::Here(run) => Some(run),
            Placement::Elsewhere(_) | Placement::Unknown(_) => None,
        }
    }

    /// Admits a call to the server of this replica. A process that was suspended may have been
    /// replaced, so it checks that first.
    async fn admit(&self, run: &LocalRun) -> Result<TaskTrackerToken, String> {
        match self.peers.replicas.confirm_id().await {
            Ok(id) if id == run.holder => {
                run.admit().ok_or_else(|| "it is moving to another replica".to_owned())
            }
            Ok(_) => Err("another replica may run it".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Connects a source that has just been started with the yard.
    fn prepare(&self, source: &dyn Source) {
        if let Some(notifier) = self.notifier.get() {
            source.attach(notifier.clone());
        }
        let watched = self.watches.lock();
        watched.all().iter().for_each(|uri| source.watch(uri));
    }

    /// Changes the watched resources, and reports the difference to the server.
    fn update_watches<T>(&self, change: impl FnOnce(&mut WatchedResources) -> T) -> T {
        let mut watches = self.watches.lock();
        let before = watches.all();
        let changed = change(&mut watches);
        // Read under the lock, so that a server that starts meanwhile misses nothing.
        match self.current() {
            Placement::Here(run) => {
                let now = watches.all();
                now.difference(&before).for_each(|uri| run.source.watch(uri));
                before.difference(&now).for_each(|uri| run.source.unwatch(uri));
            }
            Placement::Elsewhere(link) => link.watches_changed(),
            Placement::Unknown(_) => {}
        }
        changed
    }

    fn local_watches(&self) -> BTreeSet<String> {
        self.watches.lock().local().clone()
    }

    fn watches_of(&self, replica: &ReplicaId) -> BTreeSet<String> {
        self.watches.lock().uris_of(replica)
    }

    fn remember_offer(&self, offer: Option<Arc<SourceOffer>>, legacy_offer: Option<Arc<SourceOffer>>) {
        if let Some(offer) = offer {
            *self.known.lock() = KnownOffers { offer, legacy_offer };
        }
    }

    /// Notes what the server offers now. Until it is known, its last offer stays.
    fn refresh_offer(&self) {
        match self.current() {
            Placement::Here(run) => self.remember_offer(run.offer(), run.source.legacy_offer()),
            Placement::Elsewhere(link) => self.remember_offer(link.offer(), link.legacy_offer()),
            Placement::Unknown(_) => {}
        }
    }

    async fn call(&self, call: SourceCall) -> Result<Outcome, HubError> {
        let until = Instant::now() + self.start_timeout;
        let mut placement = self.placement.subscribe();
        loop {
            let current = placement.borrow_and_update().clone();
            let reason = match current {
                Placement::Here(run) => match self.admit(&run).await {
                    Ok(in_flight) => return run.call_locally(call, in_flight).await,
                    Err(reason) => reason,
                },
                Placement::Elsewhere(link) => match link.call(&call).await {
                    Ok(result) => return result,
                    Err(NotExecuted(reason)) => format!("replica `{}`: {reason}", link.replica.name),
                },
                Placement::Unknown(reason) => reason.to_string(),
            };
            if Instant::now() >= until {
                let message = format!("no replica could run {}: {reason}", self.name);
                return Err(
                    HubError::new(ErrorKind::CannotConnect, message).with_retry_after(Duration::from_secs(1))
                );
            }
            let _ = tokio::time::timeout(RETRY, placement.changed()).await;
        }
    }
}

impl Source for PlacedServer {
    fn name(&self) -> &SourceName {
        &self.state.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        self.state.refresh_offer();
        Arc::clone(&self.state.known.lock().offer)
    }

    fn legacy_offer(&self) -> Option<Arc<SourceOffer>> {
        self.state.refresh_offer();
        self.state.known.lock().legacy_offer.clone()
    }

    fn discover_era(&self, era: ClientEra) -> Option<BoxFuture<'_, ()>> {
        match self.state.current() {
            Placement::Here(run) => {
                drop(run.source.discover_era(era)?);
                Some(Box::pin(async move {
                    if let Some(discovery) = run.source.discover_era(era) {
                        discovery.await;
                    }
                }))
            }
            Placement::Elsewhere(link) if link.is_unknown_to(era) => {
                Some(Box::pin(async move { link.discover(|change| self.state.publish(change)).await }))
            }
            Placement::Elsewhere(_) | Placement::Unknown(_) => None,
        }
    }

    fn status(&self) -> SourceStatus {
        let mut status = match self.state.current() {
            Placement::Here(run) => {
                let replica = self.state.peers.replicas.all().first().map(|own| own.name.clone());
                SourceStatus { replica, ..run.source.status() }
            }
            Placement::Elsewhere(link) => link.status(),
            Placement::Unknown(reason) => {
                let settled = self.state.is_settled.load(Ordering::Relaxed);
                let state = if settled { SourceState::Retrying } else { SourceState::Starting };
                let status = SourceStatus::new(state, settled);
                SourceStatus { reason: Some(reason.to_string()), ..status }
            }
        };
        // A source that has settled stays settled.
        let settled = self.state.is_settled.fetch_or(status.startup_complete, Ordering::Relaxed);
        status.startup_complete |= settled;
        status
    }

    fn starting_since(&self) -> Option<Instant> {
        if self.state.is_settled.load(Ordering::Relaxed) {
            return None;
        }
        (!self.status().startup_complete).then_some(self.state.created)
    }

    fn attach(&self, notifier: SourceNotifier) {
        let _ = self.state.notifier.set(notifier.clone());
        // The server may have started before.
        if let Some(run) = self.state.local_run() {
            run.source.attach(notifier);
        }
    }

    fn permissions(&self) -> &[String] {
        &self.state.permissions
    }

    fn watch(&self, uri: &str) {
        self.state.update_watches(|watches| watches.add(uri));
    }

    fn unwatch(&self, uri: &str) {
        self.state.update_watches(|watches| watches.remove(uri));
    }

    fn manage(&self, command: SourceCommand) -> Result<(), ManageError> {
        match self.state.current() {
            Placement::Here(run) => run.source.manage(command),
            Placement::Elsewhere(link) => {
                link.manage(command);
                Ok(())
            }
            Placement::Unknown(reason) => Err(ManageError::Unreachable(reason.to_string())),
        }
    }

    fn transcript(&self, after: Option<u64>) -> Vec<TranscriptEntry> {
        self.state.local_run().map(|run| run.source.transcript(after)).unwrap_or_default()
    }

    fn log_in(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(async move {
            match self.state.current() {
                Placement::Here(run) => run.source.log_in().await,
                Placement::Elsewhere(link) => {
                    let message =
                        format!("log in at replica `{}`, which runs this server", link.replica.name);
                    Err(LoginError::NothingToDo(message))
                }
                Placement::Unknown(reason) => Err(ManageError::Unreachable(reason.to_string()).into()),
            }
        })
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(self.state.call(call))
    }
}

impl std::fmt::Debug for PlaceableServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlaceableServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for StartedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartedServer").field("name", self.source.name()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PlacedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlacedState").field("name", &self.name).finish_non_exhaustive()
    }
}
