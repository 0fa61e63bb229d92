//! Suggestions for misspelled names.

const LONGEST_COMPARED: usize = 256;

/// Returns the most similar of these names, if it is similar enough to be a likely match. Ignores
/// case.
pub fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A comparison costs the product of both lengths for every name, so very long input is not
    // compared. A name of a very different length is not a typo, unless the input is a part of it.
    if name.len() > LONGEST_COMPARED {
        return None;
    }
    let slack = 3 + name.len() / 4;
    let lower = name.to_lowercase();
    let scored = all
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= slack || is_prefix_of(name, candidate))
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate));
    let (score, close) = scored.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (score > 0.8).then_some(close)
}

fn is_prefix_of(name: &str, candidate: &str) -> bool {
    !name.is_empty() && candidate.len() <= LONGEST_COMPARED && candidate.starts_with(name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_understood_and_other_names_are_not() {
        for (name, expect) in [
            ("permisions", Some("permissions")),
            ("perm", Some("permissions")),
            ("HEADERS", Some("headers")),
            ("header", Some("headers")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, ["headers", "permissions", "headerz"].into_iter()), expect, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(300), ["x"].into_iter()), None);
    }
}
