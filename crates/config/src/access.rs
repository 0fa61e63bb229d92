//! `[[tokens]]` and `[jwt]`: who may come in beside the owner, and with which rights.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::HEXLOWER_PERMISSIVE;
use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_hub::printable::is_deceptive;
use toolyard_hub::{AllowList, Glob, Permissions, Principal, ScopedLimits, Timestamp};
use toolyard_serve::{Algorithm, BearerToken, Jwks, JwksFetcher, JwtIssuer, KeySource, permissions};

use super::http_syntax::is_http_url;
use super::limits::{CallerKeys, SettingProblem};
use super::risk;
use super::values::TextList;

/// One who may come in with a token.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(super) struct TokenKeys {
    /// Who has the token; records and counters go by this name.
    name: String,
    /// The SHA-256 of the token, in hexadecimal digits.
    sha256: String,
    /// What its holder may do; `*` stands for everything.
    #[serde(default)]
    permissions: Vec<String>,
    /// Globs over the names of servers: there are no others for its holder.
    servers: Option<Vec<String>>,
    /// Globs over the full names of tools: there are no others for its holder.
    tools: Option<Vec<String>>,
    /// Until when it is good, such as 2027-01-31T12:00:00Z.
    expires: Option<String>,
    /// Limits of its holder.
    limits: Option<CallerKeys>,
}

/// An issuer whose JWTs are good here.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(super) struct JwtKeys {
    /// Who issues them: `iss`, letter by letter.
    issuer: String,
    /// Whom they must be for: one of these must be in `aud`.
    audience: TextList,
    /// A file with the public keys of the issuer, a JWK set. Seen from the folder of this file.
    jwks_file: Option<String>,
    /// The address of the public keys of the issuer.
    jwks_url: Option<String>,
    /// How they may be signed.
    algorithms: Option<Vec<String>>,
    /// From claims to their values to permissions. Dots in a claim lead into objects.
    #[serde(default)]
    claims: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Globs over the names of servers: there are no others for their holders.
    servers: Option<Vec<String>>,
    /// Globs over the full names of tools: there are no others for their holders.
    tools: Option<Vec<String>>,
    /// Limits of each of their holders.
    limits: Option<CallerKeys>,
    /// The address of this server as clients know it; the one that they came by if this is not said.
    resource: Option<String>,
}

/// Who may come in beside the owner.
#[derive(Debug, Default)]
pub struct Access {
    pub tokens: Vec<TokenEntry>,
    pub jwt: Option<JwtEntry>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TokenEntry {
    pub name: String,
    pub digest: [u8; 32],
    pub permissions: Permissions,
    pub allowed: AllowList,
    pub bounds: ScopedLimits,
    pub expires: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct JwtEntry {
    issuer: String,
    audience: Vec<String>,
    keys: JwksLocation,
    algorithms: Vec<Algorithm>,
    claims: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    allowed: AllowList,
    bounds: ScopedLimits,
    resource: Option<String>,
}

#[derive(Clone)]
enum JwksLocation {
    File(Jwks),
    Url(String),
}

impl fmt::Debug for JwksLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(_) => "File",
            Self::Url(_) => "Url",
        })
    }
}

impl Access {
    /// Whether there is anybody beside the owner.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.jwt.is_none()
    }

    /// Whether there are other things for some callers than for the rest.
    pub fn has_allow_lists(&self) -> bool {
        let lists = self.tokens.iter().map(|token| &token.allowed);
        lists.chain(self.jwt.iter().map(|jwt| &jwt.allowed)).any(|list| *list != AllowList::default())
    }
}

impl TokenEntry {
    pub fn to_bearer_token(&self) -> BearerToken {
        let principal = Principal::new(self.name.as_str(), self.permissions.clone());
        let principal = principal.with_allow_list(self.allowed.clone()).with_limits(self.bounds.clone());
        let token = BearerToken::from_digest(self.digest, principal);
        self.expires.into_iter().fold(token, BearerToken::with_expiry)
    }
}

impl JwtEntry {
    /// What the door obeys; `fetch` makes what asks an address for keys.
    pub fn to_issuer(&self, fetch: impl FnOnce(&str) -> JwksFetcher) -> JwtIssuer {
        JwtIssuer {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            algorithms: self.algorithms.clone(),
            keys: match &self.keys {
                JwksLocation::File(keys) => KeySource::fixed(keys.clone()),
                JwksLocation::Url(url) => KeySource::fetched(fetch(url)),
            },
            claims: self.claims.clone(),
            allowed: self.allowed.clone(),
            bounds: self.bounds.clone(),
            resource: self.resource.clone(),
        }
    }
}

/// Why this cannot be the name of somebody with a token.
pub fn check_token_name(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() || name.len() > 128 {
        return Some("must be 1 to 128 characters");
    }
    // The names of those with a JWT begin with `jwt:`.
    if name.contains(|letter: char| is_deceptive(letter) || letter == ':') {
        return Some("must have no colon and no control or invisible character");
    }
    (name == "owner").then_some("is taken: the owner is whoever started this yard")
}

/// What the tokens mean, and what is wrong with them.
pub(super) fn build_tokens(keys: Vec<TokenKeys>, wrong: &mut Vec<SettingProblem>) -> Vec<TokenEntry> {
    let mut entries: Vec<TokenEntry> = Vec::new();
    for (index, keys) in keys.into_iter().enumerate() {
        let index = index.to_string();
        let place = |key: &'static str| ["tokens", index.as_str(), key];
        if let Some(problem) = check_token_name(&keys.name) {
            wrong.push(SettingProblem::new(&place("name"), problem));
        }
        if entries.iter().any(|known| known.name == keys.name) {
            wrong.push(SettingProblem::new(&place("name"), "is the name of another token already"));
        }
        let digest = digest(&keys.sha256);
        if digest.is_none() {
            wrong.push(SettingProblem::new(&place("sha256"), "must be 64 hexadecimal digits"));
        }
        if digest.is_some_and(|digest| entries.iter().any(|known| known.digest == digest)) {
            wrong.push(SettingProblem::new(&place("sha256"), "is the same as that of another token"));
        }
        let expires = keys.expires.map(|text| text.parse::<Timestamp>());
        if let Some(Err(problem)) = &expires {
            wrong.push(SettingProblem::new(&place("expires"), format!("is no time: {problem}")));
        }
        let limits = keys.limits.unwrap_or_default();
        wrong.extend(limits.validate(&place("limits")));
        entries.push(TokenEntry {
            name: keys.name,
            digest: digest.unwrap_or_default(),
            permissions: permissions(keys.permissions),
            allowed: AllowList { sources: keys.servers.map(globs), tools: keys.tools.map(globs) },
            bounds: limits.scoped_limits(),
            expires: expires.and_then(Result::ok),
        });
    }
    entries
}

fn digest(text: &str) -> Option<[u8; 32]> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

pub(super) fn globs(patterns: Vec<String>) -> Vec<Glob> {
    patterns.into_iter().map(Glob::from).collect()
}

/// What the table about JWTs means, and what is wrong with it. `read` reads a file that it names.
pub(super) fn build_jwt(
    keys: JwtKeys,
    read: impl FnOnce(&str) -> Result<String, String>,
    wrong: &mut Vec<SettingProblem>,
) -> Option<JwtEntry> {
    let say = |wrong: &mut Vec<SettingProblem>, key: &str, why: String| {
        wrong.push(SettingProblem::new(&["jwt", key], why))
    };
    if keys.issuer.is_empty() {
        say(wrong, "issuer", "must not be empty".to_owned());
    }
    if keys.audience.0.is_empty() {
        say(wrong, "audience", "must name somebody, or tokens for others would be good here".to_owned());
    }
    let source = match (&keys.jwks_file, &keys.jwks_url) {
        (Some(file), None) => match read(file).and_then(|text| Jwks::parse(&text)) {
            Ok(jwks) => Some(JwksLocation::File(jwks)),
            Err(problem) => {
                say(wrong, "jwks_file", format!("cannot be used: {problem}"));
                None
            }
        },
        (None, Some(url)) if is_http_url(url) => {
            wrong.extend(risk::check_jwks_url(url));
            Some(JwksLocation::Url(url.clone()))
        }
        (None, Some(_)) => {
            say(wrong, "jwks_url", "must be an address that starts with http:// or https://".to_owned());
            None
        }
        (Some(_), Some(_)) | (None, None) => {
            wrong.push(SettingProblem::new(&["jwt"], "needs one of `jwks_file` and `jwks_url`"));
            None
        }
    };
    let named =
        keys.algorithms.unwrap_or_else(|| Algorithm::ALL.map(|known| known.as_str().to_owned()).into());
    let mut algorithms = Vec::new();
    for (index, name) in named.iter().enumerate() {
        match name.parse() {
            Ok(algorithm) => algorithms.push(algorithm),
            Err(problem) => wrong.push(SettingProblem::new(
                &["jwt", "algorithms", &index.to_string()],
                format!("is not known: {problem}"),
            )),
        }
    }
    if keys.resource.as_deref().is_some_and(|address| !is_http_url(address)) {
        let why = "must be an address that starts with http:// or https://";
        wrong.push(SettingProblem::new(&["jwt", "resource"], why));
    }
    let limits = keys.limits.unwrap_or_default();
    wrong.extend(limits.validate(&["jwt", "limits"]));
    Some(JwtEntry {
        issuer: keys.issuer,
        audience: keys.audience.0,
        keys: source?,
        algorithms,
        claims: keys.claims,
        allowed: AllowList { sources: keys.servers.map(globs), tools: keys.tools.map(globs) },
        bounds: limits.scoped_limits(),
        resource: keys.resource,
    })
}
