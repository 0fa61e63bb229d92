//! Client sessions with a stateful server: the command with a small legacy server in Python behind
//! it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Scratch, Server, Socket, Version, until_equal, within_timeout};

use super::{TOOLYARD, processes};

/// A legacy server that counts its calls in its process.
const COUNTER: &str = r#"
import json, sys
count = 0
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None or method is None:
        continue
    if method == "initialize":
        info = {"name": "counter", "version": "1"}
        say({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        count += 1
        say({"id": id, "result": {"content": [{"type": "text", "text": str(count)}]}})
    else:
        say({"id": id, "error": {"code": -32601, "message": "no such method"}})
"#;

struct Yard {
    server: Arc<Server>,
    script: String,
    _scratch: Scratch,
}

impl Yard {
    async fn start(more: &str) -> Self {
        let scratch = Scratch::new();
        let script = scratch.file("counter.py", COUNTER);
        let config = format!(
            "[servers.counter]\ncommand = \"python3\"\nargs = [\"{script}\"]\nstart_timeout = \"60s\"\n{more}"
        );
        let server = Server::configured(TOOLYARD, &scratch, &config).await;
        let yard = Self { server, script, _scratch: scratch };
        let mut tab = yard.tab().await;
        within_timeout("the server", async {
            while tab.request("mcp_tools", json!({"server_name": "counter"})).await.unwrap()["count"] != 1 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        yard
    }

    async fn tab(&self) -> Socket {
        Socket::connect(&self.server.address, self.server.token.as_deref().unwrap()).await
    }

    /// Returns how many sessions there are with the server. Each is a process next to its keeper.
    fn sessions(&self) -> usize {
        processes(&self.script).div_ceil(2)
    }

    async fn until_sessions(&self, expected: usize) -> Duration {
        until_equal("sessions", expected, || self.sessions()).await
    }
}

/// Calls like the page does, which labels every call differently.
async fn count(tab: &mut Socket, label: &str) -> Value {
    let words = json!({
        "tool": "mcp__counter__count", "arguments": {}, "session_id": format!("page-{label}"),
        "asks": ["elicit_form", "elicit_url", "sample"],
    });
    let answer = tab.request("mcp_call", words).await.unwrap();
    answer["result"]["content"][0]["text"].clone()
}

#[tokio::test]
async fn the_calls_of_a_tab_reach_one_process_of_a_server_that_asks_nothing() {
    let yard = Yard::start("").await;
    let (mut one, mut other) = (yard.tab().await, yard.tab().await);
    let counted = [count(&mut one, "a").await, count(&mut one, "b").await, count(&mut other, "c").await];
    assert_eq!(counted, ["1", "2", "3"]);
    assert_eq!(yard.sessions(), 1);
}

#[tokio::test]
async fn a_tab_has_one_private_session_with_a_server_and_takes_it_along_when_it_closes() {
    let yard = Yard::start("sessions = \"per-client\"\n").await;
    let (mut one, mut other) = (yard.tab().await, yard.tab().await);
    let counted = [count(&mut one, "a").await, count(&mut one, "b").await, count(&mut one, "c").await];
    assert_eq!(counted, ["1", "2", "3"]);
    assert_eq!(count(&mut other, "d").await, "1");
    assert_eq!(yard.sessions(), 3);
    one.disconnect();
    let took = yard.until_sessions(2).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(count(&mut other, "e").await, "2");
}

#[tokio::test]
async fn an_mcp_session_takes_its_private_session_along_when_it_is_deleted() {
    let yard = Yard::start("sessions = \"per-client\"\n").await;
    let mut client = Client::join(&yard.server, Version::V2025_11_25).await;
    for expected in ["1", "2"] {
        assert_eq!(client.call("mcp__counter__count", "{}").await.answer.content(), expected);
    }
    assert_eq!(yard.sessions(), 2);
    assert_eq!(client.send("DELETE", &client.own_headers("*/*"), Vec::new()).await.status, 204);
    let took = yard.until_sessions(1).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}
