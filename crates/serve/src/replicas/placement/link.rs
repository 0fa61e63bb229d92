//! A server that another replica runs, as this replica sees it: its state, and the calls that this
//! replica sends there.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{
    ClientEra, ClientSession, DefinitionBudget, ErrorKind, HubError, LogLine, Outcome, Progress, Question,
    Replica, ReplicaId, ReplicaState, SourceCall, SourceCommand, SourceName, SourceOffer, SourceState,
    SourceStatus, StreamPause,
};

use super::super::forwarding::wait_until_dead;
use super::frames::FrameReader;
use super::message::{
    AnswerMessage, CallFrame, CallMessage, CapabilitiesMessage, CommandMessage, ErrorMessage,
    LegacyOfferMessage, OfferMessage, QuestionMessage, SessionEndMessage, SessionMessage, StateFrame,
    StateMessage, TargetMessage, WatchMessage,
};
use super::peer::{PeerAction, PeerAddress, PeerClient, PeerError};

/// How often the end of a session is reported if the other replica does not respond, and the pause
/// between two attempts.
const END_ATTEMPTS: usize = 10;
const END_PAUSE: Duration = Duration::from_secs(1);
/// How long the other replica may take to determine what a server offers to legacy clients.
const DISCOVERY: Duration = Duration::from_secs(60);

/// A server that another replica runs.
pub(super) struct ServerLink {
    pub(super) replica: Replica,
    server: SourceName,
    peers: Arc<PeerClient>,
    budget: DefinitionBudget,
    state: RwLock<LinkState>,
    watches_changed: Notify,
    /// Sessions that the other replica knows, as principal and session.
    sessions: Mutex<HashSet<(String, String)>>,
    tasks: TaskTracker,
    closed: CancellationToken,
}

/// What the other replica has last said about the server.
struct LinkState {
    status: SourceStatus,
    /// `None` until it is known.
    offer: Option<Arc<SourceOffer>>,
    legacy_offer: Option<Arc<SourceOffer>>,
    is_legacy_unknown: bool,
}

/// What has changed at the other replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinkChange {
    Status,
    Offer,
    Resource(String),
}

/// Why a call was certainly not executed.
#[derive(Debug)]
pub(super) struct NotExecuted(pub(super) String);

impl ServerLink {
    pub(super) fn new(
        replica: Replica,
        server: SourceName,
        peers: Arc<PeerClient>,
        budget: DefinitionBudget,
    ) -> Self {
        let state = LinkState {
            status: SourceStatus::new(SourceState::Starting, false),
            offer: None,
            legacy_offer: None,
            is_legacy_unknown: false,
        };
        Self {
            replica,
            server,
            peers,
            budget,
            state: RwLock::new(state),
            watches_changed: Notify::new(),
            sessions: Mutex::default(),
            tasks: TaskTracker::new(),
            closed: CancellationToken::new(),
        }
    }

    pub(super) fn status(&self) -> SourceStatus {
        let status = self.state.read().status.clone();
        SourceStatus { replica: Some(self.replica.name.clone()), ..status }
    }

    pub(super) fn offer(&self) -> Option<Arc<SourceOffer>> {
        self.state.read().offer.clone()
    }

    pub(super) fn legacy_offer(&self) -> Option<Arc<SourceOffer>> {
        self.state.read().legacy_offer.clone()
    }

    /// Returns whether the offer to clients of this era is still to be determined.
    pub(super) fn is_unknown_to(&self, era: ClientEra) -> bool {
        era == ClientEra::Legacy && self.state.read().is_legacy_unknown
    }

    /// Reports the current set of watched resources to the other replica.
    pub(super) fn watches_changed(&self) {
        self.watches_changed.notify_one();
    }

    /// Follows the state of the server until the other replica does not run it any more or cannot
    /// be reached. `watched` returns the watched resources.
    pub(super) async fn follow(
        &self,
        watched: impl Fn() -> BTreeSet<String>,
        on_change: impl Fn(LinkChange),
    ) -> Result<(), String> {
        let response = self.send(PeerAction::Follow, &WatchMessage { uris: watched() }).await;
        let mut frames = match response {
            Ok(response) => FrameReader::new(response),
            Err(error) => {
                let reason = format!("cannot reach replica `{}`: {error}", self.replica.name);
                self.set_unreachable(&reason);
                on_change(LinkChange::Status);
                return Err(reason);
            }
        };
        loop {
            tokio::select! {
                frame = frames.next::<StateFrame>() => match frame {
                    Ok(StateFrame::State(message)) => self.apply(*message).into_iter().for_each(&on_change),
                    Ok(StateFrame::Alive) => {}
                    Ok(StateFrame::ResourceUpdated { uri }) => on_change(LinkChange::Resource(uri)),
                    Err(error) => {
                        self.set_unreachable(&format!("replica `{}`: {error}", self.replica.name));
                        on_change(LinkChange::Status);
                        return Err(error.to_string());
                    }
                },
                () = self.watches_changed.notified() => {
                    let message = WatchMessage { uris: watched() };
                    if self.send(PeerAction::Watch, &message).await.is_err() {
                        return Err("the connection broke".to_owned());
                    }
                }
                () = self.wait_until_dead() => {
                    self.set_unreachable(&format!("replica `{}`, which ran it, is gone", self.replica.name));
                    on_change(LinkChange::Status);
                    return Ok(());
                }
            }
        }
    }

    /// Determines what the server offers to legacy clients.
    pub(super) async fn discover(&self, on_change: impl Fn(LinkChange)) {
        let discovery = async {
            let response = self.send(PeerAction::Discover, &()).await.ok()?;
            match FrameReader::new(response).next::<StateFrame>().await.ok()? {
                StateFrame::State(message) => Some(*message),
                StateFrame::Alive | StateFrame::ResourceUpdated { .. } => None,
            }
        };
        if let Ok(Some(message)) = tokio::time::timeout(DISCOVERY, discovery).await {
            self.apply(message).into_iter().for_each(on_change);
        }
    }

    /// Executes a call at the other replica.
    pub(super) async fn call(
        self: &Arc<Self>,
        call: &SourceCall,
    ) -> Result<Result<Outcome, HubError>, NotExecuted> {
        if let Some(session) = &call.record.context.client_session {
            self.watch_session(call.record.principal.id(), session);
        }
        let mut frames = match self.send(PeerAction::Call, &describe(call)).await {
            Ok(response) => FrameReader::new(response),
            Err(PeerError::NotHandled(reason)) => return Err(NotExecuted(reason)),
            Err(PeerError::Lost) => return Ok(Err(self.lost_error())),
        };
        let mut asked = FuturesUnordered::new();
        loop {
            tokio::select! {
                frame = frames.next::<CallFrame>() => match frame {
                    Ok(CallFrame::Alive) => {}
                    Ok(CallFrame::Progress { progress, total, message }) => {
                        call.client.report_progress(Progress { progress, total, message });
                    }
                    Ok(CallFrame::Chunk(chunk)) => call.client.send_chunk(chunk).await,
                    Ok(CallFrame::Log { level, logger, data }) => call.client.log(LogLine { level, logger, data }),
                    Ok(CallFrame::Pause { retry_ms }) => {
                        let retry = Duration::from_millis(retry_ms);
                        call.client.try_send_pause(StreamPause { retry, returned: Arc::default() });
                    }
                    Ok(CallFrame::Ask { batch, questions }) => asked.push(self.ask(call, batch, questions)),
                    Ok(CallFrame::Outcome { failed, modern, body }) => return Ok(Ok(Outcome { body, failed, modern })),
                    Ok(CallFrame::Error(error)) => return Ok(Err(error.into())),
                    Err(error) => {
                        tracing::debug!(server = %self.server, %error, "call lost");
                        return Ok(Err(self.lost_error()));
                    }
                },
                Some(answered) = asked.next() => if answered.is_err() {
                    return Ok(Err(self.lost_error()));
                },
                () = self.wait_until_dead() => return Ok(Err(self.lost_error())),
            }
        }
    }

    /// Asks the client, and sends its answers to the other replica.
    async fn ask(
        &self,
        call: &SourceCall,
        batch: u64,
        questions: Vec<QuestionMessage>,
    ) -> Result<(), PeerError> {
        let questions: Vec<Question> = questions.into_iter().map(Question::from).collect();
        let answers = call.client.ask(questions).await;
        let answers = answers.map_err(|error| ErrorMessage::from(&error));
        self.send(PeerAction::Answer, &AnswerMessage { batch, answers }).await.map(drop)
    }

    /// Sends a command to the server in the background.
    pub(super) fn manage(self: &Arc<Self>, command: SourceCommand) {
        let link = Arc::clone(self);
        self.tasks.spawn(async move {
            let message = CommandMessage::from(command);
            let sent = link.send(PeerAction::Manage, &message);
            if let Some(Err(error)) = link.closed.run_until_cancelled(sent).await {
                let (server, replica) = (&link.server, &link.replica.name);
                tracing::warn!(%server, replica, %error, "the command was not sent");
            }
        });
    }

    /// Ends all tasks of this link.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Reports the end of a session to the other replica, which may have opened something for it.
    fn watch_session(self: &Arc<Self>, principal: &str, session: &ClientSession) {
        let key = (principal.to_owned(), session.id().to_string());
        if !self.sessions.lock().insert(key.clone()) {
            return;
        }
        let (link, opened_by, session) = (Arc::clone(self), self.peers.replicas.own_id(), session.clone());
        self.tasks.spawn(async move {
            let watching = async {
                session.ended().cancelled().await;
                link.sessions.lock().remove(&key);
                if !link.has_moved(&opened_by) {
                    let (principal, session) = key;
                    link.report_end(&SessionEndMessage { principal, session }).await;
                }
            };
            link.closed.run_until_cancelled(watching).await;
        });
    }

    /// Returns whether sessions of this replica end because other replicas continue them.
    fn has_moved(&self, opened_by: &ReplicaId) -> bool {
        let replicas = self.peers.replicas.all();
        replicas.first().is_none_or(|own| own.id != *opened_by || own.state == ReplicaState::Draining)
    }

    async fn report_end(&self, message: &SessionEndMessage) {
        for _ in 0..END_ATTEMPTS {
            match self.send(PeerAction::EndSession, message).await {
                // If the other replica does not run the server any more, its sessions are gone.
                Ok(_) | Err(PeerError::NotHandled(_)) => return,
                Err(PeerError::Lost) => tokio::time::sleep(END_PAUSE).await,
            }
        }
    }

    async fn send<T: serde::Serialize + Sync>(
        &self,
        action: PeerAction,
        message: &T,
    ) -> Result<reqwest::Response, PeerError> {
        let to = PeerAddress { id: &self.replica.id, url: &self.replica.url };
        self.peers.send(to, &self.server, action, message).await
    }

    fn apply(&self, message: StateMessage) -> Vec<LinkChange> {
        let mut changes = vec![LinkChange::Status];
        let mut state = self.state.write();
        let was_unknown = state.offer.is_none();
        state.status = message.status.into();
        state.is_legacy_unknown = message.is_legacy_unknown;
        if let Some(offer) = message.offer {
            self.store_offer(&mut state, offer);
            changes.push(LinkChange::Offer);
        }
        match message.legacy_offer {
            LegacyOfferMessage::Unchanged => {}
            LegacyOfferMessage::Same if state.legacy_offer.is_none() => {}
            LegacyOfferMessage::Same => {
                state.legacy_offer = None;
                changes.push(LinkChange::Offer);
            }
            LegacyOfferMessage::Own(offer) => match self.charge(offer) {
                Ok(offer) => {
                    state.legacy_offer = Some(Arc::new(offer));
                    changes.push(LinkChange::Offer);
                }
                Err(warning) => state.status.warnings.push(warning),
            },
        }
        if was_unknown && state.offer.is_some() {
            tracing::info!(server = %self.server, replica = self.replica.name, "another replica runs this server");
        }
        changes
    }

    fn store_offer(&self, state: &mut LinkState, offer: OfferMessage) {
        match self.charge(offer) {
            Ok(offer) => state.offer = Some(Arc::new(offer)),
            Err(warning) => {
                state.offer.get_or_insert_default();
                state.status.warnings.push(warning);
            }
        }
    }

    /// Reserves the bytes of the definitions.
    fn charge(&self, message: OfferMessage) -> Result<SourceOffer, String> {
        let mut reserved = self.budget.reserve();
        reserved.grow(message.bytes()).map_err(|error| format!("the list of the server {error}"))?;
        Ok(SourceOffer { reserved: Some(reserved), ..message.into() })
    }

    fn set_unreachable(&self, reason: &str) {
        let mut state = self.state.write();
        let settled = state.status.startup_complete;
        let status = SourceStatus::new(SourceState::Retrying, settled);
        state.status = SourceStatus { reason: Some(reason.to_owned()), ..status };
    }

    fn lost_error(&self) -> HubError {
        let message = format!(
            "lost the connection to replica `{}`, which runs {}; the call may have been executed",
            self.replica.name, self.server
        );
        HubError::new(ErrorKind::ConnectionLost, message)
    }

    async fn wait_until_dead(&self) {
        wait_until_dead(&*self.peers.replicas, &self.replica.id).await;
    }
}

fn describe(call: &SourceCall) -> CallMessage {
    let context = &call.record.context;
    let session = context.client_session.as_ref().map(|session| SessionMessage {
        id: session.id().to_string(),
        capabilities: CapabilitiesMessage::from(session.capabilities()),
    });
    CallMessage {
        id: call.record.id.to_string(),
        target: TargetMessage::from(&call.target),
        principal: call.record.principal.id().to_owned(),
        session,
        is_legacy: context.era == ClientEra::Legacy,
        version: context.version.clone(),
        version_asked: context.version_asked,
        headers: call.headers.clone(),
        meta: call.meta.clone(),
        capabilities: CapabilitiesMessage::from(call.client.capabilities()),
    }
}
