//! Entry points of the fuzz targets in `fuzz/`, and of the test that replays their corpus. Nothing else calls them.

pub use crate::config::fuzzing::config;
