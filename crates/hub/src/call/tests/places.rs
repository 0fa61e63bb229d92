//! The step in which calls of one source wait for a permit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::deadline::Deadline;
use crate::error::ErrorKind;
use crate::fake::{ScriptedSource, done, tool_request, tools, yard, yard_with};
use crate::limits::YardLimits;
use crate::request::Priority;
use crate::yard::Yard;

const SECOND: Duration = Duration::from_secs(1);

/// A source whose calls take ten seconds, and a counter of the running calls.
fn slow(name: &str) -> (Arc<ScriptedSource>, Arc<AtomicUsize>) {
    let running = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&running);
    let source = ScriptedSource::with_handler(name, tools(&["work"]), move |_| {
        let counter = Arc::clone(&counter);
        async move {
            counter.fetch_add(1, Ordering::SeqCst);
            sleep(10 * SECOND).await;
            counter.fetch_sub(1, Ordering::SeqCst);
            Ok(done())
        }
    });
    (source, running)
}

fn start(
    yard: &Arc<Yard>,
    name: &'static str,
) -> tokio::task::JoinHandle<Result<crate::Outcome, crate::HubError>> {
    let yard = Arc::clone(yard);
    tokio::spawn(async move { yard.call(tool_request(name)).await })
}

#[tokio::test(start_paused = true)]
async fn the_eleventh_call_of_a_source_waits_and_another_source_does_not_notice() {
    let ((busy, running), (free, _)) = (slow("busy"), slow("free"));
    let yard = yard(&[&busy, &free]);
    let began = Instant::now();
    let calls: Vec<_> = (0..11).map(|_| start(&yard, "mcp__busy__work")).collect();
    sleep(SECOND).await;
    assert_eq!(running.load(Ordering::SeqCst), 10);
    yard.call(tool_request("mcp__free__work")).await.unwrap();
    assert_eq!(began.elapsed(), 11 * SECOND);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(began.elapsed(), 20 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_permit_counts_against_the_deadline() {
    let (busy, running) = slow("busy");
    let yard = yard_with(YardLimits { per_source: Some(1), ..YardLimits::default() }, Vec::new(), &[&busy]);
    let first = start(&yard, "work");
    sleep(SECOND).await;
    let mut second = tool_request("work");
    second.deadline = Deadline::after(2 * SECOND);
    assert_eq!(yard.call(second).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(running.load(Ordering::SeqCst), 1);
    first.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_call_releases_its_permit() {
    let (busy, _) = slow("busy");
    let yard = yard_with(YardLimits { per_source: Some(1), ..YardLimits::default() }, Vec::new(), &[&busy]);
    let first = start(&yard, "work");
    sleep(SECOND).await;
    first.abort();
    let began = Instant::now();
    yard.call(tool_request("work")).await.unwrap();
    assert_eq!(began.elapsed(), 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_replaced_source_hold_no_permits_of_the_new_one() {
    let ((old, _), (new, _)) = (slow("busy"), slow("busy"));
    let yard = yard_with(YardLimits { per_source: Some(1), ..YardLimits::default() }, Vec::new(), &[&old]);
    let hanging = start(&yard, "work");
    sleep(SECOND).await;
    yard.add(new);
    let began = Instant::now();
    yard.call(tool_request("work")).await.unwrap();
    assert_eq!(began.elapsed(), 10 * SECOND);
    hanging.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_yard_without_a_limit_or_with_a_senseless_one_still_works() {
    for per_source in [None, Some(0), Some(usize::MAX)] {
        let (source, _) = slow("busy");
        let yard = yard_with(YardLimits { per_source, ..YardLimits::default() }, Vec::new(), &[&source]);
        yard.call(tool_request("work")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_high_priority_begins_before_those_that_came_earlier_with_a_lower_one() {
    let (busy, _) = slow("busy");
    let yard = yard_with(YardLimits { per_source: Some(1), ..YardLimits::default() }, Vec::new(), &[&busy]);
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut calls = Vec::new();
    for priority in [Priority::Normal, Priority::Low, Priority::Normal, Priority::High] {
        let (yard, order) = (Arc::clone(&yard), Arc::clone(&order));
        calls.push(tokio::spawn(async move {
            yard.call(crate::CallRequest { priority, ..tool_request("work") }).await.unwrap();
            order.lock().push(priority);
        }));
        sleep(SECOND).await;
    }
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(*order.lock(), [Priority::Normal, Priority::High, Priority::Normal, Priority::Low]);
}
