//! Bad input over HTTP: each request gets its status and the protocol's own error, and other
//! clients are still served.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Over, Version};

use super::bad_lines::{deep, no_messages};
use super::start::{probe, probe_with, server};

type Headers = Vec<(String, String)>;

#[tokio::test]
async fn what_is_no_message_is_refused_with_the_codes_of_the_protocol() {
    let server = server().await;
    for version in Version::ALL {
        let client = Client::join(&server, version).await;
        for (text, code, id) in no_messages() {
            let reply = client.post(text).await;
            assert_eq!(reply.status, 400, "{version} {text}");
            let refused = reply.message().await.unwrap();
            assert_eq!((refused.code(), refused.id()), (code, &id), "{version} {text}");
        }
        for bytes in [&b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}"[..], &[0, 0x80, 0xff], b""] {
            let reply = client.send("POST", &client.headers(""), bytes.to_vec()).await;
            assert_eq!(reply.refusal().await, (400, -32700), "{version} {bytes:?}");
        }
        assert_eq!(client.post(&deep(100_000)).await.refusal().await, (400, -32600), "{version}");
        works(&mut Client::join(&server, version).await).await;
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    for version in Version::NEWEST {
        let mut client = probe_with(&["--limit", "10000"], Over::Http, version).await;
        for length in [10_001, 3_000_000] {
            let text = client.text("tools/list", &json!({"x": "y".repeat(length)}));
            assert_eq!(client.post(&text).await.refusal().await, (413, -32600), "{version} {length}");
        }
        works(&mut client).await;
    }
}

#[tokio::test]
async fn other_kinds_of_content_are_refused_both_ways() {
    for version in Version::NEWEST {
        let mut client = probe(Over::Http, version).await;
        let list = client.text("tools/list", &json!({}));
        for kind in ["text/plain", "application/jsonp", "", "multipart/form-data"] {
            let headers = replaced(client.headers(&list), "content-type", kind);
            let reply = client.send("POST", &headers, list.clone().into_bytes()).await;
            assert_eq!(reply.refusal().await, (415, -32600), "{version} {kind:?}");
        }
        for kind in ["application/json; charset=utf-8", "Application/JSON"] {
            let headers = replaced(client.headers(&list), "content-type", kind);
            assert_eq!(client.send("POST", &headers, list.clone().into_bytes()).await.status, 200, "{kind}");
        }
        let headers = replaced(client.headers(&list), "accept", "text/html, image/*");
        let reply = client.send("POST", &headers, list.clone().into_bytes()).await;
        assert_eq!(reply.refusal().await, (406, -32600), "{version}");
    }
    let client = probe(Over::Http, Version::V2025_11_25).await;
    let reply = client.send("GET", &client.own_headers("application/json"), Vec::new()).await;
    assert_eq!(reply.refusal().await, (406, -32600));
}

#[tokio::test]
async fn a_client_that_reads_one_kind_of_answer_gets_that_kind() {
    for version in Version::NEWEST {
        let mut client = probe(Over::Http, version).await;
        let params = json!({"name": "flood", "arguments": {"n": 3}, "_meta": {"progressToken": "t"}});
        let text = client.text("tools/call", &params);
        let headers = replaced(client.headers(&text), "accept", "application/json");
        let reply = client.send("POST", &headers, text.clone().into_bytes()).await;
        assert_eq!((reply.status, reply.is_stream()), (200, false), "{version}");
        assert_eq!(reply.message().await.unwrap().content(), "dry again", "{version}");
        let text = client.text("tools/list", &json!({}));
        let headers = replaced(client.headers(&text), "accept", "text/event-stream");
        let mut events = client.send("POST", &headers, text.clone().into_bytes()).await.events();
        events.next_message().await.unwrap().1.result();
        assert!(events.next().await.is_none(), "{version}");
    }
}

#[tokio::test]
async fn a_session_that_is_missing_or_unknown_is_refused() {
    for version in Version::LEGACY {
        let mut client = probe(Over::Http, version).await;
        let list = client.text("tools/list", &json!({}));
        let missing = without(client.headers(&list), "mcp-session-id");
        let reply = client.send("POST", &missing, list.clone().into_bytes()).await;
        assert_eq!(reply.refusal().await, (400, -32600), "{version}");
        for id in ["", "unknown", "00000000000000000000000000000000", "../x"] {
            let headers = replaced(client.headers(&list), "mcp-session-id", id);
            let reply = client.send("POST", &headers, list.clone().into_bytes()).await;
            assert_eq!(reply.refusal().await, (404, -32600), "{version} {id:?}");
        }
        let again = client.text("initialize", &json!({"protocolVersion": version.as_str()}));
        let reply = client.post(&again).await;
        assert_eq!(reply.refusal().await, (200, -32600), "{version}: a second handshake");
        works(&mut client).await;
    }
}

#[tokio::test]
async fn headers_that_contradict_a_modern_request_are_refused() {
    let mut client = probe(Over::Http, Version::V2026_07_28).await;
    let call = client.text("tools/call", &json!({"name": "slow", "arguments": {"ms": 1}}));
    let right = client.headers(&call);
    for (name, value, code) in [
        ("mcp-method", Some("tools/list"), -32020),
        ("mcp-method", None, -32020),
        ("mcp-name", Some("fast"), -32020),
        ("mcp-name", None, -32020),
        ("mcp-name", Some("=?base64?%%%?="), -32020),
        ("mcp-protocol-version", Some("2027-01-01"), -32020),
        ("mcp-protocol-version", None, -32020),
    ] {
        let headers = match value {
            Some(value) => replaced(right.clone(), name, value),
            None => without(right.clone(), name),
        };
        let reply = client.send("POST", &headers, call.clone().into_bytes()).await;
        assert_eq!(reply.refusal().await, (400, code), "{name} {value:?}");
    }
    assert_eq!(client.send("POST", &right, call.into_bytes()).await.status, 200);
    let unknown = client.text("tools/unknown", &json!({}));
    assert_eq!(client.post(&unknown).await.refusal().await, (404, -32601));
}

#[tokio::test]
async fn a_modern_endpoint_has_neither_standing_streams_nor_sessions() {
    let client = probe(Over::Http, Version::V2026_07_28).await;
    for method in ["GET", "PUT", "PATCH", "OPTIONS"] {
        let reply = client.send(method, &client.own_headers("text/event-stream"), Vec::new()).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST, GET, DELETE")), "{method}");
    }
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(client.post(response).await.refusal().await, (400, -32600));
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(client.post(notification).await.status, 202);
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_and_the_first_request_goes_on() {
    for version in Version::LEGACY {
        let mut client = probe(Over::Http, version).await;
        let mut call = client.begin_watched_call("steps", json!({"gate": "g", "n": 1}), "t").await;
        call.next().await.unwrap();
        let params = json!({"name": "slow", "arguments": {"ms": 1}});
        let again = json!({"jsonrpc": "2.0", "id": call.id, "method": "tools/call", "params": params});
        assert_eq!(client.post(&again.to_string()).await.refusal().await, (200, -32600), "{version}");
        client.call("open", json!({"gate": "g", "n": 1})).await.answer.result();
        assert_eq!(call.finish().await.answer.content(), "arrived", "{version}");
    }
}

#[tokio::test]
async fn what_answers_nothing_is_taken_and_passed_over() {
    for version in Version::LEGACY {
        let mut client = probe(Over::Http, version).await;
        for text in [
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        ] {
            let reply = client.post(text).await;
            assert_eq!((reply.status, reply.text().await.as_str()), (202, ""), "{version} {text}");
        }
        works(&mut client).await;
    }
}

fn without(mut headers: Headers, name: &str) -> Headers {
    headers.retain(|(known, _)| known != name);
    headers
}

fn replaced(headers: Headers, name: &str, value: &str) -> Headers {
    let mut headers = without(headers, name);
    headers.push((name.to_owned(), value.to_owned()));
    headers
}

async fn works(client: &mut Client) {
    let answer = client.ask("prompts/list", "{}").await.answer;
    assert_eq!(answer.result()["prompts"][0]["name"], Value::from("greet"));
}
