//! A whole server over HTTP, with one tool: MCP at `/mcp`, REST at `/mcp/tools`, and the page.
#![allow(clippy::print_stdout, reason = "the address is what whoever starts it waits for")]

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::hub::Yard;
use toolyard_sdk::{NativeSource, ToolError, tool};
use toolyard_serve::ServeError;

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
async fn main() -> Result<(), ServeError> {
    let yard = Yard::with_sources([NativeSource::new("hello").tool(hello()).into_source()]);
    let server = toolyard_serve::http(yard).await?;
    println!("page  {}", server.page_url());
    println!("MCP   {}/mcp", server.url());
    server.serve_until(async { drop(tokio::signal::ctrl_c().await) }).await;
    Ok(())
}
