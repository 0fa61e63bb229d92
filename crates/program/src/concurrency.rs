//! How many programs run at once, in all and of one principal. One principal never has them all, so that a program of
//! another starts without waiting for the first one's.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use toolyard_hub::Principal;

#[derive(Debug)]
pub(crate) struct ProgramLimiter {
    all: Arc<Semaphore>,
    /// Those of each principal that has programs, which wait here first: they must not fill the queue of all.
    own: Mutex<HashMap<String, Arc<Semaphore>>>,
    per_principal: usize,
}

/// The right to run one program, until it is dropped.
#[derive(Debug)]
pub(crate) struct ProgramPermit {
    _global: OwnedSemaphorePermit,
    _per_principal: OwnedSemaphorePermit,
}

impl ProgramLimiter {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.max(1);
        Self {
            all: Arc::new(Semaphore::new(most)),
            own: Mutex::default(),
            per_principal: most.saturating_sub(1).max(1),
        }
    }

    /// Waits for a slot. The waiting of one principal are let in one after the other, and so are principals.
    pub(crate) async fn acquire(&self, principal: &Principal) -> Result<ProgramPermit, AcquireError> {
        let own = self.semaphore_for(principal).acquire_owned().await?;
        let of_all = Arc::clone(&self.all).acquire_owned().await?;
        Ok(ProgramPermit { _global: of_all, _per_principal: own })
    }

    pub(crate) fn per_principal_limit(&self) -> usize {
        self.per_principal
    }

    /// Nobody gets a slot any more.
    pub(crate) fn close(&self) {
        self.all.close();
        let own = self.own.lock();
        own.values().for_each(|own| own.close());
    }

    fn semaphore_for(&self, principal: &Principal) -> Arc<Semaphore> {
        let mut own = self.own.lock();
        // Who neither runs nor waits for a program holds nothing of its semaphore.
        own.retain(|_, known| Arc::strong_count(known) > 1);
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

    /// A slot that is there at once.
    fn at_once(slots: &ProgramLimiter, name: &str) -> Option<ProgramPermit> {
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
            let held: Vec<_> = std::iter::from_fn(|| at_once(&slots, "ada")).collect();
            assert_eq!(held.len(), most - 1);
            let mut waiting = Vec::new();
            for _ in 0..16 {
                let slots = Arc::clone(&slots);
                waiting.push(tokio::spawn(async move { slots.acquire(&principal("ada")).await.is_ok() }));
            }
            tokio::task::yield_now().await;
            drop(at_once(&slots, "bob").expect("the last one is another's"));
            drop(held);
            for waited in waiting {
                assert!(waited.await.unwrap(), "those that waited have their turn");
            }
        }
    }

    #[tokio::test]
    async fn the_only_slot_goes_to_another_principal_before_the_same_one_has_it_twice() {
        let slots = Arc::new(ProgramLimiter::new(1));
        let running = at_once(&slots, "ada").unwrap();
        let mut order = Vec::new();
        let (told, mut hears) = tokio::sync::mpsc::channel(8);
        for name in ["ada", "ada", "bob"] {
            let (slots, told) = (Arc::clone(&slots), told.clone());
            tokio::spawn(async move {
                let _slot = slots.acquire(&principal(name)).await;
                let _ = told.send(name).await;
            });
        }
        tokio::task::yield_now().await;
        drop(running);
        for _ in 0..3 {
            order.push(hears.recv().await.unwrap());
        }
        assert_eq!(order[0], "bob");
    }

    #[tokio::test]
    async fn who_has_no_program_is_forgotten_and_closing_refuses_everybody() {
        let slots = ProgramLimiter::new(4);
        for number in 0..100 {
            drop(at_once(&slots, &number.to_string()));
        }
        assert!(slots.own.lock().len() <= 1);
        slots.close();
        assert!(slots.acquire(&principal("ada")).await.is_err());
    }
}
