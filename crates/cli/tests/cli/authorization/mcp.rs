//! MCP in both eras, at every endpoint.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolyard_testkit::harness::{Checker, Reply, Server, Version};

use super::answer::{Lens, letters, of_message, of_status};
use super::callers::{Caller, OTHER, YardKind, secret};
use super::table::Row;
use super::yard::World;

/// The sessions of legacy clients, by column and endpoint.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<(&'static str, String), Initialized>>);

/// The id of a session, or the status of the refused `initialize`.
type Initialized = Result<String, u16>;

/// One client at one endpoint.
pub(super) struct McpClient {
    server: Arc<Server>,
    version: Version,
    token: Option<String>,
    session: Option<String>,
    checker: Arc<Checker>,
}

impl McpClient {
    /// Creates a modern client, which needs no handshake.
    pub(super) fn modern(world: &World, caller: &Caller, endpoint: &str) -> Self {
        Self::new(world, caller, endpoint, Version::V2026_07_28)
    }

    fn new(world: &World, caller: &Caller, endpoint: &str, version: Version) -> Self {
        let server = world.yard(caller.yard).server.with_path(endpoint);
        let checker = Arc::new(Checker::new(version));
        Self { server, version, token: caller.token.clone(), session: None, checker }
    }

    /// Creates a legacy client with its session. Returns the status if the session is refused.
    pub(super) async fn legacy(
        world: &World,
        sessions: &Sessions,
        caller: &Caller,
        endpoint: &str,
    ) -> Result<Self, u16> {
        let mut client = Self::new(world, caller, endpoint, Version::V2025_11_25);
        let mut known = sessions.0.lock().await;
        let key = (caller.column, endpoint.to_owned());
        let session = match known.get(&key) {
            Some(session) => session.clone(),
            None => {
                let session = client.initialize().await;
                known.insert(key, session.clone());
                session
            }
        };
        client.session = Some(session?);
        Ok(client)
    }

    async fn initialize(&mut self) -> Result<String, u16> {
        let params = json!({
            "protocolVersion": self.version.as_str(),
            "capabilities": {},
            "clientInfo": {"name": "matrix", "version": "1"},
        });
        let reply = self.send("initialize", params).await;
        let session = reply.header("mcp-session-id").map(ToOwned::to_owned).ok_or(reply.status)?;
        self.session = Some(session.clone());
        let headers = self.headers("");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        let reply = self.server.send("POST", &headers, initialized.into_bytes(), Arc::clone(&self.checker));
        assert_eq!(reply.await.status, 202);
        Ok(session)
    }

    fn headers(&self, name: &str) -> Vec<(String, String)> {
        let mut headers = vec![
            ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
            ("content-type".to_owned(), "application/json".to_owned()),
        ];
        if self.version.is_modern() || self.session.is_some() {
            headers.push(("mcp-protocol-version".to_owned(), self.version.to_string()));
        }
        if self.version.is_modern() && !name.is_empty() {
            headers.push(("mcp-name".to_owned(), name.to_owned()));
        }
        headers.extend(self.session.iter().map(|id| ("mcp-session-id".to_owned(), id.clone())));
        headers
            .extend(self.token.iter().map(|token| ("authorization".to_owned(), format!("Bearer {token}"))));
        headers
    }

    pub(super) async fn send(&self, method: &str, mut params: Value) -> Reply {
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let mut headers = self.headers(&name);
        if self.version.is_modern() {
            headers.push(("mcp-method".to_owned(), method.to_owned()));
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.version.as_str(),
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
                "io.modelcontextprotocol/clientInfo": {"name": "matrix", "version": "1"},
            });
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.server.send("POST", &headers, body.into_bytes(), Arc::clone(&self.checker)).await
    }

    /// Returns the status of a request without a body: opening the standalone stream of a session,
    /// or deleting the session.
    async fn bare(&self, method: &str) -> u16 {
        self.server.send(method, &self.headers(""), Vec::new(), Arc::clone(&self.checker)).await.status
    }

    /// Sends a request and waits for the answer. Returns the status if the answer is not MCP.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Result<Value, u16> {
        let reply = self.send(method, params).await;
        if reply.is_stream() {
            let mut events = reply.events();
            while let Some((_, message)) = events.next_message().await {
                if message.is_answer() {
                    return Ok(message.value);
                }
            }
            return Err(0);
        }
        let status = reply.status;
        let text = reply.text().await;
        let message: Value = serde_json::from_str(&text).unwrap_or_default();
        let is_answer = message["result"].is_object() || message["error"].is_object();
        let is_about_session = message["error"]["code"] == -32600;
        if status == 401 || !is_answer || is_about_session { Err(status) } else { Ok(message) }
    }
}

/// Returns the params of a method, from its row of the table.
fn params(method: &str, words: &str) -> Value {
    let first = words.split(' ').next().unwrap_or_default();
    match method {
        "tools/call" => {
            let arguments = words.split_once(' ').map_or(json!({}), |(_, text)| {
                serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
            });
            json!({"name": first, "arguments": arguments})
        }
        "prompts/get" => json!({"name": first, "arguments": {}}),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => json!({"uri": first}),
        "completion/complete" if first.contains("://") => json!({
            "ref": {"type": "ref/resource", "uri": first},
            "argument": {"name": "n", "value": ""},
        }),
        "completion/complete" => json!({
            "ref": {"type": "ref/prompt", "name": first},
            "argument": {"name": "who", "value": ""},
        }),
        "logging/setLevel" => json!({"level": "info"}),
        _ => json!({}),
    }
}

impl World {
    /// Checks a row of a section such as `mcp modern /mcp`.
    pub(super) async fn mcp(&self, row: &Row, caller: &Caller) -> (String, String) {
        let mut section = row.section.split(' ').skip(1);
        let (era, endpoint) = (section.next().unwrap(), section.next().unwrap());
        let operation = self.fill(row.operation, caller.yard);
        let (method, words) = operation.split_once(' ').unwrap_or((operation.as_str(), ""));
        let client = match era {
            "modern" => McpClient::modern(self, caller, endpoint),
            _ => match McpClient::legacy(self, &self.sessions, caller, endpoint).await {
                Ok(client) => client,
                Err(status) => return (of_status(status), String::new()),
            },
        };
        let answer = match (method, words) {
            // The session itself is the answer.
            ("initialize", "") => return ("ok".to_owned(), String::new()),
            ("subscriptions/listen", _) => return self.listen(&client).await,
            (method, "in a session of another") => {
                let session = Some(self.other_session(caller, endpoint).await);
                let client = McpClient { session, ..client };
                match method {
                    "GET" | "DELETE" => Err(client.bare(method).await),
                    method => client.ask(method, json!({})).await,
                }
            }
            (_, "of a question to another") => {
                let state = self.yard(caller.yard).parked.get_or_init(|| self.park(caller.yard)).await;
                client.ask("tools/call", answer_to(state)).await
            }
            (method, words) => client.ask(method, params(method, words.trim())).await,
        };
        let message = match answer {
            Ok(message) => message,
            Err(status) => return (of_status(status), String::new()),
        };
        let text = message.to_string();
        let lens = match (method, words.split(' ').next()) {
            ("tools/list", _) | ("tools/call", Some("search_tools" | "mcp__programs__search_tools")) => {
                Some(Lens::Tools)
            }
            ("resources/list", _) => Some(Lens::Resources),
            ("resources/templates/list", _) => Some(Lens::Templates),
            ("prompts/list", _) => Some(Lens::Prompts),
            _ => None,
        };
        let word = of_message(&message);
        match lens.filter(|_| word == "ok") {
            // The endpoint of a single server uses raw names.
            Some(_) if endpoint.starts_with("/servers/") || endpoint == "/tester/mcp" => {
                (counted(&message), text)
            }
            Some(lens) => (letters(lens, &text), text),
            None => (word, text),
        }
    }

    /// Returns the id of a session of the other caller.
    async fn other_session(&self, caller: &Caller, endpoint: &str) -> String {
        // One in each yard.
        let column = if caller.yard == YardKind::Mapped { OTHER } else { "other, unmapped" };
        let other = Caller { column, token: Some(secret(OTHER)), yard: caller.yard, servers: None };
        let client = McpClient::legacy(self, &self.sessions, &other, endpoint).await;
        let session = client.ok().and_then(|client| client.session);
        session.expect("the other caller has a session")
    }

    /// Makes the other caller call a tool that asks. Returns the request state.
    async fn park(&self, yard: YardKind) -> String {
        let other = Caller { column: OTHER, token: Some(secret(OTHER)), yard, servers: None };
        let call = json!({"name": "mcp__a__ask", "arguments": {}});
        let question = McpClient::modern(self, &other, "/mcp").ask("tools/call", call).await.unwrap();
        question["result"]["requestState"]
            .as_str()
            .unwrap_or_else(|| panic!("no question: {question}"))
            .to_owned()
    }

    /// Checks that attempts of other callers to answer did not consume the question.
    pub(super) async fn answers_own_question(&self) {
        for yard in [YardKind::Mapped, YardKind::Unmapped] {
            let other = Caller { column: OTHER, token: Some(secret(OTHER)), yard, servers: None };
            let state = self.yard(yard).parked.get().expect("a row of the table parks a call");
            let answered = McpClient::modern(self, &other, "/mcp").ask("tools/call", answer_to(state)).await;
            assert_eq!(answered.map(|message| of_message(&message)), Ok("ok".to_owned()));
        }
    }

    /// Returns which resources the yard agrees to watch.
    async fn listen(&self, client: &McpClient) -> (String, String) {
        let reply = client.send("subscriptions/listen", watched()).await;
        if reply.status != 200 {
            return (of_status(reply.status), String::new());
        }
        let (_, agreed) = reply.events().next_message().await.unwrap();
        (letters(Lens::Resources, &agreed.text), agreed.text)
    }
}

/// Returns the repeated call of a tool that asks, with an answer.
fn answer_to(state: &str) -> Value {
    let answer = json!({"action": "accept", "content": {"name": "matrix"}});
    json!({
        "name": "mcp__a__ask",
        "arguments": {},
        "requestState": state,
        "inputResponses": {"name": answer},
    })
}

/// Subscribes to all three notes and to the tools.
pub(super) fn watched() -> Value {
    json!({"notifications": {
        "toolsListChanged": true,
        "resourceSubscriptions": ["a://note", "b://note", "l://note"],
    }})
}

/// Returns how many items a list has, or `-` for none.
fn counted(message: &Value) -> String {
    let lists = ["tools", "resources", "resourceTemplates", "prompts"];
    let count = lists.iter().find_map(|key| message["result"][key].as_array()).map_or(0, Vec::len);
    if count == 0 { "-".to_owned() } else { count.to_string() }
}
