//! Limits on time, size, rate and concurrency, for the whole yard, one caller, one source or one
//! tool. This module contains only settings; `call/admission.rs`, `rate_limit.rs` and
//! `concurrency.rs` enforce them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::glob::Glob;
use crate::name::SourceName;
use crate::quota::{QuotaLimits, QuotaOverrides};
use crate::result_check::ResultChecks;

/// The limits of a yard. If several limits of one kind apply to a call, the tightest is used.
#[derive(Debug, Clone, PartialEq)]
pub struct YardLimits {
    /// Maximum duration of a call, regardless of the deadline in the request.
    pub call_time: Duration,
    /// Maximum size of the arguments, in bytes of JSON.
    pub payload: usize,
    /// Maximum number of concurrent calls per source; further calls wait. `None` means no limit.
    pub per_source: Option<usize>,
    /// Maximum call rate per principal. `None` means no limit. The default does not restrict normal
    /// use and stops runaway loops.
    pub rate: Option<RateLimit>,
    /// Tighter limits for individual sources. Only `calls` may be wider, because it replaces
    /// `per_source`.
    pub sources: BTreeMap<SourceName, ScopedLimits>,
    /// Tighter limits for tools whose full name matches the glob. They apply to each tool
    /// separately.
    pub tools: Vec<(Glob, ScopedLimits)>,
    /// Maximum number of resource subscriptions per legacy session or per `subscriptions/listen`
    /// request.
    pub subscriptions: usize,
    /// Maximum amount of memory-consuming resources that each principal may hold.
    pub quotas: QuotaLimits,
    /// Memory usage of the process above which the principals that use the most memory are refused
    /// new work. Determined from the system if not set.
    pub memory_mark: Option<u64>,
    /// Whether results are checked against the output schemas of the tools.
    pub results: ResultChecks,
}

/// Limits of one caller, source or tool. Fields that are not set impose no limit. The limits of a
/// source or tool apply to all callers together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScopedLimits {
    pub call_time: Option<Duration>,
    pub payload: Option<usize>,
    /// Maximum number of concurrent calls; further calls wait.
    pub calls: Option<usize>,
    pub rate: Option<RateLimit>,
    /// Only used for callers.
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

/// A sustained rate and a burst of at least one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    pub per_second: f64,
    pub burst: f64,
}

impl RateLimit {
    /// The default for each principal.
    pub const USUAL: Self = Self { per_second: 50.0, burst: 2_000.0 };
}
