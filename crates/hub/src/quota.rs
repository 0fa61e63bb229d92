//! Quotas per principal for resources that use memory: response bytes in flight, sessions, streams,
//! programs and parked calls. A charge is released when it is dropped. Charges of one principal
//! never count against another. Only when the whole process uses too much memory are the principals
//! that use the most refused new work first.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::{ErrorKind, HubError};
use crate::principal::Principal;
use parking_lot::{Mutex, MutexGuard};

/// If there are more accounts than this, empty ones are removed.
const MANY_ACCOUNTS: usize = 1_000;
/// How long a refused caller should wait before it retries.
const RETRY: Duration = Duration::from_secs(1);

/// A resource that is counted per principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quota {
    /// Bytes of responses that are waiting to be sent.
    Bytes,
    /// MCP sessions.
    Sessions,
    /// Open event streams and control sockets.
    Streams,
    /// Programs that are running or waiting to run.
    Programs,
    /// Calls that wait for an answer from the client.
    Parked,
}

impl Quota {
    pub const ALL: [Self; 5] = [Self::Bytes, Self::Sessions, Self::Streams, Self::Programs, Self::Parked];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes_in_flight",
            Self::Sessions => "sessions",
            Self::Streams => "streams",
            Self::Programs => "programs",
            Self::Parked => "parked_calls",
        }
    }

    /// Approximate memory usage of one unit, in bytes.
    fn weight(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Sessions => 16 * 1024,
            Self::Streams => 32 * 1024,
            Self::Parked => 64 * 1024,
            Self::Programs => 1024 * 1024,
        }
    }
}

/// A value for each quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerQuota<T> {
    pub bytes: T,
    pub sessions: T,
    pub streams: T,
    pub programs: T,
    pub parked: T,
}

/// Maximum amount of each resource that one principal may hold.
pub type QuotaLimits = PerQuota<usize>;

/// The limits of one principal where they differ from the default.
pub type QuotaOverrides = PerQuota<Option<usize>>;

impl Default for QuotaLimits {
    fn default() -> Self {
        Self { bytes: 32 * 1024 * 1024, sessions: 256, streams: 256, programs: 16, parked: 64 }
    }
}

impl Default for QuotaOverrides {
    fn default() -> Self {
        Self { bytes: None, sessions: None, streams: None, programs: None, parked: None }
    }
}

impl<T: Copy> PerQuota<T> {
    fn get(&self, quota: Quota) -> T {
        match quota {
            Quota::Bytes => self.bytes,
            Quota::Sessions => self.sessions,
            Quota::Streams => self.streams,
            Quota::Programs => self.programs,
            Quota::Parked => self.parked,
        }
    }
}

/// The accounts of all principals.
#[derive(Debug)]
pub struct Quotas {
    accounts: Mutex<HashMap<Arc<str>, Arc<Account>>>,
    /// Bytes in flight for all principals together.
    bytes: Arc<AtomicUsize>,
    refused: [AtomicU64; Quota::ALL.len()],
    refused_for_memory: AtomicU64,
    resident: AtomicU64,
    mark: AtomicU64,
    /// Principals with at least this weight are refused new work. `usize::MAX` while memory is
    /// sufficient.
    refuse_at: AtomicUsize,
}

#[derive(Debug, Default)]
struct Account {
    used: [AtomicUsize; Quota::ALL.len()],
    /// The decaying weight of the recent past. A principal that requests one large response after
    /// another keeps a weight even at moments when all of them have been sent.
    recent: AtomicUsize,
}

impl Account {
    fn weight(&self) -> usize {
        let used = |quota: Quota| self.used[quota as usize].load(Ordering::Relaxed);
        Quota::ALL
            .into_iter()
            .fold(0_usize, |sum, quota| sum.saturating_add(used(quota).saturating_mul(quota.weight())))
    }

    fn is_empty(&self) -> bool {
        self.weight() == 0 && self.recent.load(Ordering::Relaxed) == 0
    }
}

/// Part of a principal's quota, released when this is dropped.
#[derive(Debug)]
#[must_use = "the charge is released when this is dropped"]
pub struct QuotaCharge {
    account: Arc<Account>,
    /// The total of all principals, if the quota is [`Quota::Bytes`].
    bytes: Option<Arc<AtomicUsize>>,
    quota: Quota,
    amount: usize,
}

impl Drop for QuotaCharge {
    fn drop(&mut self) {
        self.account.used[self.quota as usize].fetch_sub(self.amount, Ordering::Relaxed);
        if let Some(bytes) = &self.bytes {
            bytes.fetch_sub(self.amount, Ordering::Relaxed);
        }
    }
}

/// A snapshot of the accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaReport {
    /// For each quota, the amount held by all principals together and the number of refusals.
    pub quotas: Vec<(Quota, usize, u64)>,
    pub refused_for_memory: u64,
    /// The memory usage at the last check, and the mark above which work is refused.
    pub resident: u64,
    pub mark: u64,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            accounts: Mutex::default(),
            bytes: Arc::default(),
            refused: Default::default(),
            refused_for_memory: AtomicU64::new(0),
            resident: AtomicU64::new(0),
            mark: AtomicU64::new(0),
            refuse_at: AtomicUsize::new(usize::MAX),
        }
    }
}

impl Quotas {
    /// Charges a principal, or returns an error that names the exceeded limit.
    pub(crate) fn charge(
        &self,
        limits: &QuotaLimits,
        principal: &Principal,
        quota: Quota,
        amount: usize,
    ) -> Result<QuotaCharge, HubError> {
        let most = limit_for(limits, principal, quota);
        let account = self.account(principal);
        let used = &account.used[quota as usize];
        let fits = |held: usize| held.checked_add(amount).filter(|sum| *sum <= most);
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            self.refused[quota as usize].fetch_add(1, Ordering::Relaxed);
            return Err(quota_exceeded_error(quota, most));
        }
        account.recent.fetch_max(account.weight(), Ordering::Relaxed);
        let bytes = (quota == Quota::Bytes).then(|| Arc::clone(&self.bytes));
        if let Some(bytes) = &bytes {
            bytes.fetch_add(amount, Ordering::Relaxed);
        }
        Ok(QuotaCharge { account, bytes, quota, amount })
    }

    /// Checks whether this principal may start new work. A principal that does not read its
    /// responses is refused here, before any work is done, rather than when the next response does
    /// not fit.
    pub(crate) fn admit(&self, limits: &QuotaLimits, principal: &Principal) -> Result<(), HubError> {
        let refuse_at = self.refuse_at.load(Ordering::Relaxed);
        let most = limit_for(limits, principal, Quota::Bytes);
        // On the path of every call: no account is looked up while all principals together are
        // below the limit.
        if refuse_at == usize::MAX && self.bytes.load(Ordering::Relaxed) < most {
            return Ok(());
        }
        let account = self.lock().get(principal.shared_id()).cloned().unwrap_or_default();
        if account.used[Quota::Bytes as usize].load(Ordering::Relaxed) >= most {
            self.refused[Quota::Bytes as usize].fetch_add(1, Ordering::Relaxed);
            let message =
                format!("the pending responses of this principal have reached the limit of {most} bytes");
            return Err(HubError::new(ErrorKind::RateLimited, message)
                .with_suggestion("read the pending responses before sending more requests")
                .with_retry_after(RETRY));
        }
        if account.weight().max(account.recent.load(Ordering::Relaxed)) < refuse_at {
            return Ok(());
        }
        self.refused_for_memory.fetch_add(1, Ordering::Relaxed);
        let (resident, mark) = (self.resident.load(Ordering::Relaxed), self.mark.load(Ordering::Relaxed));
        let message = format!(
            "Toolyard uses {resident} bytes of memory, more than `limits.memory_mark_bytes` allows ({mark} bytes)"
        );
        Err(HubError::new(ErrorKind::RateLimited, message)
            .with_suggestion("retry later, with fewer or smaller concurrent requests")
            .with_retry_after(RETRY))
    }

    /// Updates the memory usage of the process. Between the mark and one third above it (which is
    /// the limit if the mark is 75 % of a limit), more and more principals are refused, those that
    /// use the most memory first. Above that, all are refused.
    pub fn observe_memory(&self, resident: u64, mark: u64) {
        self.resident.store(resident, Ordering::Relaxed);
        self.mark.store(mark, Ordering::Relaxed);
        let mut heaviest = 0;
        for account in self.lock().values() {
            let weight = account.weight().max(account.recent.load(Ordering::Relaxed) / 2);
            account.recent.store(weight, Ordering::Relaxed);
            heaviest = heaviest.max(weight);
        }
        let refuse_at = match resident.checked_sub(mark) {
            None | Some(0) => usize::MAX,
            Some(over) if over >= mark / 3 => 0,
            Some(over) => {
                let left = u128::from((mark / 3).saturating_sub(over)) * (heaviest as u128);
                let share = left / u128::from((mark / 3).max(1));
                usize::try_from(share).unwrap_or(usize::MAX).max(1)
            }
        };
        let before = self.refuse_at.swap(refuse_at, Ordering::Relaxed);
        if (before == usize::MAX) != (refuse_at == usize::MAX) {
            let refusing = refuse_at != usize::MAX;
            tracing::warn!(resident, mark, refusing, "memory usage crossed its mark");
        }
    }

    pub fn report(&self) -> QuotaReport {
        let accounts = self.lock();
        let used = |quota: Quota| {
            accounts.values().map(|account| account.used[quota as usize].load(Ordering::Relaxed)).sum()
        };
        let refused = |quota: Quota| self.refused[quota as usize].load(Ordering::Relaxed);
        QuotaReport {
            quotas: Quota::ALL.map(|quota| (quota, used(quota), refused(quota))).to_vec(),
            refused_for_memory: self.refused_for_memory.load(Ordering::Relaxed),
            resident: self.resident.load(Ordering::Relaxed),
            mark: self.mark.load(Ordering::Relaxed),
        }
    }

    fn account(&self, principal: &Principal) -> Arc<Account> {
        let mut accounts = self.lock();
        if let Some(known) = accounts.get(principal.shared_id()) {
            return Arc::clone(known);
        }
        if accounts.len() >= MANY_ACCOUNTS {
            accounts.retain(|_, account| Arc::strong_count(account) > 1 || !account.is_empty());
        }
        Arc::clone(accounts.entry(Arc::clone(principal.shared_id())).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Account>>> {
        self.accounts.lock()
    }
}

fn limit_for(limits: &QuotaLimits, principal: &Principal, quota: Quota) -> usize {
    principal.limits().quotas.get(quota).unwrap_or_else(|| limits.get(quota))
}

fn quota_exceeded_error(quota: Quota, most: usize) -> HubError {
    let (message, suggestion) = match quota {
        // Reported like a lost connection: the call has been executed and must not be retried
        // automatically.
        Quota::Bytes => {
            let message = format!(
                "response withheld: the pending responses of this principal would exceed the limit of {most} bytes"
            );
            return HubError::new(ErrorKind::ConnectionLost, message).with_suggestion(
                "read the pending responses before sending more requests; the call may have been executed",
            );
        }
        Quota::Sessions => (
            format!("this principal has reached its limit of {most} sessions, and all are in use"),
            "close sessions that are no longer needed",
        ),
        Quota::Streams => (
            format!("this principal has reached its limit of {most} open streams"),
            "close streams that are no longer needed",
        ),
        Quota::Programs => (
            format!("this principal has reached its limit of {most} running or waiting programs"),
            "wait until one of them ends",
        ),
        Quota::Parked => (
            format!("this principal has reached its limit of {most} calls that wait for the client's answer"),
            "answer the questions of one of them, or wait until one expires",
        ),
    };
    HubError::new(ErrorKind::RateLimited, message).with_suggestion(suggestion).with_retry_after(RETRY)
}

#[cfg(test)]
mod tests;
