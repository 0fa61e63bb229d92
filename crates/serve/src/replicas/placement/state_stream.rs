//! The state of a server that this replica runs, as a stream for another replica.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use futures_util::stream::unfold;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use toolyard_hub::{ClientEra, SourceOffer, YardEvent};

use super::frames::{KEEPALIVE, encode_frame};
use super::local_run::LocalRun;
use super::message::{LegacyOfferMessage, OfferMessage, StateFrame, StateMessage};
use super::peer::PeerRequest;
use super::{PlacedState, Placement};

/// One replica that follows the server.
struct Follower {
    server: Arc<PlacedState>,
    run: Arc<LocalRun>,
    peer: PeerRequest,
    /// The number of this stream.
    number: u64,
    placement: watch::Receiver<Placement>,
    changes: broadcast::Receiver<Arc<YardEvent>>,
    /// What was sent last.
    sent: SentState,
    next: VecDeque<StateFrame>,
}

#[derive(Default)]
struct SentState {
    offer: Option<Arc<SourceOffer>>,
    legacy_offer: Option<Arc<SourceOffer>>,
}

/// Responds with a stream of [`StateFrame`] that ends when this replica stops the server.
pub(super) fn respond(
    server: &Arc<PlacedState>,
    run: Arc<LocalRun>,
    peer: &PeerRequest,
    watched: BTreeSet<String>,
) -> Response<Body> {
    // Subscribed before the state is read, so that no change is missed.
    let Some(changes) = server.subscribe_changes() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let number = server.update_watches(|watches| watches.add_follower(&peer.from, watched));
    let mut follower = Follower {
        server: Arc::clone(server),
        run,
        peer: peer.clone(),
        number,
        placement: server.subscribe_placement(),
        changes,
        sent: SentState::default(),
        next: VecDeque::new(),
    };
    follower.add_state();
    let frames = unfold(follower, |mut follower| async move {
        let frame = follower.next().await?;
        Some((encode_frame(&frame), follower))
    });
    Body::from_stream(frames).into_response()
}

/// Describes the whole state of a server.
pub(super) fn describe(run: &LocalRun) -> StateMessage {
    SentState::default().describe_changes(run)
}

impl SentState {
    fn describe_changes(&mut self, run: &LocalRun) -> StateMessage {
        let source = &*run.source;
        // While the server starts, the other replica keeps what it knows.
        let (offer, legacy_offer) = match run.offer() {
            Some(offer) => (self.describe_offer(offer), self.describe_legacy_offer(source.legacy_offer())),
            None => (None, LegacyOfferMessage::Unchanged),
        };
        StateMessage {
            status: source.status().into(),
            offer,
            legacy_offer,
            is_legacy_unknown: source.discover_era(ClientEra::Legacy).is_some(),
        }
    }

    fn describe_offer(&mut self, offer: Arc<SourceOffer>) -> Option<OfferMessage> {
        let is_new = self.offer.as_ref().is_none_or(|sent| !Arc::ptr_eq(sent, &offer));
        let message = is_new.then(|| OfferMessage::from(&*offer));
        self.offer = Some(offer);
        message
    }

    fn describe_legacy_offer(&mut self, offer: Option<Arc<SourceOffer>>) -> LegacyOfferMessage {
        let message = match (&self.legacy_offer, &offer) {
            (Some(sent), Some(offer)) if Arc::ptr_eq(sent, offer) => LegacyOfferMessage::Unchanged,
            (_, Some(offer)) => LegacyOfferMessage::Own(OfferMessage::from(&**offer)),
            (_, None) => LegacyOfferMessage::Same,
        };
        self.legacy_offer = offer;
        message
    }
}

impl Follower {
    fn add_state(&mut self) {
        let message = self.sent.describe_changes(&self.run);
        self.next.push_back(StateFrame::State(Box::new(message)));
    }

    /// Returns the next message, or `None` when this replica does not run the server any more.
    async fn next(&mut self) -> Option<StateFrame> {
        loop {
            if let Some(frame) = self.next.pop_front() {
                return Some(frame);
            }
            let is_over = |placement: &Placement| !placement.is_run(&self.run);
            let replicas = Arc::clone(&self.server.peers.replicas);
            let event = tokio::select! {
                _ = self.placement.wait_for(is_over) => return None,
                () = self.peer.wait_until_gone(&*replicas) => return None,
                () = tokio::time::sleep(KEEPALIVE) => return Some(StateFrame::Alive),
                event = self.changes.recv() => event,
            };
            let name = self.run.source.name();
            match event.as_deref() {
                Ok(YardEvent::ResourceUpdated { source, uri }) if source == name => {
                    self.next.push_back(StateFrame::ResourceUpdated { uri: uri.clone() });
                }
                Ok(YardEvent::StatusChanged { source }) if source == name => self.add_state(),
                Ok(YardEvent::CatalogChanged(_, sources)) if sources.contains(name) => self.add_state(),
                Ok(_) => {}
                // Events were lost, so anything may have changed.
                Err(RecvError::Lagged(_)) => {
                    self.add_state();
                    let watched = self.server.watches_of(&self.peer.from);
                    self.next.extend(watched.into_iter().map(|uri| StateFrame::ResourceUpdated { uri }));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.server.update_watches(|watches| watches.remove_follower(&self.peer.from, self.number));
    }
}
