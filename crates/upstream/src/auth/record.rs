//! The stored credentials of one server: the OAuth client that was used, and its token.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use rmcp::transport::auth::OAuthTokenResponse;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::AuthError;

/// A token that expires within this time is renewed before it is used.
const ABOUT_TO_EXPIRE: Duration = Duration::from_secs(30);

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CredentialRecord {
    /// The last challenge of the server, where discovery starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) challenge: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<KnownClient>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<OAuthToken>,
    /// The scopes that were requested with the token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) requested: Vec<String>,
    /// The scopes that the server has reported as missing since then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) missing: Vec<String>,
}

/// The OAuth client registered with one authorization server. It is never sent to another one.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownClient {
    pub(crate) issuer: String,
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
    pub(crate) redirect: String,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OAuthToken {
    access_token: String,
    token_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_in: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// In seconds since the Unix epoch.
    #[serde(default)]
    received_at: u64,
}

impl OAuthToken {
    /// Parses the response of a token endpoint.
    pub(crate) fn read(response: &[u8]) -> Result<Self, AuthError> {
        let invalid = |_| AuthError::Token("invalid token response".to_owned());
        let token: Self = serde_json::from_slice(response).map_err(invalid)?;
        if !token.token_type.eq_ignore_ascii_case("bearer") {
            let kind: String = token.token_type.chars().take(40).collect();
            return Err(AuthError::Token(format!("unsupported token type `{kind}`")));
        }
        Ok(Self { received_at: now(), ..token })
    }

    pub(crate) fn from_rmcp(response: &OAuthTokenResponse) -> Result<Self, AuthError> {
        let text = serde_json::to_vec(response).map_err(|error| AuthError::Token(error.to_string()))?;
        Self::read(&text)
    }

    pub(crate) fn to_rmcp(&self) -> Result<OAuthTokenResponse, AuthError> {
        let response = json!({
            "access_token": self.access_token, "token_type": "bearer", "refresh_token": self.refresh_token,
            "expires_in": self.expires_in, "scope": self.scope,
        });
        serde_json::from_value(response).map_err(|error| AuthError::Token(error.to_string()))
    }

    pub(crate) fn header(&self) -> Result<HeaderValue, AuthError> {
        let value = HeaderValue::try_from(format!("Bearer {}", self.access_token));
        let mut value =
            value.map_err(|_| AuthError::Token("the token is not a valid header value".to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
    }

    pub(crate) fn can_be_refreshed(&self) -> bool {
        self.refresh_token.is_some()
    }

    /// Returns when the token must be renewed, in seconds since the Unix epoch, or `u64::MAX` if
    /// its expiry is unknown.
    pub(crate) fn renew_at(&self) -> u64 {
        let lifetime = self.expires_in.filter(|_| self.received_at > 0);
        let margin = ABOUT_TO_EXPIRE.as_secs();
        lifetime.map_or(u64::MAX, |seconds| (self.received_at + seconds).saturating_sub(margin))
    }

    pub(crate) fn granted_scopes(&self, requested: &[String]) -> Vec<String> {
        match &self.scope {
            Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
            None => requested.to_vec(),
        }
    }
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the union of the lists, in order of first appearance.
pub(crate) fn merge_scopes(lists: &[&[String]]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for scope in lists.iter().flat_map(|list| list.iter()) {
        if !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    all
}

impl fmt::Debug for CredentialRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialRecord").field("requested", &self.requested).finish_non_exhaustive()
    }
}

impl fmt::Debug for KnownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownClient").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl fmt::Debug for OAuthToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthToken").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{CredentialRecord, OAuthToken, merge_scopes, now};

    fn token(text: &str) -> OAuthToken {
        OAuthToken::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_token_is_renewed_before_it_expires_and_never_if_its_expiry_is_unknown() {
        let expiring = token(r#"{"access_token": "a", "token_type": "Bearer", "expires_in": 3600}"#);
        assert!((now() + 3500..=now() + 3570).contains(&expiring.renew_at()));
        assert_eq!(token(r#"{"access_token": "a", "token_type": "bearer"}"#).renew_at(), u64::MAX);
    }

    #[test]
    fn rejects_a_token_that_is_not_a_bearer_token() {
        assert!(OAuthToken::read(br#"{"access_token": "a", "token_type": "DPoP"}"#).is_err());
        assert!(OAuthToken::read(b"<html>").is_err());
    }

    #[test]
    fn survives_the_round_trip_through_rmcp() {
        let text = r#"{"access_token": "a", "token_type": "bearer", "refresh_token": "r", "scope": "x y"}"#;
        let before = token(text);
        let after = OAuthToken::from_rmcp(&before.to_rmcp().unwrap()).unwrap();
        assert_eq!(OAuthToken { received_at: 0, ..after }, OAuthToken { received_at: 0, ..before });
    }

    #[test]
    fn debug_output_contains_no_secrets() {
        let token = token(r#"{"access_token": "s3cret", "token_type": "bearer", "refresh_token": "s3cret"}"#);
        let header = token.header().unwrap();
        let record = CredentialRecord {
            token: Some(token),
            challenge: Some("s3cret".to_owned()),
            ..CredentialRecord::default()
        };
        assert!(!format!("{record:?} {:?} {header:?}", record.token).contains("s3cret"));
    }

    #[test]
    fn scopes_add_up_in_order() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(merge_scopes(&[&list("b a"), &list("a c")]), list("b a c"));
    }
}
