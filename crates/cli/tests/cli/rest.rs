//! The REST front of the real binary: the demo yard, and another yard behind it.

use serde_json::json;
use toolyard_testkit::harness::{Scratch, Server};

use super::{SERVE, TOOLYARD};

#[tokio::test]
async fn the_demo_yard_is_served_over_plain_http() {
    let server = Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none"]].concat()).await;
    let tools = server.get("/mcp/tools").await.json();
    assert_eq!((&tools["version"], tools["tools"].as_array().unwrap().len()), (&json!("1.0"), 8));
    let tool = server.get("/mcp/tools/convert_temperature").await.json();
    let metadata = json!({"category": "numbers", "tags": ["celsius", "fahrenheit", "kelvin"]});
    assert_eq!((&tool["title"], &tool["metadata"]), (&json!("Convert temperature"), &metadata));
    let added = server.execute("add", json!({"a": 2, "b": 3})).await;
    assert_eq!((added.status, &added.json()["result"]), (200, &json!({"sum": 5.0})));
    let failed = server.execute("fail", json!({"message": "on purpose"})).await;
    assert_eq!(failed.refusal(), (500, "EXECUTION_ERROR".to_owned()));
    assert_eq!(failed.json()["error"]["message"], "on purpose");
    let below = server
        .execute("convert_temperature", json!({"value": -300, "from": "celsius", "to": "kelvin"}))
        .await;
    assert_eq!(below.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(below.json()["error"]["details"]["reason"], "is below absolute zero");
    let words = server.execute("stream_words", json!({"text": "one two"})).await.json();
    assert_eq!((&words["chunks"], &words["result"]), (&json!(["one", "two"]), &json!("2 words")));
    let swatch = server.execute("draw_swatch", json!({"color": "#ff0000"})).await.json()["result"].clone();
    assert_eq!((&swatch["type"], &swatch["mimeType"]), (&json!("image"), &json!("image/png")));
    let telling =
        server.listen("/mcp/tools/count_down/execute", &json!({"params": {"from": 3, "delay_ms": 1}})).await;
    let names: Vec<String> = telling.all().await.into_iter().map(|told| told.name).collect();
    assert_eq!(names, ["progress", "progress", "progress", "result"]);
    assert_eq!(server.execute("ask_name", json!({})).await.status, 501);
}

#[tokio::test]
async fn the_token_that_is_printed_opens_and_no_other() {
    let server = Server::start(TOOLYARD, &SERVE).await;
    assert_eq!(server.get("/mcp/tools").await.refusal(), (401, "AUTHENTICATION_ERROR".to_owned()));
    let token = format!("Bearer {}", server.token.as_deref().unwrap());
    let headers = [("authorization", token.as_str())];
    assert_eq!(server.request("GET", "/mcp/tools", &headers, b"").await.status, 200);
    assert_eq!(server.get("/health").await.status, 200);
}

#[tokio::test]
async fn a_yard_behind_it_and_permissions_of_the_configuration() {
    let scratch = Scratch::new();
    let demo = scratch.file("demo.toml", "demo = true\n");
    let config = scratch.file(
        "toolyard.toml",
        &format!(
            "demo = true\npermissions = []\n[servers.inner]\ncommand = \"{TOOLYARD}\"\n\
             args = [\"stdio\", \"--config\", \"{demo}\"]\n"
        ),
    );
    let server =
        Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none", "--config", &config]].concat()).await;
    let listed = server.get("/mcp/tools?server=inner&category=numbers").await.json();
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["mcp__inner__add", "mcp__inner__convert_temperature"]);
    let added = server.execute("mcp__inner__add", json!({"a": 1, "b": 2})).await;
    assert_eq!(added.json()["result"], json!({"sum": 3.0}));
    let refused = server.execute("admin_report", json!({})).await;
    assert_eq!(refused.refusal(), (403, "PERMISSION_ERROR".to_owned()));
    let servers = server.get("/mcp/servers").await.json();
    assert_eq!(servers["servers"].as_array().unwrap().len(), 2);
}
