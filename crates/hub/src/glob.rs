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

#[cfg(test)]
mod tests {
    use super::matches;

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
