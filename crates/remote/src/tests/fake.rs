//! A fake control socket that a test controls. It answers requests for lists automatically.

use futures_util::{SinkExt, StreamExt};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};
use toolyard_hub::Timestamp;

pub(super) struct Fake {
    listener: TcpListener,
    principal: Value,
}

pub(super) struct Talk {
    socket: WebSocketStream<TcpStream>,
    pub(super) subscribed: Value,
}

pub(super) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(30), work)
        .await
        .unwrap_or_else(|_| panic!("timed out waiting for {what}"))
}

impl Fake {
    pub(super) async fn start(principal: Value) -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap(), principal }
    }

    pub(super) fn url(&self) -> Url {
        format!("http://{}", self.listener.local_addr().unwrap()).parse().unwrap()
    }

    /// Accepts the next connection and waits until the client has read everything.
    pub(super) async fn meet(&self) -> Talk {
        let (stream, _) = soon("a connection", self.listener.accept()).await.unwrap();
        let choose = |_: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
            let protocol = HeaderValue::from_static("toolyard.control.v1");
            response.headers_mut().insert("sec-websocket-protocol", protocol);
            Ok(response)
        };
        let socket = accept_hdr_async(stream, choose).await.unwrap();
        let mut talk = Talk { socket, subscribed: Value::Null };
        let now = Timestamp::now().to_string();
        let mut welcome = json!({"type": "welcome", "protocol": 1, "principal": self.principal, "now": now});
        // It is given with the principal, but is a member of the message itself.
        if let Some(replica) = self.principal.get("replica") {
            welcome["replica"] = replica.clone();
        }
        talk.say(welcome).await;
        talk.until("mcp_prompts").await;
        talk
    }
}

impl Talk {
    pub(super) async fn say(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    pub(super) async fn answer(&mut self, request: &Value, response: Value) {
        let (id, subtype) = (&request["id"], &request["subtype"]);
        self.say(json!({"type": "response", "id": id, "subtype": subtype, "response": response})).await;
    }

    /// Returns the next request of this kind. With an empty kind, returns the next request that is not
    /// answered automatically; those for lists, answers and cancellations are.
    pub(super) async fn until(&mut self, subtype: &str) -> Value {
        loop {
            let message = soon(subtype, self.socket.next()).await.unwrap().unwrap();
            let Message::Text(text) = message else { continue };
            let request: Value = serde_json::from_str(&text).unwrap();
            let received = request["subtype"].as_str().unwrap();
            let response = match received {
                "subscribe" => {
                    self.subscribed = request.clone();
                    Some(json!({"subscribed": [], "seq": 1, "missed": false}))
                }
                "mcp_servers" => Some(servers()),
                "mcp_tools" => Some(tools()),
                "mcp_list" => Some(list()),
                "mcp_prompts" => Some(prompts()),
                "mcp_stderr" => Some(json!({"serverName": "x", "lines": ["a line"]})),
                "mcp_transcript" if subtype != "mcp_transcript" => {
                    Some(json!({"serverName": "x", "messages": []}))
                }
                "mcp_replicas" => {
                    Some(json!({"store": "available", "replicas": [{"name": "a"}, {"name": "b"}]}))
                }
                "mcp_answer" => Some(json!({})),
                "mcp_cancel" => Some(json!({"cancelled": true})),
                _ => None,
            };
            let is_automatic = response.is_some();
            if let Some(response) = response {
                self.answer(&request, response).await;
            }
            if received == subtype || (subtype.is_empty() && !is_automatic) {
                return request;
            }
        }
    }

    pub(super) async fn hang_up(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code: code.into(), reason: Utf8Bytes::from_static(reason) };
        self.socket.close(Some(frame)).await.unwrap();
    }
}

pub(super) fn servers() -> Value {
    let since = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let files = json!({"name": "files", "state": "ready", "transport": "stdio", "era": "legacy",
        "protocolVersion": "2025-11-25", "auth": "o_auth", "since": Timestamp(since).to_string()});
    let demo = json!({"name": "demo", "state": "a word of the future", "reason": "no", "transport": "pigeon",
        "auth": "unsupported", "later": true});
    json!({"servers": [files, demo]})
}

fn tools() -> Value {
    let tool = |server: &str, name: &str, full: &str| {
        let definition = json!({"name": name, "inputSchema": {"type": "object"}});
        json!({"name": name, "fullName": full, "serverName": server, "definition": definition, "tags": ["t"]})
    };
    json!({"tools": [
        tool("files", "read.it", "mcp__files__read_it"),
        tool("files", "write", "mcp__files__write"),
        tool("demo", "add", "add"),
    ]})
}

fn list() -> Value {
    json!({
        "resources": {"files": [{"uri": "file:///a", "name": "a"}], "demo": []},
        "resource_templates": {"files": [{"uriTemplate": "file:///{path}", "name": "b"}]},
    })
}

fn prompts() -> Value {
    json!({"prompts": [{"name": "greet", "x": 1, "fullName": "mcp__files__greet", "serverName": "files"}]})
}
