//! Opens connections. Every connection has deadlines of its own and of the server.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Error, Statement};

use crate::PostgresSettings;
use crate::error::PostgresError;
use crate::schema::{MIGRATION_TIME, migrate};
use crate::tls::PostgresTls;

/// How long a connection may take until it is ready.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long a start waits for the server, and how often it tries.
pub(crate) const START_TIME: Duration = Duration::from_secs(10);
const START_PAUSE: Duration = Duration::from_millis(300);
/// When an unanswered connection counts as broken.
const SILENCE: Duration = Duration::from_secs(5);
const PROBE: Duration = Duration::from_secs(2);
const PROBES: u32 = 2;

/// The server ends what this process no longer waits for.
const SESSION: &str = "SET statement_timeout = '5s'; SET lock_timeout = '4s';
    SET idle_in_transaction_session_timeout = '10s'";

/// The lock of a machine that has lost its power is released after some seconds, and that of a
/// process that is suspended after a minute. Servers before version 14 cannot do the latter.
const LOCK_SESSION: &str = "; SET lock_timeout = '60s'; SET statement_timeout = '61s';
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
    SELECT set_config(name, '60s', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    Audit,
    History,
    Retention,
    /// Logins and tokens.
    State,
    /// A lock that is held as long as the connection is open.
    Lock,
}

impl LinkPurpose {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit log",
            Self::History => "history",
            Self::Retention => "retention",
            Self::State => "logins and tokens",
            Self::Lock => "lock",
        }
    }

    /// The settings of its sessions.
    fn session(self) -> &'static str {
        match self {
            Self::Audit | Self::Retention | Self::State => "",
            Self::Lock => LOCK_SESSION,
            // The last moments of the history may be lost in a crash of the server.
            Self::History => "; SET synchronous_commit = off",
        }
    }
}

/// Opens connections to one database.
#[derive(Clone)]
pub struct PostgresConnector {
    pub(crate) settings: PostgresSettings,
    tls: PostgresTls,
}

/// An open connection.
pub(crate) struct LinkSession {
    pub(crate) client: Client,
    /// Inserts rows.
    pub(crate) insert: Statement,
    /// Tells the owner of the driver to close the connection.
    pub(crate) broken: Notify,
}

/// Sends and receives for a client. It ends with the connection.
pub type PostgresDriver = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

impl PostgresConnector {
    pub fn new(settings: &PostgresSettings, tls: &ClientConfig) -> Self {
        let mut settings = settings.clone();
        let config = &mut settings.config;
        if config.get_application_name().is_none() {
            config.application_name("toolyard");
        }
        config.connect_timeout(CONNECT_TIME).tcp_user_timeout(SILENCE);
        config.keepalives_idle(SILENCE).keepalives_interval(PROBE).keepalives_retries(PROBES);
        let tls = PostgresTls::new(tls, settings.config.get_ssl_mode());
        Self { settings, tls }
    }

    /// What messages call the database.
    pub fn database(&self) -> &str {
        &self.settings.database
    }

    /// What rows call this replica.
    pub fn replica(&self) -> Option<&str> {
        self.settings.replica.as_deref()
    }

    /// Opens a connection whose driver must be polled for the client to make progress.
    pub async fn connect(&self, purpose: LinkPurpose) -> Result<(Client, PostgresDriver), PostgresError> {
        let opening = async {
            let (client, connection) = self.settings.config.connect(self.tls.clone()).await?;
            let mut driver: PostgresDriver = Box::pin(connection);
            let session = format!("{SESSION}{}", purpose.session());
            drive(&mut driver, client.batch_execute(&session)).await?;
            Ok((client, driver))
        };
        match timeout(CONNECT_TIME, opening).await {
            Ok(opened) => opened.map_err(|error: Error| PostgresError::connecting(self.database(), &error)),
            Err(_) => Err(self.timed_out(CONNECT_TIME)),
        }
    }

    /// Opens a connection that can insert rows.
    pub(crate) async fn open_session(
        &self,
        purpose: LinkPurpose,
        insert: &str,
    ) -> Result<(LinkSession, PostgresDriver), PostgresError> {
        let (client, driver) = self.connect(purpose).await?;
        self.prepare(client, driver, insert).await
    }

    async fn prepare(
        &self,
        client: Client,
        mut driver: PostgresDriver,
        insert: &str,
    ) -> Result<(LinkSession, PostgresDriver), PostgresError> {
        match timeout(CONNECT_TIME, drive(&mut driver, client.prepare(insert))).await {
            Ok(Ok(insert)) => Ok((LinkSession { client, insert, broken: Notify::new() }, driver)),
            Ok(Err(error)) => Err(PostgresError::statement(self.database(), &error)),
            Err(_) => Err(self.timed_out(CONNECT_TIME)),
        }
    }

    /// Opens the first connection and migrates the database. Waits for a server that cannot be
    /// reached yet.
    pub(crate) async fn start(
        &self,
        purpose: LinkPurpose,
        insert: &str,
    ) -> Result<(LinkSession, PostgresDriver), PostgresError> {
        let started = Instant::now();
        loop {
            let error = match self.connect_and_migrate(purpose, insert).await {
                Ok(opened) => return Ok(opened),
                Err(error) => error,
            };
            if !error.is_temporary() || started.elapsed() >= START_TIME {
                return Err(error);
            }
            tokio::time::sleep(START_PAUSE).await;
        }
    }

    pub(crate) async fn connect_and_migrate(
        &self,
        purpose: LinkPurpose,
        insert: &str,
    ) -> Result<(LinkSession, PostgresDriver), PostgresError> {
        let (client, driver) = self.connect_migrated(purpose).await?;
        self.prepare(client, driver, insert).await
    }

    /// Opens a connection and migrates the database. Waits for no server.
    pub async fn connect_migrated(
        &self,
        purpose: LinkPurpose,
    ) -> Result<(Client, PostgresDriver), PostgresError> {
        let (mut client, mut driver) = self.connect(purpose).await?;
        let database = self.database();
        let migrated = async {
            tokio::select! {
                migrated = migrate(&mut client, database) => migrated,
                ended = &mut driver => Err(self.ended(ended)),
            }
        };
        match timeout(MIGRATION_TIME, migrated).await {
            Ok(migrated) => migrated?,
            Err(_) => return Err(self.timed_out(MIGRATION_TIME)),
        }
        Ok((client, driver))
    }

    /// Describes the end of a connection.
    pub(crate) fn ended(&self, ended: Result<(), Error>) -> PostgresError {
        match ended {
            Ok(()) => {
                let reason = "the server closed the connection".to_owned();
                PostgresError::Unreachable { database: self.database().to_owned(), reason }
            }
            Err(error) => PostgresError::connecting(self.database(), &error),
        }
    }

    pub fn timed_out(&self, time: Duration) -> PostgresError {
        PostgresError::TimedOut { database: self.database().to_owned(), time }
    }
}

impl fmt::Debug for PostgresConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConnector").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Polls the driver of a connection while a statement runs. If the connection ends, the statement
/// fails.
pub async fn drive<T>(
    driver: &mut PostgresDriver,
    statement: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::pin!(statement);
    tokio::select! {
        result = &mut statement => result,
        ended = driver => match ended {
            Err(error) => Err(error),
            Ok(()) => statement.await,
        },
    }
}
