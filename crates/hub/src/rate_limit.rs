//! Rate limits: one counter per caller, source or tool that has a rate, using the generic cell rate
//! algorithm (GCRA). A counter is a single point in time, at which its full burst is available
//! again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::{ErrorKind, HubError};
use crate::limits::RateLimit;
use crate::name::{FullName, SourceName};
use crate::shared_limits::{SharedCount, SharedKey, SharedRate};

/// If there are more counters than this, those with a full burst are removed: they carry no
/// information.
const MANY: usize = 10_000;
/// The interval in nanoseconds that represents a rate of zero: three hundred years.
const NEVER: u128 = 10_000_000_000_000_000_000;

/// The state of the tightest rate limit that applies to a call, after the call was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateState {
    /// The size of the burst, in calls.
    pub limit: u64,
    /// How many more calls can be made immediately.
    pub remaining: u64,
    /// How long until the full burst is available again, without further calls.
    pub reset: Duration,
}

/// What a counter applies to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    /// One caller, at the default rate of the yard.
    Caller(Arc<str>),
    /// One caller, at its own rate.
    Token(Arc<str>),
    Source(SourceName),
    /// A tool, at the rate of the glob with this index.
    Tool(FullName, usize),
}

impl RateKey {
    fn shared(&self) -> SharedKey {
        match self {
            Self::Caller(id) => SharedKey::new("rate:caller", &[id]),
            Self::Token(id) => SharedKey::new("rate:token", &[id]),
            Self::Source(name) => SharedKey::new("rate:source", &[name.as_str()]),
            Self::Tool(name, index) => SharedKey::new("rate:tool", &[name.as_str(), &index.to_string()]),
        }
    }
}

/// How a call was counted: the state of the tightest rate, and whether the call is allowed.
pub(crate) type RateVerdict = (Option<RateState>, Result<(), HubError>);

#[derive(Debug)]
pub(crate) struct RateCounters {
    began: Instant,
    state: Mutex<Counters>,
}

#[derive(Debug)]
struct Counters {
    /// When the full burst is available again, in nanoseconds since `began`.
    whole_at: HashMap<RateKey, u128>,
    sweep_above: usize,
}

/// A rate in whole nanoseconds.
#[derive(Clone, Copy)]
struct GcraRate {
    interval: u128,
    burst: u64,
    /// Maximum distance of a counter from the current time.
    ahead: u128,
}

impl GcraRate {
    /// Clamps the rate to the supported range. A burst below one would refuse every call forever,
    /// and a rate that is not a number counts as zero.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of the type"
    )]
    fn from_limit(rate: RateLimit) -> Self {
        let per_second = if rate.per_second > 0.0 { rate.per_second } else { 0.0 };
        let interval = (1e9 / per_second).clamp(0.0, NEVER as f64) as u128;
        let burst = rate.burst.clamp(1.0, 1e9);
        let burst = if burst.is_nan() { 1.0 } else { burst };
        Self { interval, burst: burst as u64, ahead: (interval as f64 * burst) as u128 }
    }

    /// The share of one of several replicas. Together they allow at least one call.
    fn from_share(rate: RateLimit, replicas: f64) -> Self {
        Self::from_limit(RateLimit { per_second: rate.per_second / replicas, burst: rate.burst / replicas })
    }

    fn state(self, whole_in: u128) -> RateState {
        let left = match self.interval {
            0 => u128::from(self.burst),
            between => self.ahead.saturating_sub(whole_in) / between,
        };
        let remaining = u64::try_from(left).unwrap_or(self.burst).min(self.burst);
        RateState { limit: self.burst, remaining, reset: nanoseconds(whole_in) }
    }
}

fn nanoseconds(number: u128) -> Duration {
    Duration::from_nanos(u64::try_from(number).unwrap_or(u64::MAX))
}

impl Default for RateCounters {
    fn default() -> Self {
        let state = Counters { whole_at: HashMap::new(), sweep_above: MANY };
        Self { began: Instant::now(), state: Mutex::new(state) }
    }
}

impl Counters {
    /// A sweep visits every counter, so the next one waits until their number has doubled.
    fn sweep(&mut self, now: u128) {
        if self.whole_at.len() > self.sweep_above {
            self.whole_at.retain(|_, whole_at| *whole_at > now);
            self.sweep_above = (2 * self.whole_at.len()).max(MANY);
        }
    }
}

impl RateCounters {
    /// Counts a call in all of these counters or, if one of them is exhausted, in none. Returns the
    /// state of the tightest.
    pub(crate) fn take(&self, rates: Vec<(RateKey, RateLimit)>) -> RateVerdict {
        self.take_with(rates, GcraRate::from_limit)
    }

    /// Like [`Self::take`], with the share of one of several replicas of each rate.
    pub(crate) fn take_share(&self, rates: Vec<(RateKey, RateLimit)>, replicas: usize) -> RateVerdict {
        let replicas = f64::from(u32::try_from(replicas.max(1)).unwrap_or(u32::MAX));
        self.take_with(rates, |rate| GcraRate::from_share(rate, replicas))
    }

    fn take_with(
        &self,
        rates: Vec<(RateKey, RateLimit)>,
        steady: impl Fn(RateLimit) -> GcraRate,
    ) -> RateVerdict {
        let now = self.began.elapsed().as_nanos();
        let mut counters = self.state.lock();
        counters.sweep(now);
        let mut tightest: Option<RateState> = None;
        let mut counted = Vec::with_capacity(rates.len());
        for (whose, rate) in rates {
            let steady = steady(rate);
            let whole_at = counters.whole_at.get(&whose).copied().unwrap_or(0).max(now);
            let after = whole_at.saturating_add(steady.interval);
            if let Some(early) = (after - now).checked_sub(steady.ahead).filter(|early| *early > 0) {
                let state = RateState { remaining: 0, ..steady.state(whole_at - now) };
                return (Some(state), Err(rate_limit_error(&whose, rate, steady, early)));
            }
            tightest = Some(steady.state(after - now).tighter(tightest));
            counted.push((whose, after));
        }
        counters.whole_at.extend(counted);
        (tightest, Ok(()))
    }

    /// Returns the verdict of counters that replicas share, which counted the same rates.
    pub(crate) fn shared_verdict(
        &self,
        rates: Vec<(RateKey, RateLimit)>,
        counted: &SharedCount,
    ) -> RateVerdict {
        match counted {
            SharedCount::Counted(whole_in) => {
                let states = rates.iter().zip(whole_in);
                let states = states.map(|((_, rate), whole)| GcraRate::from_limit(*rate).state(*whole));
                (states.fold(None, |tightest, state| Some(state.tighter(tightest))), Ok(()))
            }
            SharedCount::Exhausted { index, whole_in, early } => {
                let Some((whose, rate)) = rates.get(*index) else { return (None, Ok(())) };
                let steady = GcraRate::from_limit(*rate);
                let state = RateState { remaining: 0, ..steady.state(*whole_in) };
                (Some(state), Err(rate_limit_error(whose, *rate, steady, *early)))
            }
            SharedCount::Local { replicas } => self.take_share(rates, *replicas),
        }
    }
}

impl RateState {
    fn tighter(self, other: Option<Self>) -> Self {
        match other {
            Some(other)
                if other.remaining < self.remaining
                    || (other.remaining == self.remaining && other.reset >= self.reset) =>
            {
                other
            }
            _ => self,
        }
    }
}

/// The rates as replicas count them together.
pub(crate) fn shared_rates(rates: &[(RateKey, RateLimit)]) -> Vec<SharedRate> {
    let shared = |(whose, rate): &(RateKey, RateLimit)| {
        let steady = GcraRate::from_limit(*rate);
        SharedRate { key: whose.shared(), interval: steady.interval, ahead: steady.ahead }
    };
    rates.iter().map(shared).collect()
}

fn rate_limit_error(whose: &RateKey, rate: RateLimit, steady: GcraRate, early: u128) -> HubError {
    let of = match whose {
        RateKey::Caller(_) | RateKey::Token(_) => String::new(),
        RateKey::Source(name) => format!(" for all callers of `{name}`"),
        RateKey::Tool(name, _) => format!(" for all callers of `{name}`"),
    };
    let per_second = rate.per_second.to_string();
    let calls = if per_second == "1" { "call" } else { "calls" };
    let error = HubError::new(
        ErrorKind::RateLimited,
        format!("exceeded the rate limit of {per_second} {calls} per second{of}"),
    );
    if steady.interval >= NEVER {
        // With a rate of zero there is no next call to wait for.
        return error.with_suggestion(
            "ask the administrator of this yard to raise the rate, which is 0: no further calls are allowed",
        );
    }
    let wait = nanoseconds(early);
    error
        .with_suggestion(format!("wait {:.1} s before the next call", wait.as_secs_f64()))
        .with_retry_after(wait)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{RateCounters, RateKey, RateState};
    use crate::error::{ErrorKind, HubError};
    use crate::limits::RateLimit;
    use crate::name::SourceName;

    fn caller(name: &str) -> RateKey {
        RateKey::Caller(name.into())
    }

    fn take(counters: &RateCounters, name: &str, rate: RateLimit) -> Result<(), HubError> {
        counters.take(vec![(caller(name), rate)]).1
    }

    fn left(counters: &RateCounters, name: &str, rate: RateLimit) -> (u64, Duration) {
        let state = counters.take(vec![(caller(name), rate)]).0.unwrap();
        assert_eq!(state.limit, 3);
        (state.remaining, state.reset)
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_then_calls_wait_for_their_turn() {
        let counters = RateCounters::default();
        let rate = RateLimit { per_second: 2.0, burst: 3.0 };
        for _ in 0..3 {
            take(&counters, "ada", rate).unwrap();
        }
        let refused = take(&counters, "ada", rate).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.retry_after()),
            (ErrorKind::RateLimited, Some(Duration::from_millis(500)))
        );
        take(&counters, "bob", rate).unwrap();
        tokio::time::advance(Duration::from_millis(500)).await;
        take(&counters, "ada", rate).unwrap();
        take(&counters, "ada", rate).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn tells_how_much_is_left_and_when_all_of_it_is_back() {
        let counters = RateCounters::default();
        let rate = RateLimit { per_second: 2.0, burst: 3.0 };
        let half = Duration::from_millis(500);
        assert_eq!(left(&counters, "ada", rate), (2, half));
        assert_eq!(left(&counters, "ada", rate), (1, 2 * half));
        tokio::time::advance(half).await;
        assert_eq!(left(&counters, "ada", rate), (1, 2 * half));
        assert_eq!(left(&counters, "ada", rate), (0, 3 * half));
        // A refused call changes nothing.
        assert_eq!(left(&counters, "ada", rate), (0, 3 * half));
        tokio::time::advance(3 * half).await;
        assert_eq!(left(&counters, "ada", rate), (2, half));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_call_does_not_count_against_other_rates() {
        let counters = RateCounters::default();
        let (wide, narrow) =
            (RateLimit { per_second: 1.0, burst: 5.0 }, RateLimit { per_second: 0.1, burst: 1.0 });
        let source = RateKey::Source(SourceName::new("github"));
        let both = || vec![(caller("ada"), wide), (source.clone(), narrow)];
        let (state, taken) = counters.take(both());
        taken.unwrap();
        let tightest = RateState { limit: 1, remaining: 0, reset: Duration::from_secs(10) };
        assert_eq!(state, Some(tightest));
        for _ in 0..20 {
            let (state, refused) = counters.take(both());
            assert_eq!(state, Some(tightest));
            assert_eq!(
                refused.unwrap_err().message(),
                "exceeded the rate limit of 0.1 calls per second for all callers of `github`"
            );
        }
        let state = counters.take(vec![(caller("ada"), wide)]).0.unwrap();
        assert_eq!(state.remaining, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_below_one_still_lets_a_steady_caller_through() {
        for burst in [0.0, -3.0, f64::NAN] {
            let counters = RateCounters::default();
            let rate = RateLimit { per_second: 0.5, burst };
            take(&counters, "ada", rate).unwrap();
            assert_eq!(take(&counters, "ada", rate).unwrap_err().retry_after(), Some(Duration::from_secs(2)));
            tokio::time::advance(Duration::from_secs(2)).await;
            take(&counters, "ada", rate).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_of_zero_has_no_retry_time() {
        for per_second in [0.0, -1.0, f64::NAN] {
            let counters = RateCounters::default();
            let rate = RateLimit { per_second, burst: 2.0 };
            take(&counters, "ada", rate).unwrap();
            take(&counters, "ada", rate).unwrap();
            tokio::time::advance(Duration::from_secs(3600)).await;
            let refused = take(&counters, "ada", rate).unwrap_err();
            assert_eq!((refused.kind(), refused.retry_after()), (ErrorKind::RateLimited, None));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_infinite_rate_refuses_no_calls() {
        let counters = RateCounters::default();
        for _ in 0..100 {
            take(&counters, "ada", RateLimit { per_second: f64::INFINITY, burst: 1.0 }).unwrap();
        }
        take(&counters, "bob", RateLimit { per_second: f64::MAX, burst: f64::INFINITY }).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn counters_with_a_full_burst_are_removed_when_there_are_many() {
        let counters = RateCounters::default();
        let rate = RateLimit { per_second: 1.0, burst: 1.0 };
        for at in 0..=super::MANY {
            take(&counters, &at.to_string(), rate).unwrap();
        }
        tokio::time::advance(Duration::from_secs(2)).await;
        take(&counters, "ada", rate).unwrap();
        assert_eq!(counters.state.lock().whole_at.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn over_any_time_no_more_than_the_burst_and_the_rate_pass() {
        let counters = RateCounters::default();
        let rate = RateLimit { per_second: 7.0, burst: 4.0 };
        let mut passed = 0;
        for _ in 0..10_000 {
            passed += u32::from(take(&counters, "ada", rate).is_ok());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(passed, 4 + 69);
    }
}
