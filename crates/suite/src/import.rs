//! Test files of other tools, turned into test files of ours.

pub mod mcp_assert;
pub mod mcporter;
