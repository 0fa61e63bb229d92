//! A concurrency limiter with a priority queue. Callers of this module decide what it limits (a
//! source, a caller, a tool) and how many permits it has.
//!
//! A released permit goes to the highest priority with a waiting call, and within a priority to the
//! call that came first. A priority that was passed over as often as its [`PATIENCE`] allows is
//! served next, the higher one first. A call at the head of its queue therefore waits for at most
//! its patience plus two other calls to start, and under any load a higher priority gets more
//! permits than a lower one.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::request::Priority;

const CLASSES: usize = 3;
/// How many times in a row each priority, lowest first, may be passed over in favor of others.
const PATIENCE: [u32; CLASSES] = [16, 8, 0];

/// A limited number of permits and the queue for them.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimiter {
    capacity: usize,
    queue: Mutex<WaitQueue>,
}

#[derive(Debug)]
struct WaitQueue {
    /// Above zero only while the queue is empty.
    free: usize,
    next_ticket: u64,
    classes: [PriorityClass; CLASSES],
}

/// The waiting calls of one priority, in order of arrival.
#[derive(Debug, Default)]
struct PriorityClass {
    waiting: BTreeMap<u64, oneshot::Sender<Permit>>,
    passed_over: u32,
}

/// One permit. When dropped, it passes to the next waiting call.
#[derive(Debug)]
pub(crate) struct Permit {
    /// `None` after the permit was passed on.
    limiter: Option<Arc<ConcurrencyLimiter>>,
}

impl ConcurrencyLimiter {
    /// Creates a limiter with at least one permit. With none, every call would wait until its
    /// deadline.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let most = most.max(1);
        let line = WaitQueue { free: most, next_ticket: 0, classes: Default::default() };
        Arc::new(Self { capacity: most, queue: Mutex::new(line) })
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Waits for a permit. Dropping the future leaves the queue; a permit that was already assigned
    /// passes to the next waiting call.
    pub(crate) async fn acquire(self: &Arc<Self>, priority: Priority) -> Permit {
        loop {
            let mut waiting = {
                let mut line = self.lock();
                if line.free > 0 {
                    line.free -= 1;
                    return Permit { limiter: Some(Arc::clone(self)) };
                }
                let ticket = line.next_ticket;
                line.next_ticket += 1;
                let (sender, receiver) = oneshot::channel();
                line.classes[class(priority)].waiting.insert(ticket, sender);
                Waiter { limiter: self, class: class(priority), ticket, receiver }
            };
            // The sender stays in the queue until it is used, so this should not fail. If it does,
            // queue again.
            if let Ok(place) = (&mut waiting.receiver).await {
                return place;
            }
        }
    }

    /// Takes a permit if one is free.
    pub(crate) fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        let mut line = self.lock();
        line.free = line.free.checked_sub(1)?;
        Some(Permit { limiter: Some(Arc::clone(self)) })
    }

    /// Returns whether a permit is free, so that no call is waiting.
    pub(crate) fn has_free(&self) -> bool {
        self.lock().free > 0
    }

    fn lock(&self) -> MutexGuard<'_, WaitQueue> {
        self.queue.lock()
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.lock().free
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().classes.iter().map(|class| class.waiting.len()).sum()
    }
}

fn class(priority: Priority) -> usize {
    match priority {
        Priority::Low => 0,
        Priority::Normal => 1,
        Priority::High => 2,
    }
}

impl WaitQueue {
    /// Removes the next waiting call from the queue. If the queue is empty, the permit becomes free.
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        let waits = |at: &usize| !self.classes[*at].waiting.is_empty();
        // The highest priority needs no patience: it is chosen unless a lower one is overdue.
        let overdue = |at: &usize| waits(at) && self.classes[*at].passed_over >= PATIENCE[*at];
        let chosen = (0..CLASSES - 1).rev().find(overdue).or_else(|| (0..CLASSES).rev().find(waits));
        let Some(chosen) = chosen else {
            self.free += 1;
            return None;
        };
        for (at, class) in self.classes.iter_mut().enumerate() {
            if at != chosen && !class.waiting.is_empty() {
                class.passed_over += 1;
            }
        }
        let class = &mut self.classes[chosen];
        class.passed_over = 0;
        class.waiting.pop_first().map(|(_, sender)| sender)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        while let Some(places) = self.limiter.take() {
            let Some(next) = places.lock().next() else { return };
            // Sent outside the lock: a receiver that has just stopped waiting returns the permit,
            // and the loop offers it to the next.
            if let Err(mut refused) = next.send(Self { limiter: Some(places) }) {
                self.limiter = refused.limiter.take();
            }
        }
    }
}

struct Waiter<'a> {
    limiter: &'a ConcurrencyLimiter,
    class: usize,
    ticket: u64,
    receiver: oneshot::Receiver<Permit>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut line = self.limiter.lock();
        let class = &mut line.classes[self.class];
        class.waiting.remove(&self.ticket);
        if class.waiting.is_empty() {
            class.passed_over = 0;
        }
    }
}

#[cfg(test)]
mod tests;
