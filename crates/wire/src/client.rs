//! The client's side of the wire: one connection to one server, whatever the transport. When to connect, what to
//! ask and what to do when it breaks is the business of whoever holds it.

pub(crate) mod authorization;
pub(crate) mod events;
pub(crate) mod handshake;
pub(crate) mod http;
pub(crate) mod message_log;
pub(crate) mod pending_requests;
pub(crate) mod same_origin;
pub(crate) mod sse;
pub(crate) mod stdio;
pub(crate) mod violations;

use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderMap;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::RawJson;
use crate::message::{RequestId, RpcNotification, RpcRequest};
use crate::rpc_error::RpcError;
use crate::version::Version;
use http::StreamableHttpClient;
use sse::SseClient;
use stdio::StdioClient;

/// What a server says that is no answer, in the order in which it was said and before any answer that it said
/// later. Must not wait: whoever listens hands on or drops.
pub type ServerMessageHandler = Arc<dyn Fn(ServerMessage) + Send + Sync>;

/// Something that a server said unasked.
#[derive(Debug)]
pub enum ServerMessage {
    /// With the tag of our own request on whose stream it came, where streams tell.
    Notification(RpcNotification, Option<u64>),
    /// A question of the server (legacy era), likewise.
    Request(RpcRequest, Option<u64>),
    /// The stream of our own request with this tag ended before the answer: the server wants us to come back for it.
    Paused {
        tag: u64,
        /// After this long.
        retry: Duration,
        /// Notify it to come back now.
        returned: Arc<Notify>,
    },
    /// A line that is no message.
    UnparsableLine(String),
}

/// One request on its way to a server.
#[derive(Debug, Clone)]
pub struct OutboundRequest {
    pub method: &'static str,
    pub params: RawJson,
    /// Ours, to recognise what the server says on this request's stream.
    pub tag: u64,
    /// Headers that mirror the request (modern HTTP), and whatever the configuration lets through.
    pub headers: HeaderMap,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The server answered with an error.
    #[error("{}", .0.message)]
    Rpc(RpcError),
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The connection broke before the answer was there.
    #[error("connection lost: {0}")]
    Lost(String),
    /// The server wants a token, or another one; this is its `WWW-Authenticate`.
    #[error("not authorised")]
    Unauthorized { challenge: Option<String>, status: u16 },
    /// The session is not known any more. The request did not reach anybody.
    #[error("the session is gone")]
    SessionGone,
    #[error("answered with HTTP status {status}{}", if .body.is_empty() { String::new() } else { format!(": {}", .body) })]
    Status { status: u16, body: String },
    /// It redirects to another origin, which is not followed.
    #[error("redirects to {to}, which is another origin; requests and their headers are not sent there")]
    Redirected { status: u16, to: String },
    #[error("speaks no MCP: {0}")]
    Protocol(String),
    /// It sends more than is read.
    #[error("{0}")]
    TooLarge(String),
}

/// A message is larger than this many bytes.
pub(crate) fn too_large(limit: usize) -> String {
    format!("sent a message that exceeds the limit of {limit} bytes (limits.message_bytes)")
}

/// What a server told us when we met it.
#[derive(Debug, Clone)]
pub struct ServerProfile {
    pub version: Version,
    pub info: Option<RawJson>,
    pub capabilities: RawJson,
    pub instructions: Option<String>,
}

/// A connection to a server.
#[derive(Debug)]
pub enum McpClient {
    Stdio(StdioClient),
    StreamableHttp(StreamableHttpClient),
    HttpSse(SseClient),
}

impl McpClient {
    /// Asks and waits for the answer. Dropping the future tells the server that nobody waits any more.
    pub async fn request(&self, request: OutboundRequest) -> Result<RawJson, WireError> {
        match self {
            Self::Stdio(lines) => lines.request(request).await,
            Self::StreamableHttp(post) => post.request(request).await,
            // Seldom met, and large: what it needs is not carried by every request.
            Self::HttpSse(pair) => Box::pin(pair.request(request)).await,
        }
    }

    pub async fn notify(&self, method: &'static str, params: &RawValue) -> Result<(), WireError> {
        let text = crate::message::write_notification(method, params);
        self.send(text).await
    }

    /// Answers a question of the server (legacy era).
    pub async fn respond(&self, id: &RequestId, answer: &Result<RawJson, RpcError>) -> Result<(), WireError> {
        self.send(crate::message::write_outcome(id, answer)).await
    }

    async fn send(&self, text: String) -> Result<(), WireError> {
        match self {
            Self::Stdio(lines) => lines.send(text).await,
            Self::StreamableHttp(post) => post.send(text).await,
            Self::HttpSse(pair) => pair.send(text).await,
        }
    }

    /// Which transport it turned out to be.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::StreamableHttp(_) => "streamable-http",
            Self::HttpSse(_) => "sse",
        }
    }

    /// Completes when the connection is known to be broken; for streamable HTTP, which has no connection, never.
    pub async fn closed(&self) -> String {
        match self {
            Self::Stdio(lines) => lines.closed().await,
            Self::HttpSse(pair) => pair.closed().await,
            Self::StreamableHttp(_) => std::future::pending().await,
        }
    }
}
