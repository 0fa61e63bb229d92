//! The authentication method for one server, derived from its settings.

use reqwest::Url;
use toolyard_hub::{CredentialKey, Secret};

use crate::settings::{OAuthSettings, ServerAuthSettings, ServerSettings, TransportSettings};

#[derive(Debug)]
pub(super) enum AuthMethod {
    /// None, because the transport is not HTTP.
    None,
    /// Static configuration: a token, or an `Authorization` header.
    Static(Option<Secret>),
    OAuth {
        key: CredentialKey,
        resource: Url,
        oauth: OAuthSettings,
    },
    /// The URL is invalid. Connecting reports the error.
    InvalidUrl,
}

impl AuthMethod {
    pub(super) fn from_settings(settings: &ServerSettings) -> Self {
        let TransportSettings::Url(url) = &settings.transport else { return Self::None };
        // A configured `Authorization` header takes precedence over OAuth.
        let has_header = url.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let oauth = match &settings.auth {
            ServerAuthSettings::Bearer(token) => return Self::Static(Some(token.clone())),
            ServerAuthSettings::OnChallenge if has_header => return Self::Static(None),
            ServerAuthSettings::OnChallenge => OAuthSettings::default(),
            ServerAuthSettings::OAuth(oauth) => oauth.clone(),
        };
        match Url::parse(&url.url) {
            Ok(resource) => {
                Self::OAuth { key: CredentialKey::new(&settings.name, &url.url), resource, oauth }
            }
            Err(_) => Self::InvalidUrl,
        }
    }
}
