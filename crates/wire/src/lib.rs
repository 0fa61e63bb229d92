//! The MCP wire protocol: JSON-RPC messages whose payloads stay the JSON text that was received,
//! both protocol eras, and the transports. This crate has no catalog and no policy: the [`Service`]
//! decides what a request means.

mod client;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod message;
mod meta;
mod rpc_error;
mod server;
mod version;

pub use client::authorization::Authorization;
pub use client::handshake::{HandshakeSettings, handshake_http, handshake_stdio};
pub use client::http::{HttpClientSettings, StreamableHttpClient};
pub use client::message_log::{LoggedMessage, MessageLog, MessageTap, WireDirection};
pub use client::same_origin::{AddressFilter, SameOriginHttp};
pub use client::sse::SseClient;
pub use client::stdio::{StdioClient, open_stdio};
pub use client::violations::Violations;
pub use client::{McpClient, OutboundRequest, ServerMessage, ServerMessageHandler, ServerProfile, WireError};
pub use header::{check_annotations, check_params, mirror_method, mirror_name, mirror_params};
pub use message::{
    InvalidMessage, Packet, RequestId, RpcMessage, RpcNotification, RpcRequest, RpcResponse, parse,
};
pub use meta::{ClientProfile, Meta};
pub use rpc_error::{RpcError, code};
pub use server::client_channel::{ClientChannel, ClientGone};
pub use server::http::stream::Retention;
pub use server::http::stream_log::{LoggedStream, StreamLog};
pub use server::http::{Endpoint, EndpointSettings};
pub use server::legacy::LEGACY_METHODS;
pub use server::session::{RestoredSession, Session, SessionId, SessionRegistry, SubscriptionGuard};
pub use server::stdio::{StdioSettings, StdioShutdown, serve_stdio};
pub use server::{Charge, InboundRequest, RequestTransport, ServerDescription, Service};
pub use version::{Era, Version};

/// A JSON value, stored as the text that was received.
pub type RawJson = Box<serde_json::value::RawValue>;
