//! How a call waits for permits that replicas share. A call takes all of its permits in one step or
//! none, so it holds nothing while it waits. Of the calls of this replica that wait for one limit,
//! only the first in the priority queue asks the store.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::concurrency::ConcurrencyLimiter;
use crate::replicas::StoreUnavailable;
use crate::request::Priority;
use crate::shared_limits::{SharedDemand, SharedLimit, SharedLimits, SharedPermit, SharedTake};

/// How long the first call in a queue waits before it asks again, unless this replica releases a
/// permit. Doubled up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The shared permits that one call needs.
#[derive(Debug)]
pub(crate) struct SharedPermitQueue {
    limits: Arc<dyn SharedLimits>,
    needed: Vec<SharedLimit>,
    /// For each limit, a queue with one permit: the right to ask for this limit.
    turns: Vec<Arc<ConcurrencyLimiter>>,
    /// Canceled when permits of the call may belong to another call.
    pub(crate) lost: CancellationToken,
    /// Notified when a question was dropped without an answer, so that the call needs its permits.
    pub(crate) refill: Notify,
}

impl SharedPermitQueue {
    pub(crate) fn new(
        limits: Arc<dyn SharedLimits>,
        needed: impl Iterator<Item = (SharedLimit, Arc<ConcurrencyLimiter>)>,
    ) -> Self {
        let (needed, turns) = needed.unzip();
        Self { limits, needed, turns, lost: CancellationToken::new(), refill: Notify::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.needed.is_empty()
    }

    /// The permits that the call may ask for without waiting for its turn.
    pub(crate) fn immediate(&self) -> &[SharedLimit] {
        if self.first_busy().is_some() { &[] } else { &self.needed }
    }

    /// Waits for the permits. Dropping the future leaves the queue.
    pub(crate) async fn acquire(&self, priority: Priority) -> Result<SharedPermit, StoreUnavailable> {
        let mut full = self.first_busy();
        loop {
            let _turn = match full {
                Some(index) => Some(self.turns[index].acquire(priority).await),
                None => None,
            };
            full = match self.ask(full).await? {
                Ok(permit) => return Ok(permit),
                Err(other) => Some(other),
            };
        }
    }

    /// Asks until the call has its permits, or until a limit is full for which it is not its turn.
    /// Returns the index of that limit.
    async fn ask(&self, turn: Option<usize>) -> Result<Result<SharedPermit, usize>, StoreUnavailable> {
        let mut pause = FIRST_PAUSE;
        loop {
            let demand = SharedDemand { rates: &[], permits: &self.needed, lost: &self.lost };
            match self.limits.admit(demand).await?.permits {
                SharedTake::Held(permit) => return Ok(Ok(permit)),
                SharedTake::Full(index) if turn != Some(index) => return Ok(Err(index)),
                SharedTake::Full(index) => {
                    let released = self.limits.released(&self.needed[index]);
                    let _ = tokio::time::timeout(jittered(pause), released).await;
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                // A call that asks for permits gets them or learns which limit is full.
                SharedTake::Nothing => return Ok(Ok(SharedPermit::new(|| {}))),
            }
        }
    }

    /// The first limit that other calls of this replica are waiting for.
    fn first_busy(&self) -> Option<usize> {
        self.turns.iter().position(|turn| !turn.has_free())
    }
}

/// Between half of the duration and one and a half times it, so that replicas do not ask in step.
fn jittered(pause: Duration) -> Duration {
    let [random] = toolyard_random::bytes().unwrap_or([128]);
    pause.mul_f64(0.5 + f64::from(random) / 256.0)
}
