//! Logins to servers, in the database. A row is encrypted, and bound to the name and the URL of its
//! server, so that a row that is moved to another server cannot be opened.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use toolyard_hub::{BoxFuture, CredentialKey, CredentialLock, CredentialStorage, CredentialStorageError};
use toolyard_postgres::{PostgresError, PostgresLock};
use toolyard_seal::Purpose;

use crate::database::ClusterDatabase;

/// How many logins are renewed at the same time.
pub(crate) const LOCKS_AT_ONCE: usize = 4;
/// How long to wait while another replica renews a login, and for a connection to do so.
const LOCK_WAIT: Duration = Duration::from_secs(55);
const TURN_WAIT: Duration = Duration::from_secs(60);
/// How long a new token waits for a connection before it is kept in memory only.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest record, in bytes, so that a sealed one can be read.
const LARGEST: usize = 512 << 10;

/// The statement with which a login is saved.
pub(crate) const UPSERT: &str = "
    INSERT INTO toolyard.logins (id, server, sealed, replica) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE
    SET server = excluded.server, sealed = excluded.sealed, changed_at = now(), replica = excluded.replica";

const UNREADABLE: &str = "it is encrypted with a key that is not in `cluster.keys`, or was changed";

/// The primary key of a login. A digest, because the URL of a server can contain a password.
pub(crate) type LoginId = [u8; 32];

fn login_id(key: &CredentialKey) -> LoginId {
    Sha256::digest(key.as_str().as_bytes()).into()
}

/// Returns the number of the lock on a login. Two logins with the same number only wait for each
/// other.
fn lock_number(id: &LoginId) -> i64 {
    let (first, _) = id.split_at(8);
    first.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

struct LoginLock {
    // Released before the permit for the next one.
    _lock: PostgresLock,
    _permit: OwnedSemaphorePermit,
}

impl ClusterDatabase {
    async fn load_login(&self, key: &CredentialKey) -> Result<Option<String>, CredentialStorageError> {
        let id = login_id(key);
        let select = "SELECT sealed FROM toolyard.logins WHERE id = $1";
        let rows = self.link().query(select, &[&id.as_slice()]).await.map_err(|error| unavailable(&error))?;
        let Some(row) = rows.first() else { return Ok(None) };
        let unreadable = || CredentialStorageError::Unreadable(UNREADABLE.to_owned());
        let sealed: &str = row.try_get(0).map_err(|_| unreadable())?;
        let opened = self.keys.open_for(Purpose::Login, key.as_str(), sealed).ok_or_else(unreadable)?;
        let record = String::from_utf8(opened.content).map_err(|_| unreadable())?;
        // Once per process: while keys are being replaced, replicas disagree about the first one.
        if self.checked.lock().insert(id) && opened.is_outdated {
            self.seal_again(key, &id, sealed, &record).await;
        }
        Ok(Some(record))
    }

    /// Replaces a login that was sealed with an old key, unless it has changed. The old key can then
    /// be removed from the configuration.
    async fn seal_again(&self, key: &CredentialKey, id: &LoginId, sealed: &str, record: &str) {
        let Ok(new) = self.keys.seal_for(Purpose::Login, key.as_str(), record.as_bytes()) else { return };
        let update = "UPDATE toolyard.logins SET sealed = $3 WHERE id = $1 AND sealed = $2";
        if let Err(error) = self.link().query(update, &[&id.as_slice(), &sealed, &new]).await {
            tracing::warn!(server = %key.server(), %error, "cannot encrypt a login with the new key");
            self.checked.lock().remove(id);
        }
    }

    async fn save_login(&self, key: &CredentialKey, record: &str) -> Result<(), CredentialStorageError> {
        if record.len() > LARGEST {
            let message = format!("the login has {} bytes, at most {LARGEST} are stored", record.len());
            return Err(CredentialStorageError::Unavailable(message));
        }
        let sealed = self.keys.seal_for(Purpose::Login, key.as_str(), record.as_bytes());
        let sealed = sealed.map_err(|error| CredentialStorageError::Unavailable(error.to_string()))?;
        let (id, server) = (login_id(key), key.server().as_str());
        let replica = self.settings.replica.as_deref();
        let params = [&id.as_slice() as _, &server as _, &sealed as _, &replica as _];
        self.link().insert(&params, PATIENCE).await.map_err(|error| unavailable(&error))
    }

    async fn remove_login(&self, key: &CredentialKey) -> Result<bool, CredentialStorageError> {
        let id = login_id(key);
        let delete = "DELETE FROM toolyard.logins WHERE id = $1 RETURNING 1";
        let rows = self.link().query(delete, &[&id.as_slice()]).await.map_err(|error| unavailable(&error))?;
        Ok(!rows.is_empty())
    }

    async fn lock_login(&self, key: &CredentialKey) -> Result<CredentialLock, CredentialStorageError> {
        let permit = timeout(TURN_WAIT, Arc::clone(&self.locks).acquire_owned()).await;
        let permit = permit.map_err(|_| busy())?.map_err(|_| busy())?;
        let number = lock_number(&login_id(key));
        let lock =
            self.link().connector().lock(number, LOCK_WAIT).await.map_err(|error| unavailable(&error))?;
        let lock = lock.ok_or_else(busy)?;
        Ok(CredentialLock::new(LoginLock { _lock: lock, _permit: permit }))
    }
}

fn busy() -> CredentialStorageError {
    CredentialStorageError::Unavailable(format!(
        "another replica is renewing them and has not finished within {} s",
        LOCK_WAIT.as_secs()
    ))
}

fn unavailable(error: &PostgresError) -> CredentialStorageError {
    CredentialStorageError::Unavailable(error.to_string())
}

impl CredentialStorage for ClusterDatabase {
    fn load<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<String>, CredentialStorageError>> {
        Box::pin(self.load_login(key))
    }

    fn save<'a>(
        &'a self,
        key: &'a CredentialKey,
        record: String,
    ) -> BoxFuture<'a, Result<(), CredentialStorageError>> {
        Box::pin(async move { self.save_login(key, &record).await })
    }

    fn remove<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<bool, CredentialStorageError>> {
        Box::pin(self.remove_login(key))
    }

    fn lock<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<CredentialLock, CredentialStorageError>> {
        Box::pin(self.lock_login(key))
    }
}

#[cfg(test)]
mod tests {
    use toolyard_hub::{CredentialKey, SourceName};

    use super::{lock_number, login_id};

    #[test]
    fn a_row_reveals_neither_the_url_nor_its_password() {
        let key = |url: &str| CredentialKey::new(&SourceName::new("a"), url);
        let ids = [login_id(&key("https://a/mcp?key=hush")), login_id(&key("https://a/mcp?key=push"))];
        assert_ne!(ids[0], ids[1]);
        assert_ne!(lock_number(&ids[0]), lock_number(&ids[1]));
    }

    #[test]
    fn the_number_of_a_lock_has_64_bits() {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&(-2_i64).to_be_bytes());
        assert_eq!(lock_number(&id), -2);
    }
}
