//! Resource subscriptions over HTTP, in both eras: their limit and their release.

use serde_json::{Value, json};
use toolyard_hub::{YardLimits, YardSettings};
use toolyard_testkit::harness::within_timeout;

use super::visibility::{Fixture, ONLY_A, OWNER};

fn message(method: &str, uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {"uri": uri}})
}

/// Waits until this many URIs are subscribed to.
async fn until(yard: &Fixture, count: usize) {
    within_timeout(&format!("{count} subscriptions"), async {
        while yard.yard.subscribed_uri_count() != count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_releases_its_subscriptions() {
    let yard = Fixture::new(YardSettings::default()).await;
    let (one, other) = (yard.session(ONLY_A).await, yard.session(OWNER).await);
    for number in 0..500 {
        let uri = format!("a://{number}");
        // Subscribing is idempotent.
        for session in [&one, &one] {
            assert_eq!(yard.subscribe(ONLY_A, session, &uri).await["result"], json!({}));
        }
        assert_eq!(yard.yard.subscribed_uri_count(), 1);
        yard.legacy(ONLY_A, Some(&one), message("resources/unsubscribe", &uri)).await;
        assert_eq!(yard.yard.subscribed_uri_count(), 0);
    }
    // Two sessions subscribe to the same URI. The subscription to another URI ends with its
    // session.
    yard.subscribe(ONLY_A, &one, "a://7").await;
    yard.subscribe(OWNER, &other, "a://7").await;
    yard.subscribe(OWNER, &other, "b://7").await;
    assert_eq!(yard.yard.subscribed_uri_count(), 2);
    let url = format!("http://{}/mcp", yard.address);
    for (token, session, remaining) in [(OWNER, &other, 1), (ONLY_A, &one, 0)] {
        let ending = yard.http.delete(&url).bearer_auth(token).header("mcp-session-id", session.as_str());
        assert!(ending.send().await.unwrap().status().is_success());
        until(&yard, remaining).await;
    }
}

#[tokio::test]
async fn a_stream_releases_its_subscriptions_when_its_client_disconnects() {
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
async fn the_subscriptions_of_one_client_are_limited() {
    let limits = YardLimits { subscriptions: 3, ..YardLimits::default() };
    let yard = Fixture::new(YardSettings { limits, ..YardSettings::default() }).await;
    let session = yard.session(ONLY_A).await;
    for number in 0..3 {
        assert_eq!(yard.subscribe(ONLY_A, &session, &format!("a://{number}")).await["result"], json!({}));
    }
    let refused = yard.subscribe(ONLY_A, &session, "a://4").await;
    let message = "exceeds the limit of 3 resource subscriptions (limits.subscriptions)";
    assert_eq!(refused["error"]["message"], message, "{refused}");
    // Repeating a subscription does not count again.
    assert_eq!(yard.subscribe(ONLY_A, &session, "a://1").await["result"], json!({}));
    assert_eq!(yard.yard.subscribed_uri_count(), 3);
    // Another session has its own limit.
    let other = yard.session(ONLY_A).await;
    assert_eq!(yard.subscribe(ONLY_A, &other, "a://4").await["result"], json!({}));
}

#[tokio::test]
async fn the_subscriptions_of_one_stream_are_limited() {
    let limits = YardLimits { subscriptions: 3, ..YardLimits::default() };
    let yard = Fixture::new(YardSettings { limits, ..YardSettings::default() }).await;
    let filter = json!({"resourceSubscriptions": ["a://1", "a://2", "a://3", "a://4"]});
    let mut refused = yard.request_to_listen(ONLY_A, filter).await;
    // An accepted stream would not end, so only its first chunk is read.
    let chunk = within_timeout("the response", refused.chunk()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&chunk);
    assert!(text.contains("exceeds the limit of 3 resource subscriptions (limits.subscriptions)"), "{text}");
    assert_eq!(yard.yard.subscribed_uri_count(), 0);
    let (_stream, _) = yard.listen(ONLY_A, &["a://1", "a://2", "a://3"]).await;
    assert_eq!(yard.yard.subscribed_uri_count(), 3);
}

#[tokio::test]
async fn a_session_receives_updates_only_of_its_subscriptions() {
    let yard = Fixture::new(YardSettings::default()).await;
    let session = yard.session(ONLY_A).await;
    yard.subscribe(ONLY_A, &session, "a://1").await;
    let stream = yard.http.get(format!("http://{}/mcp", yard.address)).bearer_auth(ONLY_A);
    let stream = stream.header("accept", "text/event-stream").header("mcp-session-id", &session);
    let mut stream = stream.header("mcp-protocol-version", "2025-06-18").send().await.unwrap();
    for uri in ["a://2", "b://1", "a://1"] {
        yard.a.updates(uri);
    }
    let mut text = String::new();
    while !text.contains("updated") {
        let piece = within_timeout("an update", stream.chunk()).await.unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    assert!(text.contains("a://1") && !text.contains("a://2") && !text.contains("b://1"), "{text}");
}
