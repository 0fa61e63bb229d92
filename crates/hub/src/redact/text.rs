//! Redaction of free text: log lines, standard error, error messages, URLs. Free text has no
//! grammar, so this looks for the common forms of secrets and prefers hiding a harmless word to
//! showing a secret.

use std::borrow::Cow;
use std::ops::Range;

use super::{REDACTED, Redaction, normalize_key};

/// Maximum length of a key before a `=` or a `:`.
const LONGEST_KEY: usize = 64;
/// Shorter words after `Bearer` are ordinary words.
const SHORTEST_TOKEN: usize = 8;
/// The words that introduce credentials in a header.
const SCHEMES: [&str; 7] = ["bearer", "basic", "digest", "token", "negotiate", "apikey", "dpop"];
/// Words that occur before a colon in ordinary text.
const PROSE: [&str; 6] = ["authorization", "credential", "cookie", "bearer", "session", "auth"];

pub(super) fn redact<'a>(redaction: &Redaction, text: &'a str) -> Cow<'a, str> {
    let line = TextScanner { redaction, text, bytes: text.as_bytes() };
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < line.bytes.len() {
        let found = match line.bytes[at] {
            b'=' | b':' => line.secret_after(at),
            b'b' | b'B' | b'e' if line.is_word_start(at) => line.credential(at),
            _ => None,
        };
        match found.filter(|found| !found.is_empty() && text.get(found.clone()) != Some(REDACTED)) {
            Some(found) => {
                out.push_str(&text[copied..found.start]);
                out.push_str(REDACTED);
                (copied, at) = (found.end, found.end);
            }
            None => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

struct TextScanner<'a> {
    redaction: &'a Redaction,
    text: &'a str,
    bytes: &'a [u8],
}

/// Characters that end an unquoted value. All of them are ASCII, so cuts never split a character.
fn is_value_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"&\"'`,;)}]<>#\\|".contains(&byte)
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte)
}

impl TextScanner<'_> {
    fn is_word_start(&self, at: usize) -> bool {
        at == 0 || !self.bytes[at - 1].is_ascii_alphanumeric()
    }

    fn skip_while(&self, from: usize, inside: impl Fn(u8) -> bool) -> usize {
        from + self.bytes[from..].iter().take_while(|byte| inside(**byte)).count()
    }

    /// Returns the secret after the `=` or `:` at this position.
    fn secret_after(&self, at: usize) -> Option<Range<usize>> {
        let colon = self.bytes[at] == b':';
        if colon && self.bytes[at..].starts_with(b"://") {
            return self.password_in_url(at + 3);
        }
        let (key, quoted) = self.key_before(at)?;
        let first = key.start;
        let key = &self.text[key];
        // A module path at the start of a log line is not a key.
        let is_path = first > 0 && self.bytes[first - 1] == b':';
        if is_path || self.bytes.get(at + 1) == Some(&b':') || !self.redaction.is_secret_key(key) {
            return None;
        }
        let start = self.skip_while(at + 1, |byte| byte == b' ' || byte == b'\t');
        if start >= self.bytes.len() {
            return None;
        }
        let spaced = start > at + 1;
        if let Some(value) = self.quoted_value(start) {
            return Some(value);
        }
        if matches!(self.bytes[start], b'{' | b'[') {
            return Some(start..self.end_of_container(start));
        }
        let is_header = colon && (key.contains('-') || key.starts_with(|letter: char| letter.is_uppercase()));
        let word = self.skip_while(start, |byte| !is_value_end(byte));
        let scheme = SCHEMES.contains(&self.text[start..word].to_ascii_lowercase().as_str());
        if scheme && self.bytes.get(word) == Some(&b' ') {
            // The scheme and the credentials after it belong together.
            return Some(start..self.skip_while(word + 1, |byte| !b"\r\n\"'\\".contains(&byte)));
        }
        if colon && is_header && normalize_key(key).contains("cookie") {
            return Some(start..self.skip_while(start, |byte| !b"\r\n\"'\\".contains(&byte)));
        }
        let prose = PROSE.iter().any(|word| normalize_key(key).contains(word));
        if colon && spaced && prose && !quoted && !is_header {
            return None;
        }
        Some(start..word)
    }

    /// Returns the key that ends before this position, and whether it is quoted.
    fn key_before(&self, at: usize) -> Option<(Range<usize>, bool)> {
        let back = |mut end: usize, skip: &dyn Fn(u8) -> bool| {
            while end > 0 && skip(self.bytes[end - 1]) {
                end -= 1;
            }
            end
        };
        let mut end = at;
        if self.bytes[at] == b'=' {
            end = back(end, &|byte| byte == b' ');
        }
        let unquoted = back(back(end, &|byte| byte == b'"' || byte == b'\''), &|byte| byte == b'\\');
        let quoted = unquoted < end;
        let start = back(unquoted, &is_key);
        let fits = start < unquoted && unquoted - start <= LONGEST_KEY;
        fits.then_some((start..unquoted, quoted))
    }

    /// Returns the content of the quotes that start here. The quotes themselves may be escaped.
    fn quoted_value(&self, start: usize) -> Option<Range<usize>> {
        let quote = self.skip_while(start, |byte| byte == b'\\');
        let mark = *self.bytes.get(quote).filter(|byte| matches!(byte, b'"' | b'\''))?;
        let escapes = quote - start;
        let first = quote + 1;
        let mut at = first;
        while at < self.bytes.len() {
            let slashes = self.skip_while(at, |byte| byte == b'\\');
            if self.bytes.get(slashes) == Some(&mark) && slashes - at <= escapes {
                return Some(first..at);
            }
            at = if slashes > at { (slashes + 1).min(self.bytes.len()) } else { at + 1 };
        }
        Some(first..self.bytes.len())
    }

    fn end_of_container(&self, start: usize) -> usize {
        let mut depth = 0_usize;
        for (at, byte) in self.bytes.iter().enumerate().skip(start) {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        self.bytes.len()
    }

    /// Returns the password in `scheme://user:password@host`, whose authority part starts here.
    fn password_in_url(&self, start: usize) -> Option<Range<usize>> {
        let end =
            self.skip_while(start, |byte| !byte.is_ascii_whitespace() && !b"/?#\"'<>\\".contains(&byte));
        let at = self.bytes[start..end].iter().rposition(|byte| *byte == b'@')? + start;
        let colon = self.bytes[start..at].iter().position(|byte| *byte == b':')? + start;
        Some(colon + 1..at)
    }

    /// Finds credentials that are recognizable by their format: after `Bearer` or `Basic`, or a
    /// JWT.
    fn credential(&self, at: usize) -> Option<Range<usize>> {
        if self.bytes[at..].starts_with(b"eyJ") {
            let end = self.skip_while(at, is_token);
            let parts: Vec<&str> = self.text[at..end].split('.').collect();
            let long = |part: &&&str| part.len() >= SHORTEST_TOKEN;
            return (parts.len() >= 2 && parts.iter().take(2).filter(long).count() == 2).then_some(at..end);
        }
        let word = self.skip_while(at, |byte| byte.is_ascii_alphabetic());
        let scheme = matches!(self.text[at..word].to_ascii_lowercase().as_str(), "bearer" | "basic");
        if !scheme || self.bytes.get(word) != Some(&b' ') {
            return None;
        }
        let start = self.skip_while(word, |byte| byte == b' ');
        let end = self.skip_while(start, is_token);
        let token = &self.bytes[start..end];
        // `bearer authentication` is ordinary text.
        let is_prose = token.iter().all(u8::is_ascii_lowercase);
        (token.len() >= SHORTEST_TOKEN && !is_prose).then_some(start..end)
    }
}
