//! Private sessions: connections to a server that serve one client only. A session is opened when
//! the client first needs it and closed soon after the client's own session ends. `sharing.rs`
//! decides which clients need one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{ClientCapabilities, ErrorKind, HubError, SourceCall};
use toolyard_wire::McpClient;

use crate::connect::{CredentialPolicy, DedicatedConnectionParams, connect_dedicated};
use crate::connection::LiveConnection;
use crate::upstream::UpstreamState;

/// The maximum number of private sessions per server.
const MOST: usize = 16;
/// How long an unused session stays open if its client has no session of its own that could end.
const IDLE: Duration = Duration::from_secs(300);
/// How long an HTTP server may take to end a session.
const GOODBYE: Duration = Duration::from_millis(1_500);

/// The private sessions with one server.
#[derive(Debug, Default)]
pub(crate) struct PrivateSessions {
    open: Mutex<Vec<Arc<PrivateSession>>>,
    /// One task per session, which closes it.
    tasks: TaskTracker,
}

/// The owner of a private session.
#[derive(Debug, Clone, PartialEq)]
enum Owner {
    /// A client that has a session with the yard. Its calls share the private session.
    Client { principal: String, session: Arc<str> },
    /// A client without a session is identified only by its principal and sends its capabilities
    /// with each call. Calls of two clients must not share a session, so only one call at a time
    /// uses it.
    Principal { principal: String, capabilities: ClientCapabilities },
}

#[derive(Debug)]
pub(crate) struct PrivateSession {
    owner: Owner,
    connection: OnceCell<LiveConnection>,
    /// The number of calls that use the session, including those that wait for it to open.
    users: AtomicUsize,
    last_used: Mutex<Instant>,
    watched: AtomicBool,
    /// Canceled when the session must close.
    closed: CancellationToken,
}

/// A session in use.
#[derive(Debug)]
pub(crate) struct SessionLease<'a> {
    sessions: &'a Arc<PrivateSessions>,
    session: Arc<PrivateSession>,
}

impl SessionLease<'_> {
    /// Returns the connection, once it is open.
    pub(crate) fn live(&self) -> Option<&LiveConnection> {
        self.session.connection.get()
    }

    /// Closes the session, so that no call uses it again.
    pub(crate) fn discard(self) {
        self.sessions.close_session(&self.session);
    }
}

impl Drop for SessionLease<'_> {
    fn drop(&mut self) {
        *self.session.last_used.lock() = Instant::now();
        let last = self.session.users.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && self.session.is_exhausted() {
            self.sessions.close_session(&self.session);
        }
    }
}

impl PrivateSession {
    /// Returns whether no further call may use the session. A server may still ask about an
    /// abandoned call; if the next call may be of another client, the question would reach the
    /// wrong one.
    fn is_exhausted(&self) -> bool {
        match self.connection.get() {
            None => true,
            Some(live) => matches!(self.owner, Owner::Principal { .. }) && live.calls.has_abandoned_calls(),
        }
    }

    fn is_available_to(&self, owner: &Owner) -> bool {
        let idle = || self.users.load(Ordering::Acquire) == 0;
        self.owner == *owner
            && !self.closed.is_cancelled()
            && (matches!(owner, Owner::Client { .. }) || idle())
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Ends the session and stops the process that was started for it, within about two seconds.
    async fn close(&self) {
        let Some(live) = self.connection.get() else { return };
        if let McpClient::StreamableHttp(post) = &*live.client {
            let _ = timeout(GOODBYE, post.end_session()).await;
        }
        if let Some(child) = &live.child {
            child.stop_quickly().await;
        }
    }
}

impl PrivateSessions {
    /// Returns the private session of the client of this call, and opens it if necessary.
    pub(crate) async fn take<'a>(
        self: &'a Arc<Self>,
        inner: &UpstreamState,
        shared: &LiveConnection,
        call: &SourceCall,
    ) -> Result<SessionLease<'a>, HubError> {
        let principal = call.record.principal.id().to_owned();
        // The log level may differ from call to call and does not need another session.
        let call_capabilities =
            || ClientCapabilities { log_level: None, ..call.client.capabilities().clone() };
        let (owner, capabilities, ended) = match &call.record.context.client_session {
            Some(session) => (
                Owner::Client { principal, session: Arc::clone(session.id()) },
                session.capabilities().clone(),
                Some(session.ended().clone()),
            ),
            None => {
                (Owner::Principal { principal, capabilities: call_capabilities() }, call_capabilities(), None)
            }
        };
        let lease = self.reserve(owner, inner.settings.name.as_str())?;
        let opening = async {
            let params = DedicatedConnectionParams {
                common: &inner.common,
                settings: &inner.settings,
                authorizer: &inner.authorizer,
                capabilities: &capabilities,
                era: Some(shared.server.version.era()),
                message_log: &inner.message_log,
                credentials: CredentialPolicy::Granted,
            };
            connect_dedicated(params).await.map(|(live, _)| live)
        };
        let opened = Box::pin(lease.session.connection.get_or_try_init(|| opening)).await;
        if let Err(error) = opened {
            let message =
                format!("cannot open a private session with {}: {}", inner.settings.name, error.reason);
            lease.discard();
            return Err(HubError::new(ErrorKind::CannotConnect, message));
        }
        if !lease.session.watched.swap(true, Ordering::AcqRel) {
            let watching = watch_session(Arc::downgrade(self), Arc::clone(&lease.session), ended);
            self.tasks.spawn(watching);
        }
        Ok(lease)
    }

    /// Returns a session for this owner, open or yet to be opened. It counts as in use from here
    /// on, so that it is not evicted.
    fn reserve(self: &Arc<Self>, owner: Owner, name: &str) -> Result<SessionLease<'_>, HubError> {
        let mut open = self.lock();
        let available = open.iter().find(|session| session.is_available_to(&owner)).cloned();
        let session = match available {
            Some(session) => session,
            None => {
                make_room(&mut open, name)?;
                let session = Arc::new(PrivateSession {
                    owner,
                    connection: OnceCell::new(),
                    users: AtomicUsize::new(0),
                    last_used: Mutex::new(Instant::now()),
                    watched: AtomicBool::new(false),
                    closed: CancellationToken::new(),
                });
                open.push(Arc::clone(&session));
                session
            }
        };
        session.users.fetch_add(1, Ordering::AcqRel);
        Ok(SessionLease { sessions: self, session })
    }

    fn close_session(&self, session: &Arc<PrivateSession>) {
        session.closed.cancel();
        self.lock().retain(|open| !Arc::ptr_eq(open, session));
    }

    /// Closes sessions that have been idle for too long and whose clients have no session of their
    /// own.
    pub(crate) fn sweep(&self) {
        let is_expired = |session: &PrivateSession| {
            matches!(session.owner, Owner::Principal { .. })
                && session.users.load(Ordering::Acquire) == 0
                && session.last_used().elapsed() >= IDLE
        };
        self.lock().retain(|session| {
            if is_expired(session) {
                session.closed.cancel();
            }
            !session.closed.is_cancelled()
        });
    }

    /// Closes all sessions and waits until the processes started for them are gone.
    pub(crate) async fn close_all(&self) {
        for session in self.lock().drain(..) {
            session.closed.cancel();
        }
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<PrivateSession>>> {
        self.open.lock()
    }
}

/// Closes the least recently used idle session if the limit is reached.
fn make_room(open: &mut Vec<Arc<PrivateSession>>, name: &str) -> Result<(), HubError> {
    if open.len() < MOST {
        return Ok(());
    }
    let idle = open.iter().enumerate().filter(|(_, session)| session.users.load(Ordering::Acquire) == 0);
    match idle.min_by_key(|(_, session)| session.last_used()).map(|(at, _)| at) {
        Some(at) => {
            open.remove(at).closed.cancel();
            Ok(())
        }
        None => {
            let message = format!("all {MOST} private sessions with {name} are in use");
            Err(HubError::new(ErrorKind::RateLimited, message).with_retry_after(Duration::from_secs(5)))
        }
    }
}

/// Waits until a session breaks, must close, or the client's own session ends; then closes it.
async fn watch_session(
    sessions: Weak<PrivateSessions>,
    session: Arc<PrivateSession>,
    ended: Option<CancellationToken>,
) {
    let client_gone = async {
        match &ended {
            Some(ended) => ended.cancelled().await,
            None => std::future::pending().await,
        }
    };
    let broken = async {
        match session.connection.get() {
            Some(live) => drop(live.client.closed().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = client_gone => {}
        () = session.closed.cancelled() => {}
        () = broken => {}
    }
    session.closed.cancel();
    if let Some(sessions) = sessions.upgrade() {
        sessions.lock().retain(|open| !Arc::ptr_eq(open, &session));
    }
    session.close().await;
}
