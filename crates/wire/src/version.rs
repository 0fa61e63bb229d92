//! The released protocol versions and their two eras.

use std::fmt;

/// A released version of the protocol, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// How a version starts a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With `initialize` and a session.
    Legacy,
    /// With metadata on every request, and no session.
    Modern,
}

impl Era {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl Version {
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }

    /// Returns the supported versions of the modern era, as listed by `server/discover` and in
    /// errors.
    pub fn modern() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|version| version.era() == Era::Modern)
    }

    /// Returns whether this version has batches. Only one version ever did.
    pub(crate) fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Returns whether a stream starts with an empty event that carries an ID, so that a client can
    /// resume it before it has received a message. Older clients would try to parse the empty
    /// event.
    pub(crate) fn primes_streams(self) -> bool {
        self >= Self::V2025_11_25
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
