//! Somebody who comes in once and stays: a socket. What let them in may expire, or be taken from the configuration, while
//! they are here.

use toolyard_hub::Principal;

use super::Lock;
use super::turned::Reason;

#[derive(Clone)]
pub(crate) struct Visitor {
    lock: Lock,
    token: Option<String>,
}

impl Visitor {
    pub(super) fn new(lock: Lock, token: Option<String>) -> Self {
        Self { lock, token }
    }

    /// Whether anything but a token can say who this is.
    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_none() && matches!(self.lock, Lock::Keyring(_))
    }

    /// From now on this token says who it is.
    pub(crate) fn show(&mut self, token: String) {
        self.token = Some(token);
    }

    /// Who it is at this moment.
    pub(crate) async fn principal(&self) -> Result<Principal, Reason> {
        match (&self.lock, &self.token) {
            (Lock::Open(principal), _) => Ok(principal.clone()),
            (Lock::Keyring(keyring), Some(token)) => keyring.open(token).await,
            (Lock::Keyring(_), None) => Err(Reason::TokenMissing),
        }
    }
}

impl std::fmt::Debug for Visitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visitor").field("token", &self.token.is_some()).finish_non_exhaustive()
    }
}
