//! The files of other test tools, and recordings, as test files.

pub mod cassette;
pub mod mcp_assert;
pub mod mcporter;
mod recorded;
