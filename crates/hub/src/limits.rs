//! How much one caller may ask for: time, size, rate, and calls at once. Each is switched on by a setting.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Rate, RateCounters};
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
}
