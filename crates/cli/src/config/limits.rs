//! `[limits]`: the hub's limits as people write them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_hub::{Limits, Rate};

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(crate) struct LimitKeys {
    /// The longest that a call may take, in seconds.
    call_seconds: Option<f64>,
    /// The largest request, in bytes.
    payload_bytes: Option<usize>,
    /// Calls of one source at once; more wait. 0 means no limit.
    calls_per_source: Option<usize>,
    /// How many calls a principal may make; no limit if this is not said.
    rate: Option<RateKeys>,
    /// How long calls in flight may still take once we are told to stop, in seconds.
    drain_seconds: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(crate) struct RateKeys {
    /// Calls a second, in the long run.
    per_second: f64,
    /// Calls at once.
    burst: f64,
}

/// A value that is of the right kind and still makes no sense: where, and why.
pub(super) type Nonsense = (&'static [&'static str], &'static str);

impl LimitKeys {
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            call_time: self.call_seconds.map_or(usual.call_time, Duration::from_secs_f64),
            payload: self.payload_bytes.unwrap_or(usual.payload),
            per_source: match self.calls_per_source {
                Some(0) => None,
                Some(most) => Some(most),
                None => usual.per_source,
            },
            rate: self.rate.as_ref().map(|rate| Rate { per_second: rate.per_second, burst: rate.burst }),
        }
    }

    /// How long calls in flight may still take once we are told to stop.
    pub(crate) fn drain(&self) -> Duration {
        self.drain_seconds.map_or(Duration::from_secs(30), Duration::from_secs_f64)
    }

    pub(super) fn over(self, earlier: Self) -> Self {
        Self {
            call_seconds: self.call_seconds.or(earlier.call_seconds),
            payload_bytes: self.payload_bytes.or(earlier.payload_bytes),
            calls_per_source: self.calls_per_source.or(earlier.calls_per_source),
            rate: self.rate.or(earlier.rate),
            drain_seconds: self.drain_seconds.or(earlier.drain_seconds),
        }
    }

    pub(super) fn nonsense(&self) -> Vec<Nonsense> {
        let seconds = |given: Option<f64>| given.is_none_or(|given| (0.0..=1e9).contains(&given));
        let per_second = |rate: &RateKeys| rate.per_second > 0.0 && rate.per_second.is_finite();
        let burst = |rate: &RateKeys| rate.burst >= 1.0 && rate.burst.is_finite();
        let checks: [(bool, Nonsense); 4] = [
            (
                seconds(self.call_seconds),
                (&["limits", "call_seconds"], "must be a number of seconds, zero or more"),
            ),
            (
                seconds(self.drain_seconds),
                (&["limits", "drain_seconds"], "must be a number of seconds, zero or more"),
            ),
            (
                self.rate.as_ref().is_none_or(per_second),
                (&["limits", "rate", "per_second"], "must be more than zero"),
            ),
            (self.rate.as_ref().is_none_or(burst), (&["limits", "rate", "burst"], "must be at least 1")),
        ];
        checks.into_iter().filter(|(fine, _)| !fine).map(|(_, nonsense)| nonsense).collect()
    }
}
