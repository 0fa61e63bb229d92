//! The protocol versions, as a client outside the product knows them: by name.

use std::fmt;

/// A released version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(&'static str);

impl Version {
    pub const V2024_11_05: Self = Self("2024-11-05");
    pub const V2025_03_26: Self = Self("2025-03-26");
    pub const V2025_06_18: Self = Self("2025-06-18");
    pub const V2025_11_25: Self = Self("2025-11-25");
    pub const V2026_07_28: Self = Self("2026-07-28");
    pub const LEGACY: [Self; 4] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest version of each era.
    pub const NEWEST: [Self; 2] = [Self::V2025_11_25, Self::V2026_07_28];

    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Whether every request carries metadata instead of belonging to a session.
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
