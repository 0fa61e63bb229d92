//! Tests of the call path, step by step, with small scripted sources.

use crate::error::{ErrorKind, HubError};

mod allowed;
mod asking;
mod ending;
mod gates;
mod hooks;
mod limits;
mod names;
mod places;
mod promises;
mod records;
mod shared;
mod versions;

/// The parts of an error that a caller sees.
fn parts(error: &HubError) -> (ErrorKind, &str, Option<&str>) {
    (error.kind(), error.message(), error.suggestion())
}
