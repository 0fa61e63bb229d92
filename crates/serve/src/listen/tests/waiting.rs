//! Calls that wait for an answer, and streams that stay open meanwhile.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_hub::{
    BoxFuture, HubError, Outcome, Progress, Question, QuestionKind, QuotaLimits, Source, SourceCall,
    SourceName, SourceOffer, SourceTarget, ToolListing, ToolOffer, Yard, YardLimits, YardSettings,
};

use super::quotas::{OTHER, post, quotas, session};
use super::{BEARER, BearerCredentials, Listening, PATIENCE, listening_to};

/// A source with a tool `ask` that asks the client for a name, and a tool `hold` that never ends.
struct Patient {
    name: SourceName,
    offer: Arc<SourceOffer>,
}

impl Source for Patient {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer)
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(async move {
            if matches!(&call.target, SourceTarget::Tool { name, .. } if name == "hold") {
                call.client.report_progress(Progress { progress: 1.0, total: None, message: None });
                call.cancel.cancelled().await;
            } else {
                let params = json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
                let kind = QuestionKind::ElicitForm;
                call.client
                    .ask(vec![Question { key: "who".to_owned(), kind, params: to_raw(&params) }])
                    .await?;
            }
            Ok(Outcome::success(from_text(r#"{"content":[]}"#.to_owned())))
        })
    }
}

pub(super) fn patient(limits: YardLimits) -> Arc<Yard> {
    let tool = |name: &str| ToolOffer {
        definition: to_raw(&json!({"name": name, "inputSchema": {"type": "object"}})),
        permissions: Vec::new(),
        metadata: serde_json::Map::new(),
        hooks: Vec::new(),
        listing: ToolListing::Listed,
    };
    let offer = Arc::new(SourceOffer { tools: vec![tool("ask"), tool("hold")], ..SourceOffer::default() });
    let yard = Yard::new(YardSettings { limits, ..YardSettings::default() });
    yard.add(Arc::new(Patient { name: SourceName::new("patient"), offer }));
    yard
}

const MODERN: &str = "2026-07-28";

/// Returns a request of a modern client and its headers.
pub(super) fn modern(method: &str, mut params: Value) -> (String, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let name = params["name"].as_str().map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    let headers = format!("mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n{name}");
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

#[tokio::test]
async fn calls_that_wait_for_the_client_are_counted_for_each_principal() {
    let server = listening_to(patient(quotas(QuotaLimits { parked: 1, ..QuotaLimits::default() }))).await;
    let ask = async |bearer: &str, more: Value| {
        let mut params = json!({"name": "ask", "arguments": {}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (headers, message) = modern("tools/call", params);
        post(&server, &format!("{bearer}{headers}"), &message).await.1
    };
    let parked = ask(BEARER, json!({})).await;
    assert_eq!(parked["result"]["resultType"], "input_required", "{parked}");
    let refused = ask(BEARER, json!({})).await.to_string();
    assert!(refused.contains("limit of 1 calls that wait for the client"), "{refused}");
    let other = ask(OTHER, json!({})).await;
    assert_eq!(other["result"]["resultType"], "input_required", "{other}");
    // After an answer, another call can be parked.
    let answer = json!({
        "requestState": parked["result"]["requestState"],
        "inputResponses": {"who": {"action": "accept", "content": {}}},
    });
    let done = ask(BEARER, answer).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert_eq!(ask(BEARER, json!({})).await["result"]["resultType"], "input_required");
}

/// Sends a request whose response is an event stream, and waits for the first event.
pub(super) async fn stream(server: &Listening, path: &str, more: &str, message: &Value) -> TcpStream {
    let mut stream = server.connect().await;
    let body = message.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\n{BEARER}{more}content-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    while !String::from_utf8_lossy(&response).contains("data:") {
        let mut buffer = [0; 1024];
        let count = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&response));
        response.extend(&buffer[..count]);
    }
    let response = String::from_utf8(response).unwrap();
    assert!(response.contains("content-type: text/event-stream"), "{response}");
    stream
}

/// Returns whether the stream ends, which is when the last chunk of the body arrives. Keep-alive
/// comments do not count.
pub(super) async fn ends(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    let ending = async {
        while !rest.ends_with(b"0\r\n\r\n") {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the connection was cut off");
            rest.extend(&buffer[..count]);
        }
    };
    tokio::time::timeout(PATIENCE, ending).await.is_ok()
}

#[tokio::test]
async fn streams_of_every_kind_end_with_their_token() {
    let server = listening_to(patient(YardLimits::default())).await;
    let (headers, message) =
        modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let listening = stream(&server, "/mcp", &headers, &message).await;
    let (headers, mut message) = modern("tools/call", json!({"name": "hold", "arguments": {}}));
    message["params"]["_meta"]["progressToken"] = json!(1);
    let called = stream(&server, "/mcp", &headers, &message).await;
    let legacy = session(&server, BEARER).await.unwrap().replace(BEARER, "");
    let params = json!({"name": "hold", "arguments": {}, "_meta": {"progressToken": 1}});
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let answered = stream(&server, "/mcp", &legacy, &message).await;
    let events = "accept: text/event-stream\r\n";
    let executed = stream(&server, "/mcp/tools/hold/execute", events, &json!({"params": {}})).await;
    server.store.replace(BearerCredentials::default());
    let ended = tokio::join!(ends(listening), ends(called), ends(answered), ends(executed));
    assert_eq!(ended, (true, true, true, true), "listen, modern call, legacy call, REST");
}

#[tokio::test]
async fn nodes_fetch_reads_a_refusal_of_a_large_body() {
    let server = listening_to(Yard::with_sources([])).await;
    let script = "
const [url, token, type] = process.argv.slice(1);
const headers = {'content-type': type};
if (token) headers.authorization = 'Bearer ' + token;
fetch(url, {method: 'POST', headers, body: ' '.repeat(8 << 20)})
  .then(async answer => console.log(answer.status, (await answer.text()).length > 0))
  .catch(error => console.log(String(error), String(error.cause)));
";
    let url = format!("http://{}/mcp", server.address);
    let (json, text) = ("application/json", "text/plain");
    for (token, kind, expected) in
        [("", json, "401 true"), ("secret", json, "413 true"), ("secret", text, "415 true")]
    {
        let node = tokio::process::Command::new("node")
            .args(["-e", script, &url, token, kind])
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(PATIENCE, node).await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{kind}");
    }
}
