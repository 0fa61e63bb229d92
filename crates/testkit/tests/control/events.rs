//! Events: to several sockets, again to a client that reconnects, and no more than a client can
//! read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_hub::{CallRequest, CallTarget, Principal, Yard};

use super::house::House;

const CALLS: [&str; 3] = ["call_started", "call_progress", "call_ended"];

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["seq"].as_u64()).collect()
}

/// Reads events until this many calls have ended.
async fn until_ended(socket: &mut toolyard_testkit::harness::Socket, calls: usize) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    let mut ended = 0;
    while ended < calls {
        let message = socket.message().await;
        ended += usize::from(message["event"] == "call_ended");
        events.push(message);
    }
    events
}

#[tokio::test]
async fn two_sockets_hear_the_same_under_the_same_numbers() {
    let house = House::new().await;
    let mut sockets = [house.owner().await, house.owner().await];
    for socket in &mut sockets {
        socket.request("subscribe", json!({"events": CALLS})).await.unwrap();
    }
    call(&house.yard, "flood", json!({"n": 3})).await;
    let [one, two] = &mut sockets;
    let (one, two) = (until_ended(one, 1).await, until_ended(two, 1).await);
    assert_eq!(one, two);
    assert_eq!(one.len(), 5);
    let seqs = numbers(&one);
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seqs:?}");
}

#[tokio::test]
async fn who_was_away_is_told_what_was_missed_once() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    socket.request("subscribe", json!({"events": CALLS})).await.unwrap();
    call(&house.yard, "flood", json!({"n": 1})).await;
    let before = until_ended(&mut socket, 1).await;
    let last = *numbers(&before).last().unwrap();
    socket.disconnect();
    call(&house.yard, "flood", json!({"n": 2})).await;
    let mut socket = house.owner().await;
    let subscribed = socket.request("subscribe", json!({"events": CALLS, "after": last})).await.unwrap();
    assert_eq!(subscribed["missed"], false);
    let mut after = until_ended(&mut socket, 1).await;
    call(&house.yard, "flood", json!({"n": 3})).await;
    after.extend(until_ended(&mut socket, 1).await);
    let seqs = numbers(&after);
    assert_eq!(seqs, (last + 1..=last + seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(after.len(), 4 + 5);
    // Events from before the yard started and from the future are unknown.
    for after in [1, last + 1_000_000] {
        let subscribed = socket.request("subscribe", json!({"events": CALLS, "after": after})).await.unwrap();
        assert_eq!(subscribed["missed"], true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_events_a_second_are_told_or_accounted_for() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    let began =
        socket.request("subscribe", json!({"events": ["call_progress", "call_ended"]})).await.unwrap();
    let before = began["seq"].as_u64().unwrap();
    let start = Instant::now();
    // Ten concurrent calls with fifty reports each, ten times a second, for three seconds.
    let yard = Arc::clone(&house.yard);
    let flooding = tokio::spawn(async move {
        for _ in 0..30 {
            let next = tokio::time::sleep(Duration::from_millis(100));
            let calls = (0..10).map(|_| call(&yard, "flood", json!({"n": 50})));
            futures_util::future::join_all(calls).await;
            next.await;
        }
        start.elapsed()
    });
    let (delivered, left_out, last) = {
        let (mut delivered, mut left_out, mut last) = (0_u64, 0_u64, before);
        // Fifty reports and the end of each of 300 calls. Their starts also have sequence numbers,
        // but the client did not subscribe to them.
        while delivered + left_out < 300 * 51 {
            let event = socket.next_unchecked().await;
            let seq = event["seq"].as_u64().unwrap();
            assert!(seq >= last, "{seq} after {last}");
            last = seq;
            match event["event"].as_str() {
                Some("lagged") => left_out += event["missed"].as_u64().unwrap(),
                _ => delivered += 1,
            }
        }
        (delivered, left_out, last)
    };
    let flooded = flooding.await.unwrap();
    println!(
        "{delivered} delivered, {left_out} left out; made in {flooded:?}, read in {:?}",
        start.elapsed()
    );
    assert!(last - before <= 300 * 52);
    // How many are delivered depends on how fast the test reads. None remain queued.
    assert!(delivered > 300 && start.elapsed() < flooded + Duration::from_secs(30), "{delivered}");
    let asked_at = Instant::now();
    socket.request("mcp_servers", json!({})).await.unwrap();
    assert!(asked_at.elapsed() < Duration::from_secs(20), "{:?}", asked_at.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_come_faster_than_they_are_read_are_left_out_and_counted() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    let began = socket.request("subscribe", json!({"events": ["call_started"]})).await.unwrap();
    let before = began["seq"].as_u64().unwrap();
    overrun(&house).await;
    let (mut delivered, mut missed, mut last) = (0_u64, 0_u64, before);
    while missed == 0 || delivered + missed < 5_000 {
        let event = socket.next_unchecked().await;
        let seq = event["seq"].as_u64().unwrap();
        assert!(seq >= last, "{seq} after {last}");
        last = seq;
        match event["event"].as_str() {
            Some("lagged") => missed += event["missed"].as_u64().unwrap(),
            _ => delivered += 1,
        }
    }
    println!("{delivered} delivered, {missed} left out");
    assert!(missed > 0 && delivered > 100, "{missed} {delivered}");
    // The socket still works.
    called_in(&house, "later").await;
    let later = socket.next_matching("the call", |event| event["call"]["sessionId"] == "later").await;
    assert_eq!(later["event"], "call_started");
}

/// Sends far more than two sockets and a megabyte hold, while the client does not read.
pub(super) async fn overrun(house: &House) {
    let session = "x".repeat(4_000);
    for _ in 0..100 {
        for _ in 0..50 {
            called_in(house, &session).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn called_in(house: &House, session: &str) {
    let what = CallTarget::Tool { name: "echo".to_owned(), arguments: None };
    let mut request = CallRequest::new(what, Principal::owner());
    request.context.session_id = Some(session.into());
    house.yard.call(request).await.unwrap();
}

async fn call(yard: &Yard, tool: &str, arguments: Value) {
    let arguments = Some(toolyard_hub::json::to_raw(&arguments));
    let what = CallTarget::Tool { name: tool.to_owned(), arguments };
    yard.call(CallRequest::new(what, Principal::owner())).await.unwrap();
}
