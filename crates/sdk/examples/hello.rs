//! A complete MCP server over stdio with one tool.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{NativeSource, ToolError, Yard, serve, tool};

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// The person to greet.
    name: String,
}

/// Greets a person by name.
#[tool(read_only = true)]
async fn hello(params: Greeting) -> Result<String, ToolError> {
    Ok(format!("Hello, {}!", params.name))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let source = NativeSource::new("hello").tool(hello());
    serve::stdio(Yard::with_sources([source.into_source()])).await
}
