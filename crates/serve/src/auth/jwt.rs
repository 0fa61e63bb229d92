//! JWTs: who somebody is, as an issuer that this yard trusts says it. The signature is checked before anything else in
//! the token is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use toolyard_hub::permission::is_privileged;
use toolyard_hub::printable::is_deceptive;
use toolyard_hub::{AllowList, Permissions, Principal, ScopedLimits};

use super::algorithm::Algorithm;
use super::jwks::{KeySource, SignatureError};
use super::rejection::RejectionReason;

/// Longer tokens are nobody's.
const LONGEST: usize = 16 * 1024;
/// Clocks differ by so much.
const LEEWAY: Duration = Duration::from_secs(60);
/// A longer name is no name.
const LONGEST_SUBJECT: usize = 256;
/// Where an issuer says what its tokens are good for, unless the settings say otherwise.
const SCOPE: &str = "scope";

/// An issuer that this yard trusts, and what its word is worth.
#[derive(Debug)]
pub struct JwtIssuer {
    pub issuer: String,
    /// A token must be for one of these.
    pub audience: Vec<String>,
    pub algorithms: Vec<Algorithm>,
    pub keys: KeySource,
    /// From claims, by their path, to their values, to permissions. Where this is empty, the words of `scope` are
    /// permissions, except `*` and the privileged ones.
    pub claims: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    pub allowed: AllowList,
    pub bounds: ScopedLimits,
    /// The address of this server as clients know it; the one that they came by where this is not said.
    pub resource: Option<String>,
}

impl JwtIssuer {
    /// What clients may ask the issuer for.
    pub(super) fn scopes(&self) -> Vec<&str> {
        self.claims.get(SCOPE).into_iter().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// Whom the token is about, with what they may do.
    pub(super) async fn verify(&self, token: &str) -> Result<Principal, RejectionReason> {
        let read = UnverifiedJwt::parse(token).ok_or(RejectionReason::JwtMalformed)?;
        if read.algorithm.eq_ignore_ascii_case("none") || read.signature.is_empty() {
            return Err(RejectionReason::JwtUnsigned);
        }
        let algorithm = read.algorithm.parse().map_err(|_| RejectionReason::JwtAlgorithm)?;
        if !self.algorithms.contains(&algorithm) {
            return Err(RejectionReason::JwtAlgorithm);
        }
        let kid = read.kid.as_deref();
        let keys = self.keys.keys(kid).await.ok_or(RejectionReason::JwtKeysUnavailable)?;
        keys.verify(kid, algorithm, read.signed.as_bytes(), &read.signature).map_err(|unproven| {
            match unproven {
                SignatureError::NoSuchKey => RejectionReason::JwtKeyUnknown,
                SignatureError::Invalid => RejectionReason::JwtSignature,
            }
        })?;
        self.validate_claims(&read.claims)
    }

    fn validate_claims(&self, claims: &Value) -> Result<Principal, RejectionReason> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let leeway = LEEWAY.as_secs_f64();
        if claims["iss"].as_str() != Some(self.issuer.as_str()) {
            return Err(RejectionReason::JwtIssuer);
        }
        if !claim_values(&claims["aud"], Spaces::Literal).iter().any(|name| self.audience.contains(name)) {
            return Err(RejectionReason::JwtAudience);
        }
        match &claims["exp"] {
            // A token that is good for ever cannot be taken back.
            Value::Null => return Err(RejectionReason::JwtExpired),
            expires if expires.as_f64().ok_or(RejectionReason::JwtMalformed)? + leeway <= now => {
                return Err(RejectionReason::JwtExpired);
            }
            _ => {}
        }
        if !claims["nbf"].is_null()
            && claims["nbf"].as_f64().ok_or(RejectionReason::JwtMalformed)? - leeway > now
        {
            return Err(RejectionReason::JwtNotYetValid);
        }
        let subject = claims["sub"].as_str().unwrap_or_default();
        // It names the principal in the audit, in logs and on screens, where one subject must not look like another.
        if subject.is_empty() || subject.len() > LONGEST_SUBJECT || subject.contains(is_deceptive) {
            return Err(RejectionReason::JwtSubject);
        }
        // No token of the configuration has a name with a colon, so the two are never taken for one another.
        let principal = Principal::new(format!("jwt:{subject}"), self.permissions(claims));
        Ok(principal.with_allow_list(self.allowed.clone()).with_limits(self.bounds.clone()))
    }

    fn permissions(&self, claims: &Value) -> Permissions {
        if self.claims.is_empty() {
            let scopes = claim_values(&claims[SCOPE], Spaces::Separate).into_iter();
            // The issuer means its own things by these names; the configuration has to map them.
            return permissions(scopes.filter(|name| name != "*" && !is_privileged(name)));
        }
        let granted = self.claims.iter().flat_map(|(path, by_value)| {
            let words = claim_values(find_claim(claims, path), Spaces::Separate).into_iter();
            words.filter_map(|word| by_value.get(&word)).flatten().cloned()
        });
        permissions(granted)
    }
}

/// A star among them stands for all.
pub fn permissions(list: impl IntoIterator<Item = String>) -> Permissions {
    let held: BTreeSet<String> = list.into_iter().collect();
    if held.contains("*") { Permissions::All } else { Permissions::Only(held) }
}

/// What a claim says, by its name, else by the way into objects that its dots describe.
fn find_claim<'a>(claims: &'a Value, path: &str) -> &'a Value {
    match claims.get(path) {
        Some(value) => value,
        None => path.split('.').fold(claims, |value, step| &value[step]),
    }
}

/// Whether a text with spaces is one word or several.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spaces {
    Literal,
    Separate,
}

fn claim_values(value: &Value, spaces: Spaces) -> Vec<String> {
    match value {
        Value::String(text) if spaces == Spaces::Separate => {
            text.split_whitespace().map(ToOwned::to_owned).collect()
        }
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// A token, taken apart and not believed yet.
struct UnverifiedJwt<'a> {
    algorithm: String,
    kid: Option<String>,
    signed: &'a str,
    claims: Value,
    signature: Vec<u8>,
}

impl<'a> UnverifiedJwt<'a> {
    fn parse(token: &'a str) -> Option<Self> {
        if token.len() > LONGEST {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, claims) = signed.split_once('.')?;
        let object = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
            serde_json::from_slice::<Value>(&bytes).ok().filter(Value::is_object)
        };
        let head = object(head)?;
        // What must be understood, and is not: the token says itself that it must be refused.
        if !head["crit"].is_null() {
            return None;
        }
        Some(Self {
            algorithm: head["alg"].as_str()?.to_owned(),
            kid: head["kid"].as_str().map(ToOwned::to_owned),
            signed,
            claims: object(claims)?,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
