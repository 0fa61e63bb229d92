//! The concurrency permits of one call. A call holds all of its permits or none, and releases them
//! while a question to the caller is open. They are permits of this process, or permits that
//! several replicas share.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::concurrency::{ConcurrencyLimiter, Permit};
use crate::replicas::StoreUnavailable;
use crate::request::Priority;
use crate::shared_limits::SharedPermit;
use crate::shared_permits::SharedPermitQueue;

/// The permits of one call. Clones share the same permits.
#[derive(Debug, Clone)]
pub(crate) struct CallPermits {
    shared: Arc<PermitSet>,
}

#[derive(Debug)]
struct PermitSet {
    /// In acquisition order, which is the same for all calls to prevent deadlocks.
    needed: Vec<Arc<ConcurrencyLimiter>>,
    /// Set if the permits are shared by several replicas. `needed` is empty in this case.
    queue: Option<Box<SharedPermitQueue>>,
    priority: Priority,
    state: Mutex<PermitState>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct PermitState {
    held: Vec<Permit>,
    shared: Option<SharedPermit>,
    /// Number of open questions. The permits are released while it is above zero.
    open_questions: usize,
    /// Set when the call has ended. Work that the call left running gets no more permits.
    closed: bool,
}

impl PermitState {
    fn needs_permits(&self) -> bool {
        self.held.is_empty() && self.shared.is_none() && self.open_questions == 0 && !self.closed
    }
}

/// Why a call that has its permits must end.
#[derive(Debug)]
pub(crate) enum PermitLoss {
    /// Its shared permits may belong to another call.
    Expired,
    /// Its shared permits were released for a question, and the store is away.
    Unavailable(StoreUnavailable),
}

impl CallPermits {
    /// The permits of these limiters. None is acquired yet.
    pub(crate) fn new(needed: Vec<Arc<ConcurrencyLimiter>>, priority: Priority) -> Self {
        let (state, filled) = (Mutex::default(), Notify::new());
        Self { shared: Arc::new(PermitSet { needed, queue: None, priority, state, filled }) }
    }

    /// Permits that several replicas share. None is acquired yet.
    pub(crate) fn new_shared(queue: SharedPermitQueue, priority: Priority) -> Self {
        let (state, filled) = (Mutex::default(), Notify::new());
        Self {
            shared: Arc::new(PermitSet {
                needed: Vec::new(),
                queue: Some(Box::new(queue)),
                priority,
                state,
                filled,
            }),
        }
    }

    /// The queue for the permits, if several replicas share them.
    pub(crate) fn queue(&self) -> Option<&SharedPermitQueue> {
        self.shared.queue.as_deref()
    }

    /// Completes when the call must end because it has lost its permits. Permits of one process
    /// are never lost.
    pub(crate) async fn lost(&self) -> PermitLoss {
        let Some(queue) = &self.shared.queue else { return std::future::pending().await };
        loop {
            tokio::select! {
                () = queue.lost.cancelled() => return PermitLoss::Expired,
                () = queue.refill.notified() => {
                    if let Err(error) = self.ensure_held().await {
                        return PermitLoss::Unavailable(error);
                    }
                }
            }
        }
    }

    /// Releases the permits until [`PermitRelease::reacquire`].
    pub(crate) fn release(&self) -> PermitRelease {
        let mut state = self.lock();
        state.open_questions += 1;
        let held = (std::mem::take(&mut state.held), state.shared.take());
        drop(state);
        drop(held);
        PermitRelease { permits: self.clone() }
    }

    /// Releases the permits permanently because the call has ended.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let held = (std::mem::take(&mut state.held), state.shared.take());
        drop(state);
        drop(held);
        if self.shared.queue.is_some() {
            self.shared.filled.notify_waiters();
        }
    }

    /// Waits until the call holds its permits. If two questions of one call are answered at the
    /// same time, both wait here and share one set of permits.
    pub(crate) async fn ensure_held(&self) -> Result<(), StoreUnavailable> {
        if let Some(queue) = &self.shared.queue {
            if !queue.is_empty() && self.lock().needs_permits() {
                self.store_shared(queue.acquire(self.shared.priority).await?);
            }
            return Ok(());
        }
        if self.shared.needed.is_empty() {
            return Ok(());
        }
        loop {
            let filled = self.shared.filled.notified();
            if !self.lock().needs_permits() {
                return Ok(());
            }
            tokio::select! {
                taken = self.acquire_all() => {
                    self.store(taken);
                    return Ok(());
                }
                () = filled => {}
            }
        }
    }

    /// Waits until the call holds its permits again, which [`Self::lost`] acquires.
    async fn refilled(&self, queue: &SharedPermitQueue) {
        loop {
            let filled = self.shared.filled.notified();
            if queue.is_empty() || !self.lock().needs_permits() {
                return;
            }
            filled.await;
        }
    }

    /// Stores permits that the call has taken, unless it no longer needs them.
    pub(crate) fn store_shared(&self, taken: SharedPermit) {
        let mut state = self.lock();
        if state.needs_permits() {
            state.shared = Some(taken);
            drop(state);
            self.shared.filled.notify_waiters();
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

/// Guard for an open question. If it is dropped without [`Self::reacquire`], the call takes its
/// permits back only if all of them are free. Shared permits are taken back as soon as they are.
#[derive(Debug)]
pub(crate) struct PermitRelease {
    permits: CallPermits,
}

impl PermitRelease {
    /// Waits for the permits again, unless another question of the same call is still open.
    pub(crate) async fn reacquire(self) {
        let slot = self.permits.clone();
        drop(self);
        match slot.queue() {
            Some(queue) => slot.refilled(queue).await,
            // Only shared permits can be unavailable.
            None => slot.ensure_held().await.unwrap_or_default(),
        }
    }
}

impl Drop for PermitRelease {
    fn drop(&mut self) {
        self.permits.lock().open_questions -= 1;
        if let Some(queue) = self.permits.queue() {
            queue.refill.notify_one();
            return;
        }
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
        let needed = needed.iter().map(|places| Arc::clone(places)).collect();
        let permits = CallPermits::new(needed, Priority::Normal);
        permits.ensure_held().await.unwrap();
        permits
    }

    #[tokio::test(start_paused = true)]
    async fn two_open_questions_release_and_reacquire_one_permit() {
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
    async fn two_answers_that_wait_share_one_permit() {
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
    async fn a_question_that_outlives_its_call_takes_no_permit() {
        let places = ConcurrencyLimiter::new(1);
        let slot = slot(&[&places]).await;
        let (answered, dropped) = (slot.release(), slot.release());
        slot.close();
        answered.reacquire().await;
        drop(dropped);
        assert_eq!(places.free(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_holds_all_of_its_permits_or_none() {
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
        // The question is dropped without an answer while another call holds one of the permits.
        let question = running.release();
        let other = sources.try_acquire();
        drop(question);
        assert_eq!((callers.free(), sources.free()), (2, 0));
        drop(other);
        running.close();
        assert_eq!((callers.free(), sources.free()), (2, 1));
    }
}
