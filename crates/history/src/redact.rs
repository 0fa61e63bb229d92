//! Arguments as they may be kept: without the values of what is called like a secret, and without a line break. Numbers,
//! texts and the order of keys stay as they were.

/// What stands in place of a secret.
const HIDDEN: &str = "\"[redacted]\"";

/// Parts of keys that name secrets, in lower case and without what joins words.
const USUAL: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "authorization",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "cookie",
    "bearer",
];

/// Which values are hidden.
#[derive(Debug, Clone)]
pub struct Redaction {
    words: Vec<String>,
}

impl Redaction {
    /// The usual ones, and those whose key has one of these words in it.
    pub fn with<'a>(more: impl IntoIterator<Item = &'a str>) -> Self {
        let more = more.into_iter().map(plain).filter(|word| !word.is_empty());
        Self { words: USUAL.iter().map(|word| (*word).to_owned()).chain(more).collect() }
    }

    /// Whether the value under this key is hidden.
    fn hides(&self, key: &str) -> bool {
        let key = plain(key);
        self.words.iter().any(|word| key.contains(word.as_str()))
    }

    /// JSON on one line, with the secrets hidden. The text must be JSON, as what comes from the hub is; of other text
    /// nothing is promised but that nothing breaks.
    pub(crate) fn apply(&self, json: &str) -> String {
        let mut reader = Reader { text: json, at: 0 };
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
                    if said.map_or(true, |key| self.hides(&key)) {
                        reader.next();
                        reader.skip_value();
                        out.push_str(key);
                        out.push(':');
                        out.push_str(HIDDEN);
                        continue;
                    }
                }
                _ => {}
            }
            out.push_str(token);
        }
        out
    }
}

/// A word without what joins the parts of names: `API-Key`, `api_key` and `apiKey` are the same.
fn plain(word: &str) -> String {
    word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;
    use serde_json::value::RawValue;

    use super::Redaction;

    #[track_caller]
    fn check(json: &str, kept: &str) {
        let redacted = Redaction::with(["ssn", " Iban-Number"]).apply(json);
        assert_eq!(redacted, kept);
        serde_json::from_str::<&RawValue>(&redacted).unwrap();
    }

    #[test]
    fn what_is_called_like_a_secret_is_hidden_however_it_is_written() {
        for key in [
            "password",
            "PASSWORD",
            "dbPassword",
            "api_key",
            "API-Key",
            "apiKey",
            "X-Auth-Token",
            "Set-Cookie",
        ] {
            check(&format!(r#"{{"{key}":"hunter2"}}"#), &format!(r#"{{"{key}":"[redacted]"}}"#));
        }
        check(r#"{"SSN":1,"iban_number":"x"}"#, r#"{"SSN":"[redacted]","iban_number":"[redacted]"}"#);
        // The key is the same when it is written with escapes.
        check(r#"{"pass\u0077ord":"x"}"#, r#"{"pass\u0077ord":"[redacted]"}"#);
    }

    #[test]
    fn a_secret_may_be_anything_and_anywhere() {
        check(
            r#"{"a":[{"secret":{"x":["}",{"y":"\"]"}]},"b":1},2],"token":[1,[2]],"c":"token"}"#,
            r#"{"a":[{"secret":"[redacted]","b":1},2],"token":"[redacted]","c":"token"}"#,
        );
    }

    #[test]
    fn everything_else_stays_as_it_was_on_one_line() {
        check(
            "{\n  \"z\" : 9007199254740993123,\r\n\t\"a\": [ 1e400 , -0.10, true, null, {} , [] ],\n \"s\": \"two  \\n{,}: \\\\\"\n}\n",
            r#"{"z":9007199254740993123,"a":[1e400,-0.10,true,null,{},[]],"s":"two  \n{,}: \\"}"#,
        );
        check(r#"["password","x"]"#, r#"["password","x"]"#);
        check("\"password\"", "\"password\"");
    }

    proptest! {
        #[test]
        fn any_text_can_be_tried(text in ".*") {
            Redaction::with([]).apply(&text);
        }

        #[test]
        fn text_made_of_marks_can_be_tried(text in r#"[\[\]{}:,"\\a1é ]*"#) {
            Redaction::with([]).apply(&text);
        }
    }
}
