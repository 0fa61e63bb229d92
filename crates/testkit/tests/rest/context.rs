//! The context of a call: version, client and metadata.

use std::time::{Duration, Instant};

use serde_json::json;

use super::workbench;

#[tokio::test]
async fn a_timeout_is_obeyed_and_capped() {
    let server = workbench(&[]).await;
    let began = Instant::now();
    let body = json!({"params": {"ms": 60_000}, "context": {"timeout": 100}});
    let answer = server.post("/mcp/tools/slow/execute", &body).await;
    assert_eq!(answer.refusal(), (504, "TIMEOUT_ERROR".to_owned()));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(answer.json()["metadata"]["duration"].as_u64().unwrap() >= 100);
}

#[tokio::test]
async fn session_and_user_are_recorded() {
    let server = workbench(&[]).await;
    let body = json!({"params": {"text": "x"}, "context": {"sessionId": "s\r\nX: y", "userId": "ü"}});
    let answer = server.post("/mcp/tools/say/execute", &body).await;
    assert_eq!(answer.headers.get("x"), None);
    let id = answer.header("x-execution-id").unwrap().to_owned();
    let shown = server.get(&format!("/mcp/executions/{id}")).await.json();
    assert_eq!((&shown["sessionId"], &shown["userId"]), (&json!("s\r\nX: y"), &json!("ü")));
}

#[tokio::test]
async fn every_priority_is_accepted_and_no_other() {
    let server = workbench(&[]).await;
    for (priority, status) in [("low", 200), ("normal", 200), ("high", 200), ("urgent", 400)] {
        let body = json!({"params": {"text": "x"}, "context": {"priority": priority}});
        assert_eq!(server.post("/mcp/tools/say/execute", &body).await.status, status, "{priority}");
    }
}

#[tokio::test]
async fn the_body_must_not_name_another_tool() {
    let server = workbench(&["--odd", "long-name"]).await;
    server.get("/mcp/tools").await;
    let ask = async |path: &str, tool: &str| {
        let body = json!({"tool": tool, "params": {"text": "x"}});
        server.post(&format!("/mcp/tools/{path}/execute"), &body).await
    };
    assert_eq!(ask("say", "say").await.status, 200);
    assert_eq!(ask("say", "count").await.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(ask("say", "nothing").await.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    // The same tool under its other name.
    assert_eq!(ask("mcp__long-name__requests", "requests").await.status, 200);
}

#[tokio::test]
async fn a_version_can_be_asked_for_and_an_old_one_says_that_it_is_deprecated() {
    let server = workbench(&[]).await;
    let execute = async |version: serde_json::Value| {
        let body = json!({"params": {}, "context": {"version": version}});
        server.post("/mcp/tools/versioned_tool/execute", &body).await
    };
    for newest in [json!(null), json!("2.1.0")] {
        let answer = execute(newest).await;
        assert_eq!((&answer.json()["result"], answer.header("deprecation")), (&json!("2.1.0"), None));
    }
    let old = execute(json!("1.0.0")).await;
    assert_eq!(old.json()["result"], "1.0.0");
    let headers = (old.header("deprecation"), old.header("x-tool-successor-version"));
    assert_eq!(headers, (Some("true"), Some("2.1.0")));
    let absent = execute(json!("3.0.0")).await;
    assert_eq!(absent.refusal(), (404, "TOOL_NOT_FOUND".to_owned()));
    assert_eq!(execute(json!("")).await.refusal(), (400, "VALIDATION_ERROR".to_owned()));
}
