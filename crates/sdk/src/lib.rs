//! Write a tool in Rust: a function or a closure becomes a tool with a generated schema, progress, streaming,
//! questions to the caller, hooks and permissions. Nothing here listens or speaks a protocol: a [`NativeSource`] is a
//! source of the hub, and whatever serves the hub's yard serves it.
//!
//! ```
//! use toolyard_sdk::{Json, NativeSource, ToolError, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add {
//!     /// The first number.
//!     a: f64,
//!     /// The second number.
//!     b: f64,
//! }
//!
//! /// Adds two numbers.
//! #[tool]
//! async fn add(params: Add) -> Result<Json<f64>, ToolError> {
//!     Ok(Json(params.a + params.b))
//! }
//!
//! let native = NativeSource::new("demo").tool(add());
//! ```

// The attribute writes paths that begin with this name, also in the tests of this crate.
extern crate self as toolyard_sdk;

mod ask;
mod completion;
mod content;
mod contents;
mod context;
mod definition;
mod error;
mod handler;
#[doc(hidden)]
pub mod macros;
mod native;
mod output;
mod prompt;
pub mod question;
mod resource;
mod resource_metadata;
mod schema;
mod template;
pub mod testing;
mod tool;
mod values;

pub use ask::{Answers, ElicitResult, Root, SamplingResult};
pub use content::Content;
pub use contents::{Contents, IntoContents};
pub use context::{Context, Stream};
pub use definition::{Annotations, Icon, Role};
pub use error::ToolError;
pub use handler::{Handler, NoParams, OnlyContext};
pub use native::{NativeHandle, NativeSource};
pub use output::{Audio, Image, IntoOutput, Json, OutputSchema};
pub use prompt::{IntoMessages, Message, Prompt};
pub use resource::Resource;
pub use schemars;
pub use template::ResourceTemplate;
pub use tool::Tool;
pub use toolyard_hub as hub;
pub use toolyard_hub::{ClientCapabilities, LogLevel, Progress, Question, Raw};
pub use toolyard_sdk_macros::tool;
pub use values::Values;
