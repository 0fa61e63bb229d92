//! Which of two versions is the newer one. Authors write what they like; what looks like semantic versioning is
//! ordered as that says, and the rest as well as it can be.

use std::cmp::Ordering;

/// Numbers as numbers, words as words, and what comes before a release before it. What follows `+` says nothing.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (without_build(a), without_build(b));
    let ((release_a, before_a), (release_b, before_b)) = (split(a), split(b));
    parts(release_a, release_b).then_with(|| match (before_a, before_b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => parts(a, b),
    })
}

fn without_build(version: &str) -> &str {
    let version = version.strip_prefix('v').unwrap_or(version);
    version.split_once('+').map_or(version, |(version, _)| version)
}

fn split(version: &str) -> (&str, Option<&str>) {
    match version.split_once('-') {
        Some((release, before)) => (release, Some(before)),
        None => (version, None),
    }
}

fn parts(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(a), Some(b)) => part(a, b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn part(a: &str, b: &str) -> Ordering {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
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
        ];
        for pair in ordered.windows(2) {
            assert!(compare(pair[0], pair[1]).is_lt(), "{pair:?}");
        }
        assert!(compare("v1.0.0+linux", "1.0.0").is_eq());
    }

    proptest! {
        #[test]
        fn the_order_is_an_order(a in "[0-9a.+-]{0,9}", b in "[0-9a.+-]{0,9}") {
            assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            assert!(compare(&a, &a).is_eq());
        }
    }
}
