//! The other replicas of the yard, as far as a control socket shows them. While a socket is
//! attached, this replica follows the events of every other one and records them in its journal.
//! Without a socket, nothing is sent between the replicas.

mod feed;
mod follow;
mod message;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::{Replica, ReplicaId, Yard};

pub(super) use self::feed::FeedPermits;
use super::journal::{FirstContact, Journal};
use crate::replicas::ReplicaRouter;

/// How often the list of replicas is compared with the last one.
const CHECK: Duration = Duration::from_millis(500);
/// How long the first socket waits for the state of the other replicas.
const SETTLE: Duration = Duration::from_millis(500);

/// The view of this replica on the others.
#[derive(Debug)]
pub(super) struct ClusterView {
    router: Arc<ReplicaRouter>,
    journal: Arc<Journal>,
    yard: Arc<Yard>,
    /// The number of attached sockets.
    watchers: watch::Sender<usize>,
    /// The replicas whose events arrive.
    connected: Mutex<HashSet<ReplicaId>>,
    /// Notified when one is connected or disconnected.
    changed: Notify,
    /// Whether the state of the other replicas is known, as far as they send it in time.
    settled: watch::Sender<bool>,
}

/// An attached socket. The other replicas are followed while there is at least one.
#[derive(Debug)]
pub(super) struct ClusterWatcher(Arc<ClusterView>);

impl Drop for ClusterWatcher {
    fn drop(&mut self) {
        self.0.watchers.send_modify(|watchers| *watchers -= 1);
    }
}

impl ClusterView {
    pub(super) fn new(router: Arc<ReplicaRouter>, journal: Arc<Journal>, yard: Arc<Yard>) -> Arc<Self> {
        Arc::new(Self {
            router,
            journal,
            yard,
            watchers: watch::channel(0).0,
            connected: Mutex::default(),
            changed: Notify::new(),
            settled: watch::channel(false).0,
        })
    }

    /// Attaches a socket. When this returns, the journal has the state of the other replicas, unless
    /// one of them is slow.
    pub(super) async fn attach(self: &Arc<Self>) -> ClusterWatcher {
        self.watchers.send_modify(|watchers| *watchers += 1);
        let watcher = ClusterWatcher(Arc::clone(self));
        // An error means that the process is ending.
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
        watcher
    }

    /// Follows the other replicas while sockets are attached. Never completes.
    pub(super) async fn run(self: Arc<Self>) {
        let mut watchers = self.watchers.subscribe();
        loop {
            if watchers.wait_for(|watchers| *watchers > 0).await.is_err() {
                return;
            }
            let began = Instant::now();
            let mut feeds: HashMap<ReplicaId, AbortOnDropHandle<()>> = HashMap::new();
            while *watchers.borrow_and_update() > 0 {
                let others: Vec<Replica> = self.router.replicas().all().into_iter().skip(1).collect();
                let alive: HashSet<ReplicaId> = others.iter().map(|replica| replica.id.clone()).collect();
                feeds.retain(|id, _| alive.contains(id));
                self.connected.lock().retain(|id| alive.contains(id));
                self.journal.retain_replicas(&alive, &self.yard);
                let has_settled = *self.settled.borrow();
                let contact = if has_settled { FirstContact::Later } else { FirstContact::AtStart };
                for replica in others {
                    feeds.entry(replica.id.clone()).or_insert_with(|| {
                        AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self).follow(replica, contact)))
                    });
                }
                self.journal.record_replicas(self.list());
                self.journal.announce_entries();
                let is_complete = alive.iter().all(|id| self.is_connected(id));
                let waited = began.elapsed();
                if !has_settled && (is_complete || waited >= SETTLE) {
                    self.settled.send_replace(true);
                }
                let next = if has_settled { CHECK } else { SETTLE.saturating_sub(waited) };
                tokio::select! {
                    () = tokio::time::sleep(next) => {}
                    () = self.changed.notified() => {}
                    Ok(()) = watchers.changed() => {}
                }
            }
            drop(feeds);
            self.connected.lock().clear();
            self.settled.send_replace(false);
        }
    }

    /// Returns the replicas and the state of their store, and which of them report their events.
    pub(super) fn list(&self) -> Value {
        let mut list = self.router.list();
        let own = self.router.replicas().own_id();
        for replica in list["replicas"].as_array_mut().into_iter().flatten() {
            let id = ReplicaId::new(replica["id"].as_str().unwrap_or_default());
            replica["connected"] = json!(id == own || self.is_connected(&id));
        }
        list
    }

    fn is_connected(&self, id: &ReplicaId) -> bool {
        self.connected.lock().contains(id)
    }

    fn set_connected(&self, id: &ReplicaId, is_connected: bool) {
        let mut connected = self.connected.lock();
        let has_changed = match is_connected {
            true => connected.insert(id.clone()),
            false => connected.remove(id),
        };
        drop(connected);
        if has_changed {
            self.changed.notify_one();
        }
    }
}
