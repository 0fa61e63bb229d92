//! Regular expressions with the same meaning in every validator: JavaScript, Python and Rust. Other
//! patterns become part of the description.

/// Returns a portable form of the pattern, or `None` if it has no portable form.
pub(super) fn to_portable_pattern(pattern: &str) -> Option<String> {
    let pattern = strip_slashes(pattern);
    let mut scanner =
        Scanner { rest: pattern.chars().collect(), at: 0, out: String::new(), open: 0, atom: false };
    scanner.scan()?;
    (scanner.open == 0).then_some(scanner.out)
}

/// Some authors write `/^a$/` as in JavaScript. Without flags, the slashes can be removed.
fn strip_slashes(pattern: &str) -> &str {
    let inner = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    inner.filter(|inner| inner.starts_with('^') && inner.ends_with('$')).unwrap_or(pattern)
}

struct Scanner {
    rest: Vec<char>,
    at: usize,
    out: String,
    open: usize,
    /// Whether the previous element can be repeated.
    atom: bool,
}

impl Scanner {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.get(self.at).copied();
        self.at += usize::from(next.is_some());
        next
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn take(&mut self, expected: &str) -> bool {
        let ahead: Vec<char> = expected.chars().collect();
        let there = self.rest.get(self.at..self.at + ahead.len()) == Some(ahead.as_slice());
        self.at += if there { ahead.len() } else { 0 };
        there
    }

    fn scan(&mut self) -> Option<()> {
        // Limiting the length bounds the cost of compiling a pattern.
        if self.rest.len() > 2_000 {
            return None;
        }
        let mut after_lookahead = Vec::new();
        while let Some(next) = self.next() {
            match next {
                '\\' => self.scan_escape()?,
                '[' => self.scan_class()?,
                '(' => {
                    let kind = self.scan_group()?;
                    after_lookahead.push(kind);
                    if after_lookahead.len() > 100 {
                        return None;
                    }
                }
                ')' => {
                    self.open = self.open.checked_sub(1)?;
                    self.out.push(')');
                    self.atom = after_lookahead.pop()?;
                }
                '*' | '+' | '?' => {
                    self.scan_quantifier(next)?;
                }
                '{' => self.scan_counted_quantifier()?,
                '}' | ']' => {
                    self.out.push('\\');
                    self.out.push(next);
                    self.atom = true;
                }
                '|' | '^' | '$' => {
                    self.out.push(next);
                    self.atom = false;
                }
                other => {
                    self.out.push(other);
                    self.atom = true;
                }
            }
        }
        Some(())
    }

    /// Reads what follows `(`. Returns whether the group can be repeated.
    fn scan_group(&mut self) -> Option<bool> {
        self.open += 1;
        self.atom = false;
        if self.take("?:") {
            self.out.push_str("(?:");
            return Some(true);
        }
        for lookahead in ["?=", "?!"] {
            if self.take(lookahead) {
                self.out.push('(');
                self.out.push_str(lookahead);
                return Some(false);
            }
        }
        // Group names matter only to programs that read the match.
        if self.take("?P<") || (self.take("?<") && self.peek().is_some_and(|next| next != '=' && next != '!'))
        {
            while self.next()? != '>' {}
            self.out.push('(');
            return Some(true);
        }
        (self.peek() != Some('?') && self.rest.get(self.at.wrapping_sub(1)) == Some(&'(')).then(|| {
            self.out.push('(');
            true
        })
    }

    fn scan_quantifier(&mut self, sign: char) -> Option<()> {
        if !self.atom {
            return None;
        }
        self.out.push(sign);
        self.atom = false;
        if self.peek() == Some('?') {
            self.next();
            self.out.push('?');
        }
        Some(())
    }

    /// Reads `{2}`, `{2,}` or `{2,5}`. Any other brace is literal.
    fn scan_counted_quantifier(&mut self) -> Option<()> {
        let end = self.rest.iter().skip(self.at).position(|&next| next == '}');
        let inner: String = match end {
            Some(length) => self.rest.iter().skip(self.at).take(length).collect(),
            None => String::new(),
        };
        let (least, most) = inner.split_once(',').unwrap_or((&inner, "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if least.is_empty() || !digits(least) || !digits(most) {
            self.out.push_str("\\{");
            self.atom = true;
            return Some(());
        }
        let least_number: usize = least.parse().ok()?;
        let most_number =
            if inner.contains(',') && !most.is_empty() { most.parse().ok()? } else { least_number };
        // Some engines reject patterns with larger counts because of their size.
        if !self.atom || least_number > most_number || most_number > 1_000 {
            return None;
        }
        self.at += inner.chars().count() + 1;
        self.out.push('{');
        self.out.push_str(&inner);
        self.out.push('}');
        self.atom = false;
        if self.peek() == Some('?') {
            self.next();
            self.out.push('?');
        }
        Some(())
    }

    fn scan_class(&mut self) -> Option<()> {
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        let start = self.at;
        loop {
            let next = self.next()?;
            if next == ']' {
                // JavaScript has empty classes. The other engines read the bracket as a member.
                if self.at == start + 1 {
                    return None;
                }
                break;
            }
            let low = self.scan_class_member(next)?;
            let ranges =
                self.peek() == Some('-') && self.rest.get(self.at + 1).is_some_and(|&after| after != ']');
            if !ranges {
                low.write(&mut self.out);
                continue;
            }
            self.next();
            let next = self.next()?;
            match (low, self.scan_class_member(next)?) {
                (Member::One(low), Member::One(high)) if low <= high => {
                    Member::One(low).write(&mut self.out);
                    self.out.push('-');
                    Member::One(high).write(&mut self.out);
                }
                (Member::One(_), Member::One(_)) => return None,
                (low, high) => {
                    low.write(&mut self.out);
                    self.out.push_str("\\-");
                    high.write(&mut self.out);
                }
            }
        }
        self.out.push(']');
        // Rust's engine supports set operations. Python warns about them.
        if ["&&", "~~", "||"].iter().any(|operator| self.out.contains(operator)) {
            return None;
        }
        self.atom = true;
        Some(())
    }

    fn scan_class_member(&mut self, first: char) -> Option<Member> {
        if first != '\\' {
            return Some(Member::One(first));
        }
        let next = self.next()?;
        Some(match next {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => Member::Set(next),
            'n' => Member::One('\n'),
            'r' => Member::One('\r'),
            't' => Member::One('\t'),
            'f' => Member::One('\x0c'),
            'v' => Member::One('\x0b'),
            'x' | 'u' => Member::One(self.scan_code_point(next)?),
            other if !other.is_ascii_alphanumeric() => Member::One(other),
            _ => return None,
        })
    }

    /// Returns the character of `\xhh` or `\uhhhh`.
    fn scan_code_point(&mut self, kind: char) -> Option<char> {
        let length = if kind == 'x' { 2 } else { 4 };
        let digits: String = self.rest.get(self.at..self.at + length)?.iter().collect();
        self.at += length;
        char::from_u32(u32::from_str_radix(&digits, 16).ok()?)
    }

    fn scan_escape(&mut self) -> Option<()> {
        let next = self.next()?;
        self.atom = true;
        match next {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'n' | 'r' | 't' | 'f' | 'v' => {
                self.out.push('\\');
                self.out.push(next);
            }
            'b' | 'B' => {
                self.out.push('\\');
                self.out.push(next);
                self.atom = false;
            }
            'x' | 'u' => {
                let meant = self.scan_code_point(next)?;
                push_literal(&mut self.out, meant);
            }
            other if !other.is_ascii_alphanumeric() => push_literal(&mut self.out, other),
            _ => return None,
        }
        Some(())
    }
}

/// The contents of a class.
#[derive(Clone, Copy)]
enum Member {
    One(char),
    Set(char),
}

impl Member {
    fn write(self, out: &mut String) {
        match self {
            Self::Set(name) => {
                out.push('\\');
                out.push(name);
            }
            Self::One(meant) => {
                if "\\^[]-".contains(meant) {
                    out.push('\\');
                }
                out.push(meant);
            }
        }
    }
}

fn push_literal(out: &mut String, meant: char) {
    if "\\^$.|?*+()[]{}".contains(meant) {
        out.push('\\');
    }
    out.push(meant);
}

#[cfg(test)]
mod tests {
    use super::to_portable_pattern;

    #[test]
    fn patterns_that_all_engines_read_alike_are_kept() {
        for (pattern, meant) in [
            ("^[a-z0-9-]+$", "^[a-z0-9\\-]+$"),
            (r"^\d{3}-\d{2,}(?:x|y)*?$", r"^\d{3}-\d{2,}(?:x|y)*?$"),
            (r"^(?!foo)\w+\/\-$", r"^(?!foo)\w+/-$"),
            ("^/v1/{id}$", r"^/v1/\{id\}$"),
            ("/^abc$/", "^abc$"),
            (r"(?<year>\d+)-(?P<month>\d+)", r"(\d+)-(\d+)"),
            (r"[\w-.]+", r"[\w\-.]+"),
            (r"[\u0041-\u005A]\x41", "[A-Z]A"),
            (r"[^\]]\b", r"[^\]]\b"),
            ("", ""),
        ] {
            assert_eq!(to_portable_pattern(pattern).as_deref(), Some(meant), "{pattern}");
        }
    }

    #[test]
    fn patterns_that_some_engine_refuses_or_reads_otherwise_are_not() {
        for pattern in [
            r"\p{L}+",
            "(?i)abc",
            "(?<=a)b",
            "(?<!a)b",
            "(?>a)",
            "*a",
            "a**",
            "a{5,2}",
            "a{100000}",
            "(a",
            "a)",
            "[a",
            "[]a]",
            "[z-a]",
            r"\1",
            r"\k<name>",
            r"\Z",
            "a\\",
            "[a&&b]",
            "a++",
            "^*",
            r"\u{1F600}",
            "(?",
            "(?<",
        ] {
            assert_eq!(to_portable_pattern(pattern), None, "{pattern}");
        }
        assert_eq!(to_portable_pattern(&"(".repeat(5_000)), None);
    }
}
