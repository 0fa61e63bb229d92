//! JWTs: callers identified by a trusted issuer. The signature is verified before any claim in the
//! token is used.

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

/// Maximum length of a token.
const LONGEST: usize = 16 * 1024;
/// Tolerated clock skew.
const LEEWAY: Duration = Duration::from_secs(60);
/// Maximum length of the `sub` claim.
const LONGEST_SUBJECT: usize = 256;
/// The claim that holds permissions by default.
const SCOPE: &str = "scope";

/// A trusted issuer and the permissions and limits of its callers.
#[derive(Debug)]
pub struct JwtIssuer {
    pub issuer: String,
    /// Accepted audiences. A token must name one of them.
    pub audience: Vec<String>,
    pub algorithms: Vec<Algorithm>,
    pub keys: KeySource,
    /// Permissions by claim path and claim value. If empty, the words of `scope` are permissions,
    /// except `*` and the privileged ones.
    pub claims: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    pub allowed: AllowList,
    pub bounds: ScopedLimits,
    /// URL of this server as clients know it. Default: derived from the Host header of the request.
    pub resource: Option<String>,
}

impl JwtIssuer {
    /// Returns the scopes that clients may request from the issuer.
    pub(super) fn scopes(&self) -> Vec<&str> {
        self.claims.get(SCOPE).into_iter().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// Verifies a token and returns its principal.
    pub(super) async fn verify(&self, token: &str) -> Result<Principal, RejectionReason> {
        let jwt = UnverifiedJwt::parse(token).ok_or(RejectionReason::JwtMalformed)?;
        if jwt.algorithm.eq_ignore_ascii_case("none") || jwt.signature.is_empty() {
            return Err(RejectionReason::JwtUnsigned);
        }
        let algorithm = jwt.algorithm.parse().map_err(|_| RejectionReason::JwtAlgorithm)?;
        if !self.algorithms.contains(&algorithm) {
            return Err(RejectionReason::JwtAlgorithm);
        }
        let kid = jwt.kid.as_deref();
        let keys = self.keys.keys(kid).await.ok_or(RejectionReason::JwtKeysUnavailable)?;
        keys.verify(kid, algorithm, jwt.signed.as_bytes(), &jwt.signature).map_err(|error| match error {
            SignatureError::NoSuchKey => RejectionReason::JwtKeyUnknown,
            SignatureError::Invalid => RejectionReason::JwtSignature,
        })?;
        self.validate_claims(&jwt.claims)
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
            // A token without an expiry could never be revoked.
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
        // The subject names the principal in the audit log, in logs and on screens. One subject
        // must not look like another there.
        if subject.is_empty() || subject.len() > LONGEST_SUBJECT || subject.contains(is_deceptive) {
            return Err(RejectionReason::JwtSubject);
        }
        // Names of configured tokens cannot contain a colon, so the two kinds never collide.
        let principal = Principal::new(format!("jwt:{subject}"), self.permissions(claims));
        Ok(principal.with_allow_list(self.allowed.clone()).with_limits(self.bounds.clone()))
    }

    fn permissions(&self, claims: &Value) -> Permissions {
        if self.claims.is_empty() {
            let scopes = claim_values(&claims[SCOPE], Spaces::Separate).into_iter();
            // These names may mean something else to the issuer, so they must be mapped explicitly.
            return permissions(scopes.filter(|name| name != "*" && !is_privileged(name)));
        }
        let granted = self.claims.iter().flat_map(|(path, by_value)| {
            let values = claim_values(find_claim(claims, path), Spaces::Separate).into_iter();
            values.filter_map(|value| by_value.get(&value)).flatten().cloned()
        });
        permissions(granted)
    }
}

/// Collects a list of permissions. `*` in the list grants all permissions.
pub fn permissions(list: impl IntoIterator<Item = String>) -> Permissions {
    let held: BTreeSet<String> = list.into_iter().collect();
    if held.contains("*") { Permissions::All } else { Permissions::Only(held) }
}

/// Returns the claim with this name, or else the value at this dotted path.
fn find_claim<'a>(claims: &'a Value, path: &str) -> &'a Value {
    match claims.get(path) {
        Some(value) => value,
        None => path.split('.').fold(claims, |value, step| &value[step]),
    }
}

/// Whether spaces separate values or are part of one value.
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

/// A parsed token whose signature is not verified yet.
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
        // `crit` lists extensions that a recipient must support. Toolyard supports none.
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
