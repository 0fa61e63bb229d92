//! What the code that `#[tool]` writes needs of this crate. Nothing here is for people.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Map;
pub use serde_json::Value;

use crate::error::ToolError;
use crate::output::IntoOutput;

/// Does nothing; it compiles only for types that can be a tool's parameters.
pub fn can_be_params<P: DeserializeOwned + JsonSchema>() {}

/// Does nothing; it compiles only for what a tool can return.
pub fn can_be_returned<R: ToolReturn>() {}

/// What a tool can return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "a tool returns `Result<O, ToolError>`"
)]
pub trait ToolReturn {}

impl<O: IntoOutput> ToolReturn for Result<O, ToolError> {}

/// An object with these members.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}
