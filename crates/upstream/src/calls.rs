//! The calls that one connection is busy with, so that what the server says meanwhile finds the call it is for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use toolyard_hub::Client;

#[derive(Debug, Default)]
pub(crate) struct Calls {
    next: AtomicU64,
    flights: Mutex<BTreeMap<u64, Arc<Flight>>>,
    entered: Notify,
    /// How many questions of the server came while nobody called, and wait for a call.
    orphans: AtomicU64,
    settled: Notify,
}

/// One call under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) client: Client,
    /// The server was heard of: a silent call's clock starts anew.
    pub(crate) heard: Notify,
    /// How many questions to the client are open.
    asked: AtomicU64,
    /// How many there have been.
    questions: AtomicU64,
    /// How many questions that belong to no call are put to this caller.
    adopted: AtomicU64,
}

impl Flight {
    /// Marks that the client is being asked, until the guard is dropped.
    pub(crate) fn asking(&self) -> Asking<'_> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Asking(self)
    }

    /// A name for the next question, the same in every run of the same call.
    pub(crate) fn next_key(&self) -> String {
        format!("question-{}", self.questions.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 0
    }
}

pub(crate) struct Asking<'a>(&'a Flight);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asked.fetch_sub(1, Ordering::Relaxed);
        self.0.heard.notify_one();
    }
}

/// A question that belongs to no call in particular, until it is answered.
pub(crate) struct Adopted<'a> {
    calls: &'a Calls,
    /// The call that it is put to the caller of; nothing while it waits for one.
    flight: Option<Arc<Flight>>,
}

impl Adopted<'_> {
    pub(crate) fn flight(&self) -> Option<&Arc<Flight>> {
        self.flight.as_ref()
    }

    fn settle(&mut self) {
        match self.flight.take() {
            Some(flight) => flight.adopted.fetch_sub(1, Ordering::Relaxed),
            None => self.calls.orphans.fetch_sub(1, Ordering::Relaxed),
        };
        self.calls.settled.notify_waiters();
    }
}

impl Drop for Adopted<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Calls {
    pub(crate) fn enter(self: &Arc<Self>, client: Client) -> InFlight {
        let tag = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let flight = Arc::new(Flight {
            client,
            heard: Notify::new(),
            asked: AtomicU64::new(0),
            questions: AtomicU64::new(0),
            adopted: AtomicU64::new(0),
        });
        self.lock().insert(tag, Arc::clone(&flight));
        self.entered.notify_waiters();
        InFlight { calls: Arc::clone(self), tag, flight }
    }

    pub(crate) fn get(&self, tag: u64) -> Option<Arc<Flight>> {
        self.lock().get(&tag).cloned()
    }

    /// The only call there is: what belongs to no call in particular can only be for this one.
    pub(crate) fn only(&self) -> Option<Arc<Flight>> {
        let flights = self.lock();
        (flights.len() == 1).then(|| flights.values().next().cloned()).flatten()
    }

    /// The call that began last.
    pub(crate) fn latest(&self) -> Option<Arc<Flight>> {
        self.lock().values().next_back().cloned()
    }

    /// A call for a question that came while there was none: the next one that begins.
    pub(crate) async fn adopt(&self) -> Adopted<'_> {
        let orphan = Adopted { calls: self, flight: None };
        self.orphans.fetch_add(1, Ordering::Relaxed);
        loop {
            let entered = self.entered.notified();
            match self.latest() {
                Some(flight) => {
                    flight.adopted.fetch_add(1, Ordering::Relaxed);
                    let mut adopted = orphan;
                    adopted.settle();
                    adopted.flight = Some(flight);
                    return adopted;
                }
                None => entered.await,
            }
        }
    }

    /// Waits until every question that this call has adopted, or could, is answered.
    pub(crate) async fn adopted_answered(&self, flight: &Flight) {
        loop {
            let settled = self.settled.notified();
            let open = self.orphans.load(Ordering::Relaxed) + flight.adopted.load(Ordering::Relaxed);
            if open == 0 {
                return;
            }
            settled.await;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Flight>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the call off the list when it is over.
#[derive(Debug)]
pub(crate) struct InFlight {
    calls: Arc<Calls>,
    pub(crate) tag: u64,
    pub(crate) flight: Arc<Flight>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.tag);
    }
}
