//! The scripts of shared limits with their keys and arguments, and what they answer.

use redis::{Script, ScriptInvocation};
use toolyard_hub::{ReplicaId, SharedLimit, SharedRate, StoreUnavailable};

use super::LEASE_TIME;
use super::leases::LeaseRenewal;
use crate::store::KEY_PREFIX;

/// If no replica has spoken for this long, Redis was away or has lost its data. For as long again,
/// replicas report their leases and no new ones are granted. Longer than the time between two
/// renewals.
const SETTLE_MILLIS: &str = "3000";

pub(super) struct LimitScripts {
    admit: Script,
    renew: Script,
    release: Script,
}

/// The answer of the script that admits calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AdmitReply {
    Counted { whole_in: Vec<u128>, full: Option<usize> },
    Exhausted { index: usize, whole_in: u128, early: u128 },
}

impl Default for LimitScripts {
    fn default() -> Self {
        Self {
            admit: Script::new(include_str!("admit.lua")),
            renew: Script::new(include_str!("renew.lua")),
            release: Script::new(include_str!("release.lua")),
        }
    }
}

/// The key of a limit of a yard.
pub(super) fn limit_key(yard: &str, limit: &SharedLimit) -> String {
    key(yard, limit.key.as_str())
}

fn key(yard: &str, name: &str) -> String {
    format!("{KEY_PREFIX}{yard}{}{name}", if yard.is_empty() { "" } else { ":" })
}

fn store_keys(invocation: &mut ScriptInvocation<'_>) {
    invocation.key(key("", "contact")).key(key("", "settling"));
}

impl LimitScripts {
    pub(super) fn admit(
        &self,
        yard: &str,
        rates: &[SharedRate],
        names: &[String],
        limits: &[SharedLimit],
        member: &str,
    ) -> ScriptInvocation<'_> {
        let mut script = self.admit.prepare_invoke();
        store_keys(&mut script);
        script.arg(member).arg(micros(LEASE_TIME.as_nanos())).arg(SETTLE_MILLIS).arg(rates.len());
        for rate in rates {
            script.key(key(yard, rate.key.as_str())).arg(micros(rate.interval)).arg(micros(rate.ahead));
        }
        for (name, limit) in names.iter().zip(limits) {
            script.key(name).arg(limit.most);
        }
        script
    }

    pub(super) fn renew<'a>(
        &self,
        replica: &ReplicaId,
        renewals: impl Iterator<Item = (&'a LeaseRenewal, &'a String)>,
    ) -> ScriptInvocation<'_> {
        let mut script = self.renew.prepare_invoke();
        store_keys(&mut script);
        script.key(key("", "lease-holders"));
        script.arg(micros(LEASE_TIME.as_nanos())).arg(SETTLE_MILLIS).arg(replica.as_str());
        for (renewal, member) in renewals {
            let unknown = if renewal.is_new { "add" } else { "keep" };
            script.key(&renewal.limit).arg(member).arg(unknown);
        }
        script
    }

    pub(super) fn release<'a>(
        &self,
        leases: impl Iterator<Item = (&'a String, &'a String)>,
    ) -> ScriptInvocation<'_> {
        let mut script = self.release.prepare_invoke();
        for (limit, member) in leases {
            script.key(limit).arg(member);
        }
        script
    }
}

/// Microseconds as a number that Lua reads without loss. Numbers in Lua have 53 bits, so
/// nanoseconds since 1970 would not fit.
fn micros(nanoseconds: u128) -> String {
    (nanoseconds as f64 / 1_000.0).to_string()
}

impl AdmitReply {
    pub(super) fn parse(reply: &[String]) -> Result<Self, StoreUnavailable> {
        Self::read(reply)
            .ok_or_else(|| StoreUnavailable(format!("Redis answered {reply:?} to a script of this version")))
    }

    fn read(reply: &[String]) -> Option<Self> {
        match reply {
            [status, index, whole_in, early] if status == "exhausted" => Some(Self::Exhausted {
                index: index.parse().ok()?,
                whole_in: whole_in.parse().ok()?,
                early: early.parse().ok()?,
            }),
            [status, full, whole_in @ ..] if status == "counted" => Some(Self::Counted {
                whole_in: whole_in.iter().map(|time| time.parse().ok()).collect::<Option<_>>()?,
                full: if full.is_empty() { None } else { Some(full.parse().ok()?) },
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AdmitReply, micros};

    fn parse(reply: &[&str]) -> Option<AdmitReply> {
        let reply: Vec<String> = reply.iter().map(|text| (*text).to_owned()).collect();
        AdmitReply::parse(&reply).ok()
    }

    #[test]
    fn times_are_written_in_full() {
        assert_eq!(micros(10_000_000), "10000");
        assert_eq!(micros(333), "0.333");
        assert_eq!(micros(10_000_000_000_000_000_000), "10000000000000000");
    }

    #[test]
    fn answers_are_read_or_rejected_as_a_whole() {
        let counted = |whole_in: &[u128], full| AdmitReply::Counted { whole_in: whole_in.to_vec(), full };
        assert_eq!(parse(&["counted", "", "10000000"]), Some(counted(&[10_000_000], None)));
        assert_eq!(parse(&["counted", "2"]), Some(counted(&[], Some(2))));
        let exhausted = AdmitReply::Exhausted { index: 1, whole_in: 40, early: 3 };
        assert_eq!(parse(&["exhausted", "1", "40", "3"]), Some(exhausted));
        for wrong in [&[][..], &["counted"], &["counted", "x"], &["exhausted", "1", "-4", "3"], &["other"]] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
