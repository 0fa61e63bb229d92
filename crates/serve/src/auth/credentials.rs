//! Somebody who comes in once and stays: a socket. What let them in may expire, or be taken from the configuration, while
//! they are here.

use toolyard_hub::Principal;

use super::AuthPolicy;
use super::rejection::RejectionReason;

#[derive(Clone)]
pub(crate) struct ConnectionCredentials {
    policy: AuthPolicy,
    token: Option<String>,
}

impl ConnectionCredentials {
    pub(super) fn new(policy: AuthPolicy, token: Option<String>) -> Self {
        Self { policy, token }
    }

    /// Whether anything but a token can say who this is.
    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_none() && matches!(self.policy, AuthPolicy::TokenStore(_))
    }

    /// From now on this token says who it is.
    pub(crate) fn set_token(&mut self, token: String) {
        self.token = Some(token);
    }

    /// Who it is at this moment.
    pub(crate) async fn authenticate(&self) -> Result<Principal, RejectionReason> {
        match (&self.policy, &self.token) {
            (AuthPolicy::Open(principal), _) => Ok(principal.clone()),
            (AuthPolicy::TokenStore(keyring), Some(token)) => keyring.authenticate(token).await,
            (AuthPolicy::TokenStore(_), None) => Err(RejectionReason::TokenMissing),
        }
    }
}

impl std::fmt::Debug for ConnectionCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionCredentials").field("token", &self.token.is_some()).finish_non_exhaustive()
    }
}
