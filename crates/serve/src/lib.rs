//! All servers: the MCP front over stdio and HTTP, the REST front and the control socket, behind
//! one authentication layer. Fronts build requests for the hub and translate its results; they
//! never access sources directly. Other replicas do, in `replicas/placement.rs`.

mod auth;
mod connection;
mod connections;
mod control;
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
mod replicas;
mod rest;
mod route;
mod router;
mod stdio;
pub mod testing;

#[doc(hidden)]
pub use auth::fuzzing;
pub use auth::{
    Algorithm, Auth, BearerCredentials, BearerToken, BearerTokenStore, FetchedKeys, Jwks, JwksClient,
    JwksFetcher, JwtIssuer, KeySource, ServeAuthSettings, UnknownAlgorithm, permissions,
};
pub use connections::ConnectionLimits;
pub use control::{ControlSettings, LogEntry};
pub use fronts::{BuiltinEndpoint, BuiltinEndpointName};
pub use http::{HttpOptions, HttpServer, http, http_with};
pub use listen::{BoundServer, ServeError, ServeSettings, bind};
pub use mcp::{Identity, McpSettings};
pub use proxy::{InvalidNetwork, ProxyNetwork, TrustedProxies};
pub use replicas::{PlaceableServer, PlacedServer, PlacedServers, ReplicaSettings, StartedServer};
pub use stdio::{StdioOptions, serve_streams, stdio, stdio_with};
pub use toolyard_wire::{EndpointSettings, StdioSettings};
