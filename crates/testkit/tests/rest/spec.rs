//! Every example of the protocol specification.

use serde_json::{Value, json};
use toolyard_testkit::harness::Answer;

use super::workbench;

/// Checks the metadata of an answer, whose shape is guaranteed.
fn metadata(answer: &Answer) -> Value {
    let metadata = answer.json()["metadata"].clone();
    let keys: Vec<&String> = metadata.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["executionId", "duration", "timestamp"]);
    assert!(metadata["executionId"].as_str().unwrap().starts_with("exec-"), "{metadata}");
    assert!(metadata["duration"].is_u64(), "{metadata}");
    let timestamp = metadata["timestamp"].as_str().unwrap();
    assert!(timestamp.len() == 24 && timestamp.starts_with("20") && timestamp.ends_with('Z'), "{timestamp}");
    metadata
}

#[tokio::test]
async fn tools_are_discovered() {
    let server = workbench(&[]).await;
    let answer = server.get("/mcp/tools").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let body = answer.json();
    assert_eq!(body["version"], "1.0");
    let tools = body["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "analyze_code").unwrap();
    assert_eq!(tool["description"], "Analyzes source code for quality and patterns");
    let schema = &tool["inputSchema"];
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["filePath"])));
    let path = json!({"type": "string", "description": "Path to the file to analyze"});
    assert_eq!(schema["properties"]["filePath"], path);
    for tool in tools {
        assert!(tool["name"].is_string() && tool["description"].is_string(), "{tool}");
        assert!(tool["inputSchema"].is_object() && tool["server"].is_string(), "{tool}");
    }
}

#[tokio::test]
async fn a_tool_is_executed() {
    let server = workbench(&[]).await;
    let request = json!({
        "params": {"filePath": "/src/app.ts"},
        "context": {"sessionId": "session-123", "timeout": 30000},
    });
    let answer = server.post("/mcp/tools/analyze_code/execute", &request).await;
    let metadata = metadata(&answer);
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({
            "success": true,
            "result": {"analysis": {"complexity": 5.0, "lines": 150, "issues": []}},
            "metadata": metadata,
        })
    );
    assert_eq!(answer.header("x-execution-id"), metadata["executionId"].as_str());
}

#[tokio::test]
async fn the_request_may_name_the_tool_and_the_whole_context() {
    let server = workbench(&[]).await;
    let request = json!({
        "tool": "my_custom_tool",
        "params": {"input": "test", "options": {"verbose": true}},
        "context": {"sessionId": "s", "userId": "u", "timeout": 1000, "priority": "high"},
    });
    let answer = server.post("/mcp/tools/my_custom_tool/execute", &request).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["success"], true);
    let data = json!({"processed": "TEST", "verbose": true});
    assert_eq!(answer.json()["result"], json!({"success": true, "data": data}));
}

#[tokio::test]
async fn a_wrong_input_says_which_field_why_and_what_was_provided() {
    let server = workbench(&[]).await;
    let answer = server.execute("analyze_code", json!({"filePath": "/invalid/path.ts"})).await;
    let metadata = metadata(&answer);
    assert_eq!(answer.status, 400);
    let violation = json!({
        "pointer": "/filePath",
        "field": "filePath",
        "reason": "Path does not exist",
        "provided": "/invalid/path.ts",
    });
    assert_eq!(
        answer.json(),
        json!({
            "success": false,
            "error": {
                "code": "VALIDATION_ERROR",
                "message": "input validation failed: filePath: Path does not exist",
                "details": {
                    "field": "filePath",
                    "reason": "Path does not exist",
                    "provided": "/invalid/path.ts",
                    "violations": [violation],
                },
            },
            "metadata": metadata,
        })
    );
}

#[tokio::test]
async fn the_schema_of_the_example_is_held() {
    let server = workbench(&[]).await;
    let wrong = json!({"filePath": 7, "options": {"depth": 6, "includeTests": "yes"}});
    let answer = server.execute("analyze_code", wrong).await;
    assert_eq!(answer.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    let details = answer.json()["error"]["details"].clone();
    let mut listed: Vec<(String, Value)> = details["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|violation| (violation["pointer"].as_str().unwrap().to_owned(), violation["provided"].clone()))
        .collect();
    listed.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        listed,
        [
            ("/filePath".to_owned(), json!(7)),
            ("/options/depth".to_owned(), json!(6)),
            ("/options/includeTests".to_owned(), json!("yes")),
        ]
    );
    assert!(details["field"].is_string() && details["reason"].is_string(), "{details}");
    let right = json!({"filePath": "a", "options": {"depth": 2, "includeTests": true}});
    assert_eq!(server.execute("analyze_code", right).await.status, 200);
}

#[tokio::test]
async fn metadata_versions_and_custom_fields_are_shown() {
    let server = workbench(&[]).await;
    let answer = server.get("/mcp/tools/advanced_tool").await;
    assert_eq!(
        answer.json()["metadata"],
        json!({"version": "2.0.0", "category": "analysis", "tags": ["code", "quality"]})
    );
    let answer = server.get("/mcp/tools/versioned_tool").await;
    let custom = json!({"pricing": "premium", "sla": "99.9%", "region": "us-east-1"});
    let metadata = json!({"version": "2.1.0", "deprecates": "1.0.0", "custom": custom});
    assert_eq!(answer.json()["metadata"], metadata);
}

#[tokio::test]
async fn progress_and_pieces_are_streamed() {
    let server = workbench(&[]).await;
    let telling = server.listen("/mcp/tools/advanced_tool/execute", &json!({"params": {}})).await;
    let id = telling.head.header("x-execution-id").unwrap().to_owned();
    let all = telling.all().await;
    let names: Vec<&str> = all.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "progress", "log", "chunk", "progress", "log", "chunk", "progress", "log", "chunk", "progress",
            "progress", "result"
        ]
    );
    let ids: Vec<String> = (1..=all.len()).map(|id| id.to_string()).collect();
    assert_eq!(all.iter().map(|event| event.id.clone()).collect::<Vec<_>>(), ids);
    assert_eq!(all[0].data, json!({"progress": 1, "total": 100, "message": "Starting analysis"}));
    assert_eq!(all[1].data, json!({"level": "info", "data": "chunk 30"}));
    assert_eq!(all[2].data, json!({"chunk": 30, "data": "Result 30"}));
    let result = &all.last().unwrap().data;
    assert_eq!(result["result"], json!({"success": true, "summary": "Analysis complete"}));
    assert_eq!((&result["success"], &result["metadata"]["executionId"]), (&json!(true), &json!(id)));
    assert_eq!(result.get("chunks"), None);
}

#[tokio::test]
async fn without_a_stream_the_pieces_are_in_the_answer() {
    let server = workbench(&[]).await;
    let body = server.execute("advanced_tool", json!({})).await.json();
    let piece = |at: u32| json!({"chunk": at, "data": format!("Result {at}")});
    assert_eq!(body["chunks"], json!([piece(30), piece(60), piece(90)]));
    assert_eq!(body["result"], json!({"success": true, "summary": "Analysis complete"}));
}

#[tokio::test]
async fn a_token_is_needed_and_permissions_are_held() {
    let server = workbench(&["--token", "ada=secret", "--token", "bob=other=admin"]).await;
    for path in
        ["/mcp/tools", "/mcp/tools/say", "/mcp/executions", "/mcp/servers", "/openapi.json", "/metrics"]
    {
        let answer = server.get(path).await;
        assert_eq!(answer.refusal(), (401, "AUTHENTICATION_ERROR".to_owned()), "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path}");
        assert_eq!(answer.header("x-mcp-version"), Some("1.0"), "{path}");
    }
    let execute = async |secret: &str| {
        let token = format!("Bearer {secret}");
        let headers = [("authorization", token.as_str())];
        server.post_with("/mcp/tools/sensitive_tool/execute", &headers, &json!({"params": {}})).await
    };
    assert_eq!(execute("secret").await.json()["result"], "done");
    // One of two permissions is not enough.
    let refused = execute("other").await;
    assert_eq!(refused.refusal(), (403, "PERMISSION_ERROR".to_owned()));
    assert_eq!(refused.json()["error"]["message"], "sensitive_tool needs the permission `write`");
    assert_eq!(execute("wrong").await.refusal().0, 401);
}

#[tokio::test]
async fn the_version_is_agreed_on() {
    let server = workbench(&[]).await;
    let ask = async |version: &str| {
        let headers = [("x-mcp-version", version)];
        server.request("GET", "/mcp/tools?limit=1", &headers, b"").await.read_body().await
    };
    assert_eq!(server.get("/mcp/tools?limit=1").await.header("x-mcp-version"), Some("1.0"));
    let fine = ask("1.0").await;
    assert_eq!((fine.status, fine.header("x-mcp-version")), (200, Some("1.0")));
    for version in ["2.0", "1", "", "latest", "1.0, 2.0"] {
        let refused = ask(version).await;
        assert_eq!(refused.refusal(), (400, "VALIDATION_ERROR".to_owned()), "{version}");
        assert_eq!(refused.json()["error"]["details"]["supported"], json!(["1.0"]));
        assert_eq!(refused.header("x-mcp-version"), Some("1.0"));
    }
}
