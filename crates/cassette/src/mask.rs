//! Masks secrets in messages. What looks like a secret is defined in `toolyard_hub::Redaction`;
//! here, a message keeps its text except for the masked values, and the places are reported.

use std::borrow::Cow;

use serde_json::value::RawValue;
use toolyard_hub::json::to_raw;
use toolyard_hub::{REDACTED, Redaction, Secret};

/// Shorter values of secrets are not searched for, because they occur by accident.
const SHORTEST: usize = 6;
/// The objects whose members are named by a schema: a parameter named `token` is not a token.
const DEFINITIONS: [&str; 4] = ["properties", "$defs", "definitions", "patternProperties"];

/// What is masked in a recording.
#[derive(Debug, Default)]
pub struct SecretMask {
    redaction: Redaction,
    /// The longest first, so that no secret that contains another one is masked in part.
    values: Vec<Secret>,
}

/// A text after masking.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MaskedText {
    pub(crate) text: String,
    /// JSON pointers to the masked values.
    pub(crate) masked: Vec<String>,
}

impl SecretMask {
    /// Also masks these values wherever they occur, unless they are very short.
    pub fn with_values(values: impl IntoIterator<Item = Secret>) -> Self {
        let mut all: Vec<Secret> = Vec::new();
        for value in values.into_iter().filter(|value| value.reveal().len() >= SHORTEST) {
            // In a JSON text inside of a string, the value has escapes.
            let quoted = to_raw(value.reveal());
            let escaped = quoted.get().trim_matches('"');
            if escaped != value.reveal() {
                all.push(Secret::new(escaped));
            }
            all.push(value);
        }
        all.sort_by_key(|value| std::cmp::Reverse(value.reveal().len()));
        Self { redaction: Redaction::default(), values: all }
    }

    /// Masks a message. It must be valid JSON of a limited depth.
    pub(crate) fn mask_json(&self, message: &RawValue) -> MaskedText {
        let text = message.get();
        let mut walk = MaskWalk {
            mask: self,
            text,
            at: 0,
            copied: 0,
            out: String::with_capacity(text.len()),
            path: String::new(),
            masked: Vec::new(),
        };
        walk.value(ValueContext::Plain);
        walk.out.push_str(&text[walk.copied..]);
        MaskedText { text: walk.out, masked: walk.masked }
    }

    /// Masks anything that is not JSON.
    pub(crate) fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let known = self.mask_values(text);
        match self.redaction.redact_text(&known) {
            Cow::Borrowed(_) => known,
            Cow::Owned(hidden) => Cow::Owned(hidden),
        }
    }

    fn mask_values<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for value in &self.values {
            if text.contains(value.reveal()) {
                text = Cow::Owned(text.replace(value.reveal(), REDACTED));
            }
        }
        text
    }
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueContext {
    Plain,
    /// The members of this object are named by a schema.
    Definitions,
    /// Under a key that names a secret.
    Secret,
    /// Under a key such as `maxTokens`, whose numbers count something.
    Count,
}

struct MaskWalk<'a> {
    mask: &'a SecretMask,
    text: &'a str,
    at: usize,
    /// Everything before this position is in `out`.
    copied: usize,
    out: String,
    path: String,
    masked: Vec<String>,
}

impl MaskWalk<'_> {
    fn value(&mut self, context: ValueContext) {
        self.skip_space();
        match self.peek() {
            b'{' => self.object(context),
            b'[' => self.array(context),
            b'"' => self.string(context),
            b'-' | b'0'..=b'9' => {
                let start = self.at;
                self.skip_while(|byte| !b",]} \t\r\n".contains(&byte));
                if context == ValueContext::Secret {
                    self.hide(start);
                }
            }
            // true, false, null
            _ => self.skip_while(|byte| byte.is_ascii_alphabetic()),
        }
    }

    fn object(&mut self, context: ValueContext) {
        self.at += 1;
        loop {
            self.skip_space();
            if self.peek() == b'}' || self.at >= self.text.len() {
                self.at += 1;
                return;
            }
            let start = self.at;
            self.skip_string();
            let key: String = serde_json::from_str(&self.text[start..self.at]).unwrap_or_default();
            if let Cow::Owned(hidden) = self.mask.mask_values(&key) {
                self.replace(start, to_raw(&hidden).get());
            }
            self.skip_space();
            self.at += 1;
            self.skip_space();
            let length = self.path.len();
            self.path.push('/');
            self.path.push_str(&key.replace('~', "~0").replace('/', "~1"));
            self.value(self.context_of(&key, context));
            self.path.truncate(length);
            self.skip_space();
            if self.peek() == b',' {
                self.at += 1;
            }
        }
    }

    /// Returns the context of a member whose value starts here.
    fn context_of(&self, key: &str, outer: ValueContext) -> ValueContext {
        let is_schema = matches!(self.peek(), b'{' | b't' | b'f');
        if outer == ValueContext::Definitions && is_schema {
            return ValueContext::Plain;
        }
        if self.mask.redaction.is_secret_key(key) {
            let counts = key.to_ascii_lowercase().ends_with("tokens");
            return if counts { ValueContext::Count } else { ValueContext::Secret };
        }
        match outer {
            ValueContext::Secret | ValueContext::Count => outer,
            _ if DEFINITIONS.contains(&key) => ValueContext::Definitions,
            _ => ValueContext::Plain,
        }
    }

    fn array(&mut self, context: ValueContext) {
        self.at += 1;
        let mut index = 0_usize;
        loop {
            self.skip_space();
            if self.peek() == b']' || self.at >= self.text.len() {
                self.at += 1;
                return;
            }
            let length = self.path.len();
            self.path.push_str(&format!("/{index}"));
            let inner = if context == ValueContext::Definitions { ValueContext::Plain } else { context };
            self.value(inner);
            self.path.truncate(length);
            index += 1;
            self.skip_space();
            if self.peek() == b',' {
                self.at += 1;
            }
        }
    }

    fn string(&mut self, context: ValueContext) {
        let start = self.at;
        self.skip_string();
        let quoted = &self.text[start..self.at];
        if matches!(context, ValueContext::Secret | ValueContext::Count) {
            if quoted != "\"\"" {
                self.hide(start);
            }
            return;
        }
        let text: String = serde_json::from_str(quoted).unwrap_or_default();
        if let Cow::Owned(hidden) = self.mask.mask_text(&text) {
            self.replace(start, to_raw(&hidden).get());
            self.masked.push(self.path.clone());
        }
    }

    /// Replaces the value that started at `start` and ends here.
    fn hide(&mut self, start: usize) {
        self.replace(start, to_raw(REDACTED).get());
        self.masked.push(self.path.clone());
    }

    fn replace(&mut self, start: usize, json: &str) {
        self.out.push_str(&self.text[self.copied..start]);
        self.out.push_str(json);
        self.copied = self.at;
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn skip_space(&mut self) {
        self.skip_while(|byte| byte.is_ascii_whitespace());
    }

    fn skip_while(&mut self, skip: impl Fn(u8) -> bool) {
        self.at += self.text.as_bytes()[self.at..].iter().take_while(|byte| skip(**byte)).count();
    }

    /// Moves behind the string that starts here.
    fn skip_string(&mut self) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while self.at < bytes.len() && bytes[self.at] != b'"' {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
    use serde_json::Value;
    use serde_json::value::RawValue;
    use toolyard_hub::Secret;

    use super::SecretMask;

    fn mask(values: &[&str], text: &str) -> (String, Vec<String>) {
        let mask = SecretMask::with_values(values.iter().map(|value| Secret::new(*value)));
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        let masked = mask.mask_json(&raw);
        assert!(serde_json::from_str::<Value>(&masked.text).is_ok(), "{}", masked.text);
        (masked.text, masked.masked)
    }

    #[test]
    fn everything_but_the_secret_keeps_its_text() {
        let text = r#"{ "a" : 1.50, "api_key":"s3cret", "b":[ "é" , "\u00e9",{"password" :12}] }"#;
        let (masked, places) = mask(&[], text);
        let expect =
            r#"{ "a" : 1.50, "api_key":"[redacted]", "b":[ "é" , "\u00e9",{"password" :"[redacted]"}] }"#;
        assert_eq!(masked, expect);
        assert_eq!(places, ["/api_key", "/b/2/password"]);
        let plain = r#"{"jsonrpc": "2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}"#;
        assert_eq!(mask(&[], plain), (plain.to_owned(), Vec::new()));
    }

    #[test]
    fn known_values_are_masked_wherever_they_are() {
        let (masked, places) =
            mask(&["hunter22", "x\"quoted\""], r#"{"hunter22":"say hunter22!","t":"x\"quoted\""}"#);
        assert_eq!(masked, r#"{"[redacted]":"say [redacted]!","t":"[redacted]"}"#);
        assert_eq!(places, ["/hunter22", "/t"]);
        assert_eq!(mask(&["short"], r#"["short"]"#).0, r#"["short"]"#);
    }

    #[test]
    fn schemas_and_counts_are_not_secrets() {
        let schema = r#"{"inputSchema":{"properties":{"token":{"type":"string"},"maxTokens":{"type":"number"}}},"maxTokens":100,"usage":{"tokens":[1,2]}}"#;
        assert_eq!(mask(&[], schema), (schema.to_owned(), Vec::new()));
        let values =
            r#"{"properties":{"token":"abc"},"tokens":["abc"],"credentials":{"user":"u","n":1,"on":true}}"#;
        let (masked, places) = mask(&[], values);
        let expect = r#"{"properties":{"token":"[redacted]"},"tokens":["[redacted]"],"credentials":{"user":"[redacted]","n":"[redacted]","on":true}}"#;
        assert_eq!(masked, expect);
        assert_eq!(places, ["/properties/token", "/tokens/0", "/credentials/user", "/credentials/n"]);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let key = prop::sample::select(vec!["a", "token", "properties", "maxTokens", "~/", "password"]);
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[a-z ]{0,8}(hunter22)?[\"\\\\é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(key.clone(), inner, 0..4).prop_map(|members| Value::Object(
                    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_message_stays_json_and_only_masked_places_change(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let (masked, places) = mask(&["hunter22"], &text.unwrap());
            assert!(!masked.contains("hunter22"), "{masked}");
            let mut masked: Value = serde_json::from_str(&masked).unwrap();
            for place in &places {
                *masked.pointer_mut(place).unwrap() = value.pointer(place).unwrap().clone();
            }
            assert_eq!(masked, value);
        }
    }

    #[test]
    fn tokens_in_texts_are_masked() {
        let (masked, places) = mask(&[], r#"{"text":"Authorization: Bearer abcdef1234567890"}"#);
        assert_eq!(masked, r#"{"text":"Authorization: [redacted]"}"#);
        assert_eq!(places, ["/text"]);
    }
}
