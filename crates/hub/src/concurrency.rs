//! The line in which calls wait for a place among those that run at once. Whose places they are (a source's, a
//! caller's, a tool's) and how many there are is for others to say.
//!
//! The rule: a place that comes free goes to the highest priority that somebody waits with, and within one priority
//! to whoever came first. A priority that was passed over as often as its [`PATIENCE`] says is served next, the higher
//! one first; so of the calls at the head of their lines none waits for more than its patience and two others to begin,
//! and a higher priority gets more places than a lower one whoever else waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::request::Priority;

const CLASSES: usize = 3;
/// How often in a row the waiting calls of each priority, the lowest first, are passed over in favour of others.
const PATIENCE: [u32; CLASSES] = [16, 8, 0];

/// A number of places, and the line for them.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimiter {
    capacity: usize,
    queue: Mutex<WaitQueue>,
}

#[derive(Debug)]
struct WaitQueue {
    /// Above zero only while nobody waits.
    free: usize,
    next_ticket: u64,
    classes: [PriorityClass; CLASSES],
}

/// Those who wait with one priority, by the order in which they came.
#[derive(Debug, Default)]
struct PriorityClass {
    waiting: BTreeMap<u64, oneshot::Sender<Permit>>,
    passed_over: u32,
}

/// One place. Dropped, it goes to whoever is next.
#[derive(Debug)]
pub(crate) struct Permit {
    /// Nothing once it was handed on.
    limiter: Option<Arc<ConcurrencyLimiter>>,
}

impl ConcurrencyLimiter {
    /// At least one: with no place at all every call would wait for its deadline.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let most = most.max(1);
        let line = WaitQueue { free: most, next_ticket: 0, classes: Default::default() };
        Arc::new(Self { capacity: most, queue: Mutex::new(line) })
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Waits for a place. Whoever stops waiting leaves the line, and a place that was on its way goes to the next.
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
            // The other end is in the line until it is used, so this does not fail; if it did, there is the line.
            if let Ok(place) = (&mut waiting.receiver).await {
                return place;
            }
        }
    }

    /// A place, if one is free at once.
    pub(crate) fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        let mut line = self.lock();
        line.free = line.free.checked_sub(1)?;
        Some(Permit { limiter: Some(Arc::clone(self)) })
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
    /// Whoever is next leaves the line; if nobody waits, the place is free.
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        let waits = |at: &usize| !self.classes[*at].waiting.is_empty();
        // The highest priority needs no patience: it is chosen wherever nobody else is overdue.
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
            // Outside the lock: somebody who has just stopped waiting hands the place back, and it is offered again.
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
