//! What one call holds of the places that it needs: all of them or none, given back while a question to the caller
//! is open.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::concurrency::{ConcurrencyLimiter, Permit};
use crate::request::Priority;

/// The places of one call. Clones stand for the same ones.
#[derive(Debug, Clone)]
pub(crate) struct CallPermits {
    shared: Arc<PermitSet>,
}

#[derive(Debug)]
struct PermitSet {
    /// In the order in which they are taken, which is the same for all calls: two that cross would wait for each
    /// other.
    needed: Vec<Arc<ConcurrencyLimiter>>,
    priority: Priority,
    state: Mutex<PermitState>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct PermitState {
    held: Vec<Permit>,
    /// How many questions are open; the places are free as long as there is one.
    open_questions: usize,
    /// The call has ended: whatever it left running gets no place any more.
    closed: bool,
}

impl PermitState {
    fn needs_permits(&self) -> bool {
        self.held.is_empty() && self.open_questions == 0 && !self.closed
    }
}

impl CallPermits {
    /// Waits for every place that is needed; where there is no limit none is.
    pub(crate) async fn acquire(needed: Vec<Arc<ConcurrencyLimiter>>, priority: Priority) -> Self {
        let shared = PermitSet { needed, priority, state: Mutex::default(), filled: Notify::new() };
        let slot = Self { shared: Arc::new(shared) };
        slot.ensure_held().await;
        slot
    }

    /// Releases the permits until [`PermitRelease::reacquire`].
    pub(crate) fn release(&self) -> PermitRelease {
        let mut state = self.lock();
        state.open_questions += 1;
        let held = std::mem::take(&mut state.held);
        drop(state);
        drop(held);
        PermitRelease { permits: self.clone() }
    }

    /// Frees the places for good: the call has ended.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let held = std::mem::take(&mut state.held);
        drop(state);
        drop(held);
    }

    /// Two questions of one call may be answered at once. Both then wait here, and one set of places is enough.
    async fn ensure_held(&self) {
        if self.shared.needed.is_empty() {
            return;
        }
        loop {
            let filled = self.shared.filled.notified();
            if !self.lock().needs_permits() {
                return;
            }
            tokio::select! {
                taken = self.acquire_all() => return self.store(taken),
                () = filled => {}
            }
        }
    }

    async fn acquire_all(&self) -> Vec<Permit> {
        let mut taken = Vec::with_capacity(self.shared.needed.len());
        for places in &self.shared.needed {
            taken.push(places.acquire(self.shared.priority).await);
        }
        taken
    }

    fn store(&self, taken: Vec<Permit>) {
        let mut state = self.lock();
        if state.needs_permits() {
            state.held = taken;
            drop(state);
            self.shared.filled.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, PermitState> {
        self.shared.state.lock()
    }
}

/// A question is open. Dropped without an answer, the call goes on in its places only if they are free at once.
#[derive(Debug)]
pub(crate) struct PermitRelease {
    permits: CallPermits,
}

impl PermitRelease {
    /// Waits for the places again, unless another question of the same call is still open.
    pub(crate) async fn reacquire(self) {
        let slot = self.permits.clone();
        drop(self);
        slot.ensure_held().await;
    }
}

impl Drop for PermitRelease {
    fn drop(&mut self) {
        self.permits.lock().open_questions -= 1;
        let free: Option<Vec<Permit>> =
            self.permits.shared.needed.iter().map(ConcurrencyLimiter::try_acquire).collect();
        if let Some(free) = free {
            self.permits.store(free);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::CallPermits;
    use crate::concurrency::ConcurrencyLimiter;
    use crate::request::Priority;

    async fn slot(needed: &[&Arc<ConcurrencyLimiter>]) -> CallPermits {
        CallPermits::acquire(needed.iter().map(|places| Arc::clone(places)).collect(), Priority::Normal).await
    }

    #[tokio::test(start_paused = true)]
    async fn two_open_questions_free_one_place_and_take_one_back() {
        let places = ConcurrencyLimiter::new(1);
        let slot = slot(&[&places]).await;
        let (first, second) = (slot.release(), slot.release());
        assert_eq!(places.free(), 1);
        first.reacquire().await;
        assert_eq!(places.free(), 1);
        second.reacquire().await;
        assert_eq!(places.free(), 0);
        slot.close();
        assert_eq!(places.free(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn two_answers_that_wait_for_a_place_share_the_one_that_comes_free() {
        let places = ConcurrencyLimiter::new(1);
        let asking = slot(&[&places]).await;
        let first = asking.release();
        let other = slot(&[&places]).await;
        let first = tokio::spawn(first.reacquire());
        tokio::task::yield_now().await;
        let second = tokio::spawn(asking.release().reacquire());
        tokio::task::yield_now().await;
        other.close();
        first.await.unwrap();
        second.await.unwrap();
        assert_eq!((places.free(), places.waiting()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_outlives_its_call_takes_no_place() {
        let places = ConcurrencyLimiter::new(1);
        let slot = slot(&[&places]).await;
        let (answered, dropped) = (slot.release(), slot.release());
        slot.close();
        answered.reacquire().await;
        drop(dropped);
        assert_eq!(places.free(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_holds_all_of_its_places_or_gives_up_those_it_had() {
        let (callers, sources) = (ConcurrencyLimiter::new(2), ConcurrencyLimiter::new(1));
        let running = slot(&[&callers, &sources]).await;
        let waiting = tokio::spawn({
            let (callers, sources) = (Arc::clone(&callers), Arc::clone(&sources));
            async move { slot(&[&callers, &sources]).await }
        });
        tokio::task::yield_now().await;
        assert_eq!((callers.free(), sources.waiting()), (0, 1));
        waiting.abort();
        assert!(waiting.await.is_err());
        assert_eq!((callers.free(), sources.waiting()), (1, 0));
        // A question that nobody answered while somebody else has one of the places.
        let question = running.release();
        let other = sources.try_acquire();
        drop(question);
        assert_eq!((callers.free(), sources.free()), (2, 0));
        drop(other);
        running.close();
        assert_eq!((callers.free(), sources.free()), (2, 1));
    }
}
