//! Redaction of JSON text without parsing it into values: numbers, texts and the order of keys stay as they were.

use std::borrow::Cow;

use super::{HIDDEN, Redaction};

pub(super) fn redact(redaction: &Redaction, json: &str) -> String {
    let mut reader = JsonTokenizer { text: json, at: 0 };
    let mut out = String::with_capacity(json.len());
    // Of each container that is open: whether it is an object.
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
                let said = serde_json::from_str::<String>(key);
                if said.map_or(true, |key| redaction.is_secret_key(&key)) {
                    reader.next();
                    reader.skip_value();
                    out.push_str(key);
                    out.push_str(":\"");
                    out.push_str(HIDDEN);
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

/// A text with its quotes. One that has nothing to hide stays as it was written, escapes included.
fn string<'a>(redaction: &Redaction, quoted: &'a str) -> Cow<'a, str> {
    let Ok(said) = serde_json::from_str::<String>(quoted) else {
        // Cut off in the middle.
        return redaction.redact_text(quoted);
    };
    match redaction.redact_text(&said) {
        Cow::Borrowed(_) => Cow::Borrowed(quoted),
        Cow::Owned(hidden) => Cow::Owned(crate::json::to_raw(&hidden).get().to_owned()),
    }
}

struct JsonTokenizer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonTokenizer<'a> {
    /// The next token: a mark, a text with its quotes, or anything else up to the next mark or space.
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

    /// Passes over one value, however deep.
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
