//! How we prove who we are to one server, as its settings have it.

use reqwest::Url;
use toolyard_hub::Secret;

use super::store::CredentialKey;
use crate::settings::{OAuthSettings, ServerAuthSettings, ServerSettings, TransportSettings};

#[derive(Debug)]
pub(super) enum AuthMethod {
    /// Not at all: there is no HTTP.
    None,
    /// With something that is configured and does not change: a token, or a header written by hand.
    Static(Option<Secret>),
    OAuth {
        key: CredentialKey,
        resource: Url,
        oauth: OAuthSettings,
    },
    /// Its address is wrong, which connecting will say.
    InvalidUrl,
}

impl AuthMethod {
    pub(super) fn from_settings(settings: &ServerSettings) -> Self {
        let TransportSettings::Url(url) = &settings.transport else { return Self::None };
        // Whoever writes the header by hand has decided how this is done.
        let by_hand = url.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let oauth = match &settings.auth {
            ServerAuthSettings::Bearer(token) => return Self::Static(Some(token.clone())),
            ServerAuthSettings::OnChallenge if by_hand => return Self::Static(None),
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
