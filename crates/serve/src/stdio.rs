//! Serving one client over the process's own standard streams.

use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use toolyard_hub::{Principal, Yard, YardScope};
use toolyard_wire::{SessionRegistry, StdioSettings, StdioShutdown, serve_stdio};

use crate::mcp::{McpFront, McpSettings, announce};
use toolyard_seal::SealingKeys;

/// Options of [`stdio_with`].
#[derive(Debug, Clone)]
pub struct StdioOptions {
    pub principal: Principal,
    /// The part of the yard to serve.
    pub reach: YardScope,
    pub mcp: McpSettings,
    pub wire: StdioSettings,
    /// When canceled, stops reading and finishes the calls in flight.
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

/// Serves a yard to the client that started this process, until the client closes the input.
pub async fn stdio(yard: Arc<Yard>) -> std::io::Result<()> {
    stdio_with(yard, StdioOptions::default()).await
}

/// Like [`stdio`], with options.
pub async fn stdio_with(yard: Arc<Yard>, options: StdioOptions) -> std::io::Result<()> {
    serve_streams(yard, options, (tokio::io::stdin(), tokio::io::stdout()), stdout_closed()).await
}

/// Like [`stdio_with`], over any two streams. `output_closed` completes when the reader of the
/// second stream is gone.
pub async fn serve_streams(
    yard: Arc<Yard>,
    options: StdioOptions,
    streams: (impl AsyncRead + Unpin + Send, impl AsyncWrite + Unpin + Send + 'static),
    output_closed: impl Future<Output = ()> + Send,
) -> std::io::Result<()> {
    let key = SealingKeys::generate().map_err(std::io::Error::other)?;
    let front = Arc::new(McpFront::new(yard, options.reach, options.mcp, key));
    let sessions = Arc::new(SessionRegistry::new(1));
    let announcer = tokio::spawn(announce(Arc::clone(&front), Arc::clone(&sessions)));
    let shutdown = StdioShutdown { shutdown: options.stop, output_closed };
    let result =
        serve_stdio(Arc::clone(&front), options.principal, sessions, streams, options.wire, shutdown).await;
    announcer.abort();
    front.shutdown().await;
    result
}

/// Completes when the reader of standard output is gone. No event reports that, so this polls ten
/// times a second, and only after the client has closed the input.
async fn stdout_closed() {
    loop {
        let out = rustix::stdio::stdout();
        let mut descriptors = [PollFd::new(&out, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let polled = poll(&mut descriptors, Some(&now));
        if polled.is_ok() && descriptors[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
