//! Legacy sessions over HTTP: who may use one, and how it ends.

use serde_json::json;
use toolyard_testkit::harness::{Client, Over, Scratch, Version};

use super::start::{probe, server_with};

#[tokio::test]
async fn deleting_a_session_cancels_its_calls_and_ends_its_streams() {
    for version in Version::LEGACY {
        let scratch = Scratch::new();
        let traces = scratch.traces("call");
        let mut client = probe(Over::Http, version).await;
        let mut standing = client.listen(None).await.events();
        let mut call = client.begin_watched_call("wait_until_cancelled", traces.arguments(), "t").await;
        call.next().await.unwrap();
        let deleted = client.send("DELETE", &client.own_headers("*/*"), Vec::new()).await;
        assert_eq!((deleted.status, deleted.text().await.as_str()), (204, ""), "{version}");
        traces.wait_cancelled().await;
        assert!(call.next().await.is_none(), "{version}");
        while standing.next().await.is_some() {}

        let ping = client.text("ping", &json!({}));
        assert_eq!(client.post(&ping).await.refusal().await, (404, -32600), "{version}");
        assert_eq!(client.listen(None).await.refusal().await, (404, -32600), "{version}");
        let again = client.send("DELETE", &client.own_headers("*/*"), Vec::new()).await;
        assert_eq!(again.refusal().await, (404, -32600), "{version}");
    }
}

#[tokio::test]
async fn a_session_is_its_owners_alone() {
    let server = server_with(&["--token", "ada=one", "--token", "bob=two"]).await;
    let version = Version::V2025_11_25;
    let mut ada = Client::join_as(&server, version, Some("one".to_owned())).await;
    let ping = ada.text("ping", &json!({}));
    let as_bob = |mut headers: Vec<(String, String)>| {
        headers.retain(|(name, _)| name != "authorization");
        headers.push(("authorization".to_owned(), "Bearer two".to_owned()));
        headers
    };
    let stolen = ada.send("POST", &as_bob(ada.headers(&ping)), ping.clone().into_bytes()).await;
    assert_eq!(stolen.refusal().await, (404, -32600));
    let deleted = ada.send("DELETE", &as_bob(ada.own_headers("*/*")), Vec::new()).await;
    assert_eq!(deleted.refusal().await, (404, -32600));
    assert_eq!(ada.post(&ping).await.status, 200);
}

#[tokio::test]
async fn only_the_right_token_opens_the_door() {
    let server = server_with(&["--token", "ada=one"]).await;
    let mut ada = Client::join_as(&server, Version::V2026_07_28, Some("one".to_owned())).await;
    let list = ada.text("tools/list", &json!({}));
    let with = |token: Option<&str>| {
        let mut headers = ada.headers(&list);
        headers.retain(|(name, _)| name != "authorization");
        headers.extend(token.map(|token| ("authorization".to_owned(), token.to_owned())));
        headers
    };
    for wrong in [None, Some("Bearer two"), Some("Basic one"), Some("Bearer")] {
        let reply = ada.send("POST", &with(wrong), list.clone().into_bytes()).await;
        assert!(reply.header("www-authenticate").is_some(), "{wrong:?}");
        assert_eq!(reply.refusal().await, (401, -32600), "{wrong:?}");
    }
    assert_eq!(ada.post(&list).await.status, 200);
}
