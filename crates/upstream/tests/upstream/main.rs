//! Upstreams connected to servers that run in the test process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod auth;
mod authority;
