//! Test support: servers to test against, and harnesses that drive the product from outside. No
//! published crate depends on it.

pub mod conformance;
pub mod conformance_client;
pub mod docs;
pub mod harness;
pub mod odd;
pub mod probe;
pub mod web;
pub mod workbench;
