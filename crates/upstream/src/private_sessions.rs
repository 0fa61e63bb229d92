//! Private sessions: one client's own connection to a server, opened when it first needs one and ended soon after the
//! client's session with us has ended. Which clients need one is decided in `sharing.rs`.

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

/// How many private sessions one server has at once.
const MOST: usize = 16;
/// How long an unused one is kept whose client has no session with us that could end.
const IDLE: Duration = Duration::from_secs(300);
/// How long a server over HTTP may take to end one.
const GOODBYE: Duration = Duration::from_millis(1_500);

/// The private sessions with one server.
#[derive(Debug, Default)]
pub(crate) struct PrivateSessions {
    open: Mutex<Vec<Arc<PrivateSession>>>,
    /// One task for each, which ends it.
    tasks: TaskTracker,
}

/// Whose session it is.
#[derive(Debug, Clone, PartialEq)]
enum Owner {
    /// A client that has a session with us. Its calls share the private session.
    Client { principal: String, session: Arc<str> },
    /// A client without one is known by its principal alone, and what it can be asked is said with each call. Calls of
    /// two clients must not meet, so only one call at a time uses the session.
    Principal { principal: String, abilities: ClientCapabilities },
}

#[derive(Debug)]
pub(crate) struct PrivateSession {
    owner: Owner,
    connection: OnceCell<LiveConnection>,
    /// How many calls use it, those included that wait for it to be opened.
    users: AtomicUsize,
    last_used: Mutex<Instant>,
    watched: AtomicBool,
    /// Cancelled when it is to be ended.
    closed: CancellationToken,
}

/// A session in use.
#[derive(Debug)]
pub(crate) struct SessionLease<'a> {
    sessions: &'a Arc<PrivateSessions>,
    session: Arc<PrivateSession>,
}

impl SessionLease<'_> {
    /// Its connection, once it is open.
    pub(crate) fn live(&self) -> Option<&LiveConnection> {
        self.session.connection.get()
    }

    /// It is gone: no call is given it again.
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
    /// Whether no call may use it after those that do. A server may still ask about a call that was given up; where the
    /// next call may be of another client, that question would reach the wrong one.
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

    /// Ends the connection and what was started for it, politely at first, within two seconds.
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
    /// The private session of the client that makes this call, opened if there is none.
    pub(crate) async fn take<'a>(
        self: &'a Arc<Self>,
        inner: &UpstreamState,
        shared: &LiveConnection,
        call: &SourceCall,
    ) -> Result<SessionLease<'a>, HubError> {
        let principal = call.record.principal.id().to_owned();
        // Which log lines a client wants differs from call to call and does not need another session.
        let of_call = || ClientCapabilities { log_level: None, ..call.client.capabilities().clone() };
        let (owner, abilities, ended) = match &call.record.context.client_session {
            Some(session) => (
                Owner::Client { principal, session: Arc::clone(session.id()) },
                session.capabilities().clone(),
                Some(session.ended().clone()),
            ),
            None => (Owner::Principal { principal, abilities: of_call() }, of_call(), None),
        };
        let used = self.reserve(owner, inner.settings.name.as_str())?;
        let opening = async {
            let alone = DedicatedConnectionParams {
                common: &inner.common,
                settings: &inner.settings,
                authorizer: &inner.authorizer,
                abilities: &abilities,
                era: Some(shared.server.version.era()),
                message_log: &inner.message_log,
                credentials: CredentialPolicy::Granted,
            };
            connect_dedicated(alone).await.map(|(live, _)| live)
        };
        let opened = Box::pin(used.session.connection.get_or_try_init(|| opening)).await;
        if let Err(refused) = opened {
            let message =
                format!("cannot open a private session with {}: {}", inner.settings.name, refused.reason);
            used.discard();
            return Err(HubError::new(ErrorKind::CannotConnect, message));
        }
        if !used.session.watched.swap(true, Ordering::AcqRel) {
            let attending = watch_session(Arc::downgrade(self), Arc::clone(&used.session), ended);
            self.tasks.spawn(attending);
        }
        Ok(used)
    }

    /// A session for this owner, opened or still to be opened. Counted as used from here on, so that it is not taken
    /// away again.
    fn reserve(self: &Arc<Self>, owner: Owner, name: &str) -> Result<SessionLease<'_>, HubError> {
        let mut open = self.lock();
        let found = open.iter().find(|session| session.is_available_to(&owner)).cloned();
        let session = match found {
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

    /// Ends the sessions of clients without a session with us that nobody has used for a while.
    pub(crate) fn sweep(&self) {
        let old = |session: &PrivateSession| {
            matches!(session.owner, Owner::Principal { .. })
                && session.users.load(Ordering::Acquire) == 0
                && session.last_used().elapsed() >= IDLE
        };
        self.lock().retain(|session| {
            if old(session) {
                session.closed.cancel();
            }
            !session.closed.is_cancelled()
        });
    }

    /// Ends all of them; done when what was started for them is gone.
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

/// Ends the unused session that was used longest ago if there are too many.
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

/// Stays with an open session until it breaks, is told to end, or the client's session with us has ended; then ends it.
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
