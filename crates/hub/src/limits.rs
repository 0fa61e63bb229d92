//! How much may be asked for: time, size, rate, and calls at once; of the yard as a whole, of one caller, of one
//! source and of one tool. Settings only: how they are kept is in `call/gates.rs`, `rate.rs` and `places.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::glob::Glob;
use crate::name::SourceName;
use crate::quota::{QuotaLimits, QuotaOverrides};
use crate::result_check::ResultChecks;

/// The limits that the corridor obeys. Where several apply to a call, the tightest of each kind does.
#[derive(Debug, Clone, PartialEq)]
pub struct YardLimits {
    /// The longest that a call may take, whatever deadline it came with.
    pub call_time: Duration,
    /// The largest arguments, in bytes of JSON.
    pub payload: usize,
    /// How many calls of one source run at once; more wait. `None` means no limit.
    pub per_source: Option<usize>,
    /// How often each principal may call. `None` means no limit; the default lets work through and stops runaway loops.
    pub rate: Option<RateLimit>,
    /// Tighter limits for single sources. Only `calls` may be wider: it stands in for `per_source`.
    pub sources: BTreeMap<SourceName, ScopedLimits>,
    /// Tighter limits for the tools whose full name fits the glob, each tool for itself.
    pub tools: Vec<(Glob, ScopedLimits)>,
    /// How many resources one legacy session, or one `subscriptions/listen`, may be subscribed to.
    pub subscriptions: usize,
    /// How much each principal may hold at once of what costs memory.
    pub quotas: QuotaLimits,
    /// The memory of the process above which the heaviest principals are refused new work; found out from the system where
    /// this is not said.
    pub memory_mark: Option<u64>,
    /// Whether results are checked against the schemas that tools declare for them.
    pub results: ResultChecks,
}

/// Limits of one caller, one source or one tool; what is not said is not limited here. Those of a source and of a
/// tool are for all callers together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScopedLimits {
    pub call_time: Option<Duration>,
    pub payload: Option<usize>,
    /// How many calls run at once; more wait.
    pub calls: Option<usize>,
    pub rate: Option<RateLimit>,
    /// Of one caller only.
    pub quotas: QuotaOverrides,
}

impl Default for YardLimits {
    fn default() -> Self {
        Self {
            call_time: Duration::from_secs(300),
            payload: 10 * 1024 * 1024,
            per_source: Some(10),
            rate: Some(RateLimit::USUAL),
            sources: BTreeMap::new(),
            tools: Vec::new(),
            subscriptions: 1_000,
            quotas: QuotaLimits::default(),
            memory_mark: None,
            results: ResultChecks::default(),
        }
    }
}

/// A steady rate with room for a burst of at least one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    pub per_second: f64,
    pub burst: f64,
}

impl RateLimit {
    /// Of each principal, unless somebody says otherwise.
    pub const USUAL: Self = Self { per_second: 50.0, burst: 2_000.0 };
}
