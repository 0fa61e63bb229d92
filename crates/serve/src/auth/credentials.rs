//! Credentials of a long-lived connection. They can expire or be removed from the configuration
//! while the connection is open.

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

    /// Returns whether the connection still needs to send a token.
    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_none() && matches!(self.policy, AuthPolicy::TokenStore(_))
    }

    pub(crate) fn set_token(&mut self, token: String) {
        self.token = Some(token);
    }

    /// Returns the principal that the credentials identify now.
    pub(crate) async fn authenticate(&self) -> Result<Principal, RejectionReason> {
        match (&self.policy, &self.token) {
            (AuthPolicy::Open(principal), _) => Ok(principal.clone()),
            (AuthPolicy::TokenStore(store), Some(token)) => store.authenticate(token).await,
            (AuthPolicy::TokenStore(_), None) => Err(RejectionReason::TokenMissing),
        }
    }
}

impl std::fmt::Debug for ConnectionCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionCredentials").field("token", &self.token.is_some()).finish_non_exhaustive()
    }
}
