//! How much one caller may ask for: time, size, rate, and calls at once. Each is switched on by a setting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::error::{Error, Kind};

/// The limits that the corridor obeys.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The longest that a call may take, whatever deadline it came with.
    pub call_time: Duration,
    /// The largest arguments, in bytes of JSON.
    pub payload: usize,
    /// How many calls of one source run at once; more wait. `None` means no limit.
    pub per_source: Option<usize>,
    /// How often one principal may call. `None` means no limit.
    pub rate: Option<Rate>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_time: Duration::from_secs(300),
            payload: 10 * 1024 * 1024,
            per_source: Some(10),
            rate: None,
        }
    }
}

/// A steady rate with room for a burst of at least one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    pub burst: f64,
}

impl Rate {
    /// The same within what can be counted: a burst below one would refuse every call for ever, and a rate that
    /// is no number would refuse none. (`max` prefers the other side to NaN.)
    fn sane(self) -> Self {
        Self { per_second: self.per_second.max(0.0), burst: self.burst.max(1.0) }
    }
}

/// One bucket of tokens per principal.
#[derive(Debug)]
pub(crate) struct RateCounters {
    state: Mutex<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    by_principal: HashMap<String, Bucket>,
    /// Above this many, full buckets are forgotten: a full bucket says nothing.
    sweep_above: usize,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

const MANY_BUCKETS: usize = 10_000;

impl Default for RateCounters {
    fn default() -> Self {
        let buckets = Buckets { by_principal: HashMap::new(), sweep_above: MANY_BUCKETS };
        Self { state: Mutex::new(buckets) }
    }
}

impl Bucket {
    fn refilled(&self, rate: Rate, now: Instant) -> f64 {
        let fresh = now.saturating_duration_since(self.at).as_secs_f64() * rate.per_second;
        // An endless rate times no time at all is no number; `min` then says the burst, which is what is meant.
        (self.tokens + fresh).min(rate.burst)
    }
}

impl Buckets {
    /// Sweeping looks at every bucket, so the next sweep waits until there are twice as many.
    fn sweep(&mut self, rate: Rate, now: Instant) {
        if self.by_principal.len() > self.sweep_above {
            self.by_principal.retain(|_, bucket| bucket.refilled(rate, now) < rate.burst);
            self.sweep_above = (2 * self.by_principal.len()).max(MANY_BUCKETS);
        }
    }
}

impl RateCounters {
    pub(crate) fn take(&self, principal: &str, rate: Rate) -> Result<(), Error> {
        let rate = rate.sane();
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sweep(rate, now);
        let full = Bucket { tokens: rate.burst, at: now };
        let bucket = state.by_principal.entry(principal.to_owned()).or_insert(full);
        bucket.tokens = bucket.refilled(rate, now);
        bucket.at = now;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let error = Error::new(Kind::RateLimited, format!("more than {} calls a second", rate.per_second));
        Err(match Duration::try_from_secs_f64((1.0 - bucket.tokens) / rate.per_second) {
            Ok(wait) => error
                .suggest(format!("wait {:.1} s before the next call", wait.as_secs_f64()))
                .retry_after(wait),
            // Without a rate there is no next token, and so no time to wait for it.
            Err(_) => error.suggest("the burst is used up and this yard allows no further calls"),
        })
    }
}

/// A place among the calls of one source that run at once. Clones stand for the same place.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    places: Option<Arc<Semaphore>>,
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct State {
    held: Option<OwnedSemaphorePermit>,
    /// How many questions are open; the place is free as long as there is one.
    stepped_out: usize,
    /// The call has ended: whatever it left running gets no place any more.
    over: bool,
}

impl State {
    fn wants_a_place(&self) -> bool {
        self.held.is_none() && self.stepped_out == 0 && !self.over
    }
}

impl Slot {
    /// Waits for a place; without a limit there is always one.
    pub(crate) async fn take(places: Option<Arc<Semaphore>>) -> Result<Self, Error> {
        let shared = Shared { places, state: Mutex::default(), filled: Notify::new() };
        let slot = Self { shared: Arc::new(shared) };
        slot.fill().await?;
        Ok(slot)
    }

    /// Frees the place until [`SteppedOut::step_in`].
    pub(crate) fn step_out(&self) -> SteppedOut {
        let mut state = self.lock();
        state.stepped_out += 1;
        state.held = None;
        SteppedOut { slot: self.clone() }
    }

    /// Frees the place for good: the call has ended.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.over = true;
        state.held = None;
    }

    /// Two questions of one call may be answered at once. Both then wait here, and one place is enough for both.
    async fn fill(&self) -> Result<(), Error> {
        let Some(places) = &self.shared.places else { return Ok(()) };
        loop {
            let filled = self.shared.filled.notified();
            if !self.lock().wants_a_place() {
                return Ok(());
            }
            tokio::select! {
                permit = Arc::clone(places).acquire_owned() => {
                    let closed = |_| Error::new(Kind::Cancelled, "the source is being taken away");
                    self.put(permit.map_err(closed)?);
                    return Ok(());
                }
                () = filled => {}
            }
        }
    }

    fn put(&self, permit: OwnedSemaphorePermit) {
        let mut state = self.lock();
        if state.wants_a_place() {
            state.held = Some(permit);
            drop(state);
            self.shared.filled.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question is open. Dropped without an answer, the call goes on in a place only if one is free at once.
#[derive(Debug)]
pub(crate) struct SteppedOut {
    slot: Slot,
}

impl SteppedOut {
    /// Waits for a place again, unless another question of the same call is still open.
    pub(crate) async fn step_in(self) -> Result<(), Error> {
        let slot = self.slot.clone();
        drop(self);
        slot.fill().await
    }
}

impl Drop for SteppedOut {
    fn drop(&mut self) {
        self.slot.lock().stepped_out -= 1;
        if let Some(places) = &self.slot.shared.places
            && let Ok(permit) = Arc::clone(places).try_acquire_owned()
        {
            self.slot.put(permit);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::Semaphore;

    use super::{Rate, RateCounters, Slot};
    use crate::error::Kind;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_then_calls_wait_for_their_token() {
        let counters = RateCounters::default();
        let rate = Rate { per_second: 2.0, burst: 3.0 };
        for _ in 0..3 {
            counters.take("ada", rate).unwrap();
        }
        let refused = counters.take("ada", rate).unwrap_err();
        assert_eq!((refused.kind(), refused.wait()), (Kind::RateLimited, Some(Duration::from_millis(500))));
        counters.take("bob", rate).unwrap();
        tokio::time::advance(Duration::from_millis(500)).await;
        counters.take("ada", rate).unwrap();
        counters.take("ada", rate).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_below_one_still_lets_a_steady_caller_through() {
        let counters = RateCounters::default();
        let rate = Rate { per_second: 0.5, burst: 0.0 };
        counters.take("ada", rate).unwrap();
        assert_eq!(counters.take("ada", rate).unwrap_err().wait(), Some(Duration::from_secs(2)));
        tokio::time::advance(Duration::from_secs(2)).await;
        counters.take("ada", rate).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_of_nothing_promises_no_time_to_wait() {
        for per_second in [0.0, -1.0, f64::NAN] {
            let counters = RateCounters::default();
            let rate = Rate { per_second, burst: 1.0 };
            counters.take("ada", rate).unwrap();
            tokio::time::advance(Duration::from_secs(3600)).await;
            let refused = counters.take("ada", rate).unwrap_err();
            assert_eq!((refused.kind(), refused.wait()), (Kind::RateLimited, None));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_rate_refuses_nobody() {
        let counters = RateCounters::default();
        for _ in 0..100 {
            counters.take("ada", Rate { per_second: f64::INFINITY, burst: 1.0 }).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn full_buckets_are_forgotten_once_there_are_many() {
        let counters = RateCounters::default();
        let rate = Rate { per_second: 1.0, burst: 1.0 };
        for at in 0..=super::MANY_BUCKETS {
            counters.take(&at.to_string(), rate).unwrap();
        }
        tokio::time::advance(Duration::from_secs(2)).await;
        counters.take("ada", rate).unwrap();
        assert_eq!(counters.state.lock().unwrap().by_principal.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn two_open_questions_free_one_place_and_take_one_back() {
        let places = Arc::new(Semaphore::new(1));
        let slot = Slot::take(Some(Arc::clone(&places))).await.unwrap();
        let (first, second) = (slot.step_out(), slot.step_out());
        assert_eq!(places.available_permits(), 1);
        first.step_in().await.unwrap();
        assert_eq!(places.available_permits(), 1);
        second.step_in().await.unwrap();
        assert_eq!(places.available_permits(), 0);
        slot.end();
        assert_eq!(places.available_permits(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn two_answers_that_wait_for_a_place_share_the_one_that_comes_free() {
        let places = Arc::new(Semaphore::new(1));
        let slot = Slot::take(Some(Arc::clone(&places))).await.unwrap();
        let first = slot.step_out();
        let other = Slot::take(Some(Arc::clone(&places))).await.unwrap();
        let first = tokio::spawn(first.step_in());
        tokio::task::yield_now().await;
        let second = tokio::spawn(slot.step_out().step_in());
        tokio::task::yield_now().await;
        other.end();
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
        assert_eq!(places.available_permits(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_outlives_its_call_takes_no_place() {
        let places = Arc::new(Semaphore::new(1));
        let slot = Slot::take(Some(Arc::clone(&places))).await.unwrap();
        let (answered, dropped) = (slot.step_out(), slot.step_out());
        slot.end();
        answered.step_in().await.unwrap();
        drop(dropped);
        assert_eq!(places.available_permits(), 1);
    }
}
