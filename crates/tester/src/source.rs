//! The tester as a source of a yard: nine tools whose answers always have the form of the contract.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{
    BoxFuture, CallRecord, ErrorKind, HubError, Outcome, Prefix, Source, SourceCall, SourceName, SourceOffer,
};
use toolyard_upstream::UpstreamContext;

use crate::answer::{Stopwatch, failure};
use crate::caller::{TesterCaller, TesterSharing};
use crate::connection::TesterConnection;
use crate::connections::CallerConnections;
use crate::definitions::offer;
use crate::error::TesterError;
use crate::target::TesterServers;
use crate::tools;

/// How often unused connections are closed.
const SWEEP: Duration = Duration::from_secs(60);

/// The settings of a tester.
#[derive(Debug, Clone)]
pub struct TesterSettings {
    pub sharing: TesterSharing,
    /// How long connecting, and each list, may take.
    pub connect_timeout: Duration,
    /// How long a call may be silent.
    pub call_timeout: Duration,
}

impl TesterSettings {
    pub fn new(sharing: TesterSharing) -> Self {
        Self { sharing, connect_timeout: Duration::from_secs(30), call_timeout: Duration::from_secs(120) }
    }
}

/// The nine tools and their connections.
#[derive(Debug)]
pub struct Tester {
    name: SourceName,
    offer: Arc<SourceOffer>,
    pub(crate) settings: TesterSettings,
    pub(crate) common: UpstreamContext,
    pub(crate) servers: TesterServers,
    pub(crate) connections: Arc<CallerConnections>,
    /// Tasks that wait for sessions to end.
    watchers: TaskTracker,
    sweeper: Mutex<Option<JoinHandle<()>>>,
}

impl Tester {
    /// The name of this source, and of the server that offers it.
    pub const NAME: &'static str = "mcp-test-mcp";

    /// Creates a tester. Must be called inside a runtime.
    pub fn new(settings: TesterSettings, common: UpstreamContext, servers: TesterServers) -> Arc<Self> {
        let seats = Arc::new(CallerConnections::default());
        let sweeper = tokio::spawn(sweep(Arc::clone(&seats)));
        Arc::new(Self {
            name: SourceName::new(Self::NAME),
            offer: offer(),
            settings,
            common,
            servers,
            connections: seats,
            watchers: TaskTracker::new(),
            sweeper: Mutex::new(Some(sweeper)),
        })
    }

    /// Closes all connections.
    pub async fn stop(&self) {
        if let Some(sweeper) = self.sweeper.lock().take() {
            sweeper.abort();
        }
        close_all(self.connections.take_all()).await;
        self.watchers.close();
        self.watchers.wait().await;
    }

    /// Closes a connection when the session that created it ends, because no other session can use
    /// it.
    pub(crate) fn close_with_session(
        &self,
        session: CancellationToken,
        caller: TesterCaller,
        connection: Arc<TesterConnection>,
    ) {
        let seats = Arc::clone(&self.connections);
        self.watchers.spawn(async move {
            tokio::select! {
                () = connection.closed.cancelled() => {}
                () = session.cancelled() => {
                    seats.remove_if_same(&caller, &connection);
                    connection.close().await;
                }
            }
        });
    }
}

impl Drop for Tester {
    fn drop(&mut self) {
        if let Some(sweeper) = self.sweeper.lock().take() {
            sweeper.abort();
        }
    }
}

/// Closes connections that have been unused for a while.
async fn sweep(seats: Arc<CallerConnections>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        close_all(seats.take_idle()).await;
    }
}

/// Closes these connections concurrently.
pub(crate) async fn close_all(connections: Vec<Arc<TesterConnection>>) {
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

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer)
    }

    fn renders_errors(&self) -> bool {
        true
    }

    fn render_error(&self, tool: &str, error: &HubError, call: &CallRecord) -> Option<Outcome> {
        // A caller that canceled does not expect an answer.
        if error.kind() == ErrorKind::Cancelled {
            return None;
        }
        let caller = TesterCaller::from_record(call, self.settings.sharing);
        let connection = self.connections.peek(&caller);
        let fault =
            TesterError { connection, ..TesterError::from(tools::explain_invalid_arguments(tool, error)) };
        Some(failure(&fault, Vec::new(), Stopwatch::start()))
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(tools::run_tool(self, call))
    }
}
