//! Invalid and hostile requests. Each gets its documented answer, and the server keeps running.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolyard_testkit::harness::{Answer, Server, within_timeout};

use super::workbench;

const SAY: &str = "/mcp/tools/say/execute";

async fn send(server: &Server, body: &[u8]) -> Answer {
    server.request("POST", SAY, &[("content-type", "application/json")], body).await.read_body().await
}

/// Sends bytes unchanged and reads the answer until the server closes the connection or stops
/// sending.
async fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = server.connect().await;
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..read]);
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(3), reading).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn invalid() -> (u16, String) {
    (400, "VALIDATION_ERROR".to_owned())
}

#[tokio::test]
async fn a_body_that_is_no_order_is_refused() {
    let server = workbench(&[]).await;
    for body in [
        "",
        " ",
        "nonsense",
        "{",
        "[]",
        "7",
        "null",
        "\"x\"",
        "{\"params\":}",
        "{\"params\":{}} x",
        r#"{"params":null}"#,
        r#"{"params":[1]}"#,
        r#"{"params":"x"}"#,
        r#"{"params":{"text":1e400}}"#,
        r#"{"params":{"text":"x"},"context":7}"#,
        r#"{"params":{"text":"x"},"extra":1}"#,
        r#"{"params":{"text":"x"},"tool":7}"#,
        r#"{"params":{"text":"\ud800"}}"#,
    ] {
        assert_eq!(send(&server, body.as_bytes()).await.refusal(), invalid(), "{body}");
    }
    assert_eq!(send(&server, br#"{"params":{"text":"x"}}"#).await.status, 200);
}

#[tokio::test]
async fn bad_utf8_is_refused() {
    let server = workbench(&[]).await;
    assert_eq!(send(&server, b"{\"params\":{\"text\":\"\xff\xfe\"}}").await.refusal(), invalid());
}

#[tokio::test]
async fn json_without_bottom_is_refused() {
    let server = workbench(&[]).await;
    let deep = format!(r#"{{"params":{{"text":{}1{}}}}}"#, "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(send(&server, deep.as_bytes()).await.refusal(), invalid());
    let open = "{\"a\":".repeat(500_000);
    assert_eq!(send(&server, open.as_bytes()).await.refusal(), invalid());
}

#[tokio::test]
async fn a_key_that_is_there_twice_is_refused_wherever_it_is() {
    let server = workbench(&[]).await;
    for body in [
        r#"{"params":{"text":"a"},"params":{"text":"b"}}"#,
        r#"{"params":{"text":"a","text":"b"}}"#,
        r#"{"params":{"text":"a","x":{"y":1,"y":2}}}"#,
        r#"{"params":{"text":"a"},"context":{"timeout":1,"timeout":2}}"#,
        r#"{"params":{"text":"a","te\u0078t":"b"}}"#,
    ] {
        let answer = send(&server, body.as_bytes()).await;
        assert_eq!(answer.refusal(), invalid(), "{body}");
        assert!(answer.text.contains("duplicate key"), "{answer:?}");
    }
}

#[tokio::test]
async fn other_content_types_are_refused() {
    let server = workbench(&[]).await;
    let body = br#"{"params":{"text":"x"}}"#;
    let unsupported = (415, "UNSUPPORTED_MEDIA_TYPE".to_owned());
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "json"]
    {
        let answer = server.request("POST", SAY, &[("content-type", kind)], body).await.read_body().await;
        assert_eq!(answer.refusal(), unsupported, "{kind}");
    }
    assert_eq!(server.request("POST", SAY, &[], body).await.read_body().await.refusal(), unsupported);
    let packed = [("content-type", "application/json"), ("content-encoding", "gzip")];
    assert_eq!(server.request("POST", SAY, &packed, body).await.read_body().await.refusal(), unsupported);
}

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_refused_before_it_is_read() {
    let server = workbench(&["--limit", "1000"]).await;
    let head = format!(
        "POST {SAY} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 1001\r\n\
         expect: 100-continue\r\n\r\n",
        server.address
    );
    let answer = raw(&server, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains(r#""code":"PAYLOAD_TOO_LARGE""#), "{answer}");
}

#[tokio::test]
async fn a_body_that_turns_out_too_large_is_refused_while_it_is_read() {
    let server = workbench(&["--limit", "1000"]).await;
    let head = format!(
        "POST {SAY} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        server.address
    );
    let chunk = format!("400\r\n{}\r\n", " ".repeat(0x400));
    let answer = raw(&server, (head + &chunk + &chunk).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = workbench(&["--body-time", "200"]).await;
    let head = format!(
        "POST {SAY} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 30\r\n\r\n{{",
        server.address
    );
    let began = Instant::now();
    let answer = raw(&server, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains(r#""code":"TIMEOUT_ERROR""#), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_body_that_breaks_off_runs_nothing() {
    let server = workbench(&[]).await;
    let body = r#"{"params":{"name":"broken"}"#;
    let head = format!(
        "POST /mcp/tools/count/execute HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         content-length: 500\r\n\r\n{body}",
        server.address
    );
    let mut stream = server.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.execute("count", json!({"name": "broken"})).await.json()["result"], 1);
}

#[tokio::test]
async fn names_lead_nowhere_but_to_tools() {
    let server = workbench(&[]).await;
    for name in [
        "..%2F..%2Fetc%2Fpasswd",
        "%2e%2e",
        "..%5c..",
        "say%00",
        "say%0d%0aX-Evil:%201",
        "%F0%9F%A4%96",
        "say%2Fexecute",
        "%25s",
        "%3Cscript%3E",
        "say%20",
        "SAY",
    ] {
        for (method, path) in
            [("GET", format!("/mcp/tools/{name}")), ("POST", format!("/mcp/tools/{name}/execute"))]
        {
            let headers = [("content-type", "application/json")];
            let answer = server.request(method, &path, &headers, b"{}").await.read_body().await;
            assert_eq!(answer.refusal(), (404, "TOOL_NOT_FOUND".to_owned()), "{method} {path}");
            assert_eq!(answer.headers.get("x-evil"), None);
        }
    }
    let answer = server.get("/mcp/tools/../executions").await;
    assert_eq!(answer.refusal(), (404, "NOT_FOUND".to_owned()));
    assert_eq!(server.get("/mcp/tools/%ff%fe").await.refusal(), invalid());
    let long = "x".repeat(20_000);
    let answer = server.get(&format!("/mcp/tools/{long}")).await;
    assert_eq!(answer.refusal().0, 404);
    assert!(answer.text.len() < 2_000, "a long name is repeated");
}

#[tokio::test]
async fn headers_cannot_be_smuggled_in() {
    let server = workbench(&[]).await;
    let body = r#"{"params":{"text":"x"}}"#;
    let key = format!(
        "POST {SAY} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         idempotency-key: a\x01b\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let answer = raw(&server, key.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let twice = [("content-type", "application/json"), ("idempotency-key", "a"), ("idempotency-key", "b")];
    assert_eq!(
        server.request("POST", SAY, &twice, body.as_bytes()).await.read_body().await.refusal(),
        invalid()
    );
    let answer = server.get("/mcp/tools?q=%0d%0aset-cookie:%20a=b").await;
    assert_eq!((answer.status, answer.headers.get("set-cookie")), (200, None));
}

#[tokio::test]
async fn foreign_pages_and_host_names_are_refused_in_the_same_words() {
    let server = workbench(&[]).await;
    let headers = [("origin", "http://evil.example")];
    let answer = server.request("GET", "/mcp/tools", &headers, b"").await.read_body().await;
    assert_eq!(answer.refusal(), (403, "PERMISSION_ERROR".to_owned()));
}

#[tokio::test]
async fn a_token_with_something_behind_it_is_another_token() {
    let server = workbench(&["--token", "ada=secret"]).await;
    for token in ["Bearer secretx", "Bearer", "Bearer ", "Basic secret", "bearer: secret", "secret"] {
        let answer =
            server.request("GET", "/mcp/tools", &[("authorization", token)], b"").await.read_body().await;
        assert_eq!(answer.refusal(), (401, "AUTHENTICATION_ERROR".to_owned()), "{token}");
        assert!(!answer.text.contains("secret"), "{answer:?}");
    }
}

#[tokio::test]
async fn many_bad_requests_leave_nothing_behind() {
    let server = workbench(&[]).await;
    let bad = b"{\"params\":{\"text\":[1,2,3]}}".as_slice();
    for _ in 0..20 {
        let all = (0..20).map(|_| send(&server, bad));
        for answer in futures_util::future::join_all(all).await {
            assert_eq!(answer.refusal(), invalid());
        }
    }
    let running = within_timeout("an answer", server.get("/mcp/executions?state=running")).await;
    assert_eq!(running.json(), json!({"executions": []}));
}
