//! The database for what outlives a process and concerns all replicas: logins and tokens. Records
//! of calls have connections of their own.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::sync::Semaphore;
use toolyard_postgres::{LinkPurpose, PostgresError, PostgresLink, PostgresSettings};
use toolyard_seal::SealingKeys;

use crate::logins::{LOCKS_AT_ONCE, LoginId, UPSERT};
use crate::settings::ClusterSettings;

/// One connection to the database, which is opened when it is first needed and then kept open.
pub struct ClusterDatabase {
    pub(crate) settings: PostgresSettings,
    pub(crate) keys: SealingKeys,
    tls: ClientConfig,
    link: OnceLock<PostgresLink>,
    /// Every lock needs a connection.
    pub(crate) locks: Arc<Semaphore>,
    /// The logins whose key has been checked.
    pub(crate) checked: Mutex<HashSet<LoginId>>,
}

impl ClusterDatabase {
    /// Returns the database of a cluster, if it has one. Connects to nothing.
    pub fn new(settings: &ClusterSettings, tls: &ClientConfig) -> Option<Self> {
        Some(Self {
            settings: settings.postgres.clone()?,
            keys: settings.keys.clone(),
            tls: tls.clone(),
            link: OnceLock::new(),
            locks: Arc::new(Semaphore::new(LOCKS_AT_ONCE)),
            checked: Mutex::default(),
        })
    }

    /// Waits until the database is connected and migrated. Waits only for a while for a server that
    /// cannot be reached.
    pub async fn ready(&self) -> Result<(), PostgresError> {
        self.link().ready().await
    }

    /// Closes the connection, if there is one.
    pub async fn close(&self) {
        if let Some(link) = self.link.get() {
            link.close().await;
        }
    }

    pub(crate) fn link(&self) -> &PostgresLink {
        self.link.get_or_init(|| PostgresLink::start(&self.settings, &self.tls, LinkPurpose::State, UPSERT))
    }
}

impl std::fmt::Debug for ClusterDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterDatabase").field("settings", &self.settings).finish_non_exhaustive()
    }
}
