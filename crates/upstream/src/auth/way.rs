//! How we prove who we are to one server, as its settings have it.

use reqwest::Url;
use toolyard_hub::Secret;

use super::store::Key;
use crate::settings::{AuthSettings, OAuthSettings, ServerSettings, TransportSettings};

#[derive(Debug)]
pub(super) enum Way {
    /// Not at all: there is no HTTP.
    None,
    /// With something that is configured and does not change: a token, or a header written by hand.
    Fixed(Option<Secret>),
    OAuth {
        key: Key,
        resource: Url,
        oauth: OAuthSettings,
    },
    /// Its address is wrong, which connecting will say.
    Nowhere,
}

impl Way {
    pub(super) fn of(settings: &ServerSettings) -> Self {
        let TransportSettings::Url(url) = &settings.transport else { return Self::None };
        // Whoever writes the header by hand has decided how this is done.
        let by_hand = url.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let oauth = match &settings.auth {
            AuthSettings::Bearer(token) => return Self::Fixed(Some(token.clone())),
            AuthSettings::WhenAsked if by_hand => return Self::Fixed(None),
            AuthSettings::WhenAsked => OAuthSettings::default(),
            AuthSettings::OAuth(oauth) => oauth.clone(),
        };
        match Url::parse(&url.url) {
            Ok(resource) => Self::OAuth { key: Key::new(&settings.name, &url.url), resource, oauth },
            Err(_) => Self::Nowhere,
        }
    }
}
