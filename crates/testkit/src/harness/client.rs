//! A client that speaks one protocol version over one transport. To what a test sends, it adds only
//! what every request of that version must carry.

use std::fmt::Display;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::json::{Object, from_text, to_raw};

use super::call::{Call, Exchange, ReplyChannel};
use super::http::{Reply, Server};
use super::schema::Checker;
use super::stdio::Line;
use super::version::Version;

/// The transport between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Stdio,
    Http,
}

pub struct Client {
    pub version: Version,
    pub over: Over,
    wire: Wire,
    next: i64,
}

enum Wire {
    Line(Line),
    Http(Http),
}

struct Http {
    server: Arc<Server>,
    token: Option<String>,
    session: Option<String>,
    checker: Arc<Checker>,
}

impl Client {
    pub const BOTH: [Over; 2] = [Over::Stdio, Over::Http];

    /// Starts a server with these arguments and performs the handshake.
    pub async fn start(program: &str, arguments: &[&str], over: Over, version: Version) -> Self {
        match over {
            Over::Http => Self::join(&Server::start(program, arguments).await, version).await,
            Over::Stdio => {
                let arguments: Vec<&str> = ["stdio"].into_iter().chain(arguments.iter().copied()).collect();
                Self::over_stdio(Line::start(program, &arguments, version), version).await
            }
        }
    }

    /// Performs the handshake with a server that was started over stdio.
    pub async fn over_stdio(line: Line, version: Version) -> Self {
        let mut client = Self { version, over: Over::Stdio, wire: Wire::Line(line), next: 1 };
        client.initialize().await;
        client
    }

    /// Performs the handshake with a server that other clients share.
    pub async fn join(server: &Arc<Server>, version: Version) -> Self {
        Self::join_as(server, version, server.token.clone()).await
    }

    /// Like [`Client::join`], but with a token other than the one that the server printed.
    pub async fn join_as(server: &Arc<Server>, version: Version, token: Option<String>) -> Self {
        let checker = Arc::new(Checker::new(version));
        let http = Http { server: Arc::clone(server), token, session: None, checker };
        let mut client = Self { version, over: Over::Http, wire: Wire::Http(http), next: 1 };
        client.initialize().await;
        client
    }

    async fn initialize(&mut self) {
        if self.version.is_modern() {
            return;
        }
        let params = json!({
            "protocolVersion": self.version.as_str(),
            "capabilities": capabilities(),
            "clientInfo": {"name": "harness", "version": "1"},
        });
        let text = self.text("initialize", &params);
        let answer = match &self.wire {
            Wire::Line(line) => line.exchange(&text).await,
            Wire::Http(_) => {
                let reply = self.post(&text).await;
                let session = reply.header("mcp-session-id").unwrap().to_owned();
                self.http_mut().session = Some(session);
                reply.message().await.unwrap()
            }
        };
        assert_eq!(answer.result()["protocolVersion"], self.version.as_str());
        self.notify("notifications/initialized", json!({})).await;
    }

    /// Sends a request. The params are JSON text or a value; what the version requires in them is
    /// added.
    pub async fn begin(&mut self, method: &str, params: impl Display) -> Call {
        let text = self.text(method, &params);
        let id = json!(self.next - 1);
        let channel = match &self.wire {
            Wire::Line(line) => {
                line.send(&text).await;
                ReplyChannel::Line(line.clone())
            }
            Wire::Http(http) => {
                let headers = self.headers(&text);
                let (server, checker) = (Arc::clone(&http.server), Arc::clone(&http.checker));
                let sending = async move { server.send("POST", &headers, text.into_bytes(), checker).await };
                ReplyChannel::Pending(AbortOnDropHandle::new(tokio::spawn(sending)))
            }
        };
        Call { id, channel }
    }

    /// Sends a request and waits for its answer.
    pub async fn ask(&mut self, method: &str, params: impl Display) -> Exchange {
        self.begin(method, params).await.finish().await
    }

    /// Calls a tool.
    pub async fn call(&mut self, name: &str, arguments: impl Display) -> Exchange {
        self.begin_call(name, arguments).await.finish().await
    }

    pub async fn begin_call(&mut self, name: &str, arguments: impl Display) -> Call {
        self.begin("tools/call", format!(r#"{{"name":"{name}","arguments":{arguments}}}"#)).await
    }

    /// Calls a tool and requests progress under this token.
    pub async fn begin_watched_call(&mut self, name: &str, arguments: impl Display, token: &str) -> Call {
        let params =
            format!(r#"{{"name":"{name}","arguments":{arguments},"_meta":{{"progressToken":"{token}"}}}}"#);
        self.begin("tools/call", params).await
    }

    pub async fn notify(&mut self, method: &str, params: impl Display) {
        self.send_message(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)).await;
    }

    /// Answers a request of the server.
    pub async fn reply(&mut self, id: &Value, result: impl Display) {
        self.send_message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    }

    async fn send_message(&self, text: &str) {
        match &self.wire {
            Wire::Line(line) => line.send(text).await,
            Wire::Http(_) => assert_eq!(self.post(text).await.status, 202, "{text}"),
        }
    }

    /// Cancels the request with this id.
    pub async fn cancel(&mut self, id: &Value) {
        self.notify("notifications/cancelled", json!({"requestId": id, "reason": "canceled by the test"}))
            .await;
    }

    /// Returns a complete request as it goes over the wire.
    pub fn text(&mut self, method: &str, params: &impl Display) -> String {
        let id = self.next;
        self.next += 1;
        let mut params = Object::parse(&from_text(params.to_string())).unwrap();
        if self.version.is_modern() {
            let meta = params.get("_meta").map(|meta| Object::parse(meta).unwrap());
            let mut meta = meta.unwrap_or_default();
            let metadata = [
                ("protocolVersion", json!(self.version.as_str())),
                ("clientCapabilities", capabilities()),
                ("clientInfo", json!({"name": "harness", "version": "1"})),
            ];
            for (key, value) in metadata {
                meta.set(&format!("io.modelcontextprotocol/{key}"), to_raw(&value));
            }
            params.set("_meta", meta.to_raw());
        }
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{}}}"#, params.to_raw())
    }

    /// Returns the headers that a POST of this body needs.
    pub fn headers(&self, body: &str) -> Vec<(String, String)> {
        let mut headers = self.own_headers("application/json, text/event-stream");
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let message: Value = serde_json::from_str(body).unwrap_or_default();
        if self.version.is_modern() {
            let params = &message["params"];
            let name = params["name"].as_str().or(params["uri"].as_str());
            let mirrored = [("mcp-method", message["method"].as_str()), ("mcp-name", name)];
            for (header, value) in mirrored {
                headers.extend(value.map(|value| (header.to_owned(), value.to_owned())));
            }
        }
        headers
    }

    /// Returns the headers of every request of this client.
    pub fn own_headers(&self, accept: &str) -> Vec<(String, String)> {
        let Wire::Http(http) = &self.wire else { panic!("only HTTP has headers") };
        let mut headers = vec![("accept".to_owned(), accept.to_owned())];
        if self.version >= Version::V2025_06_18 && (self.version.is_modern() || http.session.is_some()) {
            headers.push(("mcp-protocol-version".to_owned(), self.version.to_string()));
        }
        headers.extend(http.session.clone().map(|id| ("mcp-session-id".to_owned(), id)));
        headers
            .extend(http.token.as_ref().map(|token| ("authorization".to_owned(), format!("Bearer {token}"))));
        headers
    }

    /// Posts a body with the headers that it needs.
    pub async fn post(&self, body: &str) -> Reply {
        self.send("POST", &self.headers(body), body.as_bytes().to_vec()).await
    }

    /// Sends exactly what the test passes.
    pub async fn send(&self, method: &str, headers: &[(String, String)], body: Vec<u8>) -> Reply {
        let Wire::Http(http) = &self.wire else { panic!("only HTTP has replies") };
        let sending = http.server.send(method, headers, body, Arc::clone(&http.checker));
        super::within_timeout("an HTTP response", sending).await
    }

    /// Opens the standalone stream, or resumes a stream after an event.
    pub async fn listen(&self, last: Option<&str>) -> Reply {
        let mut headers = self.own_headers("text/event-stream");
        headers.extend(last.map(|last| ("last-event-id".to_owned(), last.to_owned())));
        self.send("GET", &headers, Vec::new()).await
    }

    pub fn line(&self) -> &Line {
        let Wire::Line(line) = &self.wire else { panic!("only stdio has lines") };
        line
    }

    pub fn server(&self) -> &Arc<Server> {
        let Wire::Http(http) = &self.wire else { panic!("only HTTP has a server") };
        &http.server
    }

    fn http_mut(&mut self) -> &mut Http {
        let Wire::Http(http) = &mut self.wire else { panic!("only HTTP has sessions") };
        http
    }
}

fn capabilities() -> Value {
    json!({"elicitation": {}})
}
