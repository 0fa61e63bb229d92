//! What came back from a call, as it came.

use crate::json::Raw;

/// What a source answered. A tool that answers "I failed" is an outcome too, not an error.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The whole result object, untouched.
    pub body: Raw,
    /// Whether the result itself says that the tool failed.
    pub failed: bool,
    /// Whether the body carries what only the modern era adds to results.
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
