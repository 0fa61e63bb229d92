//! The listener: takes connections, and on the way out lets calls in flight finish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::Yard;
use toolyard_wire::EndpointSettings;

use crate::connection::Connection;
use crate::control::ControlSettings;
use crate::door::{Auth, Door, DoorSettings};
use crate::fronts::{Annex, Fronts};
use crate::mcp::McpSettings;
use crate::router::router;

/// How many connections are served at once; more wait to be taken.
const MOST_CONNECTIONS: usize = 2_048;
/// How long a client may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// What serving over HTTP obeys.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub listen: SocketAddr,
    pub door: DoorSettings,
    pub mcp: McpSettings,
    pub endpoint: EndpointSettings,
    pub control: ControlSettings,
    /// Served beside the yard.
    pub annexes: Vec<Annex>,
    /// How long calls in flight may still take once we are told to stop.
    pub drain: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("serving without a token is only allowed on a loopback address, not on {0}")]
    OpenToAll(SocketAddr),
}

/// A server that has its address but takes no connections yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    yard: Arc<Yard>,
    settings: ServeSettings,
}

/// Takes the address, or says why it cannot be had.
pub async fn bind(yard: Arc<Yard>, settings: ServeSettings) -> Result<Bound, ServeError> {
    let address = settings.listen;
    if matches!(settings.door.auth, Auth::None(_)) && !address.ip().is_loopback() {
        return Err(ServeError::OpenToAll(address));
    }
    let cannot = |error| ServeError::Listen { address, error };
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    Ok(Bound { listener, address, yard, settings })
}

impl Bound {
    /// The address, with the port that the system chose if none was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled, then lets calls in flight finish for as long as the settings allow.
    pub async fn serve(self, stop: CancellationToken) {
        let Self { listener, address, yard, settings } = self;
        let door = Door::new(settings.door, address.ip().is_loopback());
        let fronts = Fronts::new(yard, settings.annexes, settings.mcp, settings.endpoint, &settings.control);
        let service = TowerToHyperService::new(router(Arc::clone(&fronts), door));
        let connections = TaskTracker::new();
        let cut = CancellationToken::new();
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
        loop {
            let taken = async {
                let place = Arc::clone(&places).acquire_owned().await.ok()?;
                Some((place, listener.accept().await))
            };
            let (place, stream) = tokio::select! {
                taken = taken => match taken {
                    Some((place, Ok((stream, _)))) => (place, stream),
                    // Out of descriptors, or the client left: the next one may have more luck.
                    Some((_, Err(error))) => {
                        tracing::warn!(%error, "a connection could not be taken");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                    None => break,
                },
                () = stop.cancelled() => break,
            };
            let _ = stream.set_nodelay(true);
            let connection =
                http.serve_connection(TokioIo::new(Connection::new(stream)), service.clone()).with_upgrades();
            let connection = until_idle(connection, stop.clone(), cut.clone());
            connections.spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended badly");
                }
                drop(place);
            });
        }
        drop(listener);
        fronts.close();
        // Sessions end last: ending one cancels its calls, and those may still be answered on a connection.
        let drained = async {
            connections.close();
            connections.wait().await;
            fronts.closed().await;
        };
        if tokio::time::timeout(settings.drain, drained).await.is_err() {
            tracing::warn!("calls in flight did not finish in time and are cancelled");
            cut.cancel();
            fronts.cut_off();
        }
        fronts.settled().await;
    }
}

/// Serves one connection. Once we are told to stop, it ends when it has answered what it was asked, or is cut off. Only
/// then is anybody cut off, so that until then there is one thing less to look at whenever something moves.
async fn until_idle<S>(
    connection: UpgradeableConnection<TokioIo<Connection>, S>,
    stop: CancellationToken,
    cut: CancellationToken,
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
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        biased;
        () = cut.cancelled() => Ok(()),
        done = connection => done,
    }
}
