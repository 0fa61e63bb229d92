//! Code that runs before and after calls: for one tool with [`Tool::hooks`](crate::Tool::hooks), or for all tools
//! of a yard with [`YardSettings`](crate::yard::YardSettings).
//!
//! A hook can let a call pass, change its arguments, or reject it:
//!
//! ```
//! use toolyard_sdk::hooks::{BoxFuture, HookCall, HookDecision, Hooks};
//! use toolyard_sdk::{ErrorKind, HubError, ToolError, testing, tool};
//!
//! /// Rejects calls while maintenance is in progress.
//! struct Maintenance;
//!
//! impl Hooks for Maintenance {
//!     fn before<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
//!         let message = format!("`{}` is under maintenance", call.record.tool_name());
//!         Box::pin(async { Err(HubError::new(ErrorKind::Forbidden, message)) })
//!     }
//! }
//!
//! /// Deletes old reports.
//! #[tool(destructive = true, hooks = Maintenance)]
//! async fn purge() -> Result<&'static str, ToolError> {
//!     Ok("done")
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let report = testing::call(purge(), serde_json::json!({})).await;
//! assert_eq!(report.error_kind(), Some(ErrorKind::Forbidden));
//! # }
//! ```

pub use toolyard_hub::{BoxFuture, HookCall, HookDecision, Hooks};
