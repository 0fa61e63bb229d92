//! Storage of the credentials for servers, as the crate that uses them sees it. Credentials are in
//! memory, in a file, or in the database that several replicas share.

use std::fmt;

use crate::{BoxFuture, SourceName};

/// Identifies the credentials of a server. The URL is part of it, so that a server with the same
/// name at another address does not get them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CredentialKey {
    server: SourceName,
    /// The name and the URL.
    text: String,
}

impl CredentialKey {
    pub fn new(server: &SourceName, url: &str) -> Self {
        Self { server: server.clone(), text: format!("{server} {url}") }
    }

    pub fn server(&self) -> &SourceName {
        &self.server
    }

    /// Returns the name and the URL. The URL can contain a password.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Why stored credentials cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialStorageError {
    /// There are some, but they were not stored by this yard. Only new ones help.
    #[error("{0}")]
    Unreadable(String),
    /// The storage is not available.
    #[error("{0}")]
    Unavailable(String),
}

/// Guard of the lock on the credentials of one server. Dropping it releases the lock.
pub struct CredentialLock {
    _guard: Box<dyn Send>,
}

impl CredentialLock {
    /// Creates a guard that holds a lock as long as `guard` is not dropped.
    pub fn new(guard: impl Send + 'static) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

impl fmt::Debug for CredentialLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialLock")
    }
}

/// Stores one record of credentials for each server. Its content belongs to the caller.
pub trait CredentialStorage: fmt::Debug + Send + Sync {
    /// Returns the record of a server, if there is one.
    fn load<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<String>, CredentialStorageError>>;

    /// Stores a record, which replaces an earlier one.
    fn save<'a>(
        &'a self,
        key: &'a CredentialKey,
        record: String,
    ) -> BoxFuture<'a, Result<(), CredentialStorageError>>;

    /// Removes the record of a server. Returns whether there was one.
    fn remove<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<bool, CredentialStorageError>>;

    /// Locks the record of one server against everyone who shares this storage. A refresh token may
    /// be valid for one use only, so load, refresh and save must not interleave with those of
    /// another process. The end of the process releases the lock.
    fn lock<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<CredentialLock, CredentialStorageError>>;
}
