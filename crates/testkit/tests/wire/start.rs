//! Starts the fixture with the probe's yard.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Line, Over, Server, Version};

pub(super) const FIXTURE: &str = env!("CARGO_BIN_EXE_toolyard-fixture");

/// Every transport in every version.
pub(super) fn everywhere() -> impl Iterator<Item = (Over, Version)> {
    Client::BOTH.into_iter().flat_map(|over| Version::ALL.into_iter().map(move |version| (over, version)))
}

/// Every transport in the newest version of each era.
pub(super) fn both_eras() -> impl Iterator<Item = (Over, Version)> {
    Client::BOTH.into_iter().flat_map(|over| Version::NEWEST.into_iter().map(move |version| (over, version)))
}

/// Returns a client with a server of its own.
pub(super) async fn probe(over: Over, version: Version) -> Client {
    probe_with(&[], over, version).await
}

pub(super) async fn probe_with(arguments: &[&str], over: Over, version: Version) -> Client {
    Client::start(FIXTURE, &with_yard(arguments), over, version).await
}

/// Starts a server for several clients.
pub(super) async fn server() -> Arc<Server> {
    server_with(&[]).await
}

pub(super) async fn server_with(arguments: &[&str]) -> Arc<Server> {
    Server::start(FIXTURE, &with_yard(arguments)).await
}

/// Starts a server that has received nothing yet.
pub(super) fn line(version: Version) -> Line {
    Line::start(FIXTURE, &["stdio", "--yard", "probe"], version)
}

/// A complete modern tool call that requests progress and logs, for clients that do not use
/// [`Client`].
pub(super) fn modern_call(id: u32, tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "info",
        "progressToken": id,
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn with_yard<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    ["--yard", "probe"].into_iter().chain(arguments.iter().copied()).collect()
}
