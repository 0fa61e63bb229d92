//! Limits how many programs run at once, in total and per principal. One principal never holds all
//! permits, so a program of another principal starts without waiting.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use toolyard_hub::Principal;

#[derive(Debug)]
pub(crate) struct ProgramLimiter {
    all: Arc<Semaphore>,
    /// One semaphore for each principal that has programs. Programs wait here first, so that one
    /// principal cannot fill the shared queue.
    own: Mutex<HashMap<String, Arc<Semaphore>>>,
    per_principal: usize,
}

/// A permit to run one program, released on drop.
#[derive(Debug)]
pub(crate) struct ProgramPermit {
    _global: OwnedSemaphorePermit,
    _per_principal: OwnedSemaphorePermit,
}

impl ProgramLimiter {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self {
            all: Arc::new(Semaphore::new(limit)),
            own: Mutex::default(),
            per_principal: limit.saturating_sub(1).max(1),
        }
    }

    /// Waits for a permit. Programs of one principal are admitted in order, and so are principals.
    pub(crate) async fn acquire(&self, principal: &Principal) -> Result<ProgramPermit, AcquireError> {
        let per_principal = self.semaphore_for(principal).acquire_owned().await?;
        let global = Arc::clone(&self.all).acquire_owned().await?;
        Ok(ProgramPermit { _global: global, _per_principal: per_principal })
    }

    pub(crate) fn per_principal_limit(&self) -> usize {
        self.per_principal
    }

    /// Refuses all further permits.
    pub(crate) fn close(&self) {
        self.all.close();
        let own = self.own.lock();
        own.values().for_each(|semaphore| semaphore.close());
    }

    fn semaphore_for(&self, principal: &Principal) -> Arc<Semaphore> {
        let mut own = self.own.lock();
        // A principal without running or waiting programs holds no reference to its semaphore.
        own.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let new = || Arc::new(Semaphore::new(self.per_principal));
        Arc::clone(own.entry(principal.id().to_owned()).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use toolyard_hub::{Permissions, Principal};

    use super::{ProgramLimiter, ProgramPermit};

    fn principal(name: &str) -> Principal {
        Principal::new(name, Permissions::All)
    }

    /// Returns a permit if one is available immediately.
    fn try_acquire(slots: &ProgramLimiter, name: &str) -> Option<ProgramPermit> {
        let (principal, mut context) = (principal(name), Context::from_waker(Waker::noop()));
        match pin!(slots.acquire(&principal)).poll(&mut context) {
            std::task::Poll::Ready(slot) => slot.ok(),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn one_principal_never_holds_every_slot_nor_the_queue_for_the_last() {
        for most in [2, 4, 9] {
            let slots = Arc::new(ProgramLimiter::new(most));
            let held: Vec<_> = std::iter::from_fn(|| try_acquire(&slots, "ada")).collect();
            assert_eq!(held.len(), most - 1);
            let mut waiting = Vec::new();
            for _ in 0..16 {
                let slots = Arc::clone(&slots);
                waiting.push(tokio::spawn(async move { slots.acquire(&principal("ada")).await.is_ok() }));
            }
            tokio::task::yield_now().await;
            drop(try_acquire(&slots, "bob").expect("the last permit is reserved for another principal"));
            drop(held);
            for task in waiting {
                assert!(task.await.unwrap(), "a waiting program never got a permit");
            }
        }
    }

    #[tokio::test]
    async fn the_only_slot_goes_to_another_principal_before_the_same_one_has_it_twice() {
        let slots = Arc::new(ProgramLimiter::new(1));
        let running = try_acquire(&slots, "ada").unwrap();
        let mut order = Vec::new();
        let (started, mut starts) = tokio::sync::mpsc::channel(8);
        for name in ["ada", "ada", "bob"] {
            let (slots, started) = (Arc::clone(&slots), started.clone());
            tokio::spawn(async move {
                let _slot = slots.acquire(&principal(name)).await;
                let _ = started.send(name).await;
            });
        }
        tokio::task::yield_now().await;
        drop(running);
        for _ in 0..3 {
            order.push(starts.recv().await.unwrap());
        }
        assert_eq!(order[0], "bob");
    }

    #[tokio::test]
    async fn idle_principals_are_removed_and_closing_refuses_everyone() {
        let slots = ProgramLimiter::new(4);
        for number in 0..100 {
            drop(try_acquire(&slots, &number.to_string()));
        }
        assert!(slots.own.lock().len() <= 1);
        slots.close();
        assert!(slots.acquire(&principal("ada")).await.is_err());
    }
}
