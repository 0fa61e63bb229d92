//! Requests of a replica itself to another one, about a server. A sealed header proves that a
//! replica with the same keys sends it, and names the server and both replicas. Tokens of clients
//! play no role here.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use serde::{Deserialize, Serialize};
use toolyard_hub::{ReplicaId, Replicas, SourceName};
use toolyard_seal::{Purpose, SealingKeys};

use super::super::forwarding::{MISDIRECTED, build_http, wait_until_dead};

/// Who sends a request about which server to whom, sealed with the keys of the yard.
const PEER: HeaderName = HeaderName::from_static("toolyard-replica-request");
/// The path of all requests, before the action.
pub(super) const PEER_PATH: &str = "/replicas/servers/";
/// How long another replica may take to start its response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a replica that counts as dead may take to start its response. A suspended process does
/// not respond, and calls wait for the server meanwhile.
const DEAD_HEAD_TIMEOUT: Duration = Duration::from_secs(1);

/// What is asked of the other replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerAction {
    /// Executes a call.
    Call,
    /// Answers questions of a call.
    Answer,
    /// Streams the state of the server.
    Follow,
    /// Replaces the set of watched resources.
    Watch,
    /// Determines what the server offers to legacy clients.
    Discover,
    /// Ends the session of a client.
    EndSession,
    /// Reconnects, enables or disables the server.
    Manage,
    /// Stops the server, because the sender has become its holder.
    GiveUp,
}

impl PeerAction {
    const ALL: [Self; 8] = [
        Self::Call,
        Self::Answer,
        Self::Follow,
        Self::Watch,
        Self::Discover,
        Self::EndSession,
        Self::Manage,
        Self::GiveUp,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Answer => "answer",
            Self::Follow => "follow",
            Self::Watch => "watch",
            Self::Discover => "discover",
            Self::EndSession => "end-session",
            Self::Manage => "manage",
            Self::GiveUp => "give-up",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }
}

/// The content of the sealed header.
#[derive(Debug, Serialize, Deserialize)]
struct SealedPeer {
    from: String,
    to: String,
    server: String,
}

/// The sender of a request, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PeerRequest {
    pub(super) from: ReplicaId,
    pub(super) to: ReplicaId,
    pub(super) server: SourceName,
    /// Whether the sender counts as alive. One that has lost the store does not, and may still use a
    /// server.
    pub(super) is_known: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum PeerError {
    /// The request was certainly not handled.
    #[error("{0}")]
    NotHandled(String),
    /// The other replica may have handled the request.
    #[error("the connection was lost")]
    Lost,
}

impl PeerRequest {
    /// Waits until the sender is considered dead and its response has no reader any more.
    pub(super) async fn wait_until_gone(&self, replicas: &dyn Replicas) {
        match self.is_known {
            true => wait_until_dead(replicas, &self.from).await,
            false => std::future::pending().await,
        }
    }
}

/// Sends requests to other replicas, and checks those of others.
#[derive(Debug)]
pub(super) struct PeerClient {
    pub(super) replicas: Arc<dyn Replicas>,
    keys: SealingKeys,
    tls: rustls::ClientConfig,
    /// Built for the first request.
    http: OnceLock<reqwest::Client>,
}

/// The address of another replica.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerAddress<'a> {
    pub(super) id: &'a ReplicaId,
    pub(super) url: &'a str,
}

impl PeerClient {
    pub(super) fn new(replicas: Arc<dyn Replicas>, keys: SealingKeys, tls: rustls::ClientConfig) -> Self {
        Self { replicas, keys, tls, http: OnceLock::new() }
    }

    /// Sends a request about a server and returns the response, whose body may be a stream.
    pub(super) async fn send<T: Serialize + Sync>(
        &self,
        to: PeerAddress<'_>,
        server: &SourceName,
        action: PeerAction,
        message: &T,
    ) -> Result<reqwest::Response, PeerError> {
        let not_handled = |reason: &str| PeerError::NotHandled(reason.to_owned());
        let sealed = self.seal(to.id, server).ok_or_else(|| not_handled("the request cannot be sealed"))?;
        let http = self.http().ok_or_else(|| not_handled("the HTTP client cannot be created"))?;
        let body = serde_json::to_vec(message).map_err(|error| PeerError::NotHandled(error.to_string()))?;
        let url = format!("{}{PEER_PATH}{}", to.url, action.as_str());
        let request = http.post(url).header(PEER, sealed).body(body).send();
        if action != PeerAction::GiveUp && self.replicas.find(to.id).is_none() {
            return Err(not_handled("it is gone"));
        }
        let head_timeout = if action == PeerAction::GiveUp { DEAD_HEAD_TIMEOUT } else { HEAD_TIMEOUT };
        let response = tokio::select! {
            response = tokio::time::timeout(head_timeout, request) => response.map_err(|_| PeerError::Lost)?,
            // A stopped process accepts requests but does not answer.
            () = wait_until_dead(&*self.replicas, to.id), if action != PeerAction::GiveUp => {
                return Err(PeerError::Lost);
            }
        };
        let response = response.map_err(|error| match error.is_connect() {
            true => not_handled("the connection failed"),
            false => PeerError::Lost,
        })?;
        if response.headers().contains_key(MISDIRECTED) {
            return Err(not_handled("it does not run the server"));
        }
        match response.status().is_success() {
            true => Ok(response),
            false => {
                Err(PeerError::NotHandled(format!("it responded with status {}", response.status().as_u16())))
            }
        }
    }

    /// Returns who sent a request of another replica. Returns `None` if no replica did.
    pub(super) fn open(&self, headers: &HeaderMap) -> Option<PeerRequest> {
        let sealed = headers.get(PEER)?.to_str().ok()?;
        let content = self.keys.open(Purpose::ReplicaRequest, sealed)?;
        let SealedPeer { from, to, server } = serde_json::from_slice(&content).ok()?;
        Some(PeerRequest {
            from: ReplicaId::new(&from),
            to: ReplicaId::new(&to),
            server: SourceName::new(server),
            is_known: false,
        })
    }

    fn seal(&self, to: &ReplicaId, server: &SourceName) -> Option<String> {
        let from = self.replicas.own_id().to_string();
        let sealed = SealedPeer { from, to: to.to_string(), server: server.to_string() };
        self.keys.seal(Purpose::ReplicaRequest, &serde_json::to_vec(&sealed).ok()?).ok()
    }

    fn http(&self) -> Option<&reqwest::Client> {
        if let Some(http) = self.http.get() {
            return Some(http);
        }
        let http = build_http(&self.tls)?;
        Some(self.http.get_or_init(|| http))
    }
}
