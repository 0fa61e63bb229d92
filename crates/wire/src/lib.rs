//! MCP on the wire: JSON-RPC messages whose payloads stay the JSON text they arrived as, both protocol eras,
//! and the transports. No catalog and no policy live here: what a request means is the [`Service`]'s business.

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
pub use client::message_log::{LoggedMessage, MessageLog, WireDirection};
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
pub use server::http::{Endpoint, EndpointSettings};
pub use server::legacy::LEGACY_METHODS;
pub use server::session::{Session, SessionRegistry, SubscriptionGuard};
pub use server::stdio::{StdioSettings, StdioShutdown, serve_stdio};
pub use server::{Charge, InboundRequest, RequestTransport, ServerDescription, Service};
pub use version::{Era, Version};

/// One JSON value as the text it arrived as.
pub type RawJson = Box<serde_json::value::RawValue>;
