//! Requests that another replica must answer: those of a session that lives there, and repeated
//! requests whose call is parked there. Which replicas are alive is the responsibility of
//! [`Replicas`]. Every other request is answered by the replica that receives it.

mod drain;
mod feed;
mod forwarding;
mod placement;
mod sealed_session;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::future::join_all;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use toolyard_hub::{
    HomeLookup, Principal, Replica, ReplicaId, ReplicaState, Replicas, SessionHome, StreamEntry,
};
use toolyard_random::RandomError;
use toolyard_seal::SealingKeys;
use toolyard_wire::{
    ClientProfile, LoggedStream, RequestId, RestoredSession, Session, SessionId, SessionRegistry, StreamLog,
    SubscriptionGuard, Version,
};

pub(crate) use self::feed::FOLLOWER;
use self::forwarding::{FORWARDED, ForwardError, Forwarder};
pub(crate) use self::placement::peer_router;
pub use self::placement::{PlaceableServer, PlacedServer, PlacedServers, StartedServer};
use self::sealed_session::{SealedSession, SessionIdError};
use crate::mcp::parked_at;

/// The header with which a legacy client names its session.
const SESSION: &str = "mcp-session-id";
/// How long to look for the replica that must answer. It exceeds the time after which a replica
/// that does not answer counts as dead.
const PATIENCE: Duration = Duration::from_secs(6);
const RETRY: Duration = Duration::from_millis(200);
/// How long another replica may take to say what it knows.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);

/// The settings of one of several replicas.
#[derive(Debug, Clone)]
pub struct ReplicaSettings {
    pub replicas: Arc<dyn Replicas>,
    /// The keys that all replicas share.
    pub keys: SealingKeys,
    /// For requests to replicas with an `https` URL.
    pub tls: rustls::ClientConfig,
}

/// Finds the replica that must answer a request, and forwards the request to it.
#[derive(Debug)]
pub(crate) struct ReplicaRouter {
    replicas: Arc<dyn Replicas>,
    keys: SealingKeys,
    forwarder: Forwarder,
    placed: Arc<PlacedServers>,
}

/// Which replica answers requests without a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestAffinity {
    /// The one that receives the request.
    Any,
    /// The same one for all requests of a principal, because it holds something for it in memory.
    Principal,
}

/// An endpoint as the router sees it.
pub(crate) struct RoutedEndpoint<'a> {
    /// Sessions are valid for one endpoint only.
    pub(crate) path: &'a str,
    pub(crate) affinity: RequestAffinity,
    pub(crate) sessions: &'a SessionRegistry<Principal>,
    pub(crate) caller: &'a Principal,
}

/// The log of the streams of one session, for the replica that continues it.
#[derive(Debug)]
struct SessionStreamLog {
    replicas: Arc<dyn Replicas>,
    session: Box<str>,
}

impl StreamLog for SessionStreamLog {
    fn open(&self, stream: u64, requests: &[RequestId]) {
        let ids = requests.iter().map(|id| id.as_json().to_owned()).collect();
        self.replicas.log_stream(&self.session, stream, StreamEntry::Requests(ids));
    }

    fn append(&self, stream: u64, event: u64, text: &str) {
        let entry = StreamEntry::Event { number: event, text: text.to_owned() };
        self.replicas.log_stream(&self.session, stream, entry);
    }
}

fn read_id(text: &str) -> Option<RequestId> {
    RequestId::from_json(serde_json::from_str(text).ok()?)
}

/// What a session ID cannot contain, because it changes.
#[derive(Default, Serialize, Deserialize)]
struct SavedSession {
    log_level: Option<String>,
    subscriptions: Vec<String>,
}

/// The replica that must answer a request.
enum Location {
    Here,
    Elsewhere(Replica),
    /// The router responds itself.
    Answered(Response<Body>),
}

impl ReplicaRouter {
    pub(crate) fn new(settings: ReplicaSettings) -> Arc<Self> {
        let placed = PlacedServers::new(&settings);
        let ReplicaSettings { replicas, keys, tls } = settings;
        let forwarder = Forwarder::new(Arc::clone(&replicas), keys.clone(), tls);
        Arc::new(Self { replicas, keys, forwarder, placed })
    }

    pub(crate) fn replicas(&self) -> &Arc<dyn Replicas> {
        &self.replicas
    }

    /// The servers that run on one replica only.
    pub(crate) fn placed_servers(&self) -> &Arc<PlacedServers> {
        &self.placed
    }

    /// Returns the live replicas and the state of their store in the format of responses.
    pub(crate) fn list(&self) -> Value {
        let own = self.replicas.own_id();
        let describe = |replica: Replica| {
            json!({
                "id": replica.id.as_str(),
                "name": replica.name,
                "url": replica.url,
                "version": replica.version,
                "state": replica.state.as_str(),
                "differences": replica.differences,
                "self": replica.id == own,
            })
        };
        let replicas: Vec<Value> = self.replicas.all().into_iter().map(describe).collect();
        json!({"store": self.store_state(), "replicas": replicas})
    }

    /// Returns the state of the shared store in the format of responses.
    pub(crate) fn store_state(&self) -> &'static str {
        if self.replicas.is_store_available() { "available" } else { "unavailable" }
    }

    /// Creates the ID of a session that is opened here.
    pub(crate) fn create_session_id(
        &self,
        path: &str,
        caller: &Principal,
        version: Version,
        client: &ClientProfile,
    ) -> Result<SessionId, RandomError> {
        let session = SealedSession::new(&self.replicas.own_id(), path, caller, (version, client))?;
        Ok(SessionId { header: session.seal(&self.keys)?, label: Some(session.label().to_owned()) })
    }

    /// Opens a session of another replica, if this one has taken it over. `subscribe` subscribes to
    /// a resource again.
    pub(crate) fn restore_session(
        &self,
        path: &str,
        caller: &Principal,
        id: &str,
        subscribe: impl Fn(&str) -> Option<SubscriptionGuard>,
    ) -> Option<RestoredSession> {
        let session = SealedSession::open(&self.keys, id, path, caller, unix_time()).ok()?;
        let saved = self.replicas.adopted(session.label())?;
        let SavedSession { log_level, subscriptions } = serde_json::from_str(&saved).unwrap_or_default();
        let subscriptions = subscriptions.into_iter().filter_map(|uri| Some((subscribe(&uri)?, uri)));
        Some(RestoredSession {
            label: session.label().to_owned(),
            version: session.version()?,
            client: session.client(),
            log_level,
            subscriptions: subscriptions.map(|(guard, uri)| (uri, guard)).collect(),
        })
    }

    /// Returns the log of the streams of a session.
    pub(crate) fn stream_log(&self, session: &SessionId) -> Option<Arc<dyn StreamLog>> {
        let (replicas, session) = (Arc::clone(&self.replicas), session.label.as_deref()?.into());
        Some(Arc::new(SessionStreamLog { replicas, session }))
    }

    /// Returns what was logged of a stream of another replica.
    pub(crate) async fn logged_stream(&self, session: &Session, stream: u64) -> Option<LoggedStream> {
        let entries = self.replicas.read_stream(session.label(), stream).await.ok()?;
        let mut logged = LoggedStream::default();
        for entry in entries {
            match entry {
                StreamEntry::Requests(ids) => logged.requests.extend(ids.iter().filter_map(|id| read_id(id))),
                StreamEntry::Event { number, text } => logged.events.push((number, text)),
            }
        }
        (logged != LoggedStream::default()).then_some(logged)
    }

    /// Saves what the client has set in its session, for the replica that continues it.
    pub(crate) async fn save_session(&self, session: &Session) {
        let (log_level, subscriptions) = (session.log_level(), session.subscribed_uris());
        let saved = serde_json::to_string(&SavedSession { log_level, subscriptions }).unwrap_or_default();
        // Without the store, the session still works as long as this replica does.
        let _ = self.replicas.save_session(session.label(), saved).await;
    }

    /// Returns the response of another replica, or `None` if this one must answer the request.
    pub(crate) async fn route(
        &self,
        endpoint: RoutedEndpoint<'_>,
        head: &Parts,
        body: &Bytes,
    ) -> Option<Response<Body>> {
        let is_forwarded = match self.forwarder.check_forwarded(&head.headers) {
            Ok(is_forwarded) => is_forwarded,
            Err(refused) => return Some(refused),
        };
        let until = Instant::now() + PATIENCE;
        let mut lookup = HomeLookup::Cached;
        loop {
            let replica = match self.locate(&endpoint, head, body, (lookup, is_forwarded)).await {
                Location::Here => return None,
                Location::Answered(response) => return Some(response),
                // Only the first replica forwards, so that requests cannot circulate. It may know
                // better than this one where the session is.
                Location::Elsewhere(_) if is_forwarded && lookup == HomeLookup::Cached => {
                    lookup = HomeLookup::Fresh;
                    continue;
                }
                Location::Elsewhere(_) if is_forwarded => return Some(forwarding::misdirected()),
                Location::Elsewhere(replica) => replica,
            };
            match self.forwarder.forward(&replica, head, body).await {
                Ok(response) => return Some(response),
                // It was not reached, or is not the home of the session any more.
                Err(ForwardError::NotHandled(_)) if Instant::now() < until => {}
                Err(ForwardError::NotHandled(reason)) => {
                    let message = format!("cannot reach replica `{}`: {reason}; retry later", replica.name);
                    return Some(failure(StatusCode::SERVICE_UNAVAILABLE, body, &message));
                }
                Err(ForwardError::Lost) => {
                    let message = format!(
                        "lost the connection to replica `{}`, which may have executed the request",
                        replica.name
                    );
                    return Some(failure(StatusCode::BAD_GATEWAY, body, &message));
                }
            }
            lookup = HomeLookup::Fresh;
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Returns whether another replica has forwarded this request to this one.
    pub(crate) fn was_forwarded(&self, headers: &HeaderMap) -> bool {
        self.forwarder.check_forwarded(headers).unwrap_or(false)
    }

    /// Sends a request without a body to every other replica and returns the responses. Sends
    /// nothing if another replica has forwarded the request.
    pub(crate) async fn ask_all(&self, head: &Parts) -> Vec<Response<Body>> {
        if head.headers.contains_key(FORWARDED) {
            return Vec::new();
        }
        let others: Vec<Replica> = self.replicas.all().into_iter().skip(1).collect();
        let empty = Bytes::new();
        let ask = |replica: &Replica| {
            let (replica, empty) = (replica.clone(), &empty);
            async move {
                let response = self.forwarder.forward(&replica, head, empty);
                tokio::time::timeout(ASK_TIMEOUT, response).await.ok()?.ok()
            }
        };
        join_all(others.iter().map(ask)).await.into_iter().flatten().collect()
    }

    async fn locate(
        &self,
        endpoint: &RoutedEndpoint<'_>,
        head: &Parts,
        body: &Bytes,
        (lookup, is_forwarded): (HomeLookup, bool),
    ) -> Location {
        if let Some(id) = head.headers.get(SESSION) {
            return self.locate_session(endpoint, id, head, body, lookup).await;
        }
        if head.method != Method::POST {
            return Location::Here;
        }
        if let Some(home) = self.parked_home(body) {
            return self.replicas.look_up(&home).await.map_or(Location::Here, Location::Elsewhere);
        }
        match is_initialize(body) {
            true if self.is_draining() => self.elsewhere(body),
            // The replicas may disagree for a moment about who is alive, so a forwarded request stays.
            false if endpoint.affinity == RequestAffinity::Principal && !is_forwarded => {
                self.locate_principal(endpoint.caller)
            }
            true | false => Location::Here,
        }
    }

    /// Returns the replica that answers all requests of a principal: of all that are ready, the one
    /// with the highest digest, so that few principals move when a replica comes or goes.
    fn locate_principal(&self, caller: &Principal) -> Location {
        let digest = |replica: &Replica| {
            let mut hasher = Sha256::new();
            hasher.update(replica.url.as_bytes());
            hasher.update([0]);
            hasher.update(caller.id().as_bytes());
            hasher.finalize()
        };
        let own = self.replicas.own_id();
        let ready = self.replicas.all().into_iter().filter(|replica| replica.state == ReplicaState::Ready);
        match ready.max_by_key(digest) {
            Some(replica) if replica.id != own => Location::Elsewhere(replica),
            Some(_) | None => Location::Here,
        }
    }

    async fn locate_session(
        &self,
        endpoint: &RoutedEndpoint<'_>,
        id: &HeaderValue,
        head: &Parts,
        body: &Bytes,
        lookup: HomeLookup,
    ) -> Location {
        let id = id.to_str().unwrap_or_default();
        let session = match SealedSession::open(&self.keys, id, endpoint.path, endpoint.caller, unix_time()) {
            Ok(session) => session,
            Err(SessionIdError::Expired) => {
                let message = "the session has expired; send `initialize` again";
                return Location::Answered(failure(StatusCode::NOT_FOUND, body, message));
            }
            // The endpoint does not know it either, and says so.
            Err(SessionIdError::Invalid) => return Location::Here,
        };
        let home = self.replicas.session_home(session.label(), &session.opener(), lookup).await;
        let result = match home {
            Ok(SessionHome::Elsewhere(replica)) => return Location::Elsewhere(replica),
            Ok(SessionHome::Here) if head.method == Method::DELETE => {
                // Ended below, it cannot be opened here any more if it has just been taken over.
                let was_adopted = self.replicas.adopted(session.label()).is_some();
                let ended = self.replicas.end_session(session.label()).await;
                if ended.is_ok() && was_adopted {
                    endpoint.sessions.delete(id);
                    return Location::Answered(StatusCode::NO_CONTENT.into_response());
                }
                ended
            }
            Ok(SessionHome::Here) if self.is_draining() && self.other_replica().is_some() => {
                if !endpoint.sessions.close_unless_busy(id) {
                    return Location::Here;
                }
                match self.replicas.release_session(session.label()).await {
                    Ok(()) => return self.elsewhere(body),
                    Err(error) => Err(error),
                }
            }
            Ok(SessionHome::Here | SessionHome::Ended) => return Location::Here,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => Location::Here,
            Err(error) => {
                let message = format!("the session cannot be located: {error}; retry later");
                Location::Answered(failure(StatusCode::SERVICE_UNAVAILABLE, body, &message))
            }
        }
    }

    /// Returns the replica that holds the call that a modern client continues.
    fn parked_home(&self, body: &[u8]) -> Option<ReplicaId> {
        #[derive(Deserialize)]
        struct Repeated<'a> {
            #[serde(borrow)]
            params: RepeatedParams<'a>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RepeatedParams<'a> {
            #[serde(borrow)]
            request_state: Option<std::borrow::Cow<'a, str>>,
        }
        memmem::find(body, b"\"requestState\"")?;
        let repeated: Repeated<'_> = serde_json::from_slice(body).ok()?;
        let home = parked_at(&self.keys, &repeated.params.request_state?)?;
        (home != self.replicas.own_id()).then_some(home)
    }

    /// Returns another replica for a request that does not belong to one.
    fn elsewhere(&self, body: &[u8]) -> Location {
        match self.other_replica() {
            Some(replica) => Location::Elsewhere(replica),
            None => {
                let message = "this replica is shutting down; retry later";
                Location::Answered(failure(StatusCode::SERVICE_UNAVAILABLE, body, message))
            }
        }
    }

    fn other_replica(&self) -> Option<Replica> {
        self.replicas.all().into_iter().skip(1).find(|replica| replica.state == ReplicaState::Ready)
    }

    fn is_draining(&self) -> bool {
        self.replicas.all().first().is_some_and(|own| own.state == ReplicaState::Draining)
    }
}

fn is_initialize(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Method<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    memmem::find(body, b"initialize").is_some()
        && serde_json::from_slice::<Method<'_>>(body).is_ok_and(|request| request.method == "initialize")
}

/// Responds to an MCP request that no replica can answer.
fn failure(status: StatusCode, body: &[u8], message: &str) -> Response<Body> {
    #[derive(Deserialize)]
    struct Id<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let id = serde_json::from_slice::<Id<'_>>(body).ok().and_then(|request| request.id);
    let error = json!({"code": toolyard_wire::code::INTERNAL, "message": message});
    let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
