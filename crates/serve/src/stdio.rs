//! Serving one client over the process's own standard streams.

use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use toolyard_hub::{Principal, Yard, YardScope};
use toolyard_wire::{SessionRegistry, StdioSettings, StdioShutdown, serve_stdio};

use crate::mcp::{McpFront, McpSettings, ParkingKey, announce};

/// What serving over stdio obeys.
#[derive(Debug, Clone)]
pub struct StdioOptions {
    pub principal: Principal,
    /// What of the yard is served.
    pub reach: YardScope,
    pub mcp: McpSettings,
    pub wire: StdioSettings,
    /// Stop reading and finish what is in flight.
    pub stop: CancellationToken,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            principal: Principal::owner(),
            reach: YardScope::All,
            mcp: McpSettings::default(),
            wire: StdioSettings::default(),
            stop: CancellationToken::new(),
        }
    }
}

/// Serves a yard to the client that started this process, until it closes its side.
pub async fn stdio(yard: Arc<Yard>) -> std::io::Result<()> {
    stdio_with(yard, StdioOptions::default()).await
}

/// The same with everything said.
pub async fn stdio_with(yard: Arc<Yard>, options: StdioOptions) -> std::io::Result<()> {
    serve_streams(yard, options, (tokio::io::stdin(), tokio::io::stdout()), stdout_closed()).await
}

/// The same over any two streams. `unread` completes when nobody reads the second one any more.
pub async fn serve_streams(
    yard: Arc<Yard>,
    options: StdioOptions,
    streams: (impl AsyncRead + Unpin + Send, impl AsyncWrite + Unpin + Send + 'static),
    unread: impl Future<Output = ()> + Send,
) -> std::io::Result<()> {
    let key = ParkingKey::generate().map_err(std::io::Error::other)?;
    let front = Arc::new(McpFront::new(yard, options.reach, options.mcp, key));
    let roster = Arc::new(SessionRegistry::new(1));
    let announcer = tokio::spawn(announce(Arc::clone(&front), Arc::clone(&roster)));
    let end = StdioShutdown { shutdown: options.stop, output_closed: unread };
    let served = serve_stdio(Arc::clone(&front), options.principal, roster, streams, options.wire, end).await;
    announcer.abort();
    front.shutdown().await;
    served
}

/// Completes when the other end of standard output is gone. Nothing wakes us for that, so it is looked at
/// ten times a second, and only once the client has closed its side.
async fn stdout_closed() {
    loop {
        let out = rustix::stdio::stdout();
        let mut descriptors = [PollFd::new(&out, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let seen = poll(&mut descriptors, Some(&now));
        if seen.is_ok() && descriptors[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
