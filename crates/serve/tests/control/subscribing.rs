//! Subscriptions to resources over HTTP, in both eras: how many one client may have, and that each is given back.

use serde_json::{Value, json};
use toolyard_hub::{YardLimits, YardSettings};
use toolyard_testkit::harness::within_timeout;

use super::visibility::{Fixture, ONLY_A, OWNER};

fn message(method: &str, uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {"uri": uri}})
}

/// Waits until so many addresses are subscribed to.
async fn until(yard: &Fixture, addresses: usize) {
    within_timeout(&format!("{addresses} subscriptions"), async {
        while yard.yard.subscribed_uri_count() != addresses {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_a_session_does_not_want_any_more_is_given_back() {
    let yard = Fixture::new(YardSettings::default()).await;
    let (one, other) = (yard.session(ONLY_A).await, yard.session(OWNER).await);
    for number in 0..500 {
        let uri = format!("a://{number}");
        // Twice is like once.
        for session in [&one, &one] {
            assert_eq!(yard.subscribe(ONLY_A, session, &uri).await["result"], json!({}));
        }
        assert_eq!(yard.yard.subscribed_uri_count(), 1);
        yard.legacy(ONLY_A, Some(&one), message("resources/unsubscribe", &uri)).await;
        assert_eq!(yard.yard.subscribed_uri_count(), 0);
    }
    // Two sessions hold the same one, and a third of another address ends with its session.
    yard.subscribe(ONLY_A, &one, "a://7").await;
    yard.subscribe(OWNER, &other, "a://7").await;
    yard.subscribe(OWNER, &other, "b://7").await;
    assert_eq!(yard.yard.subscribed_uri_count(), 2);
    let url = format!("http://{}/mcp", yard.address);
    for (token, session, left) in [(OWNER, &other, 1), (ONLY_A, &one, 0)] {
        let ending = yard.http.delete(&url).bearer_auth(token).header("mcp-session-id", session.as_str());
        assert!(ending.send().await.unwrap().status().is_success());
        until(&yard, left).await;
    }
}

#[tokio::test]
async fn what_a_stream_listens_to_is_given_back_when_its_client_hangs_up() {
    let yard = Fixture::new(YardSettings::default()).await;
    for _ in 0..20 {
        let uris: Vec<String> = (0..50).map(|number| format!("a://{number}")).collect();
        let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
        let (stream, _) = yard.listen(ONLY_A, &uris).await;
        assert_eq!(yard.yard.subscribed_uri_count(), 50);
        drop(stream);
        until(&yard, 0).await;
    }
}

#[tokio::test]
async fn one_client_may_have_so_many_subscriptions_and_no_more() {
    let limits = YardLimits { subscriptions: 3, ..YardLimits::default() };
    let yard = Fixture::new(YardSettings { limits, ..YardSettings::default() }).await;
    let session = yard.session(ONLY_A).await;
    for number in 0..3 {
        assert_eq!(yard.subscribe(ONLY_A, &session, &format!("a://{number}")).await["result"], json!({}));
    }
    let refused = yard.subscribe(ONLY_A, &session, "a://4").await;
    let message = "more than 3 subscriptions to resources (limits.subscriptions)";
    assert_eq!(refused["error"]["message"], message, "{refused}");
    // One that is held already is no further one.
    assert_eq!(yard.subscribe(ONLY_A, &session, "a://1").await["result"], json!({}));
    assert_eq!(yard.yard.subscribed_uri_count(), 3);
    // Another session has room of its own.
    let other = yard.session(ONLY_A).await;
    assert_eq!(yard.subscribe(ONLY_A, &other, "a://4").await["result"], json!({}));
}

#[tokio::test]
async fn one_stream_may_listen_to_so_many_resources_and_no_more() {
    let limits = YardLimits { subscriptions: 3, ..YardLimits::default() };
    let yard = Fixture::new(YardSettings { limits, ..YardSettings::default() }).await;
    let wanted = json!({"resourceSubscriptions": ["a://1", "a://2", "a://3", "a://4"]});
    let mut refused = yard.request_to_listen(ONLY_A, wanted).await;
    // A stream that is accepted does not end, so that only its beginning is read.
    let told = within_timeout("the answer", refused.chunk()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("more than 3 subscriptions to resources (limits.subscriptions)"), "{told}");
    assert_eq!(yard.yard.subscribed_uri_count(), 0);
    let (_stream, _) = yard.listen(ONLY_A, &["a://1", "a://2", "a://3"]).await;
    assert_eq!(yard.yard.subscribed_uri_count(), 3);
}

#[tokio::test]
async fn a_session_hears_of_what_it_is_subscribed_to_and_of_nothing_else() {
    let yard = Fixture::new(YardSettings::default()).await;
    let session = yard.session(ONLY_A).await;
    yard.subscribe(ONLY_A, &session, "a://1").await;
    let standing = yard.http.get(format!("http://{}/mcp", yard.address)).bearer_auth(ONLY_A);
    let standing = standing.header("accept", "text/event-stream").header("mcp-session-id", &session);
    let mut standing = standing.header("mcp-protocol-version", "2025-06-18").send().await.unwrap();
    for uri in ["a://2", "b://1", "a://1"] {
        yard.a.updates(uri);
    }
    let mut told = String::new();
    while !told.contains("updated") {
        let piece = within_timeout("an update", standing.chunk()).await.unwrap().unwrap();
        told.push_str(&String::from_utf8_lossy(&piece));
    }
    assert!(told.contains("a://1") && !told.contains("a://2") && !told.contains("b://1"), "{told}");
}
