//! Opens connections. Every connection has deadlines of its own and of the server.

use std::pin::Pin;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Error, Statement};

use super::PostgresSettings;
use super::error::PostgresError;
use super::schema::{MIGRATION_TIME, migrate};
use super::tls::PostgresTls;

/// How long a connection may take until it is ready.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long a start waits for the server, and how often it tries.
const START_TIME: Duration = Duration::from_secs(10);
const START_PAUSE: Duration = Duration::from_millis(300);
/// When an unanswered connection counts as broken.
const SILENCE: Duration = Duration::from_secs(5);
const PROBE: Duration = Duration::from_secs(2);
const PROBES: u32 = 2;

/// The server ends what this process no longer waits for.
const SESSION: &str = "SET statement_timeout = '5s'; SET lock_timeout = '4s';
    SET idle_in_transaction_session_timeout = '10s'";

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkPurpose {
    Audit,
    History,
    Retention,
}

impl LinkPurpose {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit log",
            Self::History => "history",
            Self::Retention => "retention",
        }
    }

    /// The settings of its sessions.
    fn session(self) -> &'static str {
        match self {
            Self::Audit | Self::Retention => "",
            // The last moments of the history may be lost in a crash of the server.
            Self::History => "; SET synchronous_commit = off",
        }
    }
}

/// Opens connections to one database.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) settings: PostgresSettings,
    tls: PostgresTls,
}

/// An open connection.
pub(super) struct LinkSession {
    pub(super) client: Client,
    /// Inserts rows.
    pub(super) insert: Statement,
    /// Tells the owner of the driver to close the connection.
    pub(super) broken: Notify,
}

/// Sends and receives for a client. It ends with the connection.
pub(super) type Driver = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

impl Connector {
    pub(super) fn new(settings: &PostgresSettings, tls: &ClientConfig) -> Self {
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

    pub(super) fn database(&self) -> &str {
        &self.settings.database
    }

    /// Opens a connection whose driver must be polled for the client to make progress.
    pub(super) async fn connect(&self, purpose: LinkPurpose) -> Result<(Client, Driver), PostgresError> {
        let opening = async {
            let (client, connection) = self.settings.config.connect(self.tls.clone()).await?;
            let mut driver: Driver = Box::pin(connection);
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
    pub(super) async fn open_session(
        &self,
        purpose: LinkPurpose,
        insert: &str,
    ) -> Result<(LinkSession, Driver), PostgresError> {
        let (client, driver) = self.connect(purpose).await?;
        self.prepare(client, driver, insert).await
    }

    async fn prepare(
        &self,
        client: Client,
        mut driver: Driver,
        insert: &str,
    ) -> Result<(LinkSession, Driver), PostgresError> {
        match timeout(CONNECT_TIME, drive(&mut driver, client.prepare(insert))).await {
            Ok(Ok(insert)) => Ok((LinkSession { client, insert, broken: Notify::new() }, driver)),
            Ok(Err(error)) => Err(PostgresError::statement(self.database(), &error)),
            Err(_) => Err(self.timed_out(CONNECT_TIME)),
        }
    }

    /// Opens the first connection and migrates the database. Waits for a server that cannot be
    /// reached yet.
    pub(super) async fn start(
        &self,
        purpose: LinkPurpose,
        insert: &str,
    ) -> Result<(LinkSession, Driver), PostgresError> {
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

    async fn connect_and_migrate(
        &self,
        purpose: LinkPurpose,
        insert: &str,
    ) -> Result<(LinkSession, Driver), PostgresError> {
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
        self.prepare(client, driver, insert).await
    }

    /// Describes the end of a connection.
    pub(super) fn ended(&self, ended: Result<(), Error>) -> PostgresError {
        match ended {
            Ok(()) => {
                let reason = "the server closed the connection".to_owned();
                PostgresError::Unreachable { database: self.database().to_owned(), reason }
            }
            Err(error) => PostgresError::connecting(self.database(), &error),
        }
    }

    pub(super) fn timed_out(&self, time: Duration) -> PostgresError {
        PostgresError::TimedOut { database: self.database().to_owned(), time }
    }
}

/// Polls the driver of a connection while a statement runs. If the connection ends, the statement
/// fails.
pub(super) async fn drive<T>(
    driver: &mut Driver,
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
