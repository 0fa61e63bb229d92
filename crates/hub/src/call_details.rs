//! What the corridor tells a front about a call beside its outcome. A front that wants to know leaves one of these in
//! the request and reads it while the call runs or afterwards, however the call ends.

use std::sync::{Arc, OnceLock};

use crate::catalog::ToolEntry;
use crate::rate_limit::RateState;

/// Filled in as the call goes along.
#[derive(Debug, Default)]
pub struct CallDetails {
    pub(crate) tool: OnceLock<Arc<ToolEntry>>,
    pub(crate) rate: OnceLock<RateState>,
    pub(crate) result_violations: OnceLock<Vec<String>>,
}

impl CallDetails {
    /// The tool that the name led to, once it did.
    pub fn tool(&self) -> Option<&Arc<ToolEntry>> {
        self.tool.get()
    }

    /// What is left of the tightest rate that applies, once the call was counted, or refused for it.
    pub fn rate(&self) -> Option<RateState> {
        self.rate.get().copied()
    }

    /// In what the result does not fit the tool's output schema, where that is to be warned about.
    pub fn result_violations(&self) -> &[String] {
        self.result_violations.get().map_or(&[], Vec::as_slice)
    }
}
