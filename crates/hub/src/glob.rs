//! Patterns over names: `*` matches any text, `?` matches one character, and everything else
//! matches itself.

use std::fmt;

use wildmatch::WildMatch;

/// A pattern over whole names. Matching does not allocate and takes time proportional to the
/// product of both lengths, even for malicious input.
#[derive(Clone, PartialEq)]
pub struct Glob(WildMatch);

impl Eq for Glob {}

impl Glob {
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }

    /// Returns whether the pattern can match a name that starts with this prefix.
    pub fn matches_some_with_prefix(&self, prefix: &str) -> bool {
        let mut rest = prefix.chars();
        for c in self.0.pattern_chars() {
            match (c, rest.next()) {
                // The star can match the rest of the prefix.
                ('*', _) | (_, None) => return true,
                ('?', Some(_)) => {}
                (c, Some(next)) if *c == next => {}
                _ => return false,
            }
        }
        rest.next().is_none()
    }
}

impl From<&str> for Glob {
    fn from(pattern: &str) -> Self {
        Self(WildMatch::new(pattern))
    }
}

impl From<String> for Glob {
    fn from(pattern: String) -> Self {
        Self::from(pattern.as_str())
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.pattern())
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", self.0.pattern())
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

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
            assert_eq!(Glob::from(pattern).matches_some_with_prefix(prefix), expect, "{pattern} {prefix}");
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
            ("a**c", "abc", true),
            ("a*", "a/b", true),
            ("A*", "abc", false),
            ("[ab]", "a", false),
            ("\\*", "\\x", true),
            ("*", "*", true),
            ("a*b", "a*", false),
        ] {
            assert_eq!(Glob::from(pattern).matches(name), expect, "{pattern} {name}");
        }
        let hostile = "a".repeat(2_000);
        assert!(!Glob::from(format!("{}b", "*a".repeat(500)).as_str()).matches(&hostile));
    }
}
