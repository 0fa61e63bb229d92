//! Patterns over names: `*` stands for anything, `?` for one character.

/// Whether the whole name fits the pattern. Takes time in proportion to both lengths, however hostile they are.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on if the latest star has to stand for one character more.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, n));
                p += 1;
            }
            Some('?') => (p, n) = (p + 1, n + 1),
            Some(c) if *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match retry {
                Some((star, at)) => {
                    retry = Some((star, at + 1));
                    (p, n) = (star + 1, at + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether the pattern fits any name at all that begins with this prefix.
pub fn matches_some_with_prefix(pattern: &str, prefix: &str) -> bool {
    let mut rest = prefix.chars();
    for c in pattern.chars() {
        match (c, rest.next()) {
            // Whatever is left of the prefix and of the pattern, the star makes room for it.
            ('*', _) | (_, None) => return true,
            ('?', Some(_)) => {}
            (c, Some(next)) if c == next => {}
            _ => return false,
        }
    }
    rest.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::{matches, matches_some_with_prefix};

    #[test]
    fn a_pattern_fits_some_name_with_a_prefix_or_none() {
        for (pattern, prefix, expect) in [
            ("*", "mcp__a__", true),
            ("mcp__a__query", "mcp__a__", true),
            ("mcp__a__query", "mcp__b__", false),
            ("mcp__?__query", "mcp__b__", true),
            ("mcp__a*", "mcp__ab__", true),
            ("*query", "mcp__b__", true),
            ("mcp__a", "mcp__a__", false),
            ("mcp__a__", "mcp__a__", true),
            ("query", "mcp__a__", false),
            ("query", "", true),
            ("", "", true),
        ] {
            assert_eq!(matches_some_with_prefix(pattern, prefix), expect, "{pattern} {prefix}");
        }
    }

    #[test]
    fn stars_and_question_marks_stand_for_what_they_should() {
        for (pattern, name, expect) in [
            ("*", "", true),
            ("*", "anything", true),
            ("read_*", "read_file", true),
            ("read_*", "write_file", false),
            ("*_file", "read_file", true),
            ("r?ad", "read", true),
            ("r?ad", "rad", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("", "", true),
            ("", "x", false),
            ("é?", "éé", true),
        ] {
            assert_eq!(matches(pattern, name), expect, "{pattern} {name}");
        }
        let hostile = "a".repeat(2_000);
        assert!(!matches(&format!("{}b", "*a".repeat(500)), &hostile));
    }
}
