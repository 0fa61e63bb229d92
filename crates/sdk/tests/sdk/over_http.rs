//! Tools over HTTP: the integration test of the REST specification, a complete server, and the
//! examples of the docs.

use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use toolyard_sdk::call::{Permissions, Principal};
use toolyard_sdk::hooks::{BoxFuture, HookCall, HookDecision, Hooks};
use toolyard_sdk::serve::{BearerToken, HttpOptions, http_with};
use toolyard_sdk::testing::RestApp;
use toolyard_sdk::{HubError, Json, NativeSource, ToolError, Yard, tool};

#[derive(Deserialize, JsonSchema)]
struct Custom {
    input: String,
}

#[derive(Serialize, JsonSchema)]
struct Processed {
    processed: String,
}

/// Performs custom analysis
#[tool(permissions = ["analyst"])]
async fn my_custom_tool(params: Custom) -> Result<Json<Processed>, ToolError> {
    Ok(Json(Processed { processed: params.input.to_uppercase() }))
}

fn yard() -> Arc<Yard> {
    Yard::with_sources([NativeSource::new("mine").tool(my_custom_tool()).into_source()])
}

#[tokio::test]
async fn a_tool_is_registered_and_executed_over_rest() {
    let app = RestApp::new(yard());
    let response = app.post("/mcp/tools/my_custom_tool/execute", &json!({"params": {"input": "test"}})).await;
    assert_eq!((response.status, &response.body["success"]), (200, &json!(true)));
    assert_eq!(response.body["result"], json!({"processed": "TEST"}));
    let wrong = app.execute("my_custom_tool", json!({"wrongField": "value"})).await;
    assert_eq!((wrong.status, &wrong.body["error"]["code"]), (400, &json!("VALIDATION_ERROR")));
    let listed = app.get("/mcp/tools").await;
    assert_eq!(listed.body["tools"][0]["name"], "my_custom_tool");
    assert!(listed.headers.contains_key("etag"));
    assert_eq!(app.delete("/mcp/executions/exec-0").await.status, 404);
}

#[tokio::test]
async fn a_test_can_restrict_the_permissions_of_the_caller() {
    let app = RestApp::as_principal(yard(), Principal::new("ada", Permissions::Only(Default::default())));
    assert_eq!(app.get("/mcp/tools").await.body["tools"], json!([]));
    let refused = app.execute("my_custom_tool", json!({"input": "test"})).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!("PERMISSION_ERROR")));
}

/// Records execution ids.
#[derive(Default)]
struct Ids(Mutex<Vec<String>>);

impl Hooks for Ids {
    fn before<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
        self.0.lock().push(call.record.id.public_id());
        Box::pin(std::future::ready(Ok(HookDecision::Pass)))
    }
}

#[tokio::test]
async fn a_hook_in_rust_knows_the_execution_id_that_rest_answers_with() {
    let ids = Arc::new(Ids::default());
    let tool = my_custom_tool().hooks(Arc::clone(&ids) as Arc<dyn Hooks>);
    let app = RestApp::new(Yard::with_sources([NativeSource::new("mine").tool(tool).into_source()]));
    let answer = app.execute("my_custom_tool", json!({"input": "test"})).await;
    let seen = ids.0.lock().clone();
    assert_eq!(json!(seen), json!([answer.body["metadata"]["executionId"]]));
}

/// Sends a GET request to a real server and returns the status and the body.
async fn get(url: &str, path: &str, token: Option<&str>) -> (u16, Value) {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let proof = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{proof}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}

#[tokio::test]
async fn a_server_starts_with_one_call_and_generates_a_token() {
    let here = HttpOptions { listen: ([127, 0, 0, 1], 0).into(), ..HttpOptions::default() };
    let server = http_with(yard(), here.clone()).await.unwrap();
    let (url, token) = (server.url(), server.token().unwrap().to_owned());
    assert_eq!(server.page_url(), format!("{url}/#token={token}"));
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve_until(stop.clone().cancelled_owned()));
    assert_eq!(get(&url, "/mcp/tools", None).await.0, 401);
    let (status, listed) = get(&url, "/mcp/tools", Some(&token)).await;
    assert_eq!((status, &listed["tools"][0]["name"]), (200, &json!("my_custom_tool")));
    stop.cancel();
    serving.await.unwrap();

    // A server does not return tokens that the author has set.
    let mine = BearerToken::new("a-token-of-mine", Principal::owner());
    let server = http_with(yard(), HttpOptions { tokens: vec![mine], ..here }).await.unwrap();
    assert_eq!((server.token(), server.page_url()), (None, format!("{}/", server.url())));
    let (url, stop) = (server.url(), CancellationToken::new());
    let serving = tokio::spawn(server.serve_until(stop.clone().cancelled_owned()));
    assert_eq!(get(&url, "/mcp/tools", Some("a-token-of-mine")).await.0, 200);
    stop.cancel();
    serving.await.unwrap();
}

#[test]
fn the_lines_for_a_manifest_in_the_docs_are_those_that_we_build_with() {
    let docs = include_str!("../../../../docs/tasks/write-a-tool-in-rust.md");
    let lines =
        docs.split_once("```toml [Cargo.toml]\n   [dependencies]\n").unwrap().1.split_once("```").unwrap().0;
    let workspace = include_str!("../../../../Cargo.toml");
    let mut seen = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, how) = line.split_once(" = ").unwrap();
        seen.push(name);
        match how.split_once("path = \"") {
            Some((_, path)) => {
                let folder = path.split('"').next().unwrap().strip_prefix("../toolyard/").unwrap();
                let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
                let manifest = std::fs::read_to_string(format!("{root}{folder}/Cargo.toml")).unwrap();
                assert!(manifest.contains(&format!("name = \"{name}\"")), "{line}");
            }
            None => {
                let wanted = how.split('"').nth(1).unwrap();
                let known = workspace.lines().find(|known| known.starts_with(&format!("{name} = "))).unwrap();
                let version = known.split('"').nth(1).unwrap();
                let fits = |rest: &str| rest.is_empty() || rest.starts_with('.');
                assert!(version.strip_prefix(wanted).is_some_and(fits), "{line}, but we have {known}");
            }
        }
    }
    assert_eq!(seen, ["toolyard-sdk", "schemars", "serde", "tokio"]);
}
