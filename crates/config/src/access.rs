//! `[[tokens]]` and `[jwt]`: authentication and permissions of callers other than the owner.

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

/// A bearer token and the permissions of its holder.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(super) struct TokenKeys {
    /// Name of the token's holder, used in records and metrics. Must be unique. Required.
    name: String,
    /// SHA-256 digest of the token, in hexadecimal, as printed by `toolyard token new`. Required.
    sha256: String,
    /// Permissions of the holder; `*` grants all permissions. Default: none.
    #[serde(default)]
    permissions: Vec<String>,
    /// Glob patterns of the server names that the holder can use. All other servers are hidden.
    /// Default: all servers.
    servers: Option<Vec<String>>,
    /// Glob patterns of the full tool names that the holder can use. All other tools are hidden.
    /// Default: all tools.
    tools: Option<Vec<String>>,
    /// Expiry time (RFC 3339), such as 2027-01-31T12:00:00Z. Default: the token does not expire.
    expires: Option<String>,
    /// Limits of the holder.
    limits: Option<CallerKeys>,
}

/// A JWT issuer.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(super) struct JwtKeys {
    /// Expected `iss` claim, compared exactly. Required.
    issuer: String,
    /// Accepted audiences: the `aud` claim must contain at least one of them. A list, or one string
    /// with spaces. Required.
    audience: TextList,
    /// File with the public keys of the issuer, a JWK Set. Relative to the directory of this file;
    /// `~` is the home directory. Required unless `jwks_url` is set.
    jwks_file: Option<String>,
    /// URL of the public keys of the issuer, a JWK Set. Required unless `jwks_file` is set.
    jwks_url: Option<String>,
    /// Accepted signature algorithms. Default: all supported algorithms.
    algorithms: Option<Vec<String>>,
    /// Maps claims to permissions: claim, then claim value, then list of permissions. A dot in the
    /// claim name selects a nested claim. Default: every word of the `scope` claim is a permission,
    /// except `*` and Toolyard's own permissions (`observe`, `manage`, `spawn`, `connect`,
    /// `connect-inside`).
    #[serde(default)]
    claims: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Glob patterns of the server names that the holders can use. All other servers are hidden.
    /// Default: all servers.
    servers: Option<Vec<String>>,
    /// Glob patterns of the full tool names that the holders can use. All other tools are hidden.
    /// Default: all tools.
    tools: Option<Vec<String>>,
    /// Limits of each holder.
    limits: Option<CallerKeys>,
    /// Public base URL of this server, published in its OAuth protected resource metadata (RFC
    /// 9728). Default: the URL that the client used.
    resource: Option<String>,
}

/// Access of callers other than the owner.
#[derive(Debug, Default)]
pub struct Access {
    pub tokens: Vec<TokenEntry>,
    pub jwt: Option<JwtEntry>,
}

/// A validated entry of `[[tokens]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenEntry {
    pub name: String,
    pub digest: [u8; 32],
    pub permissions: Permissions,
    pub allowed: AllowList,
    pub bounds: ScopedLimits,
    pub expires: Option<Timestamp>,
}

/// The validated table `[jwt]`.
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
    /// Whether the owner is the only caller.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.jwt.is_none()
    }

    /// Whether some callers can use only part of the servers or tools.
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
    /// Returns the settings for the authentication middleware. `fetch` creates the fetcher for a
    /// JWKS URL.
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

/// Returns why `name` cannot be the name of a token, or `None` if it can.
pub fn check_token_name(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() || name.len() > 128 {
        return Some("must be 1 to 128 characters");
    }
    // Principals that authenticate with a JWT have names that begin with `jwt:`.
    if name.contains(|letter: char| is_deceptive(letter) || letter == ':') {
        return Some("must not contain colons, control characters or invisible characters");
    }
    (name == "owner").then_some("is reserved for the owner of the yard")
}

/// Builds the tokens and appends invalid settings to `wrong`.
pub(super) fn build_tokens(keys: Vec<TokenKeys>, wrong: &mut Vec<SettingProblem>) -> Vec<TokenEntry> {
    let mut entries: Vec<TokenEntry> = Vec::new();
    for (index, keys) in keys.into_iter().enumerate() {
        let index = index.to_string();
        let place = |key: &'static str| ["tokens", index.as_str(), key];
        if let Some(problem) = check_token_name(&keys.name) {
            wrong.push(SettingProblem::new(&place("name"), problem));
        }
        if entries.iter().any(|known| known.name == keys.name) {
            wrong.push(SettingProblem::new(&place("name"), "is already the name of another token"));
        }
        let digest = digest(&keys.sha256);
        if digest.is_none() {
            wrong.push(SettingProblem::new(&place("sha256"), "must be 64 hexadecimal digits"));
        }
        if digest.is_some_and(|digest| entries.iter().any(|known| known.digest == digest)) {
            wrong.push(SettingProblem::new(&place("sha256"), "is already the digest of another token"));
        }
        let expires = keys.expires.map(|text| text.parse::<Timestamp>());
        if let Some(Err(problem)) = &expires {
            wrong.push(SettingProblem::new(&place("expires"), format!("is not a valid time: {problem}")));
        }
        let bounds = scoped_limits(keys.limits, &place("limits"), wrong);
        entries.push(TokenEntry {
            name: keys.name,
            digest: digest.unwrap_or_default(),
            permissions: permissions(keys.permissions),
            allowed: AllowList { sources: keys.servers.map(globs), tools: keys.tools.map(globs) },
            bounds,
            expires: expires.and_then(Result::ok),
        });
    }
    entries
}

/// Returns the limits of a caller, or none if they are invalid.
fn scoped_limits(keys: Option<CallerKeys>, place: &[&str], wrong: &mut Vec<SettingProblem>) -> ScopedLimits {
    let limits = keys.unwrap_or_default();
    let problems = limits.validate(place);
    let is_valid = problems.is_empty();
    wrong.extend(problems);
    if is_valid { limits.scoped_limits() } else { ScopedLimits::default() }
}

fn digest(text: &str) -> Option<[u8; 32]> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

pub(super) fn globs(patterns: Vec<String>) -> Vec<Glob> {
    patterns.into_iter().map(Glob::from).collect()
}

/// Builds the JWT settings and appends invalid settings to `wrong`. `read` reads the file that
/// `jwks_file` names.
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
        say(
            wrong,
            "audience",
            "must not be empty: tokens issued for other services would be accepted".to_owned(),
        );
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
            say(wrong, "jwks_url", "must be an http:// or https:// URL".to_owned());
            None
        }
        (Some(_), Some(_)) | (None, None) => {
            wrong.push(SettingProblem::new(&["jwt"], "requires exactly one of `jwks_file` and `jwks_url`"));
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
                format!("is not supported: {problem}"),
            )),
        }
    }
    if keys.resource.as_deref().is_some_and(|address| !is_http_url(address)) {
        let why = "must be an http:// or https:// URL";
        wrong.push(SettingProblem::new(&["jwt", "resource"], why));
    }
    let bounds = scoped_limits(keys.limits, &["jwt", "limits"], wrong);
    Some(JwtEntry {
        issuer: keys.issuer,
        audience: keys.audience.0,
        keys: source?,
        algorithms,
        claims: keys.claims,
        allowed: AllowList { sources: keys.servers.map(globs), tools: keys.tools.map(globs) },
        bounds,
        resource: keys.resource,
    })
}
