//! The part of the yard that a front shows. Lists are limited to it, and names are resolved only
//! within it.

use std::sync::Arc;

use crate::name::SourceName;

/// A part of the yard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum YardScope {
    /// Everything.
    #[default]
    All,
    /// Everything except these sources.
    Without(Arc<[SourceName]>),
    /// Only these sources.
    Only(Arc<[SourceName]>),
    /// A single source under its raw names, as if connected to it directly.
    Source(SourceName),
}

impl YardScope {
    pub fn covers(&self, source: &SourceName) -> bool {
        match self {
            Self::All => true,
            Self::Without(sources) => !sources.contains(source),
            Self::Only(sources) => sources.contains(source),
            Self::Source(only) => only == source,
        }
    }

    /// The sources that are shown, if they are listed individually.
    pub fn named_sources(&self) -> &[SourceName] {
        match self {
            Self::All | Self::Without(_) => &[],
            Self::Only(sources) => sources,
            Self::Source(only) => std::slice::from_ref(only),
        }
    }

    /// The source whose raw names are used, if a single source is shown.
    pub fn single_source(&self) -> Option<&SourceName> {
        match self {
            Self::Source(only) => Some(only),
            Self::All | Self::Without(_) | Self::Only(_) => None,
        }
    }
}
