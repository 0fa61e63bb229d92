//! Sealed texts: what a client carries for the yard, such as a session ID or a `requestState`, and
//! what a database keeps for it. They are encrypted and authenticated, so that neither can read or
//! change them, and every replica with the same keys can open them. What they contain belongs to
//! the code that seals them.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hmac::{self, HMAC_SHA256};
use toolyard_random::RandomError;

/// Longer identifiers than this are not read. They travel in HTTP headers.
const LONGEST_IDENTIFIER: usize = 4_096;
/// Longer records than this are not read.
const LONGEST_RECORD: usize = 1 << 20;
const SALT: usize = 16;
/// The minimum length of a configured secret, in bytes.
pub const SHORTEST_SECRET: usize = 32;

/// What a text is for. One that was sealed for another purpose cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Session,
    RequestState,
    Forward,
    /// A request of a replica itself to another one.
    ReplicaRequest,
    /// A request for the events of a replica, which only another replica may make.
    Feed,
    /// A login to a server.
    Login,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Session => b"toolyard session 1",
            Self::RequestState => b"toolyard request state 1",
            Self::Forward => b"toolyard forward 1",
            Self::ReplicaRequest => b"toolyard replica request 1",
            Self::Feed => b"toolyard feed 1",
            Self::Login => b"toolyard login 1",
        }
    }

    fn longest(self) -> usize {
        match self {
            Self::Session | Self::RequestState | Self::Forward | Self::ReplicaRequest | Self::Feed => {
                LONGEST_IDENTIFIER
            }
            Self::Login => LONGEST_RECORD,
        }
    }
}

/// A secret that is too short to be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must have at least {SHORTEST_SECRET} bytes")]
pub struct ShortSecret;

/// The content of a sealed text.
#[derive(PartialEq, Eq)]
pub struct OpenedText {
    pub content: Vec<u8>,
    /// Whether the text should be sealed again, because its key is not the first one.
    pub is_outdated: bool,
}

impl std::fmt::Debug for OpenedText {
    /// The content is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedText").field("is_outdated", &self.is_outdated).finish_non_exhaustive()
    }
}

/// The keys of a yard. The first one seals; all of them open, so that keys can be replaced one
/// replica at a time. Clones share the keys.
#[derive(Clone)]
pub struct SealingKeys(Arc<[hmac::Key]>);

impl SealingKeys {
    /// Creates a random key, for a yard that runs as one process.
    pub fn generate() -> Result<Self, RandomError> {
        let secret = toolyard_random::bytes::<32>()?;
        Ok(Self([hmac::Key::new(HMAC_SHA256, &secret)].into()))
    }

    /// Creates the keys of a yard with several replicas from their configured secrets.
    pub fn from_secrets<S: AsRef<str>>(secrets: &[S]) -> Result<Self, ShortSecret> {
        if secrets.is_empty() || secrets.iter().any(|secret| secret.as_ref().len() < SHORTEST_SECRET) {
            return Err(ShortSecret);
        }
        let key = |secret: &S| hmac::Key::new(HMAC_SHA256, secret.as_ref().as_bytes());
        Ok(Self(secrets.iter().map(key).collect()))
    }

    /// Returns a short text that is the same for everyone who has the same first key. It reveals
    /// nothing about the key.
    pub fn fingerprint(&self) -> String {
        let tag = self.0.first().map(|key| hmac::sign(key, b"toolyard fingerprint 1"));
        tag.map(|tag| URL_SAFE_NO_PAD.encode(&tag.as_ref()[..9])).unwrap_or_default()
    }

    /// Encrypts and authenticates the content. The text has only characters that an HTTP header can
    /// contain.
    pub fn seal(&self, purpose: Purpose, content: &[u8]) -> Result<String, RandomError> {
        self.seal_for(purpose, "", content)
    }

    /// Like [`Self::seal`], for one owner. The text cannot be opened as that of another owner.
    pub fn seal_for(&self, purpose: Purpose, owner: &str, content: &[u8]) -> Result<String, RandomError> {
        let salt = toolyard_random::bytes::<SALT>()?;
        let key = self.0.first().and_then(|key| message_key(key, purpose, &salt)).ok_or(RandomError)?;
        let mut sealed = content.to_vec();
        key.seal_in_place_append_tag(nonce(), Aad::from(context(purpose, owner)), &mut sealed)
            .map_err(|_| RandomError)?;
        Ok(URL_SAFE_NO_PAD.encode([salt.as_slice(), &sealed].concat()))
    }

    /// Returns the content, or `None` if the text was not sealed for this purpose with one of the
    /// keys.
    pub fn open(&self, purpose: Purpose, text: &str) -> Option<Vec<u8>> {
        self.open_for(purpose, "", text).map(|opened| opened.content)
    }

    /// Like [`Self::open`], for a text that was sealed for this owner.
    pub fn open_for(&self, purpose: Purpose, owner: &str, text: &str) -> Option<OpenedText> {
        if text.len() > purpose.longest() {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (salt, sealed) = bytes.split_at_checked(SALT)?;
        self.0.iter().enumerate().find_map(|(at, key)| {
            let mut sealed = sealed.to_vec();
            let content = message_key(key, purpose, salt)?
                .open_in_place(nonce(), Aad::from(context(purpose, owner)), &mut sealed)
                .ok()?;
            Some(OpenedText { content: content.to_vec(), is_outdated: at > 0 })
        })
    }
}

/// Derives the key of one message. A random nonce of 96 bits could repeat within the lifetime of a
/// configured key; a key derived from 128 random bits does not, so its nonce can be constant.
fn message_key(key: &hmac::Key, purpose: Purpose, salt: &[u8]) -> Option<LessSafeKey> {
    let derived = hmac::sign(key, &[purpose.label(), salt].concat());
    UnboundKey::new(&CHACHA20_POLY1305, derived.as_ref()).ok().map(LessSafeKey::new)
}

/// Returns what is authenticated together with the content.
fn context(purpose: Purpose, owner: &str) -> Cow<'static, [u8]> {
    match owner {
        "" => Cow::Borrowed(purpose.label()),
        owner => Cow::Owned([purpose.label(), owner.as_bytes()].concat()),
    }
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

impl std::fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealingKeys").field("keys", &self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{OpenedText, Purpose, SHORTEST_SECRET, SealingKeys, ShortSecret};

    const OLD: &str = "the old secret of this cluster, 0123456789";
    const NEW: &str = "the new secret of this cluster, 0123456789";

    fn keys(secrets: &[&str]) -> SealingKeys {
        SealingKeys::from_secrets(secrets).unwrap()
    }

    #[test]
    fn only_the_same_key_and_purpose_open_a_text() {
        let sealed = keys(&[OLD]).seal(Purpose::Session, b"content").unwrap();
        assert_eq!(keys(&[OLD]).open(Purpose::Session, &sealed).unwrap(), b"content");
        assert_eq!(keys(&[NEW]).open(Purpose::Session, &sealed), None);
        assert_eq!(keys(&[OLD]).open(Purpose::RequestState, &sealed), None);
        assert_eq!(SealingKeys::generate().unwrap().open(Purpose::Session, &sealed), None);
    }

    #[test]
    fn keys_rotate_without_invalidating_what_was_sealed_before() {
        let before = keys(&[OLD]).seal(Purpose::Session, b"before").unwrap();
        let after = keys(&[NEW, OLD]).seal(Purpose::Session, b"after").unwrap();
        assert_eq!(keys(&[NEW, OLD]).open(Purpose::Session, &before).unwrap(), b"before");
        assert_eq!(keys(&[OLD, NEW]).open(Purpose::Session, &after).unwrap(), b"after");
        assert_eq!(keys(&[NEW]).open(Purpose::Session, &before), None, "the old key is gone");
    }

    #[test]
    fn only_its_owner_opens_a_text() {
        let sealed = keys(&[OLD]).seal_for(Purpose::Login, "a http://a", b"token").unwrap();
        let open = |keys: &SealingKeys, owner| keys.open_for(Purpose::Login, owner, &sealed);
        let opened = |is_outdated| Some(OpenedText { content: b"token".to_vec(), is_outdated });
        assert_eq!(open(&keys(&[OLD]), "a http://a"), opened(false));
        assert_eq!(open(&keys(&[NEW, OLD]), "a http://a"), opened(true));
        assert_eq!(open(&keys(&[OLD]), "b http://a"), None);
        assert_eq!(open(&keys(&[OLD]), ""), None);
        assert_eq!(keys(&[OLD]).open(Purpose::Session, &sealed), None);
        assert!(!format!("{:?}", opened(true)).contains("116"), "the content is not shown");
    }

    #[test]
    fn a_record_may_be_longer_than_an_identifier() {
        let (keys, content) = (keys(&[OLD]), vec![b'x'; 100_000]);
        let sealed = keys.seal(Purpose::Login, &content).unwrap();
        assert_eq!(keys.open(Purpose::Login, &sealed).unwrap(), content);
        let sealed = keys.seal(Purpose::Session, &content).unwrap();
        assert_eq!(keys.open(Purpose::Session, &sealed), None);
    }

    #[test]
    fn the_same_content_never_looks_the_same() {
        let keys = keys(&[OLD]);
        let seal = || keys.seal(Purpose::Session, b"content").unwrap();
        assert_ne!(seal(), seal());
        assert!(!seal().contains("content"));
    }

    #[test]
    fn short_secrets_are_refused() {
        assert_eq!(SealingKeys::from_secrets(&["x".repeat(SHORTEST_SECRET - 1)]).unwrap_err(), ShortSecret);
        assert_eq!(SealingKeys::from_secrets::<&str>(&[]).unwrap_err(), ShortSecret);
        assert_eq!(keys(&[OLD, NEW]).fingerprint(), keys(&[OLD]).fingerprint());
        assert_ne!(keys(&[NEW]).fingerprint(), keys(&[OLD]).fingerprint());
        assert_eq!(format!("{:?}", keys(&[OLD, NEW])), "SealingKeys { keys: 2 }");
    }

    proptest! {
        #[test]
        fn a_changed_or_truncated_text_is_never_opened(
            content in proptest::collection::vec(any::<u8>(), 0..64),
            at in any::<proptest::sample::Index>(),
            flip in 1_u8..=255,
        ) {
            use base64::Engine;
            use base64::engine::general_purpose::URL_SAFE_NO_PAD;
            let keys = keys(&[OLD]);
            let sealed = keys.seal(Purpose::Session, &content).unwrap();
            prop_assert_eq!(keys.open(Purpose::Session, &sealed).unwrap(), content);
            let mut bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
            let at = at.index(bytes.len());
            prop_assert_eq!(keys.open(Purpose::Session, &URL_SAFE_NO_PAD.encode(&bytes[..at])), None);
            bytes[at] ^= flip;
            prop_assert_eq!(keys.open(Purpose::Session, &URL_SAFE_NO_PAD.encode(&bytes)), None);
        }

        #[test]
        fn garbage_is_not_opened(text in ".{0,200}") {
            prop_assert_eq!(keys(&[OLD]).open(Purpose::Session, &text), None);
        }
    }
}
