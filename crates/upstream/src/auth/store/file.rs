//! Credentials in a file that only its owner can read. Several processes may share it: each change
//! is atomic and made under a lock.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use toolyard_hub::{BoxFuture, CredentialKey, CredentialLock, CredentialStorage, CredentialStorageError};

use super::{LOCK_WAIT, lock_timeout};

/// How often a lock is tried.
const LOCK_AGAIN: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub(super) struct FileCredentials {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Records {
    #[serde(default)]
    servers: BTreeMap<String, Value>,
}

impl FileCredentials {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    async fn with_records<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Records) -> T + Send + 'static,
        step: Step,
    ) -> Result<T, CredentialStorageError> {
        let path = self.path.clone();
        let done = tokio::task::spawn_blocking(move || {
            with_file_records(&path, act, step).map_err(|error| failed(&path, &error))
        });
        done.await.unwrap_or_else(|panic| Err(CredentialStorageError::Unavailable(panic.to_string())))
    }

    async fn lock_file(&self, key: &CredentialKey) -> Result<CredentialLock, CredentialStorageError> {
        let path = lock_path(&self.path, key);
        let file = {
            let path = path.clone();
            let opened = tokio::task::spawn_blocking(move || {
                let directory = path.parent().unwrap_or(Path::new("."));
                DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
                private_open_options().write(true).create(true).truncate(false).open(&path)
            });
            opened.await.map_err(|error| CredentialStorageError::Unavailable(error.to_string()))?
        };
        let file = file.map_err(|error| failed(&path, &error))?;
        // Polled, because a blocking lock has no timeout.
        let limit = Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(CredentialLock::new(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < limit => {
                    tokio::time::sleep(LOCK_AGAIN).await
                }
                Err(TryLockError::WouldBlock) => return Err(lock_timeout(&path.display().to_string())),
                Err(TryLockError::Error(error)) => return Err(failed(&path, &error)),
            }
        }
    }
}

impl CredentialStorage for FileCredentials {
    fn load<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<String>, CredentialStorageError>> {
        let key = key.as_str().to_owned();
        let read = move |records: &mut Records| records.servers.get(&key).map(Value::to_string);
        Box::pin(self.with_records(read, Step::Read))
    }

    fn save<'a>(
        &'a self,
        key: &'a CredentialKey,
        record: String,
    ) -> BoxFuture<'a, Result<(), CredentialStorageError>> {
        let key = key.as_str().to_owned();
        Box::pin(async move {
            let record: Value = serde_json::from_str(&record)
                .map_err(|error| CredentialStorageError::Unavailable(error.to_string()))?;
            self.with_records(move |records| drop(records.servers.insert(key, record)), Step::Write).await
        })
    }

    fn remove<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<bool, CredentialStorageError>> {
        let key = key.as_str().to_owned();
        Box::pin(self.with_records(move |records| records.servers.remove(&key).is_some(), Step::Write))
    }

    fn lock<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<CredentialLock, CredentialStorageError>> {
        Box::pin(self.lock_file(key))
    }
}

fn failed(path: &Path, error: &io::Error) -> CredentialStorageError {
    CredentialStorageError::Unavailable(format!("{}: {error}", path.display()))
}

/// Returns the path of the lock file of a server. Each server has its own, so that an authorization
/// server that hangs does not block the others. The file is never removed, because that could leave
/// two processes with a lock each.
fn lock_path(store: &Path, key: &CredentialKey) -> PathBuf {
    let digest = ring::digest::digest(&ring::digest::SHA256, key.as_str().as_bytes());
    store.with_extension(format!("{}.lock", HEXLOWER.encode(&digest.as_ref()[..8])))
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
