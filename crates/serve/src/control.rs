//! The control socket: one WebSocket per front end, over which it lists, calls, manages and is told what happens. What it
//! means is written down in `docs/reference/control.md`; it translates and never decides what is allowed.

mod call;
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

use self::journal::Journal;
pub use self::journal::LogEntry;
use self::lists::ControlToolCache;
use crate::auth::{ConnectionCredentials, RejectionReason};
use crate::mcp::{Identity, McpSettings};
use crate::rest::RestError;

/// Every request that a client of the socket can send, and every event that it can hear.
pub(crate) fn requests() -> Vec<&'static str> {
    request::ControlRequest::ALL.map(|(_, subtype)| subtype).into()
}

pub(crate) fn events() -> Vec<&'static str> {
    subscription::names().collect()
}

/// The one subprotocol.
const PROTOCOL: &str = "toolyard.control.v1";
/// What a subprotocol begins with that is a token.
const TOKEN: &str = "toolyard.token.";
/// How many sockets there are at once, and how many more of whom it is not known yet who they are: strangers must not
/// take the places of the others.
const MOST_SOCKETS: usize = 256;
const MOST_STRANGERS: usize = 64;
/// What a message may have beside the largest payload.
const ENVELOPE: usize = 64 * 1024;
/// How long calls that were cancelled may take to put things away before the process ends.
const SETTLE: Duration = Duration::from_secs(5);

/// What the control socket obeys, beside what holds for every front.
#[derive(Debug, Clone, Default)]
pub struct ControlSettings {
    /// Where the lines of the yard's own log come from, if they are to be seen.
    pub log: Option<broadcast::Sender<Arc<LogEntry>>>,
}

/// One yard, spoken to over sockets.
#[derive(Debug)]
pub(crate) struct ControlFront {
    yard: Arc<Yard>,
    identity: Identity,
    start_wait: Duration,
    forward_headers: Vec<String>,
    longest: usize,
    journal: Arc<Journal>,
    tool_cache: ControlToolCache,
    socket_permits: Arc<Semaphore>,
    unauthenticated_permits: Arc<Semaphore>,
    sockets: TaskTracker,
    /// No more requests are taken.
    closing: CancellationToken,
    /// Nothing is waited for.
    abort: CancellationToken,
    _journal_task: AbortOnDropHandle<()>,
}

impl ControlFront {
    /// Must be called inside a runtime: the journal follows what happens in the yard.
    pub(crate) fn new(
        yard: Arc<Yard>,
        settings: &ControlSettings,
        mcp: &McpSettings,
        endpoint: &EndpointSettings,
    ) -> Arc<Self> {
        let journal = Arc::new(Journal::default());
        let following = Arc::clone(&journal).follow(Arc::clone(&yard), settings.log.as_ref());
        Arc::new(Self {
            identity: mcp.identity.clone(),
            start_wait: mcp.start_wait,
            forward_headers: mcp.forward_headers.clone(),
            longest: endpoint.max_body_bytes.saturating_add(ENVELOPE),
            journal,
            tool_cache: ControlToolCache::default(),
            socket_permits: Arc::new(Semaphore::new(MOST_SOCKETS)),
            unauthenticated_permits: Arc::new(Semaphore::new(MOST_STRANGERS)),
            sockets: TaskTracker::new(),
            closing: CancellationToken::new(),
            abort: CancellationToken::new(),
            _journal_task: AbortOnDropHandle::new(tokio::spawn(following)),
            yard,
        })
    }

    /// Turns a request into a socket, or says why that cannot be.
    pub(crate) async fn upgrade(self: &Arc<Self>, request: Request<Body>) -> Response<Body> {
        let (mut parts, _) = request.into_parts();
        let on_upgrade = parts.extensions.get::<OnUpgrade>().cloned();
        if let Err(rejection) = WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
            return upgrade_required(&rejection);
        }
        // The door lets nobody through without one.
        let Some(mut visitor) = parts.extensions.get::<ConnectionCredentials>().cloned() else {
            return StatusCode::UNAUTHORIZED.into_response();
        };
        if let (true, Some(token)) = (visitor.needs_token(), token(&parts.headers)) {
            visitor.set_token(token);
        }
        let value = |name: &String| Some((name.clone(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
        let headers = self.forward_headers.iter().filter_map(value).collect();
        let control = Arc::clone(self);
        // A stranger takes a place among the others only once it is known who they are.
        let proof = visitor.authenticate().await;
        let place = match &proof {
            Ok(_) => SocketPermit::acquire(&self.socket_permits),
            Err(_) => {
                SocketPermit::acquire(&self.unauthenticated_permits).map(SocketPermit::mark_unauthenticated)
            }
        };
        let sockets = control.sockets.clone();
        sockets.spawn(async move {
            let Some(Ok(upgraded)) = OptionFuture::from(on_upgrade).await else { return };
            let cut = control.abort.clone();
            let arrival = PendingSocket {
                io: TokioIo::new(upgraded),
                credentials: visitor,
                authentication: proof,
                headers,
                permit: place,
            };
            cut.run_until_cancelled(socket::run_socket(control, arrival)).await;
        });
        handshake::switch_protocols(&parts.headers)
    }

    /// No more requests are taken; calls in flight go on.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits for the sockets whose calls are still under way.
    pub(crate) async fn drain(&self) {
        self.sockets.close();
        self.sockets.wait().await;
    }

    /// Gives up on calls that did not finish in time.
    pub(crate) fn cancel_calls(&self) {
        self.abort.cancel();
    }

    /// Waits for what was cancelled to put things away.
    pub(crate) async fn shutdown(&self) {
        self.abort.cancel();
        if tokio::time::timeout(SETTLE, self.drain()).await.is_err() {
            tracing::warn!(sockets = self.sockets.len(), "control sockets do not end");
        }
    }
}

/// A connection that has just become a WebSocket.
struct PendingSocket {
    io: TokioIo<Upgraded>,
    credentials: ConnectionCredentials,
    /// Who the request itself says it is, by a header or a subprotocol.
    authentication: Result<Principal, RejectionReason>,
    headers: Vec<(String, String)>,
    permit: Option<SocketPermit>,
}

/// A place among the sockets.
#[derive(Debug)]
struct SocketPermit {
    _permit: OwnedSemaphorePermit,
    unauthenticated: bool,
}

impl SocketPermit {
    fn acquire(places: &Arc<Semaphore>) -> Option<Self> {
        let permit = Arc::clone(places).try_acquire_owned().ok()?;
        Some(Self { _permit: permit, unauthenticated: false })
    }

    fn mark_unauthenticated(self) -> Self {
        Self { unauthenticated: true, ..self }
    }

    /// The place of somebody who is known now.
    fn promote(self, places: &Arc<Semaphore>) -> Option<Self> {
        if self.unauthenticated { Self::acquire(places) } else { Some(self) }
    }
}

/// The token that came as a subprotocol. One that cannot be read is one that nobody knows.
fn token(headers: &HeaderMap) -> Option<String> {
    let offered =
        headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let coded =
        offered.flat_map(|value| value.split(',')).find_map(|word| word.trim().strip_prefix(TOKEN))?;
    let text = URL_SAFE_NO_PAD.decode(coded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    Some(text.unwrap_or_default())
}

fn upgrade_required(rejection: &WebSocketUpgradeRejection) -> Response<Body> {
    let failure =
        RestError::new(StatusCode::UPGRADE_REQUIRED, "VALIDATION_ERROR", "this address is a WebSocket")
            .with_details(&serde_json::json!({"reason": rejection.to_string()}));
    let mut response = failure.into_response();
    response.headers_mut().insert(header::UPGRADE, header::HeaderValue::from_static("websocket"));
    response
}
