//! Every code of the error table, each triggered by a real situation.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Scratch, within_timeout};

use super::workbench;

fn code(code: &str) -> String {
    code.to_owned()
}

#[tokio::test]
async fn a_tool_that_does_not_exist() {
    let server = workbench(&[]).await;
    let answer = server.execute("analyse_code", json!({})).await;
    assert_eq!(answer.refusal(), (404, code("TOOL_NOT_FOUND")));
    assert_eq!(answer.json()["error"]["details"], json!({"suggestion": "did you mean `analyze_code`?"}));
    let answer = server.get("/mcp/tools/analyse_code").await;
    assert_eq!(answer.refusal(), (404, code("TOOL_NOT_FOUND")));
    assert_eq!(answer.json()["error"]["details"], json!({"suggestion": "did you mean `analyze_code`?"}));
}

#[tokio::test]
async fn an_execution_and_an_address_that_do_not_exist() {
    let server = workbench(&[]).await;
    assert_eq!(server.get("/mcp/executions/exec-1").await.refusal(), (404, code("NOT_FOUND")));
    for path in
        ["/mcp/", "/mcp/tool", "/mcp/tools/", "/mcp/tools/say/run", "/nothing", "/mcp/tools/say/execute/"]
    {
        let answer = server.get(path).await;
        assert_eq!(answer.refusal(), (404, code("NOT_FOUND")), "{path}");
        assert_eq!(answer.header("x-mcp-version"), Some("1.0"), "{path}");
    }
}

#[tokio::test]
async fn a_method_that_is_not_for_the_address() {
    let server = workbench(&[]).await;
    for (method, path, allowed) in [
        ("POST", "/mcp/tools", "GET,HEAD"),
        ("GET", "/mcp/tools/say/execute", "POST"),
        ("PUT", "/mcp/executions/x", "GET,HEAD,DELETE"),
        ("DELETE", "/health", "GET,HEAD"),
    ] {
        let answer = server.request(method, path, &[], b"").await.read_body().await;
        assert_eq!(answer.refusal(), (405, code("METHOD_NOT_ALLOWED")), "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
    // The REST front does not handle the MCP endpoint.
    assert_eq!(server.request("PUT", "/mcp", &[], b"").await.status, 405);
}

#[tokio::test]
async fn a_tool_that_fails() {
    let server = workbench(&[]).await;
    let answer = server.execute("refuse", json!({})).await;
    assert_eq!(answer.refusal(), (500, code("EXECUTION_ERROR")));
    let content = json!([{"type": "text", "text": "out of"}, {"type": "text", "text": "paper"}]);
    assert_eq!(
        answer.json()["error"],
        json!({
            "code": "EXECUTION_ERROR",
            "message": "out of\npaper",
            "details": {"content": content, "structuredContent": {"tray": 2}},
        })
    );
}

#[tokio::test]
async fn a_tool_that_takes_too_long() {
    let server = workbench(&["--call-time", "200"]).await;
    let slow = |timeout: Value| json!({"params": {"ms": 20_000}, "context": {"timeout": timeout}});
    for timeout in [json!(50), json!(null), json!(9_999_999)] {
        let answer = server.post("/mcp/tools/slow/execute", &slow(timeout)).await;
        assert_eq!(answer.refusal(), (504, code("TIMEOUT_ERROR")));
    }
}

#[tokio::test]
async fn more_calls_than_are_allowed() {
    let server = workbench(&["--rate", "2"]).await;
    for _ in 0..2 {
        assert_eq!(server.execute("say", json!({"text": "x"})).await.status, 200);
    }
    let answer = server.execute("say", json!({"text": "x"})).await;
    assert_eq!(answer.refusal(), (429, code("RATE_LIMIT_ERROR")));
    assert_eq!(answer.header("retry-after"), Some("10"));
    // A list counts like a call.
    assert_eq!(server.get("/mcp/tools").await.refusal(), (429, code("RATE_LIMIT_ERROR")));
}

#[tokio::test]
async fn params_that_are_too_large() {
    let server = workbench(&["--payload", "100"]).await;
    let answer = server.execute("say", json!({"text": "x".repeat(200)})).await;
    assert_eq!(answer.refusal(), (413, code("PAYLOAD_TOO_LARGE")));
}

#[tokio::test]
async fn a_call_that_is_cancelled() {
    let server = workbench(&[]).await;
    let scratch = Scratch::new();
    let traces = scratch.traces("call");
    let (answer, ()) = tokio::join!(server.execute("wait_until_cancelled", traces.arguments()), async {
        traces.wait_started().await;
        let listed = server.get("/mcp/executions?state=running").await.json();
        let id = listed["executions"][0]["executionId"].as_str().unwrap().to_owned();
        let answer =
            server.request("DELETE", &format!("/mcp/executions/{id}"), &[], b"").await.read_body().await;
        assert_eq!(answer.status, 202, "{answer:?}");
    });
    assert_eq!(answer.refusal(), (499, code("CANCELLED")));
    traces.wait_cancelled().await;
}

#[tokio::test]
async fn a_bug_of_ours_tells_an_id_and_nothing_else() {
    let server = workbench(&[]).await;
    let answer = server.execute("crash", json!({})).await;
    assert_eq!(answer.refusal(), (500, code("INTERNAL_ERROR")));
    let body = answer.json();
    let id = &body["metadata"]["executionId"];
    let error = json!({"code": "INTERNAL_ERROR", "message": "internal error", "details": {"id": id}});
    assert_eq!(body["error"], error);
}

#[tokio::test]
async fn a_tool_that_asks_cannot_be_used_over_plain_http() {
    let server = workbench(&["--odd", "asks"]).await;
    server.get("/mcp/tools").await;
    for (tool, params) in [("ask", json!({"about": "x"})), ("mcp__asks__elicit", json!({}))] {
        let answer = server.execute(tool, params).await;
        assert_eq!(answer.refusal(), (501, code("EXECUTION_ERROR")), "{tool}");
    }
}

#[tokio::test]
async fn a_server_that_dies_and_one_that_never_came() {
    let server = workbench(&["--odd", "exits-mid-call", "--odd", "dies-at-start"]).await;
    within_timeout("the server", async {
        while server.get("/mcp/tools/mcp__exits-mid-call__exit").await.status != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    let lost = server.execute("mcp__exits-mid-call__exit", json!({})).await;
    assert_eq!(lost.refusal(), (502, code("EXECUTION_ERROR")));
    // Until the server is back, the same tool reports why it cannot be called.
    let gone = server.execute("mcp__exits-mid-call__echo", json!({})).await;
    assert_eq!(gone.refusal(), (502, code("EXECUTION_ERROR")));
    assert!(gone.json()["error"]["message"].as_str().unwrap().contains("exits-mid-call"), "{gone:?}");
}
