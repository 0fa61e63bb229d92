//! Servers for a [`Yard`](crate::Yard): MCP over stdio, or MCP, REST and the web UI over HTTP.
//!
//! [`stdio`] serves the client that started the process:
//!
//! ```no_run
//! use toolyard_sdk::{NativeSource, Tool, Yard, serve};
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let source = NativeSource::new("demo").tool(Tool::new("ping", || async { Ok("pong") }));
//!     serve::stdio(Yard::with_sources([source.into_source()])).await
//! }
//! ```
//!
//! [`http`] listens on `127.0.0.1:8080` and generates a bearer token. [`http_with`] takes another address, your own
//! tokens and the name of your server:
//!
//! ```
//! use toolyard_sdk::call::Principal;
//! use toolyard_sdk::serve::{self, BearerToken, HttpOptions, Identity, McpSettings};
//! use toolyard_sdk::{NativeSource, Tool, Yard};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), serve::ServeError> {
//! let source = NativeSource::new("demo").tool(Tool::new("ping", || async { Ok("pong") }));
//! let identity = Identity {
//!     name: "demo".to_owned(),
//!     title: None,
//!     version: "1.0.0".to_owned(),
//!     instructions: None,
//! };
//! let options = HttpOptions {
//!     listen: ([127, 0, 0, 1], 0).into(),
//!     tokens: vec![BearerToken::new("a long random secret", Principal::owner())],
//!     mcp: McpSettings { identity, ..McpSettings::default() },
//!     ..HttpOptions::default()
//! };
//! let server = serve::http_with(Yard::with_sources([source.into_source()]), options).await?;
//! println!("MCP at {}/mcp", server.url());
//! # let stop = async {};
//! server.serve_until(stop).await;
//! # Ok(())
//! # }
//! ```

pub use toolyard_hub::Timestamp;
pub use toolyard_serve::{
    BearerToken, HttpOptions, HttpServer, Identity, McpSettings, ServeError, StdioOptions, http, http_with,
    stdio, stdio_with,
};
