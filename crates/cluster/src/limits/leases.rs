//! What this replica knows of its leases: which limits they belong to and until when it may rely on
//! them. It decides which calls are canceled and which keep the share of this replica while Redis is
//! away. It does not use Redis.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::LEASE_TIME;

/// The number of a lease of this replica. Later leases have higher numbers.
pub(super) type LeaseNumber = u64;

/// Maximum number of leases that wait to be released. Others expire.
const MOST_RELEASED: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct LeaseTable {
    next: LeaseNumber,
    leases: BTreeMap<LeaseNumber, Lease>,
    limits: HashMap<String, LimitUse>,
    released: VecDeque<ReleasedLease>,
}

#[derive(Debug)]
struct Lease {
    /// The limits, and how many permits each has in all replicas together.
    limits: Vec<(String, usize)>,
    standing: LeaseStanding,
    lost: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseStanding {
    /// Redis has not answered yet.
    Requested,
    ReliableUntil(Instant),
    /// Part of the share of this replica. Redis does not know it yet.
    Share,
}

/// The use of one limit by this replica.
#[derive(Debug, Default)]
struct LimitUse {
    holders: usize,
    released: Arc<Notify>,
}

/// A lease to remove from one limit in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReleasedLease {
    pub(super) number: LeaseNumber,
    pub(super) limit: String,
    at: Instant,
}

/// A lease to renew in one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeaseRenewal {
    pub(super) number: LeaseNumber,
    pub(super) limit: String,
    /// Whether Redis does not know it yet.
    pub(super) is_new: bool,
}

impl LeaseTable {
    /// Adds a lease that will be requested from Redis.
    pub(super) fn begin(&mut self, limits: Vec<(String, usize)>, lost: CancellationToken) -> LeaseNumber {
        self.add(limits, LeaseStanding::Requested, lost)
    }

    /// Records that Redis has granted a lease.
    pub(super) fn confirm(&mut self, number: LeaseNumber, until: Instant) {
        if let Some(lease) = self.leases.get_mut(&number) {
            lease.standing = LeaseStanding::ReliableUntil(until);
        }
    }

    /// Grants a lease without Redis if this replica has not used up its share of every limit.
    /// Otherwise returns the index of a limit that it has used up.
    pub(super) fn grant_share(
        &mut self,
        limits: Vec<(String, usize)>,
        lost: CancellationToken,
        replicas: usize,
    ) -> Result<LeaseNumber, usize> {
        let holders = |name: &String| self.limits.get(name).map_or(0, |limit| limit.holders);
        match limits.iter().position(|(name, most)| holders(name) >= share(*most, replicas)) {
            Some(index) => Err(index),
            None => Ok(self.add(limits, LeaseStanding::Share, lost)),
        }
    }

    fn add(
        &mut self,
        limits: Vec<(String, usize)>,
        standing: LeaseStanding,
        lost: CancellationToken,
    ) -> LeaseNumber {
        for (name, _) in &limits {
            self.limits.entry(name.clone()).or_default().holders += 1;
        }
        self.next += 1;
        self.leases.insert(self.next, Lease { limits, standing, lost });
        self.next
    }

    /// Removes a lease that Redis has refused.
    pub(super) fn reject(&mut self, number: LeaseNumber) {
        self.remove(number);
    }

    /// Removes a lease whose call has ended, and queues its removal from Redis. Returns whether
    /// there is something to remove.
    pub(super) fn release(&mut self, number: LeaseNumber, now: Instant) -> bool {
        let Some(lease) = self.remove(number) else { return false };
        for (name, _) in lease.limits {
            if lease.standing == LeaseStanding::Share {
                self.notify(&name);
            }
            // A share may be on its way to Redis, so it is removed as well.
            if self.released.len() < MOST_RELEASED {
                self.released.push_back(ReleasedLease { number, limit: name, at: now });
            }
        }
        true
    }

    fn remove(&mut self, number: LeaseNumber) -> Option<Lease> {
        let lease = self.leases.remove(&number)?;
        for (name, _) in &lease.limits {
            if let Some(limit) = self.limits.get_mut(name) {
                limit.holders -= 1;
            }
        }
        Some(lease)
    }

    /// Ends the leases that can no longer be relied on and cancels their calls. If Redis is away
    /// and each of `share_of` replicas keeps its share, the oldest leases become part of it.
    /// Returns the number of canceled calls.
    pub(super) fn expire(&mut self, now: Instant, share_of: Option<usize>) -> usize {
        let mut used: HashMap<String, usize> = HashMap::new();
        let mut lost = Vec::new();
        for (number, lease) in &mut self.leases {
            let is_expired = matches!(lease.standing, LeaseStanding::ReliableUntil(until) if until <= now);
            let fits = |(name, most): &(String, usize)| {
                let used = used.get(name).copied().unwrap_or_default();
                share_of.is_some_and(|replicas| used < share(*most, replicas))
            };
            if is_expired && !lease.limits.iter().all(fits) {
                lost.push(*number);
                continue;
            }
            if is_expired {
                lease.standing = LeaseStanding::Share;
            }
            for (name, _) in &lease.limits {
                *used.entry(name.clone()).or_default() += 1;
            }
        }
        self.cancel(&lost, now);
        lost.len()
    }

    fn cancel(&mut self, lost: &[LeaseNumber], now: Instant) {
        for number in lost {
            if let Some(lease) = self.leases.get(number) {
                lease.lost.cancel();
            }
            self.release(*number, now);
        }
    }

    /// Returns what to renew, in batches. There is at least one, which may be empty.
    pub(super) fn renewals(&self, batch: usize) -> Vec<Vec<LeaseRenewal>> {
        let mut batches = vec![Vec::new()];
        for (number, lease) in &self.leases {
            let is_new = match lease.standing {
                LeaseStanding::Requested => continue,
                LeaseStanding::ReliableUntil(_) => false,
                LeaseStanding::Share => true,
            };
            let limits = lease.limits.iter();
            let renewals: Vec<_> = limits
                .map(|(limit, _)| LeaseRenewal { number: *number, limit: limit.clone(), is_new })
                .collect();
            // All limits of a lease are in one batch.
            match batches.last_mut() {
                Some(last) if last.len() < batch => last.extend(renewals),
                _ => batches.push(renewals),
            }
        }
        batches
    }

    /// Records the answers of Redis: for each renewal, whether the lease had expired. Returns the
    /// number of canceled calls.
    pub(super) fn finish_renewal(
        &mut self,
        renewals: impl Iterator<Item = (LeaseNumber, bool)>,
        until: Instant,
    ) -> usize {
        let mut lost = Vec::new();
        for (number, is_expired) in renewals {
            if is_expired {
                lost.push(number);
            }
            self.confirm(number, until);
        }
        lost.dedup();
        lost.retain(|number| self.leases.contains_key(number));
        self.cancel(&lost, Instant::now());
        lost.len()
    }

    /// Takes the leases that are to be removed from Redis.
    pub(super) fn take_released(&mut self, most: usize) -> Vec<ReleasedLease> {
        let number = self.released.len().min(most);
        self.released.drain(..number).collect()
    }

    /// Returns leases that could not be removed from Redis, except those that have expired.
    pub(super) fn put_back(&mut self, batch: Vec<ReleasedLease>, now: Instant) {
        let alive = batch.into_iter().rev().filter(|lease| now.duration_since(lease.at) < LEASE_TIME);
        for lease in alive {
            self.released.push_front(lease);
        }
        self.released.truncate(MOST_RELEASED);
    }

    /// Notifies the call of this replica that waits for the limit, if there is one.
    pub(super) fn notify(&self, limit: &str) {
        if let Some(limit) = self.limits.get(limit) {
            limit.released.notify_one();
        }
    }

    /// Returns what is notified when this replica has released a permit of the limit.
    pub(super) fn watch(&mut self, limit: &str) -> Arc<Notify> {
        Arc::clone(&self.limits.entry(limit.to_owned()).or_default().released)
    }

    /// Forgets limits that are not in use.
    pub(super) fn sweep(&mut self) {
        self.limits.retain(|_, limit| limit.holders > 0 || Arc::strong_count(&limit.released) > 1);
    }
}

/// The share of one replica. It is never zero, because its calls would never be made.
fn share(most: usize, replicas: usize) -> usize {
    (most / replicas.max(1)).max(1)
}

#[cfg(test)]
mod tests;
