//! The ID of a session in a yard with several replicas. It contains everything that another replica
//! needs to continue the session, encrypted and authenticated.

use std::time::Duration;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolyard_hub::{Principal, ReplicaId};
use toolyard_random::RandomError;
use toolyard_seal::{Purpose, SealingKeys};
use toolyard_wire::{ClientProfile, Version};

use super::unix_time;

/// How long a session ID is valid. A client gets a new one with `initialize`.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// The content of a session ID. It travels with every request, so its names are short.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SealedSession {
    /// Label.
    l: String,
    /// The replica that opened the session.
    o: String,
    /// Path of the endpoint.
    e: String,
    /// Digest of the principal.
    p: String,
    /// Protocol version.
    v: String,
    /// Capabilities of the client: form elicitation, URL elicitation, sampling, roots.
    c: [bool; 4],
    /// Expiry in seconds since 1970.
    x: u64,
}

/// Why a session ID is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionIdError {
    /// It was not sealed by this yard, or for another principal or endpoint.
    Invalid,
    Expired,
}

impl SealedSession {
    pub(super) fn new(
        opener: &ReplicaId,
        path: &str,
        caller: &Principal,
        (version, client): (Version, &ClientProfile),
    ) -> Result<Self, RandomError> {
        Ok(Self {
            l: toolyard_random::hex_id()?,
            o: opener.as_str().to_owned(),
            e: path.to_owned(),
            p: digest(caller),
            v: version.as_str().to_owned(),
            c: [client.elicit_form, client.elicit_url, client.sample, client.roots],
            x: unix_time() + LIFETIME.as_secs(),
        })
    }

    pub(super) fn seal(&self, keys: &SealingKeys) -> Result<String, RandomError> {
        keys.seal(Purpose::Session, &serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn open(
        keys: &SealingKeys,
        id: &str,
        path: &str,
        caller: &Principal,
        now: u64,
    ) -> Result<Self, SessionIdError> {
        let content = keys.open(Purpose::Session, id).ok_or(SessionIdError::Invalid)?;
        let session: Self = serde_json::from_slice(&content).map_err(|_| SessionIdError::Invalid)?;
        if session.e != path || session.p != digest(caller) {
            return Err(SessionIdError::Invalid);
        }
        if session.x < now {
            return Err(SessionIdError::Expired);
        }
        Ok(session)
    }

    /// The ID of the session for people and for the shared store.
    pub(super) fn label(&self) -> &str {
        &self.l
    }

    pub(super) fn opener(&self) -> ReplicaId {
        ReplicaId::new(&self.o)
    }

    pub(super) fn version(&self) -> Option<Version> {
        Version::parse(&self.v)
    }

    /// Returns the capabilities of the client. Its name and version are not included, because
    /// nothing depends on them.
    pub(super) fn client(&self) -> ClientProfile {
        let [elicit_form, elicit_url, sample, roots] = self.c;
        ClientProfile { info: None, elicit_form, elicit_url, sample, roots }
    }
}

/// Returns a digest of the principal's ID, because an ID can be too long for a header.
fn digest(principal: &Principal) -> String {
    HEXLOWER.encode(&Sha256::digest(principal.id())[..16])
}

#[cfg(test)]
mod tests {
    use toolyard_hub::{Permissions, Principal, ReplicaId};
    use toolyard_seal::SealingKeys;
    use toolyard_wire::{ClientProfile, Version};

    use super::{LIFETIME, SealedSession, SessionIdError};
    use crate::replicas::unix_time;

    #[test]
    fn a_session_id_is_valid_for_one_principal_one_endpoint_and_a_limited_time() {
        let keys = SealingKeys::generate().unwrap();
        let principal = |id: &str| Principal::new(id, Permissions::All);
        let client = ClientProfile { elicit_form: true, roots: true, ..ClientProfile::default() };
        let (opener, about) = (ReplicaId::new("r1"), (Version::V2025_06_18, &client));
        let session = SealedSession::new(&opener, "/mcp", &principal("ada"), about).unwrap();
        let id = session.seal(&keys).unwrap();
        let now = unix_time();
        let open = |id: &str, path, who: &str, at| SealedSession::open(&keys, id, path, &principal(who), at);
        let opened = open(&id, "/mcp", "ada", now).unwrap();
        assert_eq!((opened.label(), opened.opener()), (session.label(), opener));
        assert_eq!(opened.version(), Some(Version::V2025_06_18));
        let client = opened.client();
        let capabilities = (client.elicit_form, client.elicit_url, client.sample, client.roots);
        assert_eq!(capabilities, (true, false, false, true));
        let late = now + LIFETIME.as_secs() + 60;
        for (why, path, who, at, expected) in [
            ("another principal", "/mcp", "bob", now, SessionIdError::Invalid),
            ("another endpoint", "/servers/a/mcp", "ada", now, SessionIdError::Invalid),
            ("too late", "/mcp", "ada", late, SessionIdError::Expired),
            ("another principal, too late", "/mcp", "bob", late, SessionIdError::Invalid),
        ] {
            assert_eq!(open(&id, path, who, at).unwrap_err(), expected, "{why}");
        }
        assert_eq!(open(&id[1..], "/mcp", "ada", now).unwrap_err(), SessionIdError::Invalid);
        let other = SealingKeys::generate().unwrap();
        let error = SealedSession::open(&other, &id, "/mcp", &principal("ada"), now).unwrap_err();
        assert_eq!(error, SessionIdError::Invalid);
    }

    #[test]
    fn a_session_id_fits_into_a_header_even_for_long_principals() {
        let keys = SealingKeys::generate().unwrap();
        let principal = Principal::new("x".repeat(10_000), Permissions::All);
        let about = (Version::V2025_06_18, &ClientProfile::default());
        let session =
            SealedSession::new(&ReplicaId::new(&"a".repeat(32)), "/mcp", &principal, about).unwrap();
        assert!(session.seal(&keys).unwrap().len() < 400);
    }
}
