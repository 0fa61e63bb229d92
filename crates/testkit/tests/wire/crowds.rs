//! Many clients that open something and disconnect, or never finish their requests.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use toolyard_testkit::harness::{Client, Version};

use super::start::{server, server_with};

const MEGABYTES: u64 = 100;
/// Far less than the timeout for an incomplete request, which is how long a blocked server would
/// take.
const QUICKLY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn idle_sessions_make_room_for_new_ones() {
    let server = server().await;
    let version = Version::V2025_11_25;
    let mut first = Client::join(&server, version).await;
    let mut listening = Client::join(&server, version).await;
    let _standing = listening.listen(None).await.events();
    let before = server.process().await.megabytes();
    for _ in 0..30 {
        let mut joining = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let server = std::sync::Arc::clone(&server);
            joining.spawn(async move { drop(Client::join(&server, version).await) });
        }
        joining.join_all().await;
    }
    let grown = server.process().await.megabytes().saturating_sub(before);
    assert!(grown < MEGABYTES, "{grown} MB more");
    let ping = first.text("ping", &json!({}));
    assert_eq!(
        first.post(&ping).await.refusal().await,
        (404, -32600),
        "the session that was idle longest is closed"
    );
    listening.ask("ping", "{}").await.answer.result();
    Client::join(&server, version).await.ask("ping", "{}").await.answer.result();
}

#[tokio::test]
async fn a_session_in_use_is_never_sent_away() {
    let server = server_with(&["--sessions", "2"]).await;
    let version = Version::V2025_11_25;
    let (first, second) = (Client::join(&server, version).await, Client::join(&server, version).await);
    let _standing = (first.listen(None).await.events(), second.listen(None).await.events());
    let mut third = Client::join_as(&server, Version::V2026_07_28, None).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    let headers = ["accept", "content-type"].map(|name| (name.to_owned(), "application/json".to_owned()));
    let reply = third.send("POST", &headers, body.to_string().into_bytes()).await;
    assert_eq!(reply.header("retry-after"), Some("5"));
    assert_eq!(reply.refusal().await, (503, -32603));
    third.ask("tools/list", "{}").await.answer.result();
}

#[tokio::test]
async fn a_thousand_incomplete_requests_do_not_delay_others() {
    let server = server().await;
    let mut client = Client::join(&server, Version::V2026_07_28).await;
    client.ask("tools/list", "{}").await.answer.result();
    let before = server.process().await.megabytes();
    let mut half = Vec::new();
    for _ in 0..1_000 {
        let mut stream = server.connect().await;
        stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le").await.unwrap();
        half.push(stream);
    }
    let start = Instant::now();
    client.ask("tools/list", "{}").await.answer.result();
    assert!(start.elapsed() < QUICKLY, "an answer took {:?}", start.elapsed());
    let grown = server.process().await.megabytes().saturating_sub(before);
    assert!(grown < MEGABYTES, "{grown} MB more");
}
