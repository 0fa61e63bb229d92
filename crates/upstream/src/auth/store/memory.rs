//! Credentials in memory, for the lifetime of the process.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolyard_hub::{BoxFuture, CredentialKey, CredentialLock, CredentialStorage, CredentialStorageError};

use super::{LOCK_WAIT, lock_timeout};

#[derive(Default)]
pub(super) struct MemoryCredentials {
    records: Mutex<BTreeMap<String, String>>,
    turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl CredentialStorage for MemoryCredentials {
    fn load<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<String>, CredentialStorageError>> {
        Box::pin(async { Ok(self.records.lock().get(key.as_str()).cloned()) })
    }

    fn save<'a>(
        &'a self,
        key: &'a CredentialKey,
        record: String,
    ) -> BoxFuture<'a, Result<(), CredentialStorageError>> {
        Box::pin(async {
            self.records.lock().insert(key.as_str().to_owned(), record);
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<bool, CredentialStorageError>> {
        Box::pin(async { Ok(self.records.lock().remove(key.as_str()).is_some()) })
    }

    fn lock<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<CredentialLock, CredentialStorageError>> {
        Box::pin(async {
            let turn = Arc::clone(self.turns.lock().entry(key.as_str().to_owned()).or_default());
            let turn = tokio::time::timeout(LOCK_WAIT, turn.lock_owned()).await;
            turn.map(CredentialLock::new).map_err(|_| lock_timeout("in memory"))
        })
    }
}

impl std::fmt::Debug for MemoryCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemoryCredentials")
    }
}
