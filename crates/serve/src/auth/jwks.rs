//! The public keys of a JWT issuer (JWKS): parsed once from text, or fetched from a URL when they
//! are needed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use toolyard_hub::BoxFuture;

use super::algorithm::Algorithm;

mod fetch;

pub use fetch::JwksClient;

/// Maximum number of keys that are read from a key set.
const MOST_KEYS: usize = 100;
/// Keys older than this are fetched again.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// How long cached keys stay valid if they cannot be fetched again.
const GOOD: Duration = Duration::from_secs(24 * 60 * 60);
/// Minimum time between two fetches, however many tokens with unknown keys arrive.
const BETWEEN: Duration = Duration::from_secs(30);
/// Minimum time between two fetches while no keys are cached.
const BETWEEN_FIRST: Duration = Duration::from_secs(5);

/// A set of public keys. Keys of unsupported types, including symmetric keys, are left out.
#[derive(Debug, Clone, Default)]
pub struct Jwks {
    keys: Vec<Key>,
}

#[derive(Debug, Clone)]
struct Key {
    kid: Option<String>,
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Clone)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rsa { .. } => "Rsa",
            Self::P256(_) => "P256",
            Self::P384(_) => "P384",
            Self::Ed25519(_) => "Ed25519",
        })
    }
}

/// Why a signature is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureError {
    NoSuchKey,
    Invalid,
}

impl Jwks {
    /// Parses a JWK Set (RFC 7517).
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
        let listed = value["keys"].as_array().ok_or("missing array `keys`")?;
        let keys: Vec<Key> = listed.iter().take(MOST_KEYS).filter_map(Key::read).collect();
        if keys.is_empty() {
            return Err("contains no supported public key".to_owned());
        }
        Ok(Self { keys })
    }

    /// Verifies a signature with the key that has this ID. Without an ID, exactly one key must fit.
    pub(super) fn verify(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureError> {
        let fits = |key: &&Key| key.fits(algorithm) && (kid.is_none() || key.kid.as_deref() == kid);
        let mut fitting = self.keys.iter().filter(fits);
        let key = fitting.next().ok_or(SignatureError::NoSuchKey)?;
        if kid.is_none() && fitting.next().is_some() {
            return Err(SignatureError::NoSuchKey);
        }
        if key.verify(algorithm, signed, signature) { Ok(()) } else { Err(SignatureError::Invalid) }
    }

    fn has_key(&self, kid: Option<&str>) -> bool {
        kid.is_none() || self.keys.iter().any(|key| key.kid.as_deref() == kid)
    }
}

impl Key {
    fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str();
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            let whole = [&[4][..], &x, &y].concat();
            (x.len() == size && y.len() == size).then_some(whole)
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa { n: bytes("n")?, e: bytes("e")? },
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            _ => return None,
        };
        let algorithm = match text("alg") {
            Some(name) => Some(name.parse().ok()?),
            None => None,
        };
        Some(Self { kid: text("kid").map(ToOwned::to_owned), algorithm, material })
    }

    /// Returns whether the key may be used with this algorithm, whatever the token states.
    fn fits(&self, algorithm: Algorithm) -> bool {
        use Algorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        let kind = matches!(
            (&self.material, algorithm),
            (Material::Rsa { .. }, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512)
                | (Material::P256(_), Es256)
                | (Material::P384(_), Es384)
                | (Material::Ed25519(_), EdDsa)
        );
        kind && self.algorithm.is_none_or(|only| only == algorithm)
    }

    fn verify(&self, algorithm: Algorithm, signed: &[u8], signature_bytes: &[u8]) -> bool {
        match (&self.material, algorithm.rsa_parameters()) {
            (Material::Rsa { n, e }, Some(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, signed, signature_bytes).is_ok()
            }
            (Material::Rsa { .. }, None) => false,
            (Material::P256(point), _) => {
                check(&signature::ECDSA_P256_SHA256_FIXED, point, signed, signature_bytes)
            }
            (Material::P384(point), _) => {
                check(&signature::ECDSA_P384_SHA384_FIXED, point, signed, signature_bytes)
            }
            (Material::Ed25519(point), _) => check(&signature::ED25519, point, signed, signature_bytes),
        }
    }
}

fn check(
    algorithm: &'static dyn signature::VerificationAlgorithm,
    point: &[u8],
    signed: &[u8],
    signature: &[u8],
) -> bool {
    UnparsedPublicKey::new(algorithm, point).verify(signed, signature).is_ok()
}

/// Fetches the key set of an issuer as text.
pub type JwksFetcher = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Where the keys of an issuer come from.
pub enum KeySource {
    Fixed(Arc<Jwks>),
    Fetched(FetchedKeys),
}

/// Keys that are fetched when they are first needed, cached, and refreshed.
pub struct FetchedKeys {
    fetch: JwksFetcher,
    cached: ArcSwapOption<(Jwks, Instant)>,
    /// Time of the last fetch. The lock is held during a fetch, so that only one runs at a time.
    last_fetch: Mutex<Option<Instant>>,
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed",
            Self::Fetched(_) => "Fetched",
        })
    }
}

impl fmt::Debug for FetchedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FetchedKeys")
    }
}

impl KeySource {
    pub fn fixed(keys: Jwks) -> Self {
        Self::Fixed(Arc::new(keys))
    }

    pub fn fetched(fetch: JwksFetcher) -> Self {
        Self::Fetched(FetchedKeys { fetch, cached: ArcSwapOption::empty(), last_fetch: Mutex::default() })
    }

    /// Returns the keys, including the one with this ID if the issuer has it. Returns `None` if the
    /// keys cannot be fetched.
    pub(super) async fn keys(&self, kid: Option<&str>) -> Option<Arc<Jwks>> {
        match self {
            Self::Fixed(keys) => Some(Arc::clone(keys)),
            Self::Fetched(fetched) => fetched.keys(kid).await,
        }
    }
}

impl FetchedKeys {
    async fn keys(&self, kid: Option<&str>) -> Option<Arc<Jwks>> {
        let fresh =
            || self.cached.load_full().filter(|known| known.1.elapsed() < FRESH && known.0.has_key(kid));
        if fresh().is_none() {
            let usable =
                self.cached.load_full().filter(|known| known.1.elapsed() < GOOD && known.0.has_key(kid));
            let last_fetch = match usable {
                // During a fetch, other callers use the cached keys.
                Some(_) => self.last_fetch.try_lock().ok(),
                None => Some(self.last_fetch.lock().await),
            };
            // Another caller may have fetched the keys while this one waited for the lock.
            let between = if self.cached.load().is_some() { BETWEEN } else { BETWEEN_FIRST };
            if let Some(mut last_fetch) = last_fetch
                && fresh().is_none()
                && last_fetch.is_none_or(|at| at.elapsed() >= between)
            {
                *last_fetch = Some(Instant::now());
                self.refresh().await;
            }
        }
        self.cached
            .load_full()
            .filter(|known| known.1.elapsed() < GOOD)
            .map(|known| Arc::new(known.0.clone()))
    }

    async fn refresh(&self) {
        match (self.fetch)().await.and_then(|text| Jwks::parse(&text)) {
            Ok(keys) => self.cached.store(Some(Arc::new((keys, Instant::now())))),
            Err(error) => tracing::warn!(error, "cannot fetch the JWT issuer's keys"),
        }
    }
}
