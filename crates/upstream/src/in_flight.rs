//! The calls in flight on one connection, used to match notifications and requests of the server to
//! their call.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use toolyard_hub::{CallerChannel, HubError, QuestionKind, SourceCall};

/// How many clients with abandoned calls are tracked. Beyond that, any client may have one.
const MOST_GIVEN_UP: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct InFlightCalls {
    next: AtomicU64,
    inner: Mutex<Inner>,
    entered: Notify,
    /// How many questions arrived while no call was in flight, and wait for one.
    orphaned_questions: AtomicU64,
    question_released: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    flights: BTreeMap<u64, Arc<InFlightCall>>,
    /// The callers that abandoned a call before the server answered it. The server may still ask
    /// about these calls.
    abandoned: AbandonedCalls,
}

/// Identifies the client of a call, to compare it with that of another call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CallerKey {
    principal: String,
    session: Arc<str>,
}

#[derive(Debug, Default)]
struct AbandonedCalls {
    callers: HashSet<CallerKey>,
    /// Whether a client that cannot be identified abandoned a call.
    has_unknown_caller: bool,
}

/// One call in flight.
#[derive(Debug)]
pub(crate) struct InFlightCall {
    pub(crate) client: CallerChannel,
    /// `None` if the client has no session. Two such calls may be of different clients.
    caller: Option<CallerKey>,
    /// Notified when the server sends something, which restarts the idle timeout.
    pub(crate) activity: Notify,
    /// The error with which the call was aborted.
    abort_error: OnceLock<HubError>,
    /// How many questions to the client are open.
    open_questions: AtomicU64,
    /// How many questions there have been.
    question_count: AtomicU64,
    /// How many questions that arrived without a call this call has adopted.
    adopted_questions: AtomicU64,
}

impl InFlightCall {
    fn new(call: &SourceCall) -> Self {
        let session = call.record.context.client_session.as_ref();
        let caller = session.map(|session| CallerKey {
            principal: call.record.principal.id().to_owned(),
            session: Arc::clone(session.id()),
        });
        Self {
            client: call.client.clone(),
            caller,
            activity: Notify::new(),
            abort_error: OnceLock::new(),
            open_questions: AtomicU64::new(0),
            question_count: AtomicU64::new(0),
            adopted_questions: AtomicU64::new(0),
        }
    }

    /// Marks a question to the client as open until the guard is dropped.
    pub(crate) fn begin_question(&self) -> QuestionGuard<'_> {
        self.open_questions.fetch_add(1, Ordering::Relaxed);
        QuestionGuard(self)
    }

    /// Returns a key for the next question. Keys are the same whenever the same call is repeated.
    pub(crate) fn next_key(&self) -> String {
        format!("question-{}", self.question_count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn has_open_questions(&self) -> bool {
        self.open_questions.load(Ordering::Relaxed) > 0
    }

    /// Ends the call with this error, whatever the server still sends.
    pub(crate) fn abort(&self, error: HubError) {
        let _ = self.abort_error.set(error);
        self.activity.notify_one();
    }

    /// Returns the error with which the call was aborted, if it was.
    pub(crate) fn abort_reason(&self) -> Option<&HubError> {
        self.abort_error.get()
    }

    fn supports(&self, kind: QuestionKind) -> bool {
        self.client.capabilities().supports(kind)
    }

    fn is_same_client(&self, other: &Self) -> bool {
        let same_session = self.caller.is_some() && self.caller == other.caller;
        same_session || self.client.is_same_caller(&other.client)
    }
}

pub(crate) struct QuestionGuard<'a>(&'a InFlightCall);

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.0.open_questions.fetch_sub(1, Ordering::Relaxed);
        self.0.activity.notify_one();
    }
}

/// The client that answers a question of the server.
#[derive(Debug)]
pub(crate) enum Respondent {
    /// The client of this call.
    Call(Arc<InFlightCall>),
    /// The client of the call that the question is about does not support it.
    Unable,
    /// No call is in flight.
    NoCall,
    /// The question may be about the calls of several clients. Contains the calls whose clients
    /// support it.
    Ambiguous(Vec<Arc<InFlightCall>>),
}

/// A question that arrived without a call, until it is answered.
pub(crate) struct AdoptedQuestion<'a> {
    calls: &'a InFlightCalls,
    /// The call whose client is asked, or `None` while the question waits for one.
    call: Option<Arc<InFlightCall>>,
}

impl AdoptedQuestion<'_> {
    pub(crate) fn flight(&self) -> Option<&Arc<InFlightCall>> {
        self.call.as_ref()
    }

    fn release(&mut self) {
        match self.call.take() {
            Some(flight) => flight.adopted_questions.fetch_sub(1, Ordering::Relaxed),
            None => self.calls.orphaned_questions.fetch_sub(1, Ordering::Relaxed),
        };
        self.calls.question_released.notify_waiters();
    }
}

impl Drop for AdoptedQuestion<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// The calls in flight at one moment.
#[derive(Debug)]
pub(crate) struct CallSnapshot {
    /// The call on whose stream a question arrived, if the transport has streams per call. The
    /// inner value is `None` if that call has ended.
    tagged: Option<Option<Arc<InFlightCall>>>,
    /// In the order in which they started.
    flights: Vec<Arc<InFlightCall>>,
    /// Whether a client other than that of the latest call abandoned a call.
    abandoned_by_others: bool,
}

impl CallSnapshot {
    /// Selects the respondent on a connection that several clients share. If a question may be
    /// about the calls of two clients, neither is asked.
    pub(crate) fn respondent(&self, kind: QuestionKind) -> Respondent {
        match &self.tagged {
            Some(Some(flight)) if flight.supports(kind) => return Respondent::Call(Arc::clone(flight)),
            Some(Some(_)) => return Respondent::Unable,
            // It arrived on the stream of a request of the yard, or of a call that has ended.
            Some(None) => return Respondent::NoCall,
            None => {}
        }
        let Some(latest) = self.flights.last() else { return Respondent::NoCall };
        let of_one_client =
            self.flights.iter().all(|flight| flight.is_same_client(latest)) && !self.abandoned_by_others;
        let able = self.flights.iter().rev().filter(|flight| flight.supports(kind));
        let mut able: Vec<_> = able.cloned().collect();
        match of_one_client {
            // If one client has several calls, the latest is used.
            true if able.is_empty() => Respondent::Unable,
            true => Respondent::Call(able.swap_remove(0)),
            false => Respondent::Ambiguous(able),
        }
    }

    /// Selects the respondent on a connection that serves one client only.
    pub(crate) fn private_respondent(&self, kind: QuestionKind) -> Respondent {
        let tagged = self.tagged.as_ref().and_then(Option::as_ref);
        let able = self.flights.iter().rev().find(|flight| flight.supports(kind));
        match tagged.filter(|flight| flight.supports(kind)).or(able) {
            Some(flight) => Respondent::Call(Arc::clone(flight)),
            None if self.flights.is_empty() => Respondent::NoCall,
            None => Respondent::Unable,
        }
    }
}

impl InFlightCalls {
    pub(crate) fn register(self: &Arc<Self>, call: &SourceCall) -> CallGuard {
        let tag = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let flight = Arc::new(InFlightCall::new(call));
        self.lock().flights.insert(tag, Arc::clone(&flight));
        self.entered.notify_waiters();
        CallGuard { calls: Arc::clone(self), tag, flight, answered: false }
    }

    pub(crate) fn get(&self, tag: u64) -> Option<Arc<InFlightCall>> {
        self.lock().flights.get(&tag).cloned()
    }

    /// Returns the only call in flight. A message without a call can only belong to it.
    pub(crate) fn get_only(&self) -> Option<Arc<InFlightCall>> {
        let inner = self.lock();
        (inner.flights.len() == 1).then(|| inner.flights.values().next().cloned()).flatten()
    }

    /// Returns the calls that a question arriving now may be about. `tag` is the call on whose
    /// stream it arrived, if the transport has streams per call.
    pub(crate) fn snapshot(&self, tag: Option<u64>) -> CallSnapshot {
        let inner = self.lock();
        let flights: Vec<_> = inner.flights.values().cloned().collect();
        let abandoned_by_others =
            flights.last().is_some_and(|latest| inner.abandoned.has_other_callers(latest));
        let tagged = tag.map(|tag| inner.flights.get(&tag).cloned());
        CallSnapshot { tagged, flights, abandoned_by_others }
    }

    /// Waits for the next call, which adopts a question that arrived while no call was in flight.
    pub(crate) async fn adopt_question(&self) -> AdoptedQuestion<'_> {
        let orphan = AdoptedQuestion { calls: self, call: None };
        self.orphaned_questions.fetch_add(1, Ordering::Relaxed);
        loop {
            let entered = self.entered.notified();
            let latest = self.lock().flights.values().next_back().cloned();
            match latest {
                Some(flight) => {
                    flight.adopted_questions.fetch_add(1, Ordering::Relaxed);
                    let mut adopted = orphan;
                    adopted.release();
                    adopted.call = Some(flight);
                    return adopted;
                }
                None => entered.await,
            }
        }
    }

    /// Waits until every question that this call has adopted or could adopt is answered.
    pub(crate) async fn wait_for_adopted(&self, flight: &InFlightCall) {
        loop {
            let settled = self.question_released.notified();
            let open = self.orphaned_questions.load(Ordering::Relaxed)
                + flight.adopted_questions.load(Ordering::Relaxed);
            if open == 0 {
                return;
            }
            settled.await;
        }
    }

    /// Returns whether the server may still be working on an abandoned call.
    pub(crate) fn has_abandoned_calls(&self) -> bool {
        let inner = self.lock();
        inner.abandoned.has_unknown_caller || !inner.abandoned.callers.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl AbandonedCalls {
    fn add(&mut self, caller: Option<CallerKey>) {
        match caller {
            Some(caller) if self.callers.len() < MOST_GIVEN_UP => drop(self.callers.insert(caller)),
            Some(caller) if self.callers.contains(&caller) => {}
            Some(_) | None => self.has_unknown_caller = true,
        }
    }

    fn has_other_callers(&self, flight: &InFlightCall) -> bool {
        self.has_unknown_caller || self.callers.iter().any(|caller| flight.caller.as_ref() != Some(caller))
    }
}

/// Removes the call from the list when dropped.
#[derive(Debug)]
pub(crate) struct CallGuard {
    calls: Arc<InFlightCalls>,
    pub(crate) tag: u64,
    pub(crate) flight: Arc<InFlightCall>,
    answered: bool,
}

impl CallGuard {
    /// Records that the server has answered, so that it asks nothing more about this call.
    pub(crate) fn mark_answered(&mut self) {
        self.answered = true;
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut inner = self.calls.lock();
        inner.flights.remove(&self.tag);
        if !self.answered {
            inner.abandoned.add(self.flight.caller.clone());
        }
    }
}
