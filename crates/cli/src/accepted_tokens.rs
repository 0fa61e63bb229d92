//! The credentials that a running yard accepts: the owner's token, the tokens and JWTs of the
//! configuration, and the tokens in the database. Revocations in the database apply to all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use toolyard_cluster::{IssuedTokens, SavedToken};
use toolyard_config::{Config, TokenEntry, parse_token};
use toolyard_hub::{AllowList, Timestamp, Yard};
use toolyard_serve::{BearerCredentials, BearerToken, BearerTokenStore, JwksClient, JwtIssuer};

/// Why a token in the database is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SavedTokenError {
    /// Two tokens of one name would be one principal.
    #[error("a token of the configuration has the same name")]
    NameTaken,
    #[error("this version cannot read it: {0}")]
    Invalid(String),
}

/// Returns a token in the database as if the configuration had it.
pub(crate) fn read_saved_token(
    saved: &SavedToken,
    configured: &[TokenEntry],
) -> Result<TokenEntry, SavedTokenError> {
    let entry = parse_token(&saved.settings).map_err(SavedTokenError::Invalid)?;
    let expires = saved.expires_at.map(Timestamp).map(|time| time.to_string());
    let same = entry.name == saved.name
        && entry.digest == saved.digest
        && entry.expires.map(|time| time.to_string()) == expires;
    if !same {
        return Err(SavedTokenError::Invalid("its columns contradict its settings".to_owned()));
    }
    match configured.iter().any(|token| token.name == entry.name) {
        true => Err(SavedTokenError::NameTaken),
        false => Ok(entry),
    }
}

/// Keeps the credentials of a running yard up to date.
pub(crate) struct AcceptedTokens {
    store: BearerTokenStore,
    yard: Arc<Yard>,
    jwks: JwksClient,
    own: Vec<BearerToken>,
    current: Mutex<CurrentTokens>,
}

#[derive(Default)]
struct CurrentTokens {
    configured: Vec<TokenEntry>,
    jwt: Option<Arc<JwtIssuer>>,
    /// Whether a caller of the configuration has lists of servers or tools.
    restricted: bool,
    issued: IssuedTokens,
    /// Names of unusable tokens that have been reported.
    reported: BTreeSet<String>,
}

impl AcceptedTokens {
    pub(crate) fn new(
        store: BearerTokenStore,
        yard: Arc<Yard>,
        jwks: JwksClient,
        own: Vec<BearerToken>,
    ) -> Self {
        Self { store, yard, jwks, own, current: Mutex::default() }
    }

    /// Applies a new configuration.
    pub(crate) fn set_config(&self, config: &Config) {
        let mut current = self.current.lock();
        current.configured.clone_from(&config.access.tokens);
        let jwt = config.access.jwt.as_ref();
        current.jwt = jwt.map(|jwt| Arc::new(jwt.to_issuer(|url| self.jwks.fetcher(url))));
        current.restricted = config.access.has_allow_lists();
        self.apply(&mut current);
    }

    /// Applies a change of the database.
    pub(crate) fn set_issued(&self, issued: IssuedTokens) {
        let mut current = self.current.lock();
        current.issued = issued;
        self.apply(&mut current);
    }

    fn apply(&self, current: &mut CurrentTokens) {
        let saved = current.usable_tokens();
        let restricted = saved.iter().any(|token| token.allowed != AllowList::default());
        if current.restricted || restricted {
            self.yard.mark_callers_restricted();
        }
        let listed = current.configured.iter().chain(&saved).map(TokenEntry::to_bearer_token);
        self.store.replace(BearerCredentials {
            tokens: self.own.iter().cloned().chain(listed).collect(),
            revoked: current.issued.revoked.iter().map(|token| token.digest).collect(),
            jwt: current.jwt.clone(),
        });
    }
}

impl CurrentTokens {
    /// Returns the usable tokens of the database, and reports each other one once.
    fn usable_tokens(&mut self) -> Vec<TokenEntry> {
        let mut usable = Vec::new();
        for saved in &self.issued.saved {
            match read_saved_token(saved, &self.configured) {
                Ok(entry) => usable.push(entry),
                Err(error) if self.reported.insert(saved.name.clone()) => {
                    tracing::warn!(name = saved.name, %error, "a token in the database is not accepted");
                }
                Err(_) => {}
            }
        }
        usable
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use toolyard_cluster::SavedToken;
    use toolyard_config::parse_token;

    use super::{SavedTokenError, read_saved_token};

    fn saved(name: &str, more: &str) -> SavedToken {
        let digest = "ab".repeat(32);
        SavedToken {
            name: name.to_owned(),
            digest: [0xab; 32],
            settings: format!("[[tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n{more}"),
            created_at: SystemTime::now(),
            expires_at: None,
        }
    }

    #[test]
    fn a_saved_token_is_accepted_as_it_was_saved() {
        let entry = read_saved_token(&saved("ci", "servers = [\"git\"]"), &[]).unwrap();
        assert_eq!((entry.name.as_str(), entry.digest), ("ci", [0xab; 32]));
        let bearer = entry.to_bearer_token();
        assert_eq!(format!("{bearer:?}"), "Token { principal: \"ci\", .. }");
    }

    #[test]
    fn a_saved_token_that_contradicts_itself_or_the_configuration_is_not_accepted() {
        let other = parse_token(&saved("ci", "").settings).unwrap();
        assert_eq!(read_saved_token(&saved("ci", ""), &[other]), Err(SavedTokenError::NameTaken));
        let unknown = read_saved_token(&saved("ci", "paths = []"), &[]).unwrap_err();
        assert_eq!(unknown, SavedTokenError::Invalid("unknown key `paths`".to_owned()));
        let contradiction = SavedTokenError::Invalid("its columns contradict its settings".to_owned());
        for token in [
            SavedToken { name: "chief".to_owned(), ..saved("ci", "") },
            SavedToken { digest: [0; 32], ..saved("ci", "") },
            SavedToken { expires_at: Some(SystemTime::now()), ..saved("ci", "") },
            saved("ci", "expires = \"2030-01-01T00:00:00Z\""),
        ] {
            assert_eq!(read_saved_token(&token, &[]), Err(contradiction.clone()), "{token:?}");
        }
    }
}
