//! Nine tools with which an assistant can test any MCP server: connect, list everything it
//! advertises, call, read, get, and disconnect, with exact and timed answers. The `upstream` crate
//! makes the connections, and the hub decides who may call these tools.

mod access;
mod answer;
mod caller;
mod connection;
mod connections;
mod definitions;
mod error;
mod rules;
mod saved_calls;
mod source;
mod target;
mod tool_schemas;
mod tools;

pub use caller::TesterSharing;
pub use source::{Tester, TesterSettings};
pub use target::{TesterServer, TesterServers};
