//! The client side of the wire: a connection to one server over any transport. The owner of the
//! connection decides when to connect, what to request and how to handle a failure.

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

/// A callback for messages that are not responses, in the order in which the server sent them and
/// before any response that it sent later. It must not block: hand the message on or drop it.
pub type ServerMessageHandler = Arc<dyn Fn(ServerMessage) + Send + Sync>;

/// A message from the server that is not a response.
#[derive(Debug)]
pub enum ServerMessage {
    /// A notification, with the tag of the outgoing request on whose stream it arrived, if the
    /// transport has one stream per request.
    Notification(RpcNotification, Option<u64>),
    /// A request from the server (legacy era), with the same tag.
    Request(RpcRequest, Option<u64>),
    /// The stream of the outgoing request with this tag ended before the response. The client
    /// reconnects to get it.
    Paused {
        tag: u64,
        /// The time until the client reconnects.
        retry: Duration,
        /// Notify this to reconnect immediately.
        returned: Arc<Notify>,
    },
    /// A line that is not a valid message.
    UnparsableLine(String),
}

/// A request to a server.
#[derive(Debug, Clone)]
pub struct OutboundRequest {
    pub method: &'static str,
    pub params: RawJson,
    /// Identifies messages that the server sends on the stream of this request.
    pub tag: u64,
    /// Headers that mirror the request (modern HTTP), and headers that the configuration forwards.
    pub headers: HeaderMap,
}

/// The reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The server responded with an error.
    #[error("{}", .0.message)]
    Rpc(RpcError),
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The connection broke before the response arrived.
    #[error("connection lost: {0}")]
    Lost(String),
    /// The server requires a token or a different one. `challenge` is its `WWW-Authenticate`
    /// header.
    #[error("requires authorization")]
    Unauthorized { challenge: Option<String>, status: u16 },
    /// The server no longer knows the session. The request was not processed.
    #[error("no longer knows the session")]
    SessionGone,
    #[error("returned HTTP status {status}{}", if .body.is_empty() { String::new() } else { format!(": {}", .body) })]
    Status { status: u16, body: String },
    /// The server redirects to another origin, which is not followed.
    #[error("redirects to {to}, which is another origin; requests and their headers are not sent there")]
    Redirected { status: u16, to: String },
    #[error("does not speak MCP: {0}")]
    Protocol(String),
    /// The server sent more than the limit allows.
    #[error("{0}")]
    TooLarge(String),
}

/// Returns the error message for a message that exceeds the limit.
pub(crate) fn too_large(limit: usize) -> String {
    format!("sent a message that exceeds the limit of {limit} bytes (limits.message_bytes)")
}

/// What a server declares about itself in the handshake.
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
    /// Sends a request and waits for the response. Dropping the future notifies the server that the
    /// request is canceled.
    pub async fn request(&self, request: OutboundRequest) -> Result<RawJson, WireError> {
        match self {
            Self::Stdio(lines) => lines.request(request).await,
            Self::StreamableHttp(post) => post.request(request).await,
            // Boxed because this future is large and rarely used.
            Self::HttpSse(pair) => Box::pin(pair.request(request)).await,
        }
    }

    pub async fn notify(&self, method: &'static str, params: &RawValue) -> Result<(), WireError> {
        let text = crate::message::write_notification(method, params);
        self.send(text).await
    }

    /// Responds to a request from the server (legacy era).
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

    /// Returns the name of the transport in use.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::StreamableHttp(_) => "streamable-http",
            Self::HttpSse(_) => "sse",
        }
    }

    /// Completes when the connection is known to be broken. Never completes for streamable HTTP,
    /// which has no persistent connection.
    pub async fn closed(&self) -> String {
        match self {
            Self::Stdio(lines) => lines.closed().await,
            Self::HttpSse(pair) => pair.closed().await,
            Self::StreamableHttp(_) => std::future::pending().await,
        }
    }
}
