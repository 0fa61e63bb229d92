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
pub use client::handshake::{Introduction, meet_http, meet_lines};
pub use client::http::{Post, PostSettings};
pub use client::same_origin::{AddressFilter, SameOriginHttp};
pub use client::sse::Pair;
pub use client::stdio::{Lines, lines};
pub use client::tape::{Direction, Tape, Taped};
pub use client::violations::Violations;
pub use client::{Client, Failure, Listener, Outbound, Said, ServerSide};
pub use header::{check_annotations, check_params, mirror_method, mirror_name, mirror_params};
pub use message::{Id, Message, Notification, Packet, Refusal, Request, Response, parse};
pub use meta::{ClientSide, Meta};
pub use rpc_error::{RpcError, code};
pub use server::http::stream::Retention;
pub use server::http::{Endpoint, EndpointSettings};
pub use server::legacy::LEGACY_METHODS;
pub use server::outlet::{Gone, Outlet};
pub use server::session::{Roster, Session, SubscriptionGuard};
pub use server::stdio::{StdioEnd, StdioSettings, serve_stdio};
pub use server::{About, Charge, Inbound, Service, Transport};
pub use version::{Era, Version};

/// One JSON value as the text it arrived as.
pub type Raw = Box<serde_json::value::RawValue>;
