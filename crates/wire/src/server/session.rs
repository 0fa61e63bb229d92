//! Sessions of the legacy era, and the registry of open sessions.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Charge;
use super::client_channel::{OutgoingFrame, PendingClientRequests};
use super::http::stream::{ResumableStreams, StandingStreams};
use crate::message::{RequestId, write_notification};
use crate::meta::ClientProfile;
use crate::version::Version;

/// What the service holds for a subscription. Dropping it releases the subscription.
pub type SubscriptionGuard = Box<dyn Any + Send>;

/// The identity of a session.
#[derive(Debug, Clone)]
pub struct SessionId {
    /// What the client sends with every request.
    pub header: String,
    /// What people see, if it is not the same.
    pub label: Option<String>,
}

impl SessionId {
    /// An ID that people may see.
    pub fn plain(header: String) -> Self {
        Self { header, label: None }
    }
}

/// A session that another process opened.
#[derive(Debug)]
pub struct RestoredSession {
    pub label: String,
    pub version: Version,
    pub client: ClientProfile,
    pub log_level: Option<String>,
    /// By URI.
    pub subscriptions: HashMap<String, SubscriptionGuard>,
}

/// A session that a legacy client opened with `initialize`.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    version: Version,
    client: ClientProfile,
    pub(crate) pending_requests: Arc<PendingClientRequests>,
    pub(crate) streams: ResumableStreams,
    standing: StandingChannel,
    state: Mutex<State>,
    closed: CancellationToken,
    /// The charge for this session, released when the session closes.
    charge: Mutex<Charge>,
}

/// The channel for messages that belong to no request.
#[derive(Debug)]
pub(crate) enum StandingChannel {
    Stdio(mpsc::Sender<OutgoingFrame>),
    Streams(StandingStreams),
}

#[derive(Debug)]
struct State {
    log_level: Option<String>,
    subscriptions: HashMap<String, SubscriptionGuard>,
    in_flight: HashMap<RequestId, CancellationToken>,
    last_used: Instant,
    /// Whether the client has ended the session.
    is_deleted: bool,
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        version: Version,
        client: ClientProfile,
        standing: StandingChannel,
        streams: ResumableStreams,
    ) -> Self {
        let state = State {
            log_level: None,
            subscriptions: HashMap::new(),
            in_flight: HashMap::new(),
            last_used: Instant::now(),
            is_deleted: false,
        };
        Self {
            id,
            version,
            client,
            pending_requests: Arc::default(),
            streams,
            standing,
            state: Mutex::new(state),
            closed: CancellationToken::new(),
            charge: Mutex::new(None),
        }
    }

    pub(crate) fn with_charge(self, charge: Charge) -> Self {
        Self { charge: Mutex::new(charge), ..self }
    }

    pub fn id(&self) -> &str {
        &self.id.header
    }

    /// Returns the ID for logs and lists, which cannot be used to access the session.
    pub fn label(&self) -> &str {
        self.id.label.as_deref().unwrap_or(&self.id.header)
    }

    /// Returns a token that is canceled when the session closes.
    pub fn closed_token(&self) -> CancellationToken {
        self.closed.clone()
    }

    pub fn version(&self) -> Version {
        self.version
    }

    pub fn client(&self) -> &ClientProfile {
        &self.client
    }

    /// Returns the level that the client set with `logging/setLevel`.
    pub fn log_level(&self) -> Option<String> {
        self.lock().log_level.clone()
    }

    pub(crate) fn set_log_level(&self, level: String) {
        self.lock().log_level = Some(level);
    }

    pub(crate) fn with_state(
        self,
        log_level: Option<String>,
        subscriptions: HashMap<String, SubscriptionGuard>,
    ) -> Self {
        {
            let mut state = self.lock();
            state.log_level = log_level;
            state.subscriptions = subscriptions;
        }
        self
    }

    /// Returns the URIs of all subscriptions.
    pub fn subscribed_uris(&self) -> Vec<String> {
        self.lock().subscriptions.keys().cloned().collect()
    }

    /// Holds a subscription for the client until it unsubscribes or the session closes. Replaces an
    /// earlier subscription to the same URI. Returns false if the client already has `most`
    /// subscriptions or the session is closed.
    #[must_use]
    pub fn subscribe(&self, uri: &str, guard: SubscriptionGuard, most: usize) -> bool {
        let before = {
            let mut state = self.lock();
            let is_new = !state.subscriptions.contains_key(uri);
            if self.closed.is_cancelled() || (is_new && state.subscriptions.len() >= most) {
                return false;
            }
            state.subscriptions.insert(uri.to_owned(), guard)
        };
        // Releasing a guard takes locks of the service, so the session's lock is released first.
        drop(before);
        true
    }

    pub fn unsubscribe(&self, uri: &str) {
        let gone = self.lock().subscriptions.remove(uri);
        drop(gone);
    }

    /// Returns whether the client has a subscription to this URI whose guard matches `fits`.
    pub fn is_subscribed(&self, uri: &str, fits: impl FnOnce(&(dyn Any + Send)) -> bool) -> bool {
        self.lock().subscriptions.get(uri).is_some_and(|guard| fits(&**guard))
    }

    /// Sends a message that belongs to no request. A client that does not listen misses it.
    pub fn announce(&self, method: &str, params: &RawValue) {
        let message = write_notification(method, params);
        match &self.standing {
            StandingChannel::Stdio(sender) => drop(sender.try_send(OutgoingFrame::Message(message))),
            StandingChannel::Streams(streams) => streams.announce(message),
        }
    }

    pub(crate) fn standing_streams(&self) -> Option<&StandingStreams> {
        match &self.standing {
            StandingChannel::Streams(streams) => Some(streams),
            StandingChannel::Stdio(_) => None,
        }
    }

    /// Registers a request. Returns `None` if a request with this ID is already in progress.
    pub(crate) fn begin_request(self: &Arc<Self>, id: &RequestId) -> Option<InFlightRequest> {
        let mut state = self.lock();
        state.last_used = Instant::now();
        if state.in_flight.contains_key(id) {
            return None;
        }
        let cancel = self.closed.child_token();
        state.in_flight.insert(id.clone(), cancel.clone());
        Some(InFlightRequest { session: Arc::clone(self), id: id.clone(), cancel })
    }

    /// Cancels a request on behalf of the client.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = self.lock().in_flight.get(id) {
            cancel.cancel();
        }
    }

    pub(crate) fn touch(&self) {
        self.lock().last_used = Instant::now();
    }

    fn is_busy(&self) -> bool {
        !self.lock().in_flight.is_empty()
    }

    /// Returns when the session was last used, or `None` while it is in use.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let listening = self.standing_streams().is_some_and(StandingStreams::has_reader);
        let state = self.lock();
        (!listening && state.in_flight.is_empty()).then_some(state.last_used)
    }

    /// Closes the session: cancels calls in flight and ends streams.
    pub(crate) fn close(&self) {
        self.closed.cancel();
        let subscriptions = {
            let mut state = self.lock();
            std::mem::take(&mut state.subscriptions)
        };
        drop(subscriptions);
        self.charge.lock().take();
        self.pending_requests.cancel_all();
        self.streams.end_all();
        if let Some(standing) = self.standing_streams() {
            standing.end();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A request in progress. Dropping it removes it from the session's list.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    session: Arc<Session>,
    id: RequestId,
    pub(crate) cancel: CancellationToken,
}

impl InFlightRequest {
    /// Returns whether the request is canceled because this process closed its session.
    pub(crate) fn is_session_lost(&self) -> bool {
        self.session.closed.is_cancelled() && !self.session.lock().is_deleted
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.in_flight.remove(&self.id);
        state.last_used = Instant::now();
    }
}

/// The open sessions of an endpoint, each with the caller that opened it.
#[derive(Debug)]
pub struct SessionRegistry<C> {
    sessions: Mutex<HashMap<String, (C, Arc<Session>)>>,
    max_sessions: usize,
}

impl<C: Clone + PartialEq> SessionRegistry<C> {
    pub fn new(max_sessions: usize) -> Self {
        Self { sessions: Mutex::default(), max_sessions }
    }

    /// Returns all open sessions with the callers that opened them.
    pub fn all(&self) -> Vec<(C, Arc<Session>)> {
        self.lock().values().map(|(caller, session)| (caller.clone(), Arc::clone(session))).collect()
    }

    /// Adds a session. At the limit, it replaces the session of the same caller that has been idle
    /// longest, never one of another caller. Returns false if the caller has no idle session.
    pub(crate) fn add(&self, caller: C, session: Arc<Session>) -> bool {
        // One lock for both steps: of two concurrent calls, only one may take the last slot.
        let mut sessions = self.lock();
        if sessions.len() >= self.max_sessions && !close_idlest_session(&mut sessions, &caller) {
            drop(sessions);
            session.close();
            return false;
        }
        sessions.insert(session.id().to_owned(), (caller, session));
        true
    }

    /// Adds a session that another process opened, unless a concurrent request has already done so.
    pub(crate) fn add_restored(&self, caller: C, session: Arc<Session>) -> Option<Arc<Session>> {
        if let Some(known) = self.get(session.id(), &caller) {
            session.close();
            return Some(known);
        }
        self.add(caller, Arc::clone(&session)).then_some(session)
    }

    /// Closes the session with this ID unless it has a request in progress. Returns false if it
    /// has.
    pub fn close_unless_busy(&self, id: &str) -> bool {
        let mut sessions = self.lock();
        if sessions.get(id).is_some_and(|(_, session)| session.is_busy()) {
            return false;
        }
        let closed = sessions.remove(id);
        drop(sessions);
        if let Some((_, session)) = closed {
            session.close();
        }
        true
    }

    /// Closes the session of this caller that has been idle longest. Returns false if none is idle.
    pub(crate) fn close_idlest(&self, caller: &C) -> bool {
        close_idlest_session(&mut self.lock(), caller)
    }

    /// Returns the session with this ID if it belongs to the caller. The caller's permissions may
    /// have changed since the last request, so the session keeps the current caller.
    pub(crate) fn get(&self, id: &str, caller: &C) -> Option<Arc<Session>> {
        let mut sessions = self.lock();
        let (owner, session) = sessions.get_mut(id).filter(|(owner, _)| owner == caller)?;
        owner.clone_from(caller);
        Some(Arc::clone(session))
    }

    /// Ends a session on behalf of the client.
    pub fn delete(&self, id: &str) {
        if let Some((_, session)) = self.lock().remove(id) {
            session.lock().is_deleted = true;
            session.close();
        }
    }

    /// Closes the sessions that have been unused for this long.
    pub(crate) fn sweep(&self, idle: Duration) {
        let mut sessions = self.lock();
        let old = |session: &Session| session.idle_since().is_some_and(|since| since.elapsed() >= idle);
        sessions.retain(|_, (_, session)| {
            let keep = !old(session);
            if !keep {
                session.close();
            }
            keep
        });
    }

    pub(crate) fn close_all(&self) {
        for (_, (_, session)) in self.lock().drain() {
            session.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (C, Arc<Session>)>> {
        self.sessions.lock()
    }
}

fn close_idlest_session<C: PartialEq>(sessions: &mut HashMap<String, (C, Arc<Session>)>, caller: &C) -> bool {
    let idlest = sessions
        .iter()
        .filter(|(_, (owner, _))| owner == caller)
        .filter_map(|(id, (_, session))| Some((session.idle_since()?, id.clone())))
        .min_by_key(|(since, _)| *since);
    let Some((_, id)) = idlest else { return false };
    if let Some((_, session)) = sessions.remove(&id) {
        session.close();
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use tokio::sync::mpsc;

    use super::{ResumableStreams, Session, SessionId, SessionRegistry, StandingChannel};
    use crate::meta::ClientProfile;
    use crate::version::Version;

    fn session(id: usize) -> Arc<Session> {
        let standing = StandingChannel::Stdio(mpsc::channel(1).0);
        let (client, streams) = (ClientProfile::default(), ResumableStreams::default());
        Arc::new(Session::new(
            SessionId::plain(id.to_string()),
            Version::V2025_06_18,
            client,
            standing,
            streams,
        ))
    }

    #[test]
    fn concurrently_opened_sessions_never_exceed_the_limit() {
        const CALLERS: usize = 8;
        for round in 0..300 {
            let roster = SessionRegistry::new(4);
            assert!((0..3).all(|id| roster.add(100 + id, session(100 + id))));
            let start = Barrier::new(CALLERS);
            let added = std::thread::scope(|scope| {
                let adding: Vec<_> = (0..CALLERS)
                    .map(|caller| {
                        let (roster, start) = (&roster, &start);
                        scope.spawn(move || {
                            let session = session(caller);
                            start.wait();
                            roster.add(caller, session)
                        })
                    })
                    .collect();
                adding.into_iter().map(|one| usize::from(one.join().unwrap())).sum::<usize>()
            });
            assert_eq!((added, roster.all().len()), (1, 4), "in round {round}");
            assert!(
                (100..103).all(|id| roster.get(&id.to_string(), &id).is_some()),
                "sessions of other callers stay open"
            );
        }
    }

    #[test]
    fn a_session_makes_room_only_for_another_of_its_own_caller() {
        let roster = SessionRegistry::new(2);
        assert!(roster.add("ada", session(1)) && roster.add("bob", session(2)));
        assert!(!roster.add("eve", session(3)), "eve has no idle session");
        assert!(roster.add("ada", session(4)));
        let open = |caller: &'static str, id: &str| roster.get(id, &caller).is_some();
        assert!(open("bob", "2") && open("ada", "4") && !open("ada", "1"));
    }
}
