//! Details of a call that a front may need in addition to the outcome. The front puts a
//! [`CallDetails`] into the request and reads it while the call runs or after it has ended.

use std::sync::{Arc, OnceLock};

use crate::catalog::ToolEntry;
use crate::rate_limit::RateState;

/// Details of one call, filled in as the call progresses.
#[derive(Debug, Default)]
pub struct CallDetails {
    pub(crate) tool: OnceLock<Arc<ToolEntry>>,
    pub(crate) rate: OnceLock<RateState>,
    pub(crate) result_violations: OnceLock<Vec<String>>,
}

impl CallDetails {
    /// The details of a finished call, as far as they are stored.
    pub fn with_result_violations(violations: Vec<String>) -> Self {
        let details = Self::default();
        if !violations.is_empty() {
            let _ = details.result_violations.set(violations);
        }
        details
    }

    /// The tool that the name resolved to.
    pub fn tool(&self) -> Option<&Arc<ToolEntry>> {
        self.tool.get()
    }

    /// The state of the tightest rate limit that applies. Set when the call is counted or rejected.
    pub fn rate(&self) -> Option<RateState> {
        self.rate.get().copied()
    }

    /// Violations of the tool's output schema. Set if result checks are configured to warn.
    pub fn result_violations(&self) -> &[String] {
        self.result_violations.get().map_or(&[], Vec::as_slice)
    }
}
