//! The Rust SDK of [Toolyard](https://github.com/toolyard/toolyard): write MCP tools, resources and prompts in
//! Rust, and serve them over stdio or HTTP.
//!
//! A function with the attribute [`tool`] becomes a [`Tool`] with a derived JSON Schema. A [`NativeSource`]
//! collects tools, resources and prompts, a [`Yard`] validates and runs the calls, and [`serve`] connects it to
//! clients. This is a complete MCP server:
//!
//! ```no_run
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use toolyard_sdk::{Json, NativeSource, ToolError, Yard, serve, tool};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// The first number.
//!     a: f64,
//!     /// The second number.
//!     b: f64,
//! }
//!
//! /// Adds two numbers.
//! #[tool(read_only = true)]
//! async fn add(params: Add) -> Result<Json<f64>, ToolError> {
//!     Ok(Json(params.a + params.b))
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let source = NativeSource::new("calculator").tool(add());
//!     serve::stdio(Yard::with_sources([source.into_source()])).await
//! }
//! ```
//!
//! | To | use |
//! |---|---|
//! | write a tool | [`tool`], [`Tool`], [`Json`], [`Content`], [`ToolError`] |
//! | report progress, log, ask the user, detect cancellation | [`Context`], [`question`] |
//! | offer resources and prompts | [`Resource`], [`ResourceTemplate`], [`Prompt`] |
//! | run code around calls | [`hooks`] |
//! | set limits | [`yard`] |
//! | serve clients | [`serve`] |
//! | test tools | [`testing`] |

#![warn(missing_docs)]

// The attribute expands to paths that start with this name, also within this crate.
extern crate self as toolyard_sdk;

#[doc(hidden)]
pub mod __private;
mod ask;
pub mod call;
mod completion;
mod content;
mod contents;
mod context;
mod definition;
mod error;
mod handler;
pub mod hooks;
mod native;
mod output;
mod prompt;
pub mod question;
mod resource;
mod resource_metadata;
mod schema;
pub mod serve;
mod template;
pub mod testing;
mod tool;
mod values;
pub mod yard;

pub use ask::ElicitResult;
pub use content::Content;
pub use contents::{Contents, IntoContents};
pub use context::{Context, Stream};
pub use definition::{Annotations, Icon, Role};
pub use error::ToolError;
pub use handler::Handler;
pub use native::{NativeHandle, NativeSource};
pub use output::{Audio, Image, IntoOutput, Json, OutputSchema};
pub use prompt::{IntoMessages, Message, Prompt};
pub use resource::Resource;
pub use schemars;
pub use template::ResourceTemplate;
pub use tokio_util::sync::CancellationToken;
pub use tool::Tool;
pub use toolyard_hub::{ClientCapabilities, ErrorKind, HubError, LogLevel, Outcome, Progress, Raw, Yard};
pub use toolyard_sdk_macros::tool;
pub use values::Values;

/// Compiles the example of the README with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
