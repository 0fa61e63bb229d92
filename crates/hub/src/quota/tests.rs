//! Whose quota is exhausted, and who is refused when memory runs low.

use super::{Quota, QuotaLimits, QuotaOverrides, Quotas};
use crate::error::ErrorKind;
use crate::fake::{ScriptedSource, tool_request, tools, yard, yard_with};
use crate::limits::{RateLimit, ScopedLimits, YardLimits};
use crate::principal::{Permissions, Principal};

fn named(name: &str) -> Principal {
    Principal::new(name, Permissions::All)
}

fn limits() -> QuotaLimits {
    QuotaLimits { bytes: 1_000, sessions: 2, streams: 2, programs: 2, parked: 2 }
}

#[test]
fn a_quota_is_one_principals_own_and_comes_back_when_its_charges_are_dropped() {
    let quotas = Quotas::default();
    let (ada, bob) = (named("ada"), named("bob"));
    for quota in Quota::ALL {
        let amount = if quota == Quota::Bytes { 500 } else { 1 };
        let charge = |principal| quotas.charge(&limits(), principal, quota, amount);
        let held = [charge(&ada).unwrap(), charge(&ada).unwrap()];
        let refused = charge(&ada).unwrap_err();
        // Bytes are charged after the call was executed, so the error must not suggest that nothing
        // happened.
        let kind = if quota == Quota::Bytes { ErrorKind::ConnectionLost } else { ErrorKind::RateLimited };
        assert_eq!(
            (refused.kind(), refused.retry_after().is_some()),
            (kind, quota != Quota::Bytes),
            "{quota:?}"
        );
        assert!(refused.suggestion().is_some(), "{quota:?}");
        // Exhausting a quota does not affect other principals.
        let others = [charge(&bob).unwrap(), charge(&bob).unwrap()];
        drop(held);
        let again = [charge(&ada).unwrap(), charge(&ada).unwrap()];
        drop((others, again));
    }
    let report = quotas.report();
    assert_eq!(report.quotas, Quota::ALL.map(|quota| (quota, 0, 1)).to_vec());
}

#[test]
fn a_principal_may_have_limits_of_its_own() {
    let quotas = Quotas::default();
    let own = QuotaOverrides { sessions: Some(1), streams: Some(usize::MAX), ..QuotaOverrides::default() };
    let ada = named("ada").with_limits(ScopedLimits { quotas: own, ..ScopedLimits::default() });
    let _one = quotas.charge(&limits(), &ada, Quota::Sessions, 1).unwrap();
    assert!(quotas.charge(&limits(), &ada, Quota::Sessions, 1).is_err());
    let many: Vec<_> = (0..10).map(|_| quotas.charge(&limits(), &ada, Quota::Streams, 1).unwrap()).collect();
    assert_eq!(many.len(), 10);
    // A huge amount does not overflow.
    assert!(quotas.charge(&limits(), &ada, Quota::Bytes, usize::MAX).is_err());
}

#[test]
fn above_the_memory_mark_the_heaviest_are_refused_first() {
    let quotas = Quotas::default();
    let wide = QuotaLimits { bytes: usize::MAX, ..limits() };
    let (heavy, middle, light, idle) = (named("heavy"), named("middle"), named("light"), named("idle"));
    let _held = [(&heavy, 900), (&middle, 500), (&light, 100)]
        .map(|(principal, bytes)| quotas.charge(&wide, principal, Quota::Bytes, bytes).unwrap());
    let refused =
        || [&heavy, &middle, &light, &idle].map(|principal| quotas.admit(&wide, principal).is_err());
    let mark = 900_000;
    for (resident, expected) in [
        (mark, [false, false, false, false]),
        (mark + 1_000, [true, false, false, false]),
        (mark + 150_000, [true, true, false, false]),
        (mark + 290_000, [true, true, true, false]),
        (mark + 300_000, [true, true, true, true]),
        (mark - 1, [false, false, false, false]),
    ] {
        quotas.observe_memory(resident, mark);
        assert_eq!(refused(), expected, "{resident}");
    }
    assert_eq!(quotas.report().refused_for_memory, 10);
}

#[test]
fn what_was_heavy_a_moment_ago_still_weighs_and_then_fades() {
    let quotas = Quotas::default();
    drop(quotas.charge(&limits(), &named("ada"), Quota::Bytes, 1_000).unwrap());
    let _bob = quotas.charge(&limits(), &named("bob"), Quota::Bytes, 10).unwrap();
    quotas.observe_memory(110, 100);
    let admitted = |name| quotas.admit(&limits(), &named(name)).is_ok();
    assert!(!admitted("ada") && admitted("bob"));
    for _ in 0..12 {
        quotas.observe_memory(110, 100);
    }
    assert!(admitted("ada") && !admitted("bob"));
}

#[tokio::test(start_paused = true)]
async fn lists_count_in_the_rate_of_their_caller() {
    let rate = Some(RateLimit { per_second: 1.0, burst: 3.0 });
    let yard = yard_with(
        YardLimits { rate, ..YardLimits::default() },
        Vec::new(),
        &[&ScriptedSource::echo("db", tools(&["query"]))],
    );
    let owner = Principal::owner();
    yard.admit_list(&owner).await.unwrap();
    yard.call(tool_request("query")).await.unwrap();
    yard.admit_list(&owner).await.unwrap();
    assert_eq!(yard.admit_list(&owner).await.unwrap_err().kind(), ErrorKind::RateLimited);
    assert_eq!(yard.call(tool_request("query")).await.unwrap_err().kind(), ErrorKind::RateLimited);
    yard.admit_list(&named("bob")).await.unwrap();
}

#[tokio::test]
async fn calls_of_the_heaviest_are_refused_while_memory_is_short() {
    let yard = yard(&[&ScriptedSource::echo("db", tools(&["query"]))]);
    let held = yard.charge(&Principal::owner(), Quota::Bytes, 1_000_000).unwrap();
    yard.quotas().observe_memory(110, 100);
    let refused = yard.call(tool_request("query")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RateLimited);
    assert!(yard.admit_list(&Principal::owner()).await.is_err());
    assert!(yard.admit_list(&named("bob")).await.is_ok());
    drop(held);
    yard.quotas().observe_memory(90, 100);
    yard.call(tool_request("query")).await.unwrap();
}

#[tokio::test]
async fn a_principal_that_does_not_read_is_refused_before_its_call_is_made() {
    let quotas = QuotaLimits { bytes: 1_000, ..QuotaLimits::default() };
    let source = ScriptedSource::echo("db", tools(&["query"]));
    let yard = yard_with(YardLimits { quotas, ..YardLimits::default() }, Vec::new(), &[&source]);
    let held = yard.charge(&Principal::owner(), Quota::Bytes, 1_000).unwrap();
    // Nothing was executed, so a retry is safe.
    let refused = yard.call(tool_request("query")).await.unwrap_err();
    assert_eq!((refused.kind(), refused.retry_after().is_some()), (ErrorKind::RateLimited, true));
    yard.admit_list(&named("bob")).await.unwrap();
    // A response that does not fit comes after the execution, so the error must not suggest a
    // retry.
    let withheld = yard.charge(&Principal::owner(), Quota::Bytes, 1).unwrap_err();
    assert_eq!((withheld.kind(), withheld.retry_after()), (ErrorKind::ConnectionLost, None));
    drop(held);
    yard.call(tool_request("query")).await.unwrap();
}
