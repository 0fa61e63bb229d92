//! The public keys of an issuer of JWTs: read once from a text, or fetched from an address when they
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

/// More keys than that are nobody's.
const MOST_KEYS: usize = 100;
/// Keys are asked for again when they are older than this.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Where they cannot be had, the old ones are good for so long.
const GOOD: Duration = Duration::from_secs(24 * 60 * 60);
/// However many tokens with unknown keys come in, the issuer is not asked more often than this.
const BETWEEN: Duration = Duration::from_secs(30);
/// The same where nothing is known yet.
const BETWEEN_FIRST: Duration = Duration::from_secs(5);

/// Public keys. Those of a kind that is not known are left out, symmetric ones among them.
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

/// Why a signature is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureError {
    NoSuchKey,
    Invalid,
}

impl Jwks {
    /// Reads a set of keys, RFC 7517.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        let listed = value["keys"].as_array().ok_or("it has no list `keys`")?;
        let keys: Vec<Key> = listed.iter().take(MOST_KEYS).filter_map(Key::read).collect();
        if keys.is_empty() {
            return Err("there is no public key in it that can be used".to_owned());
        }
        Ok(Self { keys })
    }

    /// Whether the key of this name signed this text. Without a name there must be one key only that could have.
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

    /// A key is used for nothing but what it is for, whatever a token says.
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

    fn verify(&self, algorithm: Algorithm, signed: &[u8], given: &[u8]) -> bool {
        match (&self.material, algorithm.rsa_parameters()) {
            (Material::Rsa { n, e }, Some(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, signed, given).is_ok()
            }
            (Material::Rsa { .. }, None) => false,
            (Material::P256(point), _) => check(&signature::ECDSA_P256_SHA256_FIXED, point, signed, given),
            (Material::P384(point), _) => check(&signature::ECDSA_P384_SHA384_FIXED, point, signed, given),
            (Material::Ed25519(point), _) => check(&signature::ED25519, point, signed, given),
        }
    }
}

fn check(
    how: &'static dyn signature::VerificationAlgorithm,
    point: &[u8],
    signed: &[u8],
    given: &[u8],
) -> bool {
    UnparsedPublicKey::new(how, point).verify(signed, given).is_ok()
}

/// Asks the issuer for the text of its keys.
pub type JwksFetcher = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Where the keys come from.
pub enum KeySource {
    Fixed(Arc<Jwks>),
    Fetched(FetchedKeys),
}

/// Keys that are asked for when they are needed, kept, and asked for again.
pub struct FetchedKeys {
    fetch: JwksFetcher,
    cached: ArcSwapOption<(Jwks, Instant)>,
    /// When the issuer was last asked. Whoever asks holds this, so that nobody asks at the same time.
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

    /// The keys, with the one of this name among them if the issuer has it. Nothing if they cannot be had.
    pub(super) async fn keys(&self, kid: Option<&str>) -> Option<Arc<Jwks>> {
        match self {
            Self::Fixed(keys) => Some(Arc::clone(keys)),
            Self::Fetched(fetched) => fetched.keys(kid).await,
        }
    }
}

impl FetchedKeys {
    async fn keys(&self, kid: Option<&str>) -> Option<Arc<Jwks>> {
        let fine =
            || self.cached.load_full().filter(|known| known.1.elapsed() < FRESH && known.0.has_key(kid));
        if fine().is_none() {
            let old =
                self.cached.load_full().filter(|known| known.1.elapsed() < GOOD && known.0.has_key(kid));
            let asked = match old {
                // While somebody asks, old keys will do for the others.
                Some(_) => self.last_fetch.try_lock().ok(),
                None => Some(self.last_fetch.lock().await),
            };
            // Somebody else may have asked meanwhile.
            let between = if self.cached.load().is_some() { BETWEEN } else { BETWEEN_FIRST };
            if let Some(mut asked) = asked
                && fine().is_none()
                && asked.is_none_or(|at| at.elapsed() >= between)
            {
                *asked = Some(Instant::now());
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
            Err(error) => tracing::warn!(error, "the keys of the issuer of JWTs cannot be had"),
        }
    }
}
