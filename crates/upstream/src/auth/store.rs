//! Storage of credentials: typed access to a [`CredentialStorage`], which can be memory, a file, or
//! the database that several replicas share.

mod file;
mod memory;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolyard_hub::{CredentialKey, CredentialLock, CredentialStorage, CredentialStorageError};

use self::file::FileCredentials;
use self::memory::MemoryCredentials;
use super::AuthError;
use super::record::CredentialRecord;

/// How long to wait while another process renews the same credentials.
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// A credential store. Clones share the same storage.
#[derive(Debug, Clone)]
pub struct CredentialStore(Arc<dyn CredentialStorage>);

impl CredentialStore {
    pub fn new(storage: Arc<dyn CredentialStorage>) -> Self {
        Self(storage)
    }

    /// Stores credentials in a file. The file and its directory are created by the first write.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(FileCredentials::new(path.into())))
    }

    /// Stores credentials in memory, for the lifetime of the store.
    pub fn memory() -> Self {
        Self(Arc::new(MemoryCredentials::default()))
    }

    /// Returns the record of a server, which is empty if there is none.
    pub(crate) async fn load(&self, key: &CredentialKey) -> Result<CredentialRecord, AuthError> {
        match self.0.load(key).await? {
            None => Ok(CredentialRecord::default()),
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| AuthError::UnreadableLogin(format!("invalid record: {error}"))),
        }
    }

    /// Like [`Self::load`], but a record that cannot be read is empty, because a new login replaces
    /// it.
    pub(crate) async fn load_for_login(&self, key: &CredentialKey) -> Result<CredentialRecord, AuthError> {
        match self.load(key).await {
            Err(AuthError::UnreadableLogin(_)) => Ok(CredentialRecord::default()),
            loaded => loaded,
        }
    }

    pub(crate) async fn save(&self, key: &CredentialKey, record: &CredentialRecord) -> Result<(), AuthError> {
        let text = serde_json::to_string(record).map_err(|error| AuthError::Store(error.to_string()))?;
        Ok(self.0.save(key, text).await?)
    }

    /// Removes the credentials of a server. Returns whether there were any.
    pub(crate) async fn remove(&self, key: &CredentialKey) -> Result<bool, AuthError> {
        Ok(self.0.remove(key).await?)
    }

    /// Changes a record under its lock.
    pub(crate) async fn update(
        &self,
        key: &CredentialKey,
        change: impl FnOnce(&mut CredentialRecord),
    ) -> Result<(), AuthError> {
        let _lock = self.lock(key).await?;
        let mut record = self.load(key).await?;
        change(&mut record);
        self.save(key, &record).await
    }

    /// Locks the credentials of one server against all processes that share this store.
    pub(crate) async fn lock(&self, key: &CredentialKey) -> Result<CredentialLock, AuthError> {
        Ok(self.0.lock(key).await?)
    }
}

impl From<CredentialStorageError> for AuthError {
    fn from(error: CredentialStorageError) -> Self {
        match error {
            CredentialStorageError::Unreadable(reason) => Self::UnreadableLogin(reason),
            CredentialStorageError::Unavailable(reason) => Self::Store(reason),
        }
    }
}

fn lock_timeout(lock: &str) -> CredentialStorageError {
    CredentialStorageError::Unavailable(format!(
        "another process is renewing them and did not release its lock ({lock}) within {} s",
        LOCK_WAIT.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use toolyard_hub::SourceName;

    use super::{CredentialKey, CredentialRecord, CredentialStore};

    fn key(name: &str) -> CredentialKey {
        CredentialKey::new(&SourceName::new(name), "http://localhost/mcp")
    }

    fn record(scope: &str) -> CredentialRecord {
        CredentialRecord { requested: vec![scope.to_owned()], ..CredentialRecord::default() }
    }

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("toolyard-store-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        directory
    }

    #[tokio::test]
    async fn credentials_are_stored_for_the_owner_only() {
        let directory = scratch("keeps").join("deep");
        let path = directory.join("credentials.json");
        let store = CredentialStore::file(&path);
        assert_eq!(store.load(&key("a")).await.unwrap(), CredentialRecord::default());
        store.save(&key("a"), &record("x")).await.unwrap();
        store.save(&key("b"), &record("y")).await.unwrap();
        let other = CredentialStore::file(&path);
        assert_eq!(other.load(&key("a")).await.unwrap(), record("x"));
        assert_eq!(other.load(&key("b")).await.unwrap(), record("y"));
        let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&directory)), (0o600, 0o700));
        assert!(other.remove(&key("a")).await.unwrap());
        assert!(!store.remove(&key("a")).await.unwrap());
        assert_eq!(store.load(&key("a")).await.unwrap(), CredentialRecord::default());
    }

    #[tokio::test]
    async fn concurrent_changes_are_all_stored() {
        let path = scratch("crowd").join("credentials.json");
        let mut changes = tokio::task::JoinSet::new();
        for number in 0..20 {
            let store = CredentialStore::file(&path);
            changes
                .spawn(async move { store.save(&key(&format!("s{number}")), &record("x")).await.unwrap() });
        }
        changes.join_all().await;
        let store = CredentialStore::file(&path);
        for number in 0..20 {
            assert_eq!(store.load(&key(&format!("s{number}"))).await.unwrap(), record("x"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_covers_one_server_and_waiting_for_it_times_out() {
        let path = scratch("lock").join("credentials.json");
        for store in [CredentialStore::file(&path), CredentialStore::memory()] {
            let guard = store.lock(&key("a")).await.unwrap();
            drop(store.lock(&key("b")).await.unwrap());
            let error = store.lock(&key("a")).await.unwrap_err().to_string();
            assert!(error.contains("another process is renewing them"), "{error}");
            drop(guard);
            drop(store.lock(&key("a")).await.unwrap());
        }
        // Two stores of the same file exclude each other, as two processes do.
        let guard = CredentialStore::file(&path).lock(&key("a")).await.unwrap();
        CredentialStore::file(&path).lock(&key("a")).await.unwrap_err();
        drop(guard);
    }

    #[tokio::test]
    async fn another_address_is_another_server() {
        let store = CredentialStore::memory();
        store.save(&key("a"), &record("x")).await.unwrap();
        let moved = CredentialKey::new(&SourceName::new("a"), "http://localhost/other");
        assert_eq!(store.load(&moved).await.unwrap(), CredentialRecord::default());
    }
}
