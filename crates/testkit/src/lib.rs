//! For tests only: servers to test against, and what drives the product from outside. Nothing that ships depends
//! on this.

pub mod conformance;
pub mod conformance_client;
pub mod harness;
pub mod odd;
pub mod probe;
pub mod web;
pub mod workbench;
