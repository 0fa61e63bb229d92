//! The listener: accepts connections, and drains calls in flight at shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Request, Response, header};
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::service::{HttpService, Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use toolyard_hub::Yard;
use toolyard_random::RandomError;
use toolyard_seal::SealingKeys;
use toolyard_wire::EndpointSettings;

use crate::auth::{Auth, Authenticator, ServeAuthSettings};
use crate::connection::TcpConnection;
use crate::connections::{ConnectionLimits, ConnectionState, ConnectionTable};
use crate::control::ControlSettings;
use crate::fronts::{BuiltinEndpoint, FrontSettings, Fronts};
use crate::mcp::McpSettings;
use crate::memory;
use crate::replicas::{PlacedServers, ReplicaRouter, ReplicaSettings};
use crate::router::router;

/// Maximum size of a request head, and of one read from a connection.
const HEAD_BYTES: usize = 64 * 1024;
/// Interval of the check for idle unauthenticated connections while there are many of them.
const SWEEP: Duration = Duration::from_millis(500);
/// How long a new connection may take to send its request when the server stops.
const LAST_REQUEST: Duration = Duration::from_millis(100);
/// Pause before the listener accepts again while too many connections are about to close.
const PAUSE: Duration = Duration::from_millis(1);

/// Settings of an HTTP server.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub listen: SocketAddr,
    pub auth: ServeAuthSettings,
    pub mcp: McpSettings,
    pub endpoint: EndpointSettings,
    pub control: ControlSettings,
    pub connections: ConnectionLimits,
    /// Endpoints served in addition to the yard.
    pub builtin_endpoints: Vec<BuiltinEndpoint>,
    /// Time limit for calls in flight at shutdown.
    pub drain: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("serving without a token is only allowed on a loopback address, not on `{0}`")]
    OpenToAll(SocketAddr),
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// A server that is bound to its address but does not accept connections yet.
#[derive(Debug)]
pub struct BoundServer {
    listener: TcpListener,
    address: SocketAddr,
    yard: Arc<Yard>,
    settings: ServeSettings,
    keys: SealingKeys,
    replicas: Option<Arc<ReplicaRouter>>,
}

/// Binds the address.
pub async fn bind(yard: Arc<Yard>, settings: ServeSettings) -> Result<BoundServer, ServeError> {
    let address = settings.listen;
    if matches!(settings.auth.auth, Auth::None(_)) && !address.ip().is_loopback() {
        return Err(ServeError::OpenToAll(address));
    }
    let keys = SealingKeys::generate()?;
    let listen_error = |error| ServeError::Listen { address, error };
    let listener = TcpListener::bind(address).await.map_err(listen_error)?;
    let address = listener.local_addr().map_err(listen_error)?;
    Ok(BoundServer { listener, address, yard, settings, keys, replicas: None })
}

impl BoundServer {
    /// Returns the address, with the port that the system chose if the configured port is 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes this server one of several replicas.
    #[must_use]
    pub fn with_replicas(self, replicas: ReplicaSettings) -> Self {
        let keys = replicas.keys.clone();
        Self { keys, replicas: Some(ReplicaRouter::new(replicas)), ..self }
    }

    /// The servers that run on one of several replicas only. `None` without other replicas.
    pub fn placed_servers(&self) -> Option<&Arc<PlacedServers>> {
        self.replicas.as_ref().map(|router| router.placed_servers())
    }

    /// Serves until `stop` is canceled, then waits for calls in flight up to the `drain` time.
    pub async fn serve(self, stop: CancellationToken) {
        let Self { listener, address, yard, settings, keys, replicas } = self;
        let _memory = AbortOnDropHandle::new(tokio::spawn(memory::watch(Arc::clone(&yard))));
        let authenticator = Authenticator::new(settings.auth, address.ip().is_loopback());
        let ServeSettings { mcp, endpoint, control, .. } = settings;
        let fronts = FrontSettings { mcp, endpoint, control, keys, replicas: replicas.clone() };
        let fronts = Fronts::new(yard, settings.builtin_endpoints, fronts);
        // Without other replicas, there is nothing to hand over before the listener closes.
        let stopped_at = Arc::new(OnceLock::new());
        let (stop, _handover) = match replicas {
            None => (stop, None),
            Some(router) => {
                let closing = CancellationToken::new();
                let (fronts, stopped_at) = (Arc::clone(&fronts), Arc::clone(&stopped_at));
                let tokens = (stop, closing.clone());
                let handover = hand_over(router, fronts, tokens, settings.drain, stopped_at);
                (closing, Some(AbortOnDropHandle::new(tokio::spawn(handover))))
            }
        };
        let service = TowerToHyperService::new(router(Arc::clone(&fronts), authenticator));
        let connections = TaskTracker::new();
        let cut = CancellationToken::new();
        let limits = settings.connections.cap_to_open_files(open_file_limit());
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(HEAD_BYTES);
        let head_time = limits.head_time;
        let table = ConnectionTable::new(limits);
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let accept = |stream: TcpStream, peer: SocketAddr| {
            let Some(state) = table.admit(peer.ip(), &stop) else { return };
            let _ = stream.set_nodelay(true);
            let (http, service) = (http.clone(), service.clone());
            let (cut, stop, table) = (cut.clone(), stop.clone(), Arc::clone(&table));
            connections.spawn(async move {
                if wait_for_first_byte(&stream, &state, head_time, &stop).await {
                    let io = TokioIo::new(TcpConnection::new(stream, Arc::clone(&state)));
                    let requests = Arc::clone(&state);
                    let service =
                        service_fn(move |request| respond(service.clone(), Arc::clone(&requests), request));
                    let connection = http.serve_connection(io, service).with_upgrades();
                    if let Err(error) =
                        Box::pin(serve_connection(connection, &state, &table, &stop, &cut)).await
                    {
                        tracing::debug!(%error, "connection failed");
                    }
                }
                table.remove(&state);
            });
        };
        loop {
            // Evaluated once, because other tasks close connections too and exactly one of the two
            // branches must be enabled.
            let is_behind = table.is_behind();
            let (stream, peer) = tokio::select! {
                () = tokio::time::sleep(PAUSE), if is_behind => continue,
                accepted = listener.accept(), if !is_behind => match accepted {
                    Ok(accepted) => accepted,
                    // Out of file descriptors, or the client disconnected. The next accept may
                    // succeed.
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
                _ = sweep.tick(), if table.is_under_pressure() => {
                    table.sweep();
                    continue;
                }
                () = stop.cancelled() => break,
            };
            accept(stream, peer);
        }
        // Connections that the system has already accepted must not be reset. Asks the system, because
        // the runtime may not have noticed them yet.
        if let Ok(listener) = listener.into_std() {
            while let Ok((stream, peer)) = listener.accept() {
                let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                if let Ok(stream) = stream {
                    accept(stream, peer);
                }
            }
        }
        fronts.close();
        // Sessions end last. Ending one cancels its calls, whose results may still be written to a
        // connection.
        let drained = async {
            connections.close();
            connections.wait().await;
            fronts.drain().await;
        };
        // One time limit covers the handover and the calls in flight.
        let spent = stopped_at.get().map_or(Duration::ZERO, Instant::elapsed);
        if tokio::time::timeout(settings.drain.saturating_sub(spent), drained).await.is_err() {
            tracing::warn!("drain timed out; canceling the calls in flight");
            cut.cancel();
            fronts.cancel_calls();
        }
        fronts.shutdown().await;
    }
}

/// Closes the sessions that other replicas have taken over while this process was stopped. When
/// `stop` is canceled, hands everything over to the other replicas, then cancels `closing`.
async fn hand_over(
    router: Arc<ReplicaRouter>,
    fronts: Arc<Fronts>,
    (stop, closing): (CancellationToken, CancellationToken),
    longest: Duration,
    stopped_at: Arc<OnceLock<Instant>>,
) {
    let mut losses = router.replicas().losses();
    while let Some(Ok(())) = stop.run_until_cancelled(losses.changed()).await {
        fronts.close_sessions();
    }
    let _ = stopped_at.set(Instant::now());
    fronts.announce_stop();
    router.drain(&fronts, longest).await;
    closing.cancel();
}

/// Waits for the first byte, so that thousands of silent connections cost little more than their
/// sockets.
async fn wait_for_first_byte(
    stream: &TcpStream,
    state: &ConnectionState,
    time_limit: Duration,
    stop: &CancellationToken,
) -> bool {
    tokio::select! {
        biased;
        readable = stream.readable() => return readable.is_ok(),
        () = state.closed_token().cancelled() => {}
        () = tokio::time::sleep(time_limit) => return false,
    }
    // A request may be on its way when the server stops.
    stop.is_cancelled()
        && tokio::time::timeout(LAST_REQUEST, stream.readable()).await.is_ok_and(|ok| ok.is_ok())
}

/// Answers one request, and tracks on its connection whether the whole body was read.
async fn respond(
    service: TowerToHyperService<Router>,
    connection: Arc<ConnectionState>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    connection.begin_request(!request.body().is_end_stream());
    let mut request = request.map(|body| TrackedBody { body, connection: Arc::clone(&connection) });
    request.extensions_mut().insert(Arc::clone(&connection));
    let mut response = service.call(request).await;
    if let Ok(response) = &mut response
        && !connection.has_read_body()
    {
        // The unread rest of the body would be taken for the next request.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    connection.end_request();
    response
}

/// A request body that marks its connection when it has been read to the end.
struct TrackedBody {
    body: Incoming,
    connection: Arc<ConnectionState>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.connection.mark_body_read();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the limit of open files of this process.
fn open_file_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// Serves one connection. At shutdown, it ends after the current request, or when `cut` is
/// canceled. If it is evicted, it ends immediately, unless a request has arrived meanwhile, which
/// is still answered. One token covers both cases, so that each wakeup polls one future less.
async fn serve_connection<S>(
    connection: UpgradeableConnection<TokioIo<TcpConnection>, S>,
    state: &Arc<ConnectionState>,
    table: &ConnectionTable,
    stop: &CancellationToken,
    cut: &CancellationToken,
) -> hyper::Result<()>
where
    S: HttpService<Incoming, ResBody = Body> + Send,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send,
{
    tokio::pin!(connection);
    tokio::select! {
        biased;
        done = &mut connection => return done,
        () = state.closed_token().cancelled() => {
            if !stop.is_cancelled() && !table.reinstate(state) {
                return Ok(());
            }
            connection.as_mut().graceful_shutdown();
        }
    }
    tokio::select! {
        biased;
        () = cut.cancelled() => Ok(()),
        done = connection => done,
    }
}

#[cfg(test)]
mod tests;
