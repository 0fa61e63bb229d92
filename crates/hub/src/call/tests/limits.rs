//! Limits of callers, sources and tools in addition to those of the yard: the tightest applies, and
//! refused calls never reach the source.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::call_details::CallDetails;
use crate::error::ErrorKind;
use crate::fake::{ScriptedSource, done, principal_with, tool_request, tool_request_with, tools, yard_with};
use crate::limits::{RateLimit, ScopedLimits, YardLimits};
use crate::name::SourceName;
use crate::principal::{Permissions, Principal};
use crate::rate_limit::RateState;
use crate::request::{CallContext, CallOrigin, CallRequest};
use crate::yard::Yard;

const SECOND: Duration = Duration::from_secs(1);

/// A source whose calls take ten seconds, and a counter of the calls that reached it.
fn slow(limits: YardLimits) -> (Arc<Yard>, Arc<AtomicUsize>) {
    let reached = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&reached);
    let source = ScriptedSource::with_handler("s", tools(&["work", "other"]), move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            sleep(10 * SECOND).await;
            Ok(done())
        }
    });
    (yard_with(limits, Vec::new(), &[&source]), reached)
}

fn of_source(bounds: ScopedLimits) -> YardLimits {
    YardLimits { sources: BTreeMap::from([(SourceName::new("s"), bounds)]), ..YardLimits::default() }
}

fn of_tool(pattern: &str, bounds: ScopedLimits) -> YardLimits {
    YardLimits { tools: vec![(pattern.into(), bounds)], ..YardLimits::default() }
}

fn by(principal: &Principal, name: &str) -> CallRequest {
    CallRequest { principal: principal.clone(), ..tool_request(name) }
}

fn bounded(name: &str, bounds: ScopedLimits) -> Principal {
    Principal::new(name, Permissions::All).with_limits(bounds)
}

#[tokio::test(start_paused = true)]
async fn the_shortest_time_of_all_that_apply_holds() {
    let time = |seconds: u32| ScopedLimits { call_time: Some(seconds * SECOND), ..ScopedLimits::default() };
    for (yard_s, caller, source, tool, expect) in
        [(9, 8, 7, 6, 6), (9, 8, 3, 6, 3), (9, 2, 7, 6, 2), (1, 8, 7, 6, 1)]
    {
        let limits = YardLimits {
            call_time: yard_s * SECOND,
            sources: of_source(time(source)).sources,
            ..of_tool("*work", time(tool))
        };
        let (yard, _) = slow(limits);
        let began = Instant::now();
        let error = yard.call(by(&bounded("ada", time(caller)), "work")).await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed()), (ErrorKind::TimedOut, expect * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn the_smallest_payload_of_all_that_apply_holds() {
    let size = |payload| ScopedLimits { payload: Some(payload), ..ScopedLimits::default() };
    let (yard, reached) = slow(of_tool("mcp__s__w*", size(10)));
    let arguments = r#"{"text":"0123456789"}"#;
    let error = yard.call(tool_request_with("work", arguments)).await.unwrap_err();
    assert_eq!(
        error.message(),
        "the arguments for `mcp__s__work` have 21 bytes, which exceeds the limit of 10 bytes"
    );
    yard.call(tool_request_with("other", arguments)).await.unwrap();
    let (caller, limits) = (bounded("ada", size(5)), of_source(size(10)));
    yard.set_limits(limits);
    let error = yard
        .call(CallRequest { principal: caller, ..tool_request_with("other", arguments) })
        .await
        .unwrap_err();
    assert_eq!(
        error.message(),
        "the arguments for `mcp__s__other` have 21 bytes, which exceeds the limit of 5 bytes"
    );
    assert_eq!(reached.load(Ordering::SeqCst), 1);
}

/// Returns how many of these calls reach the source concurrently.
async fn at_once(limits: YardLimits, calls: Vec<CallRequest>) -> usize {
    let (yard, reached) = slow(limits);
    let calls: Vec<_> = calls
        .into_iter()
        .map(|request| {
            let yard = Arc::clone(&yard);
            tokio::spawn(async move { yard.call(request).await })
        })
        .collect();
    sleep(SECOND).await;
    let running = reached.load(Ordering::SeqCst);
    calls.iter().for_each(|call| call.abort());
    running
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_limited_per_caller_source_and_tool() {
    let most = |calls| ScopedLimits { calls: Some(calls), ..ScopedLimits::default() };
    let ada = bounded("ada", most(2));
    let many = |name: &str| (0..30).map(|_| tool_request(name)).collect::<Vec<_>>();
    assert_eq!(at_once(of_tool("mcp__s__work", most(3)), many("work")).await, 3);
    assert_eq!(at_once(of_tool("mcp__s__work", most(3)), many("other")).await, 10);
    assert_eq!(at_once(of_source(most(4)), many("work")).await, 4);
    // The limit of a source replaces the general limit per source.
    assert_eq!(at_once(of_source(most(12)), many("work")).await, 12);
    let adas = (0..30).map(|_| by(&ada, "work")).collect();
    assert_eq!(at_once(YardLimits::default(), adas).await, 2);
    let both = (0..30).map(|at| if at % 2 == 0 { by(&ada, "work") } else { tool_request("work") }).collect();
    assert_eq!(at_once(YardLimits::default(), both).await, 10);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_program_do_not_wait_for_permits_of_its_caller() {
    let one = bounded("ada", ScopedLimits { calls: Some(1), ..ScopedLimits::default() });
    let context = CallContext { origin: CallOrigin::Program, ..CallContext::default() };
    let inner = CallRequest { context, ..by(&one, "work") };
    assert_eq!(at_once(YardLimits::default(), vec![by(&one, "work"), inner, by(&one, "work")]).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_waiting_for_a_caller_permit_holds_no_source_permit() {
    let limits = YardLimits { per_source: Some(2), ..YardLimits::default() };
    let ada = bounded("ada", ScopedLimits { calls: Some(1), ..ScopedLimits::default() });
    let bob = principal_with(&[]);
    let calls = vec![by(&ada, "work"), by(&ada, "work"), by(&ada, "work"), by(&bob, "work")];
    assert_eq!(at_once(limits, calls).await, 2);
}

#[tokio::test(start_paused = true)]
async fn rates_of_a_source_and_of_a_tool_are_for_all_callers_and_those_of_a_caller_for_one() {
    let rate =
        |burst| ScopedLimits { rate: Some(RateLimit { per_second: 0.01, burst }), ..ScopedLimits::default() };
    let passed = async |limits: YardLimits, callers: &[&Principal], name: &str| {
        let (yard, reached) = slow(limits);
        let mut passed = 0;
        for caller in callers.iter().cycle().take(20) {
            let call = tokio::time::timeout(Duration::from_millis(1), yard.call(by(caller, name))).await;
            passed += usize::from(call.is_err());
        }
        assert_eq!(reached.load(Ordering::SeqCst), passed);
        passed
    };
    let (ada, bob) = (bounded("ada", rate(2.0)), bounded("bob", ScopedLimits::default()));
    assert_eq!(passed(YardLimits::default(), &[&ada], "work").await, 2);
    assert_eq!(passed(of_source(rate(5.0)), &[&ada, &bob], "work").await, 5);
    assert_eq!(passed(of_tool("*work", rate(3.0)), &[&ada, &bob], "work").await, 3);
    assert_eq!(passed(of_tool("*work", rate(3.0)), &[&bob], "other").await, 20);
    let everybody = YardLimits { rate: rate(4.0).rate, ..YardLimits::default() };
    assert_eq!(passed(everybody, &[&ada, &bob], "work").await, 6);
}

#[tokio::test(start_paused = true)]
async fn by_default_a_principal_has_a_burst_of_2000_and_50_calls_per_second() {
    let source = ScriptedSource::with_handler("s", tools(&["work"]), |_| async { Ok(done()) });
    let yard = yard_with(YardLimits::default(), Vec::new(), &[&source]);
    let (ada, bob) = (bounded("ada", ScopedLimits::default()), bounded("bob", ScopedLimits::default()));
    let passed = async |caller: &Principal, most: usize| {
        for count in 0..most {
            if let Err(refused) = yard.call(by(caller, "work")).await {
                assert_eq!(refused.kind(), ErrorKind::RateLimited);
                return count;
            }
        }
        most
    };
    assert_eq!(passed(&ada, 3_000).await, 2_000);
    tokio::time::advance(SECOND).await;
    assert_eq!(passed(&ada, 3_000).await, 50);
    assert_eq!(passed(&bob, 3_000).await, 2_000);
    let unlimited = yard_with(YardLimits { rate: None, ..YardLimits::default() }, Vec::new(), &[&source]);
    for _ in 0..2_100 {
        unlimited.call(by(&ada, "work")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_front_learns_what_is_left_of_the_rate_from_accepted_and_refused_calls() {
    let (yard, _) = slow(YardLimits::default());
    let rate = RateLimit { per_second: 0.5, burst: 2.0 };
    let ada = bounded("ada", ScopedLimits { rate: Some(rate), ..ScopedLimits::default() });
    let state = async || {
        let details = Arc::new(CallDetails::default());
        let request = CallRequest { details: Some(Arc::clone(&details)), ..by(&ada, "work") };
        let call = tokio::time::timeout(Duration::from_nanos(1), yard.call(request)).await;
        (details.rate().unwrap(), call.ok().and_then(|call| call.unwrap_err().retry_after()))
    };
    let left = |remaining, seconds| RateState { limit: 2, remaining, reset: Duration::from_secs(seconds) };
    assert_eq!(state().await.0, left(1, 2));
    let (second, _) = state().await;
    assert_eq!((second.remaining, second.limit), (0, 2));
    let (third, wait) = state().await;
    assert_eq!((third.remaining, wait.map(|wait| wait.as_secs_f64().round())), (0, Some(2.0)));
}
