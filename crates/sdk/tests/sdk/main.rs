//! The SDK as authors of tools use it. Every call goes through a real yard.
#![allow(clippy::unwrap_used, reason = "shared code of tests is test code")]

mod advanced;
mod definitions;
mod errors;
mod hooks;
mod native;
mod outputs;
mod over_http;
mod questions;
mod shapes;
