//! The facts about a call, as [`Context`](crate::Context) and [hooks](crate::hooks) see them, and requests for
//! calling a [`Yard`](crate::Yard) from your own code.
//!
//! ```
//! use toolyard_sdk::call::{CallRequest, CallTarget, Principal};
//! use toolyard_sdk::{NativeSource, Tool, Yard};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolyard_sdk::HubError> {
//! let source = NativeSource::new("demo").tool(Tool::new("ping", || async { Ok("pong") }));
//! let yard = Yard::with_sources([source.into_source()]);
//! let target = CallTarget::Tool { name: "ping".to_owned(), arguments: None };
//! let outcome = yard.call(CallRequest::new(target, Principal::owner())).await?;
//! assert_eq!(outcome.body.get(), r#"{"content":[{"type":"text","text":"pong"}]}"#);
//! # Ok(())
//! # }
//! ```

pub use toolyard_hub::{
    CallContext, CallOrigin, CallRecord, CallRequest, CallTarget, ClientSession, CompletionReference,
    EntryKind, ExecutionId, FrontName, Permissions, Principal, Priority,
};
