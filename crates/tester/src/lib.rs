//! Nine tools that let an assistant test any MCP server: connect, look at everything it advertises, call, read, get, and
//! disconnect, with exact and timed answers. How a connection is made is `upstream`'s business; who may call these tools
//! is the hub's.

mod access;
mod answer;
mod caller;
mod connection;
mod connections;
mod definitions;
mod error;
mod rules;
mod source;
mod target;
mod tool_schemas;
mod tools;

pub use caller::TesterSharing;
pub use source::{Tester, TesterSettings};
pub use target::{TesterServer, TesterServers};
