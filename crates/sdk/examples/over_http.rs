//! A complete server over HTTP with one tool: MCP at `/mcp`, REST at `/mcp/tools`, and the web UI
//! at `/`.
#![allow(clippy::print_stdout, reason = "the operator needs the address")]

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::serve::{self, ServeError};
use toolyard_sdk::{NativeSource, ToolError, Yard, tool};

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
async fn main() -> Result<(), ServeError> {
    let yard = Yard::with_sources([NativeSource::new("hello").tool(hello()).into_source()]);
    let server = serve::http(yard).await?;
    println!("web UI  {}", server.page_url());
    println!("MCP     {}/mcp", server.url());
    server.serve_until(async { drop(tokio::signal::ctrl_c().await) }).await;
    Ok(())
}
