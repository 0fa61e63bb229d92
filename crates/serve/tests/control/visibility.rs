//! What a principal with allow lists sees of a yard with two servers, over REST, MCP and the
//! control socket. The hub's tests cover the rule itself; these tests check that every front
//! applies it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    AllowList, BoxFuture, CallEndReason, CallRequest, CallTarget, EntryKind, ExecutionId, Glob, History,
    HistoryError, HistoryQuery, HubError, Outcome, PastCall, Permissions, Principal, PromptOffer,
    ResourceOffer, Source, SourceCall, SourceName, SourceNotifier, SourceOffer, SourceState, SourceStatus,
    SourceTarget, TemplateOffer, ToolListing, ToolOffer, Yard, YardSettings,
};
use toolyard_serve::{
    Auth, BearerCredentials, BearerToken, BearerTokenStore, ConnectionLimits, ControlSettings,
    EndpointSettings, LogEntry, McpSettings, ServeAuthSettings, ServeSettings, bind,
};
use toolyard_testkit::harness::{Socket, within_timeout};

/// A server with two tools and one of each other entry. Its results contain its name.
pub(super) struct Stub {
    name: SourceName,
    offer: parking_lot::Mutex<Arc<SourceOffer>>,
    status: SourceStatus,
    permissions: Vec<String>,
    feed: std::sync::OnceLock<SourceNotifier>,
}

impl Stub {
    /// Creates a failed server whose entries would all require these permissions.
    fn failed(name: &str, permissions: &[&str]) -> Arc<Self> {
        Arc::new(Self {
            name: SourceName::new(name),
            offer: parking_lot::Mutex::default(),
            status: SourceStatus {
                reason: Some("no such host".to_owned()),
                ..SourceStatus::new(SourceState::Failed, true)
            },
            permissions: permissions.iter().map(|one| (*one).to_owned()).collect(),
            feed: std::sync::OnceLock::new(),
        })
    }

    /// Removes everything that the server offers.
    fn withdraw(&self) {
        *self.offer.lock() = Arc::default();
        self.feed.get().unwrap().offer_changed();
    }

    pub(super) fn updates(&self, uri: &str) {
        self.feed.get().unwrap().resource_updated(uri);
    }

    fn new(name: &str, permissions: &[&str]) -> Arc<Self> {
        let permissions: Vec<String> = permissions.iter().map(|one| (*one).to_owned()).collect();
        let needs = || permissions.clone();
        let tool = |name: &str| ToolOffer {
            definition: to_raw(&json!({"name": name, "inputSchema": {"type": "object"}})),
            permissions: needs(),
            metadata: serde_json::Map::new(),
            hooks: Vec::new(),
            listing: ToolListing::Listed,
        };
        let (fixed, template) = (format!("{name}://fixed"), format!("{name}://{{id}}"));
        let resource = to_raw(&json!({"uri": fixed, "name": "fixed"}));
        let template = to_raw(&json!({"uriTemplate": template, "name": "template"}));
        let offer = SourceOffer {
            tools: vec![tool("query"), tool("change")],
            resources: vec![ResourceOffer { definition: resource, permissions: needs() }],
            templates: vec![TemplateOffer { definition: template, permissions: needs() }],
            prompts: vec![PromptOffer { definition: to_raw(&json!({"name": "ask"})), permissions: needs() }],
            supports_completion: false,
            reserved: None,
        };
        Arc::new(Self {
            name: SourceName::new(name),
            offer: parking_lot::Mutex::new(Arc::new(offer)),
            status: SourceStatus::ready(),
            permissions,
            feed: std::sync::OnceLock::new(),
        })
    }
}

impl Source for Stub {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer.lock())
    }

    fn permissions(&self) -> &[String] {
        &self.permissions
    }

    fn status(&self) -> SourceStatus {
        self.status.clone()
    }

    fn attach(&self, feed: SourceNotifier) {
        let _ = self.feed.set(feed);
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        let text = match call.target {
            SourceTarget::Tool { .. } => format!("result of {}", self.name),
            _ => "other".to_owned(),
        };
        let body = json!({"content": [{"type": "text", "text": text}]});
        Box::pin(async move { Ok(Outcome::success(to_raw(&body))) })
    }
}

/// A history with calls of both servers by `owner`, and one call of an unknown tool.
struct Past;

impl Past {
    fn calls() -> Vec<PastCall> {
        let call = |number: u8, subject: &str, source: Option<&str>| PastCall {
            id: ExecutionId::from_bytes([number; 16]),
            kind: EntryKind::Tool,
            subject: subject.to_owned(),
            source: source.map(ToOwned::to_owned),
            principal: "owner".to_owned(),
            session_id: None,
            user_id: None,
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(number)),
            duration: Duration::from_millis(1),
            ended: CallEndReason::Succeeded,
            error: None,
            replica: None,
        };
        vec![
            call(5, "mcp__b__change", Some("b")),
            call(4, "mcp__b__query", Some("b")),
            call(3, "mcp__a__change", Some("a")),
            call(2, "mcp__a__query", Some("a")),
            call(1, "mcp__b__secret", None),
        ]
    }
}

impl History for Past {
    fn recent(&self, query: HistoryQuery) -> BoxFuture<'static, Result<Vec<PastCall>, HistoryError>> {
        let fits = |call: &PastCall| {
            query.after.is_none_or(|after| call.cursor() < after)
                && query.principal.as_ref().is_none_or(|principal| *principal == call.principal)
        };
        let calls = Self::calls().into_iter().filter(fits).take(query.limit).collect();
        Box::pin(async move { Ok(calls) })
    }

    fn find(&self, id: ExecutionId) -> BoxFuture<'static, Result<Option<PastCall>, HistoryError>> {
        Box::pin(async move { Ok(Self::calls().into_iter().find(|call| call.id == id)) })
    }
}

pub(super) struct Fixture {
    pub(super) address: String,
    pub(super) yard: Arc<Yard>,
    pub(super) a: Arc<Stub>,
    b: Arc<Stub>,
    log: tokio::sync::broadcast::Sender<Arc<LogEntry>>,
    pub(super) http: reqwest::Client,
    stop: CancellationToken,
    _serving: AbortOnDropHandle<()>,
}

pub(super) const OWNER: &str = "owner's token";
/// May use only server `a`.
pub(super) const ONLY_A: &str = "a token for a";
/// May observe, but only server `a`.
const WATCHES_A: &str = "an observer's token for a";
/// May observe, but only one tool of server `a`.
const WATCHES_ONE: &str = "an observer's token for one tool";
/// Has neither allow lists nor permissions.
const PLAIN: &str = "a plain token";
/// May observe everything.
pub(super) const WATCHES_ALL: &str = "an observer's token";

fn tokens() -> Vec<BearerToken> {
    let list = |globs: &[&str]| Some(globs.iter().copied().map(Glob::from).collect::<Vec<_>>());
    let holder = |name: &str, held: &[&str]| {
        let held: BTreeSet<String> = held.iter().map(|one| (*one).to_owned()).collect();
        Principal::new(name, Permissions::Only(held))
    };
    let a = || AllowList { sources: list(&["a"]), tools: None };
    let one = AllowList { sources: None, tools: list(&["mcp__a__query"]) };
    vec![
        BearerToken::new(OWNER, Principal::owner()),
        BearerToken::new(PLAIN, holder("plain", &[])),
        BearerToken::new(ONLY_A, holder("only a", &[]).with_allow_list(a())),
        BearerToken::new(WATCHES_A, holder("watches a", &["observe"]).with_allow_list(a())),
        BearerToken::new(WATCHES_ONE, holder("watches one", &["observe"]).with_allow_list(one)),
        BearerToken::new(WATCHES_ALL, holder("watches all", &["observe"])),
    ]
}

impl Fixture {
    pub(super) async fn new(settings: YardSettings) -> Self {
        let (a, b) = (Stub::new("a", &[]), Stub::new("b", &[]));
        let yard = Yard::new(settings);
        for source in [Arc::clone(&a), Arc::clone(&b)] {
            yard.add(source);
        }
        // Another test in this process may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let log = tokio::sync::broadcast::channel(64).0;
        let store =
            BearerTokenStore::new(BearerCredentials { tokens: tokens(), ..BearerCredentials::default() });
        let settings = ServeSettings {
            listen: ([127, 0, 0, 1], 0).into(),
            auth: ServeAuthSettings { auth: Auth::TokenStore(store), hosts: Vec::new(), origins: Vec::new() },
            mcp: McpSettings::default(),
            endpoint: EndpointSettings::default(),
            control: ControlSettings { log: Some(log.clone()) },
            connections: ConnectionLimits::default(),
            builtin_endpoints: Vec::new(),
            drain: Duration::from_secs(1),
        };
        let bound = bind(Arc::clone(&yard), settings).await.unwrap();
        let address = bound.address().to_string();
        let stop = CancellationToken::new();
        let serving = AbortOnDropHandle::new(tokio::spawn(bound.serve(stop.clone())));
        Self { address, yard, a, b, log, http: reqwest::Client::new(), stop, _serving: serving }
    }

    async fn text(&self, token: &str, path: &str) -> (u16, String) {
        let url = format!("http://{}{path}", self.address);
        let reply = within_timeout("an answer", self.http.get(url).bearer_auth(token).send()).await.unwrap();
        (reply.status().as_u16(), reply.text().await.unwrap())
    }

    async fn get(&self, token: &str, path: &str) -> Value {
        serde_json::from_str(&self.text(token, path).await.1).unwrap()
    }

    /// Calls a tool as the owner over REST and returns the execution ID.
    async fn execute(&self, tool: &str) -> String {
        let url = format!("http://{}/mcp/tools/{tool}/execute", self.address);
        let reply = self.http.post(url).bearer_auth(OWNER).json(&json!({"params": {}})).send();
        let reply = within_timeout("an answer", reply).await.unwrap();
        reply.headers()["x-execution-id"].to_str().unwrap().to_owned()
    }

    /// Sends a message of the legacy era to the MCP endpoint and returns the session and the
    /// response.
    pub(super) async fn legacy(
        &self,
        token: &str,
        session: Option<&str>,
        message: Value,
    ) -> (Option<String>, Value) {
        let request = self.http.post(format!("http://{}/mcp", self.address)).bearer_auth(token);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = session.into_iter().fold(request, |request, id| request.header("mcp-session-id", id));
        let reply = within_timeout("an answer", request.json(&message).send()).await.unwrap();
        let session = reply.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        (session, serde_json::from_str(&reply.text().await.unwrap()).unwrap_or_default())
    }

    pub(super) async fn session(&self, token: &str) -> String {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        self.legacy(token, None, hello).await.0.unwrap()
    }

    pub(super) async fn subscribe(&self, token: &str, session: &str, uri: &str) -> Value {
        let message =
            json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}});
        self.legacy(token, Some(session), message).await.1
    }

    /// Opens a stream of the modern era for updates of these URIs and returns it with the
    /// acknowledgment.
    pub(super) async fn listen(&self, token: &str, uris: &[&str]) -> (reqwest::Response, String) {
        self.listen_for(token, json!({"resourceSubscriptions": uris})).await
    }

    pub(super) async fn listen_for(&self, token: &str, filter: Value) -> (reqwest::Response, String) {
        let mut reply = self.request_to_listen(token, filter).await;
        let mut text = String::new();
        while !text.contains("acknowledged") {
            let piece = within_timeout("the acknowledgement", reply.chunk()).await.unwrap();
            text.push_str(&String::from_utf8_lossy(
                &piece.unwrap_or_else(|| panic!("the stream ended: {text}")),
            ));
        }
        (reply, text)
    }

    /// Requests a stream of the modern era and returns the response.
    pub(super) async fn request_to_listen(&self, token: &str, filter: Value) -> reqwest::Response {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"notifications": filter, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
        let request = self.http.post(format!("http://{}/mcp", self.address)).bearer_auth(token);
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "subscriptions/listen");
        within_timeout("a stream", request.json(&message).send()).await.unwrap()
    }
}

impl Fixture {
    /// Reads the rest of a stream.
    async fn rest_of(&self, stream: &mut reqwest::Response) -> String {
        let mut text = String::new();
        while let Some(piece) = within_timeout("the end", stream.chunk()).await.unwrap_or_default() {
            text.push_str(&String::from_utf8_lossy(&piece));
        }
        text
    }
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let name = |one: &Value| one[key].as_str().unwrap().to_owned();
    list.as_array().unwrap_or_else(|| panic!("{list}")).iter().map(name).collect()
}

#[tokio::test]
async fn rest_lists_tools_and_describes_them_only_as_far_as_the_lists_of_a_token_go() {
    let yard = Fixture::new(YardSettings::default()).await;
    for (token, expected) in [
        (ONLY_A, vec!["mcp__a__query", "mcp__a__change"]),
        (WATCHES_ONE, vec!["mcp__a__query"]),
        (WATCHES_ALL, vec!["mcp__a__query", "mcp__a__change", "mcp__b__query", "mcp__b__change"]),
    ] {
        assert_eq!(names(&yard.get(token, "/mcp/tools").await["tools"], "name"), expected, "{token}");
        let described = yard.get(token, "/openapi.json").await;
        let paths = described["paths"].as_object().unwrap().keys();
        let tools: BTreeSet<&str> = paths
            .filter_map(|path| path.strip_prefix("/mcp/tools/mcp__")?.strip_suffix("/execute"))
            .collect();
        let expected: BTreeSet<&str> =
            expected.iter().map(|name| name.strip_prefix("mcp__").unwrap()).collect();
        assert_eq!(tools, expected, "{token}");
    }
    let (_, described) = yard.text(ONLY_A, "/openapi.json").await;
    assert!(!described.contains("mcp__b__"), "{described}");
}

#[tokio::test]
async fn resources_outside_the_allow_lists_cannot_be_subscribed_to() {
    let yard = Fixture::new(YardSettings::default()).await;
    let session = yard.session(ONLY_A).await;
    for uri in ["b://fixed", "b://7"] {
        let answer = yard.subscribe(ONLY_A, &session, uri).await;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
    }
    assert_eq!(yard.subscribe(ONLY_A, &session, "a://7").await["result"], json!({}));
    // A token with a list of tools but no list of servers has no access to resources.
    let session = yard.session(WATCHES_ONE).await;
    let answer = yard.subscribe(WATCHES_ONE, &session, "a://fixed").await;
    assert_eq!(answer["error"]["code"], -32002, "{answer}");

    let (_stream, acknowledged) = yard.listen(ONLY_A, &["b://fixed", "a://fixed", "b://7"]).await;
    assert!(acknowledged.contains(r#""resourceSubscriptions":["a://fixed"]"#), "{acknowledged}");
}

#[tokio::test]
async fn a_server_cannot_announce_updates_of_a_resource_of_another() {
    let yard = Fixture::new(YardSettings::default()).await;
    let (mut stream, _) = yard.listen(ONLY_A, &["a://fixed"]).await;
    yard.b.updates("a://fixed");
    yard.b.updates("b://fixed");
    yard.a.updates("a://fixed");
    // The server's own update comes last. After the yard has stopped, the stream contains all
    // updates.
    yard.stop.cancel();
    let text = yard.rest_of(&mut stream).await;
    assert_eq!(text.matches("notifications/resources/updated").count(), 1, "{text}");
}

#[tokio::test]
async fn observers_read_executions_and_counters_of_what_is_on_their_lists() {
    let yard = Fixture::new(YardSettings::default()).await;
    let of_b = yard.execute("mcp__b__query").await;
    let of_a = yard.execute("mcp__a__change").await;
    yard.execute("mcp__a__query").await;
    yard.execute("mcp__b__guess").await;
    for (token, expected) in [
        (WATCHES_A, vec!["mcp__a__query", "mcp__a__change"]),
        (WATCHES_ONE, vec!["mcp__a__query"]),
        (WATCHES_ALL, vec!["mcp__b__guess", "mcp__a__query", "mcp__a__change", "mcp__b__query"]),
    ] {
        let listed = yard.get(token, "/mcp/executions").await;
        assert_eq!(names(&listed["executions"], "tool"), expected, "{token}");
    }
    for (token, id, status) in [
        (WATCHES_A, &of_a, 200),
        (WATCHES_A, &of_b, 404),
        (WATCHES_ONE, &of_a, 404),
        (WATCHES_ALL, &of_b, 200),
    ] {
        let (actual, text) = yard.text(token, &format!("/mcp/executions/{id}")).await;
        assert_eq!(actual, status, "{token}: {text}");
    }
    for (token, hidden) in
        [(WATCHES_A, vec!["\"b\"", "mcp__b__"]), (WATCHES_ONE, vec!["\"b\"", "mcp__b__", "mcp__a__change"])]
    {
        let (status, text) = yard.text(token, "/metrics").await;
        assert_eq!(status, 200);
        assert!(text.contains("mcp__a__query"), "{text}");
        for name in hidden {
            assert!(!text.contains(name), "{token} sees {name}:\n{text}");
        }
    }
    assert!(yard.text(WATCHES_ALL, "/metrics").await.1.contains("mcp__b__query"));
    assert_eq!(yard.text(ONLY_A, "/metrics").await.0, 403);
}

#[tokio::test]
async fn observers_read_the_history_of_what_is_on_their_lists_page_by_page() {
    let settings = YardSettings { history: Some(Arc::new(Past)), ..YardSettings::default() };
    let yard = Fixture::new(settings).await;
    for (token, expected) in [
        (WATCHES_A, vec!["mcp__a__change", "mcp__a__query"]),
        (WATCHES_ONE, vec!["mcp__a__query"]),
        (ONLY_A, vec![]),
        (
            WATCHES_ALL,
            vec!["mcp__b__change", "mcp__b__query", "mcp__a__change", "mcp__a__query", "mcp__b__secret"],
        ),
    ] {
        let mut seen = Vec::new();
        let mut path = "/mcp/executions?limit=1".to_owned();
        loop {
            let page = yard.get(token, &path).await;
            seen.extend(names(&page["executions"], "tool"));
            let Some(next) = page["nextCursor"].as_str() else { break };
            path = format!("/mcp/executions?limit=1&cursor={next}");
        }
        assert_eq!(seen, expected, "{token}");
        let mut socket = Socket::connect(&yard.address, token).await;
        let response = socket.request("mcp_history", json!({"limit": 5})).await.unwrap();
        assert_eq!(names(&response["calls"], "subject"), expected, "{token}");
    }
    let path = format!("/mcp/executions/exec-{}", ExecutionId::from_bytes([4; 16]));
    assert_eq!(yard.text(WATCHES_A, &path).await.0, 404);
    assert_eq!(yard.text(WATCHES_ALL, &path).await.0, 200);
}

#[tokio::test]
async fn observers_receive_events_only_of_calls_on_their_allow_lists() {
    let yard = Fixture::new(YardSettings::default()).await;
    let mut sockets = Vec::new();
    for token in [WATCHES_A, WATCHES_ONE, WATCHES_ALL] {
        let mut socket = Socket::connect(&yard.address, token).await;
        let events = json!({"events": ["call_started", "call_ended", "resource"]});
        socket.request("subscribe", events).await.unwrap();
        sockets.push(socket);
    }
    yard.b.updates("b://fixed");
    for name in ["mcp__b__query", "mcp__a__change", "mcp__b__guess", "mcp__a__query"] {
        let target = CallTarget::Tool { name: name.to_owned(), arguments: None };
        let _ = yard.yard.call(CallRequest::new(target, Principal::owner())).await;
    }
    let [a, one, all] = sockets.as_mut_slice() else { panic!() };
    for (socket, expected) in [
        (a, vec!["mcp__a__change", "mcp__a__query"]),
        (one, vec!["mcp__a__query"]),
        (all, vec!["b://fixed", "mcp__b__query", "mcp__a__change", "mcp__b__guess", "mcp__a__query"]),
    ] {
        let mut subjects = Vec::new();
        // All three receive the events of the last call.
        loop {
            let event = socket.message().await;
            match event["event"].as_str() {
                Some("resource") => subjects.push(event["uri"].as_str().unwrap().to_owned()),
                Some("call_started") => subjects.push(event["call"]["subject"].as_str().unwrap().to_owned()),
                _ if event["call"]["subject"] == "mcp__a__query" => break,
                _ => {}
            }
        }
        assert_eq!(subjects, expected);
    }
}

#[tokio::test]
async fn observers_with_lists_read_only_log_lines_about_their_own_servers() {
    let yard = Fixture::new(YardSettings::default()).await;
    let line = |source: Option<&str>, message: &str| {
        let (at, level, target) = (SystemTime::now(), "warn", "yard".to_owned());
        let (source, message) = (source.map(ToOwned::to_owned), message.to_owned());
        yard.log.send(Arc::new(LogEntry { at, level, target, source, message })).unwrap();
    };
    let mut sockets = Vec::new();
    for token in [WATCHES_A, WATCHES_ONE, WATCHES_ALL] {
        let mut socket = Socket::connect(&yard.address, token).await;
        socket.request("subscribe", json!({"events": ["log"]})).await.unwrap();
        sockets.push(socket);
    }
    line(None, "of the yard");
    line(Some("b"), "of b");
    line(Some("a"), "of a");
    for (socket, expected) in
        sockets.iter_mut().zip([vec!["of a"], vec!["of a"], vec!["of the yard", "of b", "of a"]])
    {
        for message in expected {
            assert_eq!(socket.event("log").await["message"], message);
        }
    }
    let mut plain = Socket::connect(&yard.address, ONLY_A).await;
    let refused = plain.request("subscribe", json!({"events": ["log"]})).await;
    assert_eq!(refused, Err("PERMISSION_ERROR".to_owned()));
}

#[tokio::test]
async fn a_change_of_a_server_outside_the_lists_is_not_announced() {
    let yard = Fixture::new(YardSettings::default()).await;
    let mut stream = yard.listen_for(ONLY_A, json!({"toolsListChanged": true})).await.0;
    let mut socket = Socket::connect(&yard.address, ONLY_A).await;
    socket.request("subscribe", json!({"events": ["changed", "server"]})).await.unwrap();
    yard.b.withdraw();
    yard.yard.remove(&SourceName::new("b"));
    yard.a.withdraw();
    let changed = socket.message().await;
    assert_eq!((&changed["event"], &changed["resources"]), (&json!("changed"), &json!(true)), "{changed}");
    let after = socket.request("mcp_history", json!({})).await;
    assert!(after.is_ok() && socket.take_unclaimed().is_empty());
    yard.stop.cancel();
    let text = yard.rest_of(&mut stream).await;
    assert_eq!(text.matches("notifications/tools/list_changed").count(), 1, "{text}");
}

#[tokio::test]
async fn servers_that_a_token_may_not_use_are_not_shown_whatever_their_state() {
    let yard = Fixture::new(YardSettings::default()).await;
    for source in
        [Stub::failed("down", &[]), Stub::failed("vault", &["secrets"]), Stub::new("safe", &["secrets"])]
    {
        yard.yard.add(source);
    }
    for (token, expected) in [
        (ONLY_A, vec!["a"]),
        (WATCHES_A, vec!["a"]),
        // The other servers cannot have the tool on the list.
        (WATCHES_ONE, vec!["a"]),
        (PLAIN, vec!["a", "b", "down"]),
        (WATCHES_ALL, vec!["a", "b", "down", "vault", "safe"]),
    ] {
        assert_eq!(names(&yard.get(token, "/mcp/servers").await["servers"], "name"), expected, "{token}");
        let mut socket = Socket::connect(&yard.address, token).await;
        let response = socket.request("mcp_servers", json!({})).await.unwrap();
        assert_eq!(names(&response["servers"], "name"), expected, "{token}");
        let listed = socket.request("mcp_list", json!({})).await.unwrap();
        let named: BTreeSet<&str> =
            listed["resources"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(named, expected.iter().copied().collect(), "{token}");
        for name in ["a", "b", "down", "vault", "safe", "no such"] {
            let tools = socket.request("mcp_tools", json!({"server_name": name})).await;
            let expect = if expected.contains(&name) { None } else { Some("NOT_FOUND".to_owned()) };
            assert_eq!(tools.err(), expect, "{token} {name}");
            let status = yard.text(token, &format!("/servers/{name}/mcp")).await.0;
            // If only a permission is missing, the endpoint exists, but its calls are forbidden.
            let exists = expected.contains(&name) || (token == PLAIN && name != "no such");
            assert_eq!(status == 404, !exists, "{token} {name}: {status}");
        }
    }
    // A call reports the problem of a server only to callers who see the server.
    for (token, message) in [
        (PLAIN, "mcp__vault__open needs the permission `secrets`"),
        (ONLY_A, "unknown tool `mcp__vault__open`"),
        (OWNER, "server `vault` failed: no such host"),
    ] {
        let url = format!("http://{}/mcp/tools/mcp__vault__open/execute", yard.address);
        let reply = yard.http.post(url).bearer_auth(token).json(&json!({"params": {}})).send().await.unwrap();
        let reply: Value = serde_json::from_str(&reply.text().await.unwrap()).unwrap();
        assert_eq!(reply["error"]["message"], message, "{reply}");
    }
}

#[tokio::test]
async fn the_readiness_check_names_only_servers_that_its_caller_sees() {
    let yard = Fixture::new(YardSettings::default()).await;
    let starting = Stub {
        status: SourceStatus::new(SourceState::Starting, false),
        ..Arc::into_inner(Stub::failed("b2", &[])).unwrap()
    };
    yard.yard.add(Arc::new(starting));
    assert_eq!(yard.get(ONLY_A, "/ready").await["starting"], json!([]));
    assert_eq!(yard.get(PLAIN, "/ready").await["starting"], json!(["b2"]));
}
