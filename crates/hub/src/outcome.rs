//! The outcome of a call.

use crate::json::Raw;

/// The result that a source returned. A tool result that reports a failure is an outcome, not an
/// error.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The whole result object, unchanged.
    pub body: Raw,
    /// Whether the result itself reports that the tool failed.
    pub failed: bool,
    /// Whether the body contains fields that only the modern era adds to results.
    pub modern: bool,
}

impl Outcome {
    pub fn success(body: Raw) -> Self {
        Self { body, failed: false, modern: false }
    }

    pub fn failure(body: Raw) -> Self {
        Self { body, failed: true, modern: false }
    }
}
