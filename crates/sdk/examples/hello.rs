//! A whole MCP server on standard input and output, with one tool.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::hub::Yard;
use toolyard_sdk::{NativeSource, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// Who to greet.
    name: String,
}

/// Greets somebody by name.
#[tool(read_only = true)]
async fn hello(params: Greeting) -> Result<String, ToolError> {
    Ok(format!("Hello, {}!", params.name))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let native = NativeSource::new("hello").tool(hello());
    toolyard_serve::stdio(Yard::with_sources([native.into_source()])).await
}
