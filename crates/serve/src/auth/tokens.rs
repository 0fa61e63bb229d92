//! Every key that opens the door: tokens, of which only digests are kept, and the issuer of JWTs if there is one. The
//! keys can be changed while the door is in use.

use std::sync::Arc;

use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolyard_hub::{Principal, Timestamp};

use super::jwt::JwtIssuer;
use super::rejection::RejectionReason;

/// A token that opens the door. Only its digest is kept.
#[derive(Clone)]
pub struct BearerToken {
    digest: [u8; 32],
    principal: Principal,
    expires: Option<Timestamp>,
}

impl BearerToken {
    pub fn new(secret: &str, principal: Principal) -> Self {
        Self::from_digest(Sha256::digest(secret.as_bytes()).into(), principal)
    }

    /// A token of which only the SHA-256 is known.
    pub fn from_digest(digest: [u8; 32], principal: Principal) -> Self {
        Self { digest, principal, expires: None }
    }

    /// The same until this moment.
    #[must_use]
    pub fn with_expiry(mut self, expires: Timestamp) -> Self {
        self.expires = Some(expires);
        self
    }
}

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("principal", &self.principal.id()).finish_non_exhaustive()
    }
}

/// The keys of one door. Clones are the same ring.
#[derive(Debug, Clone, Default)]
pub struct BearerTokenStore {
    keys: Arc<ArcSwap<BearerCredentials>>,
}

/// What hangs on a ring at one moment.
#[derive(Debug, Clone, Default)]
pub struct BearerCredentials {
    pub tokens: Vec<BearerToken>,
    /// Who else vouches for callers, if anybody does.
    pub jwt: Option<Arc<JwtIssuer>>,
}

impl BearerTokenStore {
    pub fn new(keys: BearerCredentials) -> Self {
        Self { keys: Arc::new(ArcSwap::from_pointee(keys)) }
    }

    /// From now on these keys open the door, and no others.
    pub fn replace(&self, keys: BearerCredentials) {
        self.keys.store(Arc::new(keys));
    }

    pub(super) fn jwt(&self) -> Option<Arc<JwtIssuer>> {
        self.keys.load().jwt.clone()
    }

    /// Whose token this is. It is taken as it was sent: a space or a line end more is another token.
    pub(super) async fn authenticate(&self, given: &str) -> Result<Principal, RejectionReason> {
        let keys = self.keys.load_full();
        let digest: [u8; 32] = Sha256::digest(given.as_bytes()).into();
        // Every token is compared, each in constant time: how long it takes tells nothing.
        let found = keys.tokens.iter().fold(None, |found, token| {
            if bool::from(token.digest.ct_eq(&digest)) { Some(token) } else { found }
        });
        match (found, &keys.jwt) {
            (Some(token), _) if token.expires.is_some_and(Timestamp::is_past) => {
                Err(RejectionReason::TokenExpired)
            }
            (Some(token), _) => Ok(token.principal.clone()),
            (None, Some(jwt)) if given.contains('.') => jwt.verify(given).await,
            (None, _) => Err(RejectionReason::TokenUnknown),
        }
    }
}
