//! A server while this replica runs it: which calls are in flight, which of them have asked
//! something, and which sessions of other replicas they belong to.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolyard_hub::{
    ClientCapabilities, ClientSession, ErrorKind, HubError, Outcome, RawAnswers, ReplicaId, Replicas, Source,
    SourceCall, SourceName, SourceOffer,
};

use super::message::AnswerMessage;

/// How long the session of a client outlives its replica, which another one may continue.
const SESSION_GRACE: Duration = Duration::from_secs(60);

/// A server that this replica runs.
pub(super) struct LocalRun {
    pub(super) source: Arc<dyn Source>,
    /// The ID under which this replica became the holder.
    pub(super) holder: ReplicaId,
    name: SourceName,
    /// What the source offers before it knows.
    initial_offer: Arc<SourceOffer>,
    gate: Mutex<Gate>,
    calls: TaskTracker,
    /// Canceled when calls in flight must end.
    cut: CancellationToken,
    /// Questions of calls of other replicas, until they are answered.
    questions: Mutex<HashMap<u64, OpenQuestion>>,
    next_question: AtomicU64,
    sessions: Mutex<HashMap<SessionKey, ForeignSession>>,
    /// Tasks that wait for the end of a session.
    watchers: TaskTracker,
    /// The replica that has become the holder because this one counts as dead.
    successor: Mutex<Option<ReplicaId>>,
    /// Canceled when there is a successor.
    pub(super) surrendered: CancellationToken,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    Closed,
}

struct OpenQuestion {
    asked: ReplicaId,
    reply: oneshot::Sender<Result<RawAnswers, HubError>>,
}

/// The principal and the session.
type SessionKey = (String, String);

/// The session of a client of another replica.
struct ForeignSession {
    session: ClientSession,
    /// The replica through which the client last made a call.
    replica: ReplicaId,
    /// Since when that replica has been dead.
    orphaned: Option<Instant>,
    /// Ends the session, and with it everything that was opened for it.
    _ended: DropGuard,
}

impl LocalRun {
    pub(super) fn new(source: Arc<dyn Source>, holder: ReplicaId) -> Self {
        Self {
            name: source.name().clone(),
            initial_offer: source.offer(),
            source,
            holder,
            gate: Mutex::new(Gate::Open),
            calls: TaskTracker::new(),
            cut: CancellationToken::new(),
            questions: Mutex::default(),
            next_question: AtomicU64::new(0),
            sessions: Mutex::default(),
            watchers: TaskTracker::new(),
            successor: Mutex::default(),
            surrendered: CancellationToken::new(),
        }
    }

    /// Returns what the server offers, once it is known.
    pub(super) fn offer(&self) -> Option<Arc<SourceOffer>> {
        Some(self.source.offer()).filter(|offer| !Arc::ptr_eq(offer, &self.initial_offer))
    }

    /// Admits a call, unless the server is about to stop. The call is in flight until the token is
    /// dropped.
    pub(super) fn admit(&self) -> Option<TaskTrackerToken> {
        let gate = self.gate.lock();
        (*gate == Gate::Open).then(|| self.calls.token())
    }

    /// Executes a call of a client of this replica.
    pub(super) async fn call_locally(
        self: &Arc<Self>,
        call: SourceCall,
        in_flight: TaskTrackerToken,
    ) -> Result<Outcome, HubError> {
        self.adopt_session(&call);
        self.call(call, in_flight).await
    }

    /// Executes a call that was admitted.
    pub(super) async fn call(
        &self,
        call: SourceCall,
        in_flight: TaskTrackerToken,
    ) -> Result<Outcome, HubError> {
        // Declared first, so that it is dropped last.
        let _in_flight = in_flight;
        let calling = self.source.call(call);
        tokio::select! {
            result = calling => result,
            () = self.cut.cancelled() => {
                let message = format!(
                    "{} is being moved to another replica; the call was aborted and may have had side effects",
                    self.name
                );
                Err(HubError::new(ErrorKind::ConnectionLost, message))
            }
        }
    }

    /// Admits no further calls.
    pub(super) fn close_gate(&self) {
        *self.gate.lock() = Gate::Closed;
        self.calls.close();
    }

    /// Waits until no call is in flight. The gate must be closed.
    pub(super) async fn wait_for_calls(&self) {
        self.calls.wait().await;
    }

    /// Ends the calls in flight and the sessions of other replicas. The gate must be closed.
    pub(super) async fn cut_calls(&self) {
        self.cut.cancel();
        self.sessions.lock().clear();
        self.watchers.close();
        self.watchers.wait().await;
        self.calls.wait().await;
    }

    /// Notes that another replica has become the holder.
    pub(super) fn surrender_to(&self, successor: &ReplicaId) {
        *self.successor.lock() = Some(successor.clone());
        self.surrendered.cancel();
    }

    pub(super) fn successor(&self) -> Option<ReplicaId> {
        self.successor.lock().clone()
    }

    /// Registers questions for the client of another replica. Returns their number.
    pub(super) fn add_question(
        &self,
        asked: &ReplicaId,
        reply: oneshot::Sender<Result<RawAnswers, HubError>>,
    ) -> u64 {
        let number = self.next_question.fetch_add(1, Ordering::Relaxed);
        self.questions.lock().insert(number, OpenQuestion { asked: asked.clone(), reply });
        number
    }

    pub(super) fn remove_questions(&self, numbers: &BTreeSet<u64>) {
        self.questions.lock().retain(|number, _| !numbers.contains(number));
    }

    /// Passes on the answers of the replica that was asked.
    pub(super) fn answer(&self, from: &ReplicaId, message: AnswerMessage) {
        let question = {
            let mut questions = self.questions.lock();
            match questions.get(&message.batch) {
                Some(question) if question.asked == *from => questions.remove(&message.batch),
                // The call has ended, or the replica has a new ID and its calls are lost.
                Some(_) | None => None,
            }
        };
        if let Some(question) = question {
            let _ = question.reply.send(message.answers.map_err(HubError::from));
        }
    }

    /// Returns the session of a client of another replica, which stays the same while the client
    /// moves from one replica to the next.
    pub(super) fn foreign_session(
        &self,
        from: &ReplicaId,
        principal: &str,
        id: &str,
        capabilities: ClientCapabilities,
    ) -> ClientSession {
        let mut sessions = self.sessions.lock();
        let known = sessions.entry((principal.to_owned(), id.to_owned())).or_insert_with(|| {
            let ended = CancellationToken::new();
            let session = ClientSession::new(id, capabilities, ended.clone());
            ForeignSession { session, replica: from.clone(), orphaned: None, _ended: ended.drop_guard() }
        });
        known.replica = from.clone();
        known.orphaned = None;
        known.session.clone()
    }

    /// Continues the session of a client that has moved from another replica to this one, so that it
    /// keeps what was opened for it.
    fn adopt_session(self: &Arc<Self>, call: &SourceCall) {
        let Some(local) = call.record.context.client_session.clone() else { return };
        let key = (call.record.principal.id().to_owned(), local.id().to_string());
        {
            let mut sessions = self.sessions.lock();
            let Some(session) = sessions.get_mut(&key) else { return };
            if session.replica == self.holder {
                return;
            }
            session.replica = self.holder.clone();
        }
        let (run, (principal, id)) = (Arc::clone(self), key);
        self.watchers.spawn(async move {
            tokio::select! {
                () = local.ended().cancelled() => run.end_session(&run.holder, principal, id),
                () = run.cut.cancelled() => {}
            }
        });
    }

    /// Ends the session of a client, unless the client has moved to a third replica.
    pub(super) fn end_session(&self, from: &ReplicaId, principal: String, id: String) {
        let mut sessions = self.sessions.lock();
        let key = (principal, id);
        if sessions.get(&key).is_some_and(|session| session.replica == *from) {
            sessions.remove(&key);
        }
    }

    /// Ends the sessions whose replica has been dead for a while and that no other one continues.
    pub(super) fn sweep_sessions(&self, replicas: &dyn Replicas) {
        self.sessions.lock().retain(|_, session| {
            if session.replica == self.holder || replicas.find(&session.replica).is_some() {
                session.orphaned = None;
                return true;
            }
            session.orphaned.get_or_insert_with(Instant::now).elapsed() < SESSION_GRACE
        });
    }
}
