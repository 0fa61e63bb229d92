//! For tests only: servers to test against, and what drives the product from outside. Nothing that ships depends
//! on this.

pub mod conformance;
pub mod harness;
pub mod probe;
