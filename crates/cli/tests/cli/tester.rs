//! The nine tools that test other servers, used like an assistant would. Every answer is validated
//! against the return schema of the specification.

mod arguments;
mod breaking;
mod connecting;
mod contract;
mod rounds;
mod sharing;
mod verbatim;
mod violations;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_hub::Schema;
use toolyard_hub::json::to_raw;
use toolyard_testkit::harness::{Client, Line, Scratch, Server, Version};

use super::{SERVE, TOOLYARD};

/// Short timeouts, so that tests of servers that hang do not take long.
const QUICK: &str = "[tester]\nconnect_timeout = \"2s\"\ncall_timeout = \"1s\"\n";

/// Returns the JSON blocks of the specification.
fn document() -> Value {
    serde_json::from_str(include_str!("../../../../tests/data/spec/tester-tools.json")).unwrap()
}

/// A client of the tester.
struct Tester {
    client: Client,
    returns: HashMap<String, Schema>,
    types: Vec<String>,
    _scratch: Option<Scratch>,
}

impl Tester {
    /// Starts over stdio, with short timeouts.
    async fn start() -> Self {
        Self::with(QUICK).await
    }

    /// Starts over stdio, with this configuration.
    async fn with(config: &str) -> Self {
        let scratch = Scratch::new();
        let config = scratch.file("toolyard.toml", config);
        let arguments = ["stdio", "--expose", "tester", "--config", &config];
        let version = Version::V2025_11_25;
        let client = Client::over_stdio(Line::start(TOOLYARD, &arguments, version), version).await;
        Self { _scratch: Some(scratch), ..Self::of(client) }
    }

    /// Starts over HTTP.
    async fn join(server: &Arc<Server>, version: Version) -> Self {
        Self::of(Client::join(&server.with_path("/tester/mcp"), version).await)
    }

    fn of(client: Client) -> Self {
        let document = document();
        let prefix = document["prefix"].as_str().unwrap();
        let returns = document["tools"].as_array().unwrap().iter().map(|tool| {
            let name = tool["name"].as_str().unwrap().strip_prefix(prefix).unwrap();
            (name.to_owned(), Schema::new(to_raw(&tool["returnSchema"])))
        });
        let types = document["errorTypes"].as_array().unwrap().iter();
        let types = types.map(|name| name.as_str().unwrap().to_owned()).collect();
        Self { client, returns: returns.collect(), types, _scratch: None }
    }

    /// Uses a tool. The answer must match the specification.
    async fn uses(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.client.call(tool, &arguments).await.answer;
        self.checked(tool, answer.result())
    }

    fn checked(&self, tool: &str, result: &Value) -> Value {
        let answer = &result["structuredContent"];
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            *answer,
            "{tool}: text and structured content differ"
        );
        let schema = &self.returns[tool];
        assert_eq!(schema.problem(), None);
        assert_eq!(schema.violations(&to_raw(answer)), [], "{tool}: {answer:#}");
        assert!(answer["metadata"]["request_time_ms"].is_u64(), "{tool}: {answer:#}");
        let failed = result["isError"] == true;
        assert_eq!(answer["success"] == false, failed, "{tool}: {answer:#}");
        assert_eq!(answer.get("error").is_some(), failed, "{tool}: {answer:#}");
        if failed {
            let error = &answer["error"];
            assert!(self.types.iter().any(|name| error["type"] == **name), "{error:#}");
            assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error:#}");
            assert!(error["details"].is_object(), "{error:#}");
            assert!(error["suggestion"].as_str().is_some_and(|next| !next.is_empty()), "{error:#}");
        }
        answer.clone()
    }

    /// Connects. Fails the test if that is not possible.
    async fn connect(&mut self, url: &str) -> Value {
        let answer = self.uses("connect_to_server", json!({"url": url})).await;
        assert_eq!(answer["success"], true, "{answer:#}");
        answer
    }

    /// Uses a tool that must fail with this error. Returns the error.
    async fn fails(&mut self, kind: &str, tool: &str, arguments: Value) -> Value {
        let answer = self.uses(tool, arguments).await;
        assert_eq!(answer["error"]["type"], kind, "{tool}: {answer:#}");
        answer["error"].clone()
    }

    /// Calls a tool of the server under test, which must succeed. Returns its result.
    async fn calls(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.uses("call_tool", json!({"name": name, "arguments": arguments})).await;
        assert_eq!(answer["success"], true, "{answer:#}");
        answer["tool_call"]["result"].clone()
    }
}

/// Every tool that needs a connection, with valid arguments.
fn needing_a_connection() -> [(&'static str, Value); 7] {
    [
        ("list_tools", json!({})),
        ("call_tool", json!({"name": "add", "arguments": {"a": 1, "b": 2}})),
        ("list_resources", json!({})),
        ("read_resource", json!({"uri": "demo://readme"})),
        ("list_prompts", json!({})),
        ("get_prompt", json!({"name": "explain_tool"})),
        ("disconnect", json!({})),
    ]
}

/// Returns the command line of a server with the demo tools.
fn demo(scratch: &Scratch) -> String {
    format!("'{TOOLYARD}' stdio --config '{}'", scratch.file("demo.toml", "demo = true\n"))
}
