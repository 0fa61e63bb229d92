//! The sdk as authors of tools use it: everything runs through a real yard.
#![allow(clippy::unwrap_used, reason = "what tests share is a test, too")]

mod advanced;
mod definitions;
mod errors;
mod hooks;
mod native;
mod outputs;
mod over_http;
mod questions;
mod shapes;
