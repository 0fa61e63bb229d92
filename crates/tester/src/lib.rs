//! Nine tools that let an assistant test any MCP server: connect, look at everything it advertises, call, read, get, and
//! disconnect, with exact and timed answers. How a connection is made is `upstream`'s business; who may call these tools
//! is the hub's.

mod access;
mod answer;
mod caller;
mod connection;
mod definitions;
mod fault;
mod offered;
mod rules;
mod seats;
mod source;
mod target;
mod verbs;

pub use caller::Sharing;
pub use source::{Tester, TesterSettings};
pub use target::{Known, Servers};
