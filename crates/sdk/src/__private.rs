//! Support for the code that `#[tool]` generates. Not part of the public API.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Map;
pub use serde_json::Value;

use crate::error::ToolError;
use crate::output::IntoOutput;

/// Fails to compile unless `P` can be the parameters of a tool.
pub fn assert_params<P: DeserializeOwned + JsonSchema>() {}

/// Fails to compile unless `R` can be the return type of a tool.
pub fn assert_return_type<R: ToolReturn>() {}

/// The return types of tools.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "a tool returns `Result<O, ToolError>`"
)]
pub trait ToolReturn {}

impl<O: IntoOutput> ToolReturn for Result<O, ToolError> {}

/// Builds a JSON object.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}
