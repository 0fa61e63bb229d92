//! What of the yard a front shows. Lists show nothing else, and names lead nowhere else.

use std::sync::Arc;

use crate::name::SourceName;

/// A part of the yard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum YardScope {
    /// Everything.
    #[default]
    All,
    /// Everything but these sources.
    Without(Arc<[SourceName]>),
    /// These sources and no others.
    Only(Arc<[SourceName]>),
    /// One source alone, as if one were talking to it: by its raw names.
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

    /// The sources that are shown, where they are named one by one.
    pub fn named_sources(&self) -> &[SourceName] {
        match self {
            Self::All | Self::Without(_) => &[],
            Self::Only(sources) => sources,
            Self::Source(only) => std::slice::from_ref(only),
        }
    }

    /// The source whose raw names are used, where one is shown alone.
    pub fn single_source(&self) -> Option<&SourceName> {
        match self {
            Self::Source(only) => Some(only),
            Self::All | Self::Without(_) | Self::Only(_) => None,
        }
    }
}
