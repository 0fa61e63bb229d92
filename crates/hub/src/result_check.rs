//! Settings for checking results against output schemas. Results are checked but never changed.

use std::collections::BTreeMap;

use crate::name::SourceName;

/// What happens to a result that does not match the tool's output schema. Results of calls made by
/// a program and results that report a failure are never checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultCheck {
    /// The result is not checked.
    #[default]
    Off,
    /// The result is returned unchanged. Watchers and the front are notified.
    Warn,
    /// The call ends with an error.
    Enforce,
}

/// How results are checked, by source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultChecks {
    pub default: ResultCheck,
    pub sources: BTreeMap<SourceName, ResultCheck>,
}

impl ResultChecks {
    pub(crate) fn for_source(&self, source: &SourceName) -> ResultCheck {
        self.sources.get(source).copied().unwrap_or(self.default)
    }
}
