//! The accepted credentials: digests of bearer tokens, and optionally a JWT issuer. They can be
//! replaced while the server runs.

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolyard_hub::{Principal, Timestamp};

use super::jwt::JwtIssuer;
use super::rejection::RejectionReason;

/// A bearer token. Only its digest is stored.
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

    /// Creates a token from its SHA-256 digest.
    pub fn from_digest(digest: [u8; 32], principal: Principal) -> Self {
        Self { digest, principal, expires: None }
    }

    /// Makes the token expire at this time.
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

/// The replaceable credentials of one server. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub struct BearerTokenStore {
    keys: Arc<ArcSwap<BearerCredentials>>,
}

/// The credentials that a store accepts at one time.
#[derive(Debug, Clone, Default)]
pub struct BearerCredentials {
    pub tokens: Vec<BearerToken>,
    /// SHA-256 digests of tokens that are rejected, wherever they are listed.
    pub revoked: HashSet<[u8; 32]>,
    /// An issuer whose JWTs are accepted in addition to the tokens.
    pub jwt: Option<Arc<JwtIssuer>>,
}

impl BearerTokenStore {
    pub fn new(keys: BearerCredentials) -> Self {
        Self { keys: Arc::new(ArcSwap::from_pointee(keys)) }
    }

    /// Replaces all credentials.
    pub fn replace(&self, keys: BearerCredentials) {
        self.keys.store(Arc::new(keys));
    }

    pub(super) fn jwt(&self) -> Option<Arc<JwtIssuer>> {
        self.keys.load().jwt.clone()
    }

    /// Returns the principal of a token. The token is compared exactly as it was sent, including
    /// spaces and line breaks.
    pub(super) async fn authenticate(&self, secret: &str) -> Result<Principal, RejectionReason> {
        let keys = self.keys.load_full();
        let digest: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        // Compares with every token, each in constant time, so that the duration reveals nothing.
        let matching = keys.tokens.iter().fold(None, |matching, token| {
            if bool::from(token.digest.ct_eq(&digest)) { Some(token) } else { matching }
        });
        if keys.revoked.contains(&digest) {
            return Err(RejectionReason::TokenRevoked);
        }
        match (matching, &keys.jwt) {
            (Some(token), _) if token.expires.is_some_and(Timestamp::is_past) => {
                Err(RejectionReason::TokenExpired)
            }
            (Some(token), _) => Ok(token.principal.clone()),
            (None, Some(jwt)) if secret.contains('.') => jwt.verify(secret).await,
            (None, _) => Err(RejectionReason::TokenUnknown),
        }
    }
}
