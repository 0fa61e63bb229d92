//! Everything that listens: the MCP front over stdio and HTTP, the REST front and the control socket, behind one door. Fronts
//! build requests for the hub and translate what comes back; they never talk to sources.

mod connection;
mod connections;
mod control;
mod door;
mod fronts;
mod http;
#[doc(hidden)]
pub mod inventory;
mod listen;
mod mcp;
mod memory;
mod page;
mod proxy;
mod quotas;
mod rest;
mod route;
mod router;
mod stdio;
pub mod testing;

pub use connections::ConnectionLimits;
pub use control::{ControlSettings, LogEntry};
#[doc(hidden)]
pub use door::fuzzing;
pub use door::{
    Algorithm, Auth, DoorSettings, FetchKeys, FetchedKeys, Jwks, Jwt, KeySource, Keyring, Keys, Token,
    UnknownAlgorithm, permissions,
};
pub use fronts::{Annex, AnnexName};
pub use http::{HttpOptions, HttpServer, http, http_with};
pub use listen::{Bound, ServeError, ServeSettings, bind};
pub use mcp::{Identity, McpSettings};
pub use proxy::{InvalidNetwork, ProxyNetwork, TrustedProxies};
pub use stdio::{StdioOptions, stdio, stdio_with};
pub use toolyard_wire::{EndpointSettings, StdioSettings};
