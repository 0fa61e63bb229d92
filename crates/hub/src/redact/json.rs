//! Redaction of JSON text without parsing it into values: numbers, strings and the order of keys
//! are preserved.

use std::borrow::Cow;

use super::{REDACTED, Redaction};

pub(super) fn redact(redaction: &Redaction, json: &str) -> String {
    let mut reader = JsonTokenizer { text: json, at: 0 };
    let mut out = String::with_capacity(json.len());
    // For each open container, whether it is an object.
    let mut open: Vec<bool> = Vec::new();
    let mut key_next = false;
    while let Some(token) = reader.next() {
        match token {
            "{" | "[" => {
                key_next = token == "{";
                open.push(key_next);
            }
            "}" | "]" => {
                open.pop();
                key_next = false;
            }
            "," => key_next = open.last().copied().unwrap_or(false),
            ":" => {}
            key if key_next => {
                key_next = false;
                let key_text = serde_json::from_str::<String>(key);
                if key_text.map_or(true, |key| redaction.is_secret_key(&key)) {
                    reader.next();
                    reader.skip_value();
                    out.push_str(key);
                    out.push_str(":\"");
                    out.push_str(REDACTED);
                    out.push('"');
                    continue;
                }
            }
            text if text.starts_with('"') => {
                out.push_str(&string(redaction, text));
                continue;
            }
            _ => {}
        }
        out.push_str(token);
    }
    out
}

/// Redacts a string with its quotes. A string without secrets is preserved as written, including
/// escapes.
fn string<'a>(redaction: &Redaction, quoted: &'a str) -> Cow<'a, str> {
    let Ok(text) = serde_json::from_str::<String>(quoted) else {
        // Truncated in the middle.
        return redaction.redact_text(quoted);
    };
    match redaction.redact_text(&text) {
        Cow::Borrowed(_) => Cow::Borrowed(quoted),
        Cow::Owned(hidden) => Cow::Owned(crate::json::to_raw(&hidden).get().to_owned()),
    }
}

struct JsonTokenizer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonTokenizer<'a> {
    /// Returns the next token: punctuation, a string with its quotes, or anything else up to the
    /// next punctuation or space.
    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let start = self.at;
        let end = match *bytes.get(start)? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => start + 1,
            b'"' => {
                let mut end = start + 1;
                while end < bytes.len() && bytes[end] != b'"' {
                    end += if bytes[end] == b'\\' { 2 } else { 1 };
                }
                (end + 1).min(bytes.len())
            }
            _ => {
                let rest = bytes[start..].iter();
                let length = rest.take_while(|byte| !b"{}[],:\" \t\r\n".contains(byte)).count();
                start + length
            }
        };
        self.at = end;
        self.text.get(start..end)
    }

    /// Skips one value of any depth.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.next() {
            match token {
                "{" | "[" => depth += 1,
                "}" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}
