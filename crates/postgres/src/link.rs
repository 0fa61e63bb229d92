//! A connection that a task opens again whenever it breaks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use tokio_util::sync::CancellationToken;

use crate::PostgresSettings;
use crate::connect::{LinkPurpose, LinkSession, PostgresConnector, PostgresDriver, START_TIME};
use crate::error::{PostgresError, is_connection_lost};
use crate::schema::MIGRATION_TIME;

/// How long a statement may take. The server ends it a little earlier.
const STATEMENT_TIME: Duration = Duration::from_secs(6);
/// The pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The pause after a connection that was open only for a moment.
const SHORT_LIVED_PAUSE: Duration = Duration::from_millis(200);
/// How long a connection may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// The parameters of a statement.
pub type SqlParams<'a> = &'a [&'a (dyn ToSql + Sync)];

enum LinkStatus {
    /// The first attempt has not ended yet.
    Connecting,
    Connected(Arc<LinkSession>),
    Away {
        since: Instant,
        error: PostgresError,
    },
}

/// Why rows were not inserted.
enum InsertFailure {
    /// Another connection may succeed.
    ConnectionLost(PostgresError),
    Other(PostgresError),
}

impl InsertFailure {
    fn into_error(self) -> PostgresError {
        match self {
            Self::ConnectionLost(error) | Self::Other(error) => error,
        }
    }
}

/// A connection that is kept open. Dropping it closes the connection.
pub struct PostgresLink {
    status: watch::Receiver<LinkStatus>,
    connector: Arc<PostgresConnector>,
    task: Mutex<Option<JoinHandle<()>>>,
    stop: CancellationToken,
}

impl PostgresLink {
    /// Opens the connection and migrates the database in the background.
    pub fn start(
        settings: &PostgresSettings,
        tls: &ClientConfig,
        purpose: LinkPurpose,
        insert: &'static str,
    ) -> Self {
        let connector = Arc::new(PostgresConnector::new(settings, tls));
        let (sender, status) = watch::channel(LinkStatus::Connecting);
        let stop = CancellationToken::new();
        let supervisor =
            LinkSupervisor { connector: Arc::clone(&connector), purpose, insert, sender, stop: stop.clone() };
        let task = Mutex::new(Some(tokio::spawn(supervisor.connect_and_run())));
        Self { status, connector, task, stop }
    }

    /// Waits until the connection that was started in the background is open. Waits only for a
    /// while for a server that cannot be reached, and not at all if the database cannot be used.
    pub async fn ready(&self) -> Result<(), PostgresError> {
        let until = Instant::now() + START_TIME;
        let mut status = self.status.clone();
        loop {
            let wait = match &*status.borrow_and_update() {
                LinkStatus::Connected(_) => return Ok(()),
                LinkStatus::Away { error, .. } if !error.is_temporary() || Instant::now() >= until => {
                    return Err(error.clone());
                }
                LinkStatus::Away { .. } => until,
                // The attempt ends by itself.
                LinkStatus::Connecting => Instant::now() + MIGRATION_TIME,
            };
            if let Ok(Err(_)) = timeout_at(wait, status.changed()).await {
                return Err(self.connector.ended(Ok(())));
            }
        }
    }

    /// Opens the connection and migrates the database.
    pub async fn open(
        settings: &PostgresSettings,
        tls: &ClientConfig,
        purpose: LinkPurpose,
        insert: &'static str,
    ) -> Result<Self, PostgresError> {
        let connector = Arc::new(PostgresConnector::new(settings, tls));
        let (session, driver) = connector.start(purpose, insert).await?;
        let session = Arc::new(session);
        let (sender, status) = watch::channel(LinkStatus::Connected(Arc::clone(&session)));
        let stop = CancellationToken::new();
        let supervisor =
            LinkSupervisor { connector: Arc::clone(&connector), purpose, insert, sender, stop: stop.clone() };
        let task = Mutex::new(Some(tokio::spawn(supervisor.run(session, driver))));
        Ok(Self { status, connector, task, stop })
    }

    pub fn connector(&self) -> &PostgresConnector {
        &self.connector
    }

    pub fn is_connected(&self) -> bool {
        matches!(&*self.status.borrow(), LinkStatus::Connected(_))
    }

    /// Waits for the next connection after the current one. Never returns once the link is closed.
    pub async fn reconnected(&self, changes: &mut LinkChanges) {
        loop {
            if changes.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            if matches!(&*changes.0.borrow_and_update(), LinkStatus::Connected(_)) {
                return;
            }
        }
    }

    pub fn changes(&self) -> LinkChanges {
        LinkChanges(self.status.clone())
    }

    /// Inserts rows, and returns once they are committed. If the connection breaks, this is repeated
    /// once on the next one, unless there is none `patience` after the loss of the last one.
    pub async fn insert(&self, params: SqlParams<'_>, patience: Duration) -> Result<(), PostgresError> {
        let lost = match &*self.status.borrow() {
            LinkStatus::Connected(_) | LinkStatus::Connecting => Instant::now(),
            LinkStatus::Away { since, .. } => *since,
        };
        let until = lost + patience;
        let first = self.session(None, until).await?;
        match self.try_insert(&first, params).await {
            Err(InsertFailure::ConnectionLost(_)) if Instant::now() < until => {}
            result => return result.map_err(InsertFailure::into_error),
        }
        let second = self.session(Some(&first), until).await?;
        self.try_insert(&second, params).await.map_err(InsertFailure::into_error)
    }

    async fn try_insert(&self, session: &LinkSession, params: SqlParams<'_>) -> Result<(), InsertFailure> {
        let Ok(result) = timeout(STATEMENT_TIME, session.client.execute(&session.insert, params)).await
        else {
            session.broken.notify_one();
            return Err(InsertFailure::Other(self.connector.timed_out(STATEMENT_TIME)));
        };
        let Err(error) = result else { return Ok(()) };
        let described = PostgresError::statement(self.connector.database(), &error);
        if !is_connection_lost(&error) {
            return Err(InsertFailure::Other(described));
        }
        session.broken.notify_one();
        Err(InsertFailure::ConnectionLost(described))
    }

    /// Runs a query. Fails immediately while there is no connection, unless the first one is being
    /// opened.
    pub async fn query(&self, text: &str, params: SqlParams<'_>) -> Result<Vec<Row>, PostgresError> {
        let session = self.session(None, Instant::now()).await?;
        match timeout(STATEMENT_TIME, session.client.query(text, params)).await {
            Ok(result) => result.map_err(|error| PostgresError::statement(self.connector.database(), &error)),
            Err(_) => {
                session.broken.notify_one();
                Err(self.connector.timed_out(STATEMENT_TIME))
            }
        }
    }

    /// Returns the current connection, or waits for one other than `failed`.
    async fn session(
        &self,
        failed: Option<&Arc<LinkSession>>,
        until: Instant,
    ) -> Result<Arc<LinkSession>, PostgresError> {
        let usable = |status: &LinkStatus| match status {
            LinkStatus::Connected(session) => failed.is_none_or(|failed| !Arc::ptr_eq(failed, session)),
            LinkStatus::Away { .. } | LinkStatus::Connecting => false,
        };
        let mut status = self.status.clone();
        let has_tried = |status: &LinkStatus| !matches!(status, LinkStatus::Connecting);
        let _ = timeout(START_TIME, status.wait_for(has_tried)).await;
        // On a timeout, the status is the error. Its sender is gone once the link is closed.
        let _ = timeout_at(until, status.wait_for(usable)).await;
        let current = status.borrow();
        match &*current {
            LinkStatus::Connected(session) if usable(&current) => Ok(Arc::clone(session)),
            LinkStatus::Connected(_) => Err(self.connector.ended(Ok(()))),
            LinkStatus::Away { error, .. } => Err(error.clone()),
            LinkStatus::Connecting => Err(self.connector.timed_out(START_TIME)),
        }
    }

    /// Closes the connection.
    pub async fn close(&self) {
        self.stop.cancel();
        let task = self.task.lock().take();
        if let Some(task) = task {
            // The task ends within the deadlines of its steps. Its panic is logged by the hook.
            let _ = task.await;
        }
    }
}

impl fmt::Debug for PostgresLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLink")
            .field("settings", &self.connector.settings)
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}

impl Drop for PostgresLink {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for LinkChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkChanges")
    }
}

/// Notices the changes of a link.
pub struct LinkChanges(watch::Receiver<LinkStatus>);

/// Keeps the connection of a link open.
struct LinkSupervisor {
    connector: Arc<PostgresConnector>,
    purpose: LinkPurpose,
    insert: &'static str,
    sender: watch::Sender<LinkStatus>,
    stop: CancellationToken,
}

impl LinkSupervisor {
    /// Opens the first connection, however long that takes, and keeps it open.
    async fn connect_and_run(self) {
        let mut pause = FIRST_PAUSE;
        let connecting = async {
            loop {
                match self.connector.connect_and_migrate(self.purpose, self.insert).await {
                    Ok(opened) => return opened,
                    Err(error) => {
                        self.sender.send_replace(LinkStatus::Away { since: Instant::now(), error });
                    }
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        let (session, driver) = tokio::select! {
            (session, driver) = connecting => (Arc::new(session), driver),
            () = self.stop.cancelled() => return,
        };
        self.sender.send_replace(LinkStatus::Connected(Arc::clone(&session)));
        self.run(session, driver).await;
    }

    async fn run(self, mut session: Arc<LinkSession>, mut driver: PostgresDriver) {
        loop {
            let opened_at = Instant::now();
            let ended = tokio::select! {
                ended = &mut driver => self.connector.ended(ended),
                () = session.broken.notified() => self.connector.ended(Ok(())),
                () = self.stop.cancelled() => return self.say_goodbye(session, driver).await,
            };
            // Closes the connection, which fails the statements that wait for it.
            drop(driver);
            let since = Instant::now();
            self.sender.send_replace(LinkStatus::Away { since, error: ended.clone() });
            tracing::warn!(purpose = self.purpose.as_str(), error = %ended, "lost the connection to PostgreSQL");
            let opened = tokio::select! {
                opened = self.reconnect(opened_at, since) => opened,
                () = self.stop.cancelled() => return,
            };
            tracing::warn!(purpose = self.purpose.as_str(), "connected to PostgreSQL again");
            (session, driver) = (Arc::new(opened.0), opened.1);
            self.sender.send_replace(LinkStatus::Connected(Arc::clone(&session)));
        }
    }

    /// Tries until there is a connection.
    async fn reconnect(&self, opened_at: Instant, since: Instant) -> (LinkSession, PostgresDriver) {
        let mut pause = FIRST_PAUSE;
        if since - opened_at < LONGEST_PAUSE {
            // A server that accepts connections and closes them is not asked without a pause.
            tokio::time::sleep(SHORT_LIVED_PAUSE).await;
        }
        loop {
            match self.connector.open_session(self.purpose, self.insert).await {
                Ok(opened) => return opened,
                Err(error) => drop(self.sender.send_replace(LinkStatus::Away { since, error })),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Lets the server know that the connection ends.
    async fn say_goodbye(&self, session: Arc<LinkSession>, driver: PostgresDriver) {
        drop(session);
        let error = self.connector.ended(Ok(()));
        self.sender.send_replace(LinkStatus::Away { since: Instant::now(), error });
        let _ = timeout(GOODBYE, driver).await;
    }
}
