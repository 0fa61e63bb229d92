//! Decides where a server runs: claims it when no other replica runs it, and gives it up when this
//! replica drains, counts as dead, or is told to.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use toolyard_hub::{
    PreviousHolder, Replica, ReplicaId, ReplicaState, ServerClaim, ServerHolder, StoreUnavailable,
};

use super::link::{LinkChange, ServerLink};
use super::local_run::LocalRun;
use super::peer::{PeerAction, PeerAddress};
use super::{PlacedState, Placement};

/// How long to wait before the holder is looked up again.
const RETRY: Duration = Duration::from_millis(200);
/// How long a replica that counts as dead may take to stop the server.
const GIVE_UP: Duration = Duration::from_secs(8);
/// The interval of the search for sessions whose replica is gone.
const SWEEP: Duration = Duration::from_secs(10);

/// Why this replica stops the server.
enum RunEnd {
    /// Another replica may run it once the calls in flight have ended, or at this time.
    HandedOver(Instant),
    /// Another replica may run it already.
    Lost,
}

/// Runs or follows the server until the source is stopped. `turn` prevents that the server starts
/// with new settings before it has stopped with the old ones.
pub(super) async fn assign_server(server: Arc<PlacedState>, turn: Arc<Semaphore>) {
    let Some(_turn) = server.stop.run_until_cancelled(turn.acquire_owned()).await else { return };
    let mut link: Option<Arc<ServerLink>> = None;
    let mut successor: Option<ReplicaId> = None;
    let mut changes = server.peers.replicas.server_changes();
    let mut losses = server.peers.replicas.losses();
    while !server.stop.is_cancelled() {
        changes.mark_unchanged();
        losses.mark_unchanged();
        match server.find_holder(successor.take()).await {
            Ok(ServerHolder::Here { .. }) if !server.may_run() => server.release().await,
            Ok(ServerHolder::Here { previous }) => {
                close(&mut link).await;
                successor = server.run_here(previous, &mut losses).await;
                // The next holder need not wait for anything.
                continue;
            }
            Ok(ServerHolder::Elsewhere(replica)) => server.follow(&mut link, replica).await,
            Ok(ServerHolder::Nowhere) => {
                close(&mut link).await;
                server.set_unknown("no replica runs it");
            }
            // Without the store, the server stays where it is.
            Err(error) => match link.as_ref().and_then(|link| server.peers.replicas.find(&link.replica.id)) {
                Some(replica) => server.follow(&mut link, replica).await,
                None => {
                    close(&mut link).await;
                    server.set_unknown(&error.to_string());
                }
            },
        }
        let pause = async {
            let _ = tokio::time::timeout(RETRY, changes.changed()).await;
        };
        server.stop.run_until_cancelled(pause).await;
    }
    close(&mut link).await;
    server.set_unknown("this replica is stopping");
}

async fn close(link: &mut Option<Arc<ServerLink>>) {
    if let Some(link) = link.take() {
        link.close().await;
    }
}

impl PlacedState {
    /// Returns the holder, which may become this replica. If the store cannot be reached, a
    /// replica that has asked this one for the server is the holder.
    async fn find_holder(&self, successor: Option<ReplicaId>) -> Result<ServerHolder, StoreUnavailable> {
        let claim = if self.may_run() { ServerClaim::IfFree } else { ServerClaim::No };
        let replicas = &self.peers.replicas;
        let holder = replicas.server_holder(self.name.as_str(), claim).await;
        match (holder, successor.and_then(|successor| replicas.find(&successor))) {
            (Err(_), Some(successor)) => Ok(ServerHolder::Elsewhere(successor)),
            (holder, _) => holder,
        }
    }

    /// Returns whether this replica may run the server. A draining one does so only if it is the
    /// last.
    fn may_run(&self) -> bool {
        !self.is_draining() || !self.has_ready_successor()
    }

    fn is_draining(&self) -> bool {
        self.hand_over.borrow().is_some()
    }

    pub(super) fn has_ready_successor(&self) -> bool {
        let all = self.peers.replicas.all();
        all.iter().skip(1).any(|replica| replica.state == ReplicaState::Ready)
    }

    async fn release(&self) {
        if let Err(error) = self.peers.replicas.release_server(self.name.as_str()).await {
            tracing::warn!(server = %self.name, %error, "the server is not released; it moves when this replica is gone");
        }
    }

    /// Starts the server and runs it until it has to move. Returns the replica that runs it now, if
    /// it has said so itself.
    async fn run_here(
        self: &Arc<Self>,
        previous: Option<PreviousHolder>,
        losses: &mut watch::Receiver<u64>,
    ) -> Option<ReplicaId> {
        let replicas = &self.peers.replicas;
        let own_url = replicas.all().first().map(|own| own.url.clone()).unwrap_or_default();
        let holder = replicas.own_id();
        if let Some(previous) = previous.filter(|previous| previous.url != own_url) {
            self.end_previous_run(&previous).await;
        }
        // The claim is lost if this replica has counted as dead meanwhile.
        if replicas.confirm_id().await.ok().as_ref() != Some(&holder) {
            return None;
        }
        tracing::info!(server = %self.name, "this replica runs the server");
        let started = (self.start)();
        let run = Arc::new(LocalRun::new(Arc::clone(&started.source), holder));
        self.set_placement(Placement::Here(Arc::clone(&run)));
        self.prepare(&*started.source);
        let end = tokio::select! {
            end = self.watch_run(&run) => end,
            // Any loss since the claim counts.
            _ = losses.changed() => RunEnd::Lost,
        };
        run.close_gate();
        let is_handed_over = match end {
            RunEnd::HandedOver(until) => {
                if tokio::time::timeout_at(until, run.wait_for_calls()).await.is_err() {
                    tracing::warn!(server = %self.name, "calls are still in flight; aborting them");
                }
                true
            }
            RunEnd::Lost => {
                tracing::warn!(server = %self.name, "another replica may run the server; stopping it here");
                false
            }
        };
        run.cut_calls().await;
        // What the server offers stays known while it moves.
        self.refresh_offer();
        started.stop.await;
        if is_handed_over {
            self.release().await;
        }
        self.set_unknown("it is moving to another replica");
        run.successor()
    }

    /// Waits until the server has to move.
    async fn watch_run(&self, run: &LocalRun) -> RunEnd {
        let mut changes = self.peers.replicas.server_changes();
        let mut hand_over = self.hand_over.subscribe();
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return RunEnd::HandedOver(Instant::now() + self.start_timeout),
                () = run.surrendered.cancelled() => return RunEnd::Lost,
                changed = hand_over.changed() => match changed {
                    Ok(()) if !self.has_ready_successor() => {}
                    Ok(()) => {
                        if let Some(until) = *hand_over.borrow_and_update() {
                            return RunEnd::HandedOver(until);
                        }
                    }
                    Err(_) => return RunEnd::Lost,
                },
                // The store may have lost its data.
                _ = changes.changed() => {
                    let holder = self.peers.replicas.server_holder(self.name.as_str(), ServerClaim::Held).await;
                    if let Ok(ServerHolder::Elsewhere(_)) = holder {
                        return RunEnd::Lost;
                    }
                }
                _ = sweep.tick() => run.sweep_sessions(&*self.peers.replicas),
            }
        }
    }

    /// Asks the previous holder to stop the server. It counts as dead, but may only have lost the
    /// store.
    async fn end_previous_run(&self, previous: &PreviousHolder) {
        let to = PeerAddress { id: &previous.id, url: &previous.url };
        let (server, url) = (&self.name, &previous.url);
        match self.peers.send(to, server, PeerAction::GiveUp, &()).await {
            // The response ends when the server has stopped.
            Ok(response) => match tokio::time::timeout(GIVE_UP, response.bytes()).await {
                Ok(Ok(_)) => tracing::info!(%server, url, "the previous replica has stopped the server"),
                Ok(Err(_)) | Err(_) => {
                    tracing::warn!(%server, url, "the previous replica may still run the server")
                }
            },
            Err(error) => tracing::info!(%server, url, %error, "the previous replica does not respond"),
        }
    }

    /// Follows the server at another replica until it moves or cannot be reached.
    async fn follow(self: &Arc<Self>, link: &mut Option<Arc<ServerLink>>, replica: Replica) {
        if link.as_ref().is_none_or(|link| link.replica.id != replica.id || link.replica.url != replica.url) {
            close(link).await;
        }
        let link = link.get_or_insert_with(|| Arc::new(self.open_link(replica)));
        if !matches!(&*self.placement.borrow(), Placement::Elsewhere(known) if Arc::ptr_eq(known, link)) {
            self.set_placement(Placement::Elsewhere(Arc::clone(link)));
        }
        let following = link.follow(|| self.local_watches(), |change| self.publish(change));
        if let Some(Err(reason)) = self.stop.run_until_cancelled(following).await {
            tracing::debug!(server = %self.name, replica = link.replica.name, reason, "not following");
        }
    }

    fn open_link(&self, replica: Replica) -> ServerLink {
        ServerLink::new(replica, self.name.clone(), Arc::clone(&self.peers), self.definitions.clone())
    }

    /// Notifies the yard of a change at another replica.
    pub(super) fn publish(&self, change: LinkChange) {
        let Some(notifier) = self.notifier.get() else { return };
        match change {
            LinkChange::Offer => notifier.offer_changed(),
            LinkChange::Status => notifier.status_changed(),
            LinkChange::Resource(uri) => notifier.resource_updated(&uri),
        }
    }
}
