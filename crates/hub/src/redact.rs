//! Redaction of secrets. This module defines what a secret looks like. The audit log, the history,
//! transcripts, status texts and the log only show text that has passed through it.
//!
//! Keys are matched by the words they consist of, and the value of a key that names a secret is
//! replaced. Text is searched for headers, parameters, passwords in URLs, and tokens that are
//! recognizable by their format.

mod json;
mod text;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

/// The replacement for a secret.
pub const REDACTED: &str = "[redacted]";

/// Parts of keys that always indicate a secret, in lowercase and without separators.
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

/// Words that indicate a secret if they are a whole word of a key. `author`, `sessions` and
/// `hotplug` do not match.
const WHOLE: [&str; 7] = ["auth", "oauth", "jwt", "session", "otp", "totp", "hotp"];

/// Suffixes of keys that describe a secret rather than contain it.
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

/// Keys of the protocol itself that look like secrets.
const PROTOCOL: [&str; 1] = ["progressToken"];

/// Which values are redacted.
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
    /// The default rules, and keys that contain one of these words.
    pub fn with_extra_words<'a>(more: impl IntoIterator<Item = &'a str>) -> Self {
        let more = more.into_iter().map(normalize_key).filter(|word| !word.is_empty());
        Self { substrings: ANYWHERE.iter().map(|word| (*word).to_owned()).chain(more).collect() }
    }

    /// Returns whether the value of this key is redacted.
    pub fn is_secret_key(&self, key: &str) -> bool {
        if PROTOCOL.contains(&key) {
            return false;
        }
        let joined = normalize_key(key);
        self.substrings.iter().any(|word| joined.contains(word.as_str())) || has_secret_word(key)
    }

    /// Redacts JSON and writes it on one line: values by their keys, strings like
    /// [`Self::redact_text`]. The input must be JSON or a prefix of JSON. For other text the result
    /// is unspecified, but the function does not panic.
    pub fn redact_json(&self, json: &str) -> String {
        json::redact(self, json)
    }

    /// Redacts secrets in a text that are recognizable by their context or their format.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text::redact(self, text)
    }

    /// Redacts a protocol message: JSON, or any other text that was sent instead.
    pub fn redact_message(&self, text: &str) -> String {
        match text.trim_start().as_bytes().first() {
            Some(b'{' | b'[') => self.redact_json(text),
            _ => self.redact_text(text).into_owned(),
        }
    }
}

/// Normalizes a word by removing separators: `API-Key`, `api_key` and `apiKey` become equal.
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

/// Splits a key into lowercase words: `X-Auth`, `x_auth` and `xAuth` have the same two, and
/// `userOTP` has two as well.
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
