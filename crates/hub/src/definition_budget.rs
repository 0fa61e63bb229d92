//! Limits on the total size of definitions, per source and for all sources. A source reserves bytes
//! before it stores what it has read, so that a source with an endless list fails alone and does
//! not affect the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

/// A list that exceeds this size while it is being read has to wait for its turn. Large lists are
/// read one at a time, so that several endless lists are never in memory together.
const LARGE_LIST: usize = 4 << 20;

/// The limits, in bytes of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionLimits {
    /// For all lists of one source.
    pub per_source: usize,
    /// For all sources together.
    pub total: usize,
}

impl Default for DefinitionLimits {
    fn default() -> Self {
        Self { per_source: 64 << 20, total: 256 << 20 }
    }
}

/// The budget shared by all sources of a process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct DefinitionBudget(Arc<Account>);

#[derive(Debug)]
struct Account {
    per_source: AtomicUsize,
    total: AtomicUsize,
    used: AtomicUsize,
    /// Held while a large list is read.
    large_list_semaphore: Semaphore,
}

impl Default for Account {
    fn default() -> Self {
        let DefinitionLimits { per_source, total } = DefinitionLimits::default();
        Self {
            per_source: AtomicUsize::new(per_source),
            total: AtomicUsize::new(total),
            used: AtomicUsize::new(0),
            large_list_semaphore: Semaphore::new(1),
        }
    }
}

/// The definitions of a source exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionBudgetError {
    #[error(
        "exceeds the limit of {limit} bytes of definitions for one source (limits.definition_bytes_per_source)"
    )]
    Source { limit: usize },
    #[error("exceeds the limit of {limit} bytes of definitions for all sources (limits.definition_bytes)")]
    Total { limit: usize },
}

impl DefinitionBudget {
    pub fn new(limits: DefinitionLimits) -> Self {
        let budget = Self::default();
        budget.set_limits(limits);
        budget
    }

    /// Applies new limits. Existing reservations remain.
    pub fn set_limits(&self, limits: DefinitionLimits) {
        self.0.per_source.store(limits.per_source, Ordering::Relaxed);
        self.0.total.store(limits.total, Ordering::Relaxed);
    }

    /// Creates an empty reservation for the definitions of one source.
    pub fn reserve(&self) -> DefinitionReservation {
        DefinitionReservation { account: Arc::clone(&self.0), bytes: 0 }
    }

    /// Returns the number of reserved bytes.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

/// Bytes reserved by one source. They are released when this is dropped.
#[derive(Debug)]
pub struct DefinitionReservation {
    account: Arc<Account>,
    bytes: usize,
}

impl DefinitionReservation {
    /// Reserves more bytes, or none if that would exceed a limit.
    pub fn grow(&mut self, more: usize) -> Result<(), DefinitionBudgetError> {
        let limit = self.account.per_source.load(Ordering::Relaxed);
        let bytes = self.bytes.checked_add(more).filter(|bytes| *bytes <= limit);
        let bytes = bytes.ok_or(DefinitionBudgetError::Source { limit })?;
        let limit = self.account.total.load(Ordering::Relaxed);
        let fits = |used: usize| used.checked_add(more).filter(|used| *used <= limit);
        let reserved = self.account.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        reserved.map_err(|_| DefinitionBudgetError::Total { limit })?;
        self.bytes = bytes;
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Releases the reservation beyond this many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let back = self.bytes.saturating_sub(bytes);
        self.account.used.fetch_sub(back, Ordering::Relaxed);
        self.bytes -= back;
    }

    /// Returns whether the list is so large that it may only be read further during its turn.
    pub fn is_large(&self) -> bool {
        self.bytes > LARGE_LIST
    }

    /// The budget to take turns with. The reservation itself is not borrowed and can grow.
    pub fn large_list_semaphore(&self) -> LargeListSemaphore {
        LargeListSemaphore(Arc::clone(&self.account))
    }
}

/// The queue for reading large lists.
#[derive(Debug)]
pub struct LargeListSemaphore(Arc<Account>);

impl LargeListSemaphore {
    /// Takes the turn if no other large list is being read.
    pub fn try_acquire(&self) -> Option<LargeListPermit<'_>> {
        self.0.large_list_semaphore.try_acquire().ok().map(|permit| LargeListPermit { _permit: Some(permit) })
    }

    /// Waits until no other large list is being read. The turn ends when the result is dropped.
    pub async fn acquire(&self) -> LargeListPermit<'_> {
        LargeListPermit { _permit: self.0.large_list_semaphore.acquire().await.ok() }
    }
}

/// Permission to read a large list.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub struct LargeListPermit<'a> {
    _permit: Option<SemaphorePermit<'a>>,
}

impl Drop for DefinitionReservation {
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{DefinitionBudget, DefinitionBudgetError, DefinitionLimits};

    #[test]
    fn a_source_cannot_reserve_more_than_its_share_nor_more_than_is_left() {
        let budget = DefinitionBudget::new(DefinitionLimits { per_source: 60, total: 100 });
        let (mut first, mut second) = (budget.reserve(), budget.reserve());
        first.grow(50).unwrap();
        assert_eq!(first.grow(11), Err(DefinitionBudgetError::Source { limit: 60 }));
        first.grow(10).unwrap();
        assert_eq!(second.grow(41), Err(DefinitionBudgetError::Total { limit: 100 }));
        second.grow(40).unwrap();
        assert_eq!((budget.used(), first.bytes(), second.bytes()), (100, 60, 40));
        drop(first);
        assert_eq!(budget.used(), 40);
        second.grow(20).unwrap();
        assert_eq!(second.grow(usize::MAX), Err(DefinitionBudgetError::Source { limit: 60 }));
    }

    #[test]
    fn concurrent_reservations_never_exceed_the_limit() {
        let budget = DefinitionBudget::new(DefinitionLimits { per_source: 1_000, total: 1_000 });
        let granted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut own = budget.reserve();
                        while own.grow(3).is_ok() {}
                        let bytes = own.bytes();
                        std::mem::forget(own);
                        bytes
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((granted, budget.used()), (999, 999));
    }

    #[tokio::test]
    async fn large_lists_are_read_one_after_the_other() {
        let budget = DefinitionBudget::default();
        let (mut first, mut second) = (budget.reserve(), budget.reserve());
        first.grow(super::LARGE_LIST).unwrap();
        assert!(!first.is_large());
        for list in [&mut first, &mut second] {
            list.grow(super::LARGE_LIST + 1).unwrap();
            assert!(list.is_large());
        }
        let (turns, others) = (first.large_list_semaphore(), second.large_list_semaphore());
        let turn = turns.try_acquire().unwrap();
        assert!(others.try_acquire().is_none());
        let mut waiting = std::pin::pin!(others.acquire());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(turn);
        let _turn = waiting.await;
        second.shrink_to(5);
        assert_eq!((second.bytes(), second.is_large(), budget.used()), (5, false, first.bytes() + 5));
    }

    #[test]
    fn lower_limits_count_from_the_next_reservation_on() {
        let budget = DefinitionBudget::default();
        let mut reservation = budget.reserve();
        reservation.grow(500).unwrap();
        budget.set_limits(DefinitionLimits { per_source: 400, total: 400 });
        assert_eq!(budget.reserve().grow(1), Err(DefinitionBudgetError::Total { limit: 400 }));
        assert_eq!(reservation.bytes(), 500);
        drop(reservation);
        budget.reserve().grow(400).unwrap();
    }
}
