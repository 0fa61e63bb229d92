//! Redaction: the one place that knows what a secret looks like. The audit, the history, transcripts, status texts and
//! the log show nothing that has not been through here.
//!
//! Keys are judged by their words; what stands under a key that names a secret is replaced. Texts are searched for
//! headers, parameters, passwords in addresses and tokens that can be told by their form.

mod json;
mod text;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

/// What stands in place of a secret.
const HIDDEN: &str = "[redacted]";

/// Parts of keys that name secrets wherever they stand, in lower case and without what joins words.
const ANYWHERE: [&str; 19] = [
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
    "sessionid",
    "sessid",
    "authkey",
    "authcode",
    "otpcode",
];

/// Words that name secrets when they are whole words of a key: `author`, `sessions` and `hotplug` name none.
const WHOLE: [&str; 7] = ["auth", "oauth", "jwt", "session", "otp", "totp", "hotp"];

/// What comes behind such a word in a key that only says something about the secret.
const DESCRIPTIVE: [&str; 26] = [
    "count",
    "counts",
    "type",
    "method",
    "methods",
    "mode",
    "url",
    "uri",
    "endpoint",
    "server",
    "status",
    "state",
    "provider",
    "scheme",
    "schemes",
    "required",
    "enabled",
    "supported",
    "timeout",
    "ttl",
    "length",
    "limit",
    "duration",
    "expires",
    "expiry",
    "name",
];

/// Keys of the protocol itself that sound like secrets.
const PROTOCOL: [&str; 1] = ["progressToken"];

/// Which values are hidden.
#[derive(Debug, Clone)]
pub struct Redaction {
    substrings: Vec<String>,
}

impl Default for Redaction {
    fn default() -> Self {
        Self::with_extra_words([])
    }
}

impl Redaction {
    /// The usual ones, and those whose key has one of these words in it.
    pub fn with_extra_words<'a>(more: impl IntoIterator<Item = &'a str>) -> Self {
        let more = more.into_iter().map(normalize_key).filter(|word| !word.is_empty());
        Self { substrings: ANYWHERE.iter().map(|word| (*word).to_owned()).chain(more).collect() }
    }

    /// Whether the value under this key is hidden.
    pub fn is_secret_key(&self, key: &str) -> bool {
        if PROTOCOL.contains(&key) {
            return false;
        }
        let joined = normalize_key(key);
        self.substrings.iter().any(|word| joined.contains(word.as_str())) || has_secret_word(key)
    }

    /// JSON on one line, with the secrets hidden: values by their keys, texts as [`Self::redact_text`] does. The text must be
    /// JSON, or the beginning of some; of other text nothing is promised but that nothing breaks.
    pub fn redact_json(&self, json: &str) -> String {
        json::redact(self, json)
    }

    /// A text with the secrets hidden that can be told by how they are introduced or by their form.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text::redact(self, text)
    }

    /// A message of a protocol: JSON, or whatever else was said instead.
    pub fn redact_message(&self, text: &str) -> String {
        match text.trim_start().as_bytes().first() {
            Some(b'{' | b'[') => self.redact_json(text),
            _ => self.redact_text(text).into_owned(),
        }
    }
}

/// A word without what joins the parts of names: `API-Key`, `api_key` and `apiKey` are the same.
fn normalize_key(word: &str) -> String {
    word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn has_secret_word(key: &str) -> bool {
    let words = words(key);
    words.iter().enumerate().any(|(at, word)| {
        let word = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let describes = words.get(at + 1).is_some_and(|next| DESCRIPTIVE.contains(&next.as_str()));
        WHOLE.contains(&word) && !describes
    })
}

/// The words of a key, in lower case: `X-Auth`, `x_auth` and `xAuth` have the same two, and so has `userOTP`.
fn words(key: &str) -> Vec<String> {
    let letters: Vec<char> = key.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                let last_of_run = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
                before.is_lowercase() || before.is_numeric() || (before.is_uppercase() && last_of_run)
            });
        if (begins || !letter.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
