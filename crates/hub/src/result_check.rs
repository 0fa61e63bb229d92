//! Whether what a tool answers is what it promised. Results are judged, never altered.

use std::collections::BTreeMap;

use crate::name::SourceName;

/// What becomes of a result that does not fit the tool's own output schema. Results of calls that a program makes are
/// never checked, and neither are results that say that the tool failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultCheck {
    /// It is not looked at.
    #[default]
    Off,
    /// It goes out as it is; watchers and the front are told.
    Warn,
    /// The call ends with an error instead.
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
