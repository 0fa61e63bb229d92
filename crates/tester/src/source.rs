//! The tester as a source of a yard: nine tools, and an answer of the contract's form whatever happens.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{BoxFuture, Call, Error, Kind, Offer, Outcome, Prefix, RefusedCaller, Source, SourceName};
use toolyard_upstream::Common;

use crate::answer::{Stopwatch, failure};
use crate::caller::{Caller, Sharing};
use crate::connection::Connection;
use crate::definitions::offer;
use crate::fault::Fault;
use crate::seats::Seats;
use crate::target::Servers;
use crate::verbs;

/// How often connections that nobody uses are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// What a tester obeys.
#[derive(Debug, Clone)]
pub struct TesterSettings {
    pub sharing: Sharing,
    /// How long a server may take to be connected to, and to answer with a list.
    pub connect_time: Duration,
    /// How long a call may be silent.
    pub call_time: Duration,
}

impl TesterSettings {
    pub fn new(sharing: Sharing) -> Self {
        Self { sharing, connect_time: Duration::from_secs(30), call_time: Duration::from_secs(120) }
    }
}

/// The nine tools, and the connections that they work on.
#[derive(Debug)]
pub struct Tester {
    name: SourceName,
    offer: Arc<Offer>,
    pub(crate) settings: TesterSettings,
    pub(crate) common: Common,
    pub(crate) servers: Servers,
    pub(crate) seats: Arc<Seats>,
    /// Those that wait for the ends of sessions.
    watchers: TaskTracker,
    sweeper: Mutex<Option<JoinHandle<()>>>,
}

impl Tester {
    /// The name of this source, and what the server that offers it calls itself.
    pub const NAME: &'static str = "mcp-test-mcp";

    /// Must be called inside a runtime.
    pub fn new(settings: TesterSettings, common: Common, servers: Servers) -> Arc<Self> {
        let seats = Arc::new(Seats::default());
        let sweeper = tokio::spawn(sweep(Arc::clone(&seats)));
        Arc::new(Self {
            name: SourceName::new(Self::NAME),
            offer: offer(),
            settings,
            common,
            servers,
            seats,
            watchers: TaskTracker::new(),
            sweeper: Mutex::new(Some(sweeper)),
        })
    }

    /// Ends every connection.
    pub async fn stop(&self) {
        if let Some(sweeper) = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            sweeper.abort();
        }
        close_all(self.seats.all()).await;
        self.watchers.close();
        self.watchers.wait().await;
    }

    /// Ends a connection when the session is over that it was made in: nobody else can use it.
    pub(crate) fn ends_with(&self, session: CancellationToken, caller: Caller, connection: Arc<Connection>) {
        let seats = Arc::clone(&self.seats);
        self.watchers.spawn(async move {
            tokio::select! {
                () = connection.closed.cancelled() => {}
                () = session.cancelled() => {
                    seats.leave_this(&caller, &connection);
                    connection.close().await;
                }
            }
        });
    }
}

impl Drop for Tester {
    fn drop(&mut self) {
        if let Some(sweeper) = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            sweeper.abort();
        }
    }
}

/// Ends connections that nobody has used for a while.
async fn sweep(seats: Arc<Seats>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        close_all(seats.idle()).await;
    }
}

/// Ends these, all at once.
pub(crate) async fn close_all(connections: Vec<Arc<Connection>>) {
    let mut ending = tokio::task::JoinSet::new();
    for connection in connections {
        ending.spawn(async move { drop(connection.close().await) });
    }
    while ending.join_next().await.is_some() {}
}

impl Source for Tester {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn prefix(&self) -> Prefix {
        Prefix::Plain
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer)
    }

    fn has_own_words(&self) -> bool {
        true
    }

    fn in_own_words(&self, tool: &str, error: &Error, caller: &RefusedCaller<'_>) -> Option<Outcome> {
        // Whoever cancelled does not want an answer in any words.
        if error.kind() == Kind::Cancelled {
            return None;
        }
        let caller = Caller::new(caller.principal, caller.session_id, self.settings.sharing);
        let connection = self.seats.look(&caller);
        let fault = Fault { connection, ..Fault::from(verbs::refused(tool, error)) };
        Some(failure(&fault, Vec::new(), Stopwatch::start()))
    }

    fn call<'a>(&'a self, call: Call) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(verbs::perform(self, call))
    }
}
