//! Storage of credentials: in a file that only its owner can read, or in memory. Several processes
//! may share the file: each change is atomic and made under a lock.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use toolyard_hub::SourceName;

use super::AuthError;
use super::record::CredentialRecord;

/// How long to wait while another process renews the same credentials, and the polling interval.
const LOCK_WAIT: Duration = Duration::from_secs(60);
const LOCK_AGAIN: Duration = Duration::from_millis(25);

/// A credential store. Clones share the same storage.
#[derive(Clone)]
pub struct CredentialStore(Arc<StoreBackend>);

enum StoreBackend {
    File(PathBuf),
    Memory { records: Mutex<Records>, turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>> },
}

/// The key of a server's credentials. It includes the URL, so that a server with the same name at
/// another address does not get them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CredentialKey(String);

impl CredentialKey {
    pub(crate) fn new(name: &SourceName, url: &str) -> Self {
        Self(format!("{name} {url}"))
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Records {
    #[serde(default)]
    servers: BTreeMap<String, CredentialRecord>,
}

impl CredentialStore {
    /// Stores credentials in a file. The file and its directory are created by the first write.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(StoreBackend::File(path.into())))
    }

    /// Stores credentials in memory, for the lifetime of the store.
    pub fn memory() -> Self {
        Self(Arc::new(StoreBackend::Memory { records: Mutex::default(), turns: Mutex::default() }))
    }

    pub(crate) async fn load(&self, key: &CredentialKey) -> Result<CredentialRecord, AuthError> {
        let key = key.clone();
        self.with_records(move |records| records.servers.get(&key.0).cloned().unwrap_or_default(), Step::Read)
            .await
    }

    pub(crate) async fn save(&self, key: &CredentialKey, record: CredentialRecord) -> Result<(), AuthError> {
        let key = key.clone();
        self.with_records(move |records| drop(records.servers.insert(key.0, record)), Step::Write).await
    }

    /// Removes the credentials of a server. Returns whether there were any.
    pub(crate) async fn remove(&self, key: &CredentialKey) -> Result<bool, AuthError> {
        let key = key.clone();
        self.with_records(move |records| records.servers.remove(&key.0).is_some(), Step::Write).await
    }

    /// Changes a record atomically and returns the new one.
    pub(crate) async fn update(
        &self,
        key: &CredentialKey,
        change: impl FnOnce(&mut CredentialRecord) + Send + 'static,
    ) -> Result<CredentialRecord, AuthError> {
        let key = key.clone();
        let step = move |records: &mut Records| {
            let record = records.servers.entry(key.0).or_default();
            change(record);
            record.clone()
        };
        self.with_records(step, Step::Write).await
    }

    /// Locks the credentials of one server against all processes that share this store. A refresh
    /// token may be valid for one use only, so load, refresh and save must not interleave with
    /// those of another process. The lock is released when the guard is dropped or the process is
    /// killed.
    pub(crate) async fn lock(&self, key: &CredentialKey) -> Result<CredentialLock, AuthError> {
        let path = match &*self.0 {
            StoreBackend::Memory { turns, .. } => {
                let turn = {
                    let mut turns = turns.lock();
                    Arc::clone(turns.entry(key.0.clone()).or_default())
                };
                let turn = tokio::time::timeout(LOCK_WAIT, turn.lock_owned()).await;
                let turn = turn.map_err(|_| AuthError::Store(lock_timeout_message("in memory")))?;
                return Ok(CredentialLock { _file: None, _turn: Some(turn) });
            }
            StoreBackend::File(path) => lock_path(path, key),
        };
        let failed = |error: io::Error| AuthError::Store(format!("{}: {error}", path.display()));
        let file = {
            let path = path.clone();
            let opened = tokio::task::spawn_blocking(move || {
                let directory = path.parent().unwrap_or(Path::new("."));
                DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
                private_open_options().write(true).create(true).truncate(false).open(&path)
            });
            opened.await.map_err(|error| AuthError::Store(error.to_string()))?.map_err(failed)?
        };
        // Polled, because a blocking lock has no timeout.
        let limit = Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(CredentialLock { _file: Some(file), _turn: None }),
                Err(TryLockError::WouldBlock) if Instant::now() < limit => {
                    tokio::time::sleep(LOCK_AGAIN).await
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(AuthError::Store(lock_timeout_message(&path.display().to_string())));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    async fn with_records<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Records) -> T + Send + 'static,
        step: Step,
    ) -> Result<T, AuthError> {
        let backend = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || match &*backend {
            StoreBackend::Memory { records, .. } => Ok(act(&mut records.lock())),
            StoreBackend::File(path) => {
                with_file_records(path, act, step).map_err(|error| (path.display().to_string(), error))
            }
        });
        match done.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err((path, error))) => Err(AuthError::Store(format!("{path}: {error}"))),
            Err(error) => Err(AuthError::Store(error.to_string())),
        }
    }
}

impl fmt::Debug for CredentialStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            StoreBackend::File(path) => f.debug_tuple("CredentialStore").field(path).finish(),
            StoreBackend::Memory { .. } => f.write_str("CredentialStore"),
        }
    }
}

/// Guard of the lock on one server's credentials.
#[derive(Debug)]
pub(crate) struct CredentialLock {
    _file: Option<File>,
    _turn: Option<tokio::sync::OwnedMutexGuard<()>>,
}

/// Returns the path of the lock file of a server. Each server has its own, so that an authorization
/// server that hangs does not block the others. The file is never removed, because that could leave
/// two processes with a lock each.
fn lock_path(store: &Path, key: &CredentialKey) -> PathBuf {
    let digest = ring::digest::digest(&ring::digest::SHA256, key.0.as_bytes());
    store.with_extension(format!("{}.lock", HEXLOWER.encode(&digest.as_ref()[..8])))
}

fn lock_timeout_message(lock: &str) -> String {
    format!(
        "another process is renewing them and did not release its lock ({lock}) within {} s",
        LOCK_WAIT.as_secs()
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Read,
    Write,
}

fn with_file_records<T>(path: &Path, act: impl FnOnce(&mut Records) -> T, step: Step) -> io::Result<T> {
    let directory =
        path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if step == Step::Read {
        return Ok(act(&mut read(path)?));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // Each change replaces the file, so the lock is on a separate file.
    let lock =
        private_open_options().write(true).create(true).truncate(false).open(path.with_extension("lock"))?;
    lock.lock()?;
    let mut records = read(path)?;
    let value = act(&mut records);
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = private_open_options().write(true).create(true).truncate(true).open(&new)?;
    let written = file.write_all(&serde_json::to_vec_pretty(&records)?).and_then(|()| file.sync_all());
    written.and_then(|()| std::fs::rename(&new, path)).inspect_err(|_| drop(std::fs::remove_file(&new)))?;
    Ok(value)
}

fn private_open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn read(path: &Path) -> io::Result<Records> {
    let mut text = Vec::new();
    match File::open(path).and_then(|mut file| file.read_to_end(&mut text)) {
        Ok(_) => serde_json::from_slice(&text).map_err(io::Error::from),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Records::default()),
        Err(error) => Err(error),
    }
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
        store.save(&key("a"), record("x")).await.unwrap();
        store.save(&key("b"), record("y")).await.unwrap();
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
            changes.spawn(async move { store.save(&key(&format!("s{number}")), record("x")).await.unwrap() });
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
        store.save(&key("a"), record("x")).await.unwrap();
        let moved = CredentialKey::new(&SourceName::new("a"), "http://localhost/other");
        assert_eq!(store.load(&moved).await.unwrap(), CredentialRecord::default());
    }
}
