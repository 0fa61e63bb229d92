//! The control socket: one WebSocket per user interface, for lists, calls, management and events.
//! The protocol is documented in `docs/reference/control.md`. This module translates between the
//! protocol and the hub; it makes no authorization decisions.

mod call;
mod cluster;
mod dispatch;
mod errors;
mod handshake;
mod history;
mod in_flight;
mod journal;
mod lists;
mod outbox;
mod questions;
mod render;
mod request;
mod socket;
mod sources;
mod subscription;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{FromRequestParts, WebSocketUpgrade};
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::OptionFuture;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use toolyard_hub::{Principal, Yard};
use toolyard_wire::EndpointSettings;

use self::cluster::{ClusterView, FeedPermits};
use self::journal::Journal;
pub use self::journal::LogEntry;
use self::lists::ControlToolCache;
use crate::auth::{ConnectionCredentials, RejectionReason};
use crate::mcp::{Identity, McpSettings};
use crate::replicas::ReplicaRouter;
use crate::rest::RestError;

/// Returns the `subtype` of every request that a client can send.
pub(crate) fn requests() -> Vec<&'static str> {
    request::ControlRequest::ALL.map(|(_, subtype)| subtype).into()
}

/// Returns the name of every event that a client can subscribe to.
pub(crate) fn events() -> Vec<&'static str> {
    subscription::names().collect()
}

/// The WebSocket subprotocol.
const PROTOCOL: &str = "toolyard.control.v1";
/// Prefix of a subprotocol that carries a token.
const TOKEN: &str = "toolyard.token.";
/// Maximum number of authenticated sockets.
const MOST_SOCKETS: usize = 256;
/// Maximum number of sockets that are not authenticated yet. They are counted separately, so that
/// they cannot use up the others.
const MOST_UNAUTHENTICATED: usize = 64;
/// Maximum size of a message in addition to the largest payload.
const ENVELOPE: usize = 64 * 1024;
/// Time limit for canceled calls to clean up before the process ends.
const SETTLE: Duration = Duration::from_secs(5);

/// Settings of the control socket, in addition to those of all fronts.
#[derive(Debug, Clone, Default)]
pub struct ControlSettings {
    /// Source of the yard's log lines. `None` disables the `log` event.
    pub log: Option<broadcast::Sender<Arc<LogEntry>>>,
}

/// The control front of one yard.
#[derive(Debug)]
pub(crate) struct ControlFront {
    yard: Arc<Yard>,
    identity: Identity,
    start_wait: Duration,
    forward_headers: Vec<String>,
    longest: usize,
    journal: Arc<Journal>,
    /// The other replicas, if there can be any.
    cluster: Option<Arc<ClusterView>>,
    feed_permits: FeedPermits,
    tool_cache: ControlToolCache,
    socket_permits: Arc<Semaphore>,
    unauthenticated_permits: Arc<Semaphore>,
    sockets: TaskTracker,
    /// Canceled when the front stops accepting requests.
    closing: CancellationToken,
    /// Canceled when the front stops waiting for calls.
    abort: CancellationToken,
    _journal_task: AbortOnDropHandle<()>,
    _cluster_task: Option<AbortOnDropHandle<()>>,
}

impl ControlFront {
    /// Creates the front. Must be called inside a runtime, because a task follows the yard's
    /// events.
    pub(crate) fn new(
        yard: Arc<Yard>,
        settings: &ControlSettings,
        mcp: &McpSettings,
        endpoint: &EndpointSettings,
        replicas: Option<Arc<ReplicaRouter>>,
    ) -> Arc<Self> {
        let own = replicas.as_ref().and_then(|router| router.replicas().all().into_iter().next());
        let journal = Arc::new(Journal::new(own.map(|own| own.name).as_deref()));
        let cluster =
            replicas.map(|router| ClusterView::new(router, Arc::clone(&journal), Arc::clone(&yard)));
        let watching =
            |cluster: &Arc<ClusterView>| AbortOnDropHandle::new(tokio::spawn(Arc::clone(cluster).run()));
        let following = Arc::clone(&journal).follow(Arc::clone(&yard), settings.log.as_ref());
        Arc::new(Self {
            identity: mcp.identity.clone(),
            start_wait: mcp.start_wait,
            forward_headers: mcp.forward_headers.clone(),
            longest: endpoint.max_body_bytes.saturating_add(ENVELOPE),
            journal,
            _cluster_task: cluster.as_ref().map(watching),
            cluster,
            feed_permits: FeedPermits::default(),
            tool_cache: ControlToolCache::default(),
            socket_permits: Arc::new(Semaphore::new(MOST_SOCKETS)),
            unauthenticated_permits: Arc::new(Semaphore::new(MOST_UNAUTHENTICATED)),
            sockets: TaskTracker::new(),
            closing: CancellationToken::new(),
            abort: CancellationToken::new(),
            _journal_task: AbortOnDropHandle::new(tokio::spawn(following)),
            yard,
        })
    }

    /// Upgrades a request to a WebSocket, or rejects it.
    pub(crate) async fn upgrade(self: &Arc<Self>, request: Request<Body>) -> Response<Body> {
        let (mut parts, _) = request.into_parts();
        let on_upgrade = parts.extensions.get::<OnUpgrade>().cloned();
        if let Err(rejection) = WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
            return upgrade_required(&rejection);
        }
        // The authentication layer always sets the credentials.
        let Some(mut credentials) = parts.extensions.get::<ConnectionCredentials>().cloned() else {
            return StatusCode::UNAUTHORIZED.into_response();
        };
        if let (true, Some(token)) = (credentials.needs_token(), token(&parts.headers)) {
            credentials.set_token(token);
        }
        let value = |name: &String| Some((name.clone(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
        let headers = self.forward_headers.iter().filter_map(value).collect();
        let control = Arc::clone(self);
        // A socket takes a permit of the authenticated sockets only once it is authenticated.
        let authentication = credentials.authenticate().await;
        let permit = match &authentication {
            Ok(_) => SocketPermit::acquire(&self.socket_permits),
            Err(_) => {
                SocketPermit::acquire(&self.unauthenticated_permits).map(SocketPermit::mark_unauthenticated)
            }
        };
        let sockets = control.sockets.clone();
        sockets.spawn(async move {
            let Some(Ok(upgraded)) = OptionFuture::from(on_upgrade).await else { return };
            let cut = control.abort.clone();
            let arrival =
                PendingSocket { io: TokioIo::new(upgraded), credentials, authentication, headers, permit };
            cut.run_until_cancelled(socket::run_socket(control, arrival)).await;
        });
        handshake::switch_protocols(&parts.headers)
    }

    /// Stops accepting requests. Calls in flight continue.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits for the sockets whose calls are still in progress.
    pub(crate) async fn drain(&self) {
        self.sockets.close();
        self.sockets.wait().await;
    }

    /// Cancels the calls that did not finish in time.
    pub(crate) fn cancel_calls(&self) {
        self.abort.cancel();
    }

    /// Waits for canceled calls to clean up.
    pub(crate) async fn shutdown(&self) {
        self.abort.cancel();
        if tokio::time::timeout(SETTLE, self.drain()).await.is_err() {
            tracing::warn!(sockets = self.sockets.len(), "control sockets did not close at shutdown");
        }
    }
}

/// A newly upgraded connection.
struct PendingSocket {
    io: TokioIo<Upgraded>,
    credentials: ConnectionCredentials,
    /// Result of authenticating with the header or subprotocol of the request.
    authentication: Result<Principal, RejectionReason>,
    headers: Vec<(String, String)>,
    permit: Option<SocketPermit>,
}

/// A permit for one socket.
#[derive(Debug)]
struct SocketPermit {
    _permit: OwnedSemaphorePermit,
    unauthenticated: bool,
}

impl SocketPermit {
    fn acquire(permits: &Arc<Semaphore>) -> Option<Self> {
        let permit = Arc::clone(permits).try_acquire_owned().ok()?;
        Some(Self { _permit: permit, unauthenticated: false })
    }

    fn mark_unauthenticated(self) -> Self {
        Self { unauthenticated: true, ..self }
    }

    /// Exchanges the permit of an unauthenticated socket for one of an authenticated socket.
    fn promote(self, permits: &Arc<Semaphore>) -> Option<Self> {
        if self.unauthenticated { Self::acquire(permits) } else { Some(self) }
    }
}

/// Returns the token in the subprotocol. A token that cannot be decoded becomes an empty token,
/// which is always unknown.
fn token(headers: &HeaderMap) -> Option<String> {
    let offered =
        headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let encoded =
        offered.flat_map(|value| value.split(',')).find_map(|word| word.trim().strip_prefix(TOKEN))?;
    let text = URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    Some(text.unwrap_or_default())
}

fn upgrade_required(rejection: &WebSocketUpgradeRejection) -> Response<Body> {
    let message = "this endpoint accepts only WebSocket connections";
    let failure = RestError::new(StatusCode::UPGRADE_REQUIRED, "VALIDATION_ERROR", message)
        .with_details(&serde_json::json!({"reason": rejection.to_string()}));
    let mut response = failure.into_response();
    response.headers_mut().insert(header::UPGRADE, header::HeaderValue::from_static("websocket"));
    response
}
