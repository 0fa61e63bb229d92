//! Ordering of versions. Authors may write any text: versions close to semantic versions are
//! ordered as such, and other texts follow them in text order.

use std::cmp::Ordering;

use semver::Prerelease;

/// Compares two versions. Build metadata (`+…`) is ignored.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    VersionKey::parse(a).cmp(&VersionKey::parse(b))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum VersionKey<'a> {
    /// A release may have any number of parts, but the crate requires three.
    Semantic(Vec<u64>, Prerelease),
    Other(&'a str),
}

impl<'a> VersionKey<'a> {
    fn parse(version: &'a str) -> Self {
        let version = version.strip_prefix('v').unwrap_or(version);
        let version = version.split_once('+').map_or(version, |(version, _)| version);
        let (release, before) = version.split_once('-').unwrap_or((version, ""));
        let release: Option<Vec<u64>> = release.split('.').map(|part| part.parse().ok()).collect();
        let before: Vec<String> = before.split('.').map(strip_leading_zeros).collect();
        match (release, Prerelease::new(&before.join("."))) {
            (Some(release), Ok(before)) => Self::Semantic(release, before),
            _ => Self::Other(version),
        }
    }
}

/// Normalizes `01` to `1`: dates contain such parts, and the crate rejects them.
fn strip_leading_zeros(part: &str) -> String {
    part.parse().map_or_else(|_| part.to_owned(), |number: u64| number.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::compare;

    #[test]
    fn newer_versions_come_after_older_ones() {
        let ordered = [
            "0.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
            "2",
            "2.0",
            "2024-01",
            "2024",
            "2024.01.15",
            "2024.1.15.2",
            "2024.10.2",
            "latest",
            "nightly",
        ];
        for pair in ordered.windows(2) {
            assert!(compare(pair[0], pair[1]).is_lt(), "{pair:?}");
        }
        assert!(compare("v1.0.0+linux", "1.0.0").is_eq());
        assert!(compare("2024.01.15", "2024.1.15").is_eq());
    }

    proptest! {
        #[test]
        fn the_order_is_an_order(a in "[0-9a.+-]{0,9}", b in "[0-9a.+-]{0,9}", c in "[0-9a.+-]{0,9}") {
            assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            assert!(compare(&a, &a).is_eq());
            assert!(!(compare(&a, &b).is_le() && compare(&b, &c).is_le()) || compare(&a, &c).is_le());
        }
    }
}
