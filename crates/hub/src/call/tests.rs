//! The corridor, stage by stage, with small sources that are told what to do.

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
mod versions;

/// What a caller reads of an error.
fn told(error: &HubError) -> (ErrorKind, &str, Option<&str>) {
    (error.kind(), error.message(), error.suggestion())
}
