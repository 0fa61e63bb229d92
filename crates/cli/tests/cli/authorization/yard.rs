//! Two running yards with everything that the matrix needs, and the earlier activity of another
//! caller.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;
use toolyard_testkit::harness::{PendingResponse, Scratch, Server, within_timeout};

use super::super::openapi::{DOCUMENT, echo};
use super::super::{SERVE, TOOLYARD};
use super::callers::{self, Caller, Issuer, OTHER, YardKind, secret};
use super::control::Sockets;
use super::events::Received;
use super::mcp::Sessions;
use super::upstream::Upstream;

/// Everything that runs while the matrix is checked.
pub(super) struct World {
    pub(super) callers: Vec<Caller>,
    mapped: RunningYard,
    unmapped: RunningYard,
    upstreams: HashMap<&'static str, Upstream>,
    scratch: Scratch,
    pub(super) sessions: Sessions,
    pub(super) sockets: Sockets,
    pub(super) heard: OnceCell<Received>,
}

/// One yard.
pub(super) struct RunningYard {
    pub(super) server: Arc<Server>,
    /// Executions of the other caller, by their name in the table: `{done-a}`, `{run-b}`.
    pub(super) executions: HashMap<String, String>,
    /// The request state of a call of the other caller that waits for an answer.
    pub(super) parked: OnceCell<String>,
    /// These calls are canceled when the connection ends.
    running: Vec<PendingResponse>,
}

/// The servers: `a` and `b` are open except for the tool `restricted`, everything of `l` requires
/// `admin`, `o` is an OpenAPI document, `e` constantly writes to standard error, `x` and `y` have
/// failed, and `y` also requires `admin`.
fn configuration(
    upstreams: &HashMap<&'static str, Upstream>,
    api: &str,
    demo: &str,
    yard: YardKind,
) -> String {
    let url = |name: &str| &upstreams[name].url;
    let claims = match yard {
        YardKind::Mapped => "[jwt.claims.scope]\n\"yard:observe\" = [\"observe\"]\n",
        YardKind::Unmapped => "",
    };
    let talks = format!(
        "(while kill -0 $$; do echo words >&2; sleep 0.2; done) & exec '{TOOLYARD}' stdio --config '{demo}'"
    );
    let dies = "command = \"sh\"\nargs = [\"-c\", \"echo it is broken >&2; exit 3\"]\n";
    format!(
        "origins = [\"https://page.example\"]\n\
         [audit]\nfile = \"audit-{yard:?}.jsonl\"\n[history]\nfile = \"history-{yard:?}.db\"\n\
         [servers.a]\nurl = {:?}\npermissions = {{restricted = [\"admin\"]}}\n\
         [servers.b]\nurl = {:?}\n\
         [servers.l]\nurl = {:?}\npermissions = [\"admin\"]\n\
         [servers.o]\nopenapi = \"pets.yaml\"\nbase_url = {api:?}\n\
         [servers.e]\ncommand = \"sh\"\nargs = [\"-c\", {talks:?}]\n\
         [servers.x]\n{dies}\
         [servers.y]\n{dies}permissions = [\"admin\"]\n\
         [jwt]\nissuer = \"https://id.example\"\naudience = [\"yard\"]\njwks_file = \"keys.json\"\n{claims}\
         {}",
        url("a"),
        url("b"),
        url("l"),
        callers::configured(),
    )
}

impl World {
    pub(super) async fn start() -> Self {
        let scratch = Scratch::new();
        let issuer = Issuer::new();
        scratch.file("keys.json", &issuer.keys());
        scratch.file("pets.yaml", DOCUMENT);
        let demo = scratch.file("demo.toml", "demo = true\n");
        let mut upstreams = HashMap::new();
        for name in ["a", "b", "l", "stranger"] {
            upstreams.insert(name, Upstream::start(name).await);
        }
        let api = echo();
        let yard = async |kind| {
            let name = format!("{kind:?}.toml");
            RunningYard::start(&scratch.file(&name, &configuration(&upstreams, &api, &demo, kind))).await
        };
        let (mapped, unmapped) = tokio::join!(yard(YardKind::Mapped), yard(YardKind::Unmapped));
        let callers = callers::all(&issuer);
        let (sessions, sockets, heard) = (Sessions::default(), Sockets::default(), OnceCell::new());
        Self { callers, mapped, unmapped, upstreams, scratch, sessions, sockets, heard }
    }

    pub(super) fn yard(&self, kind: YardKind) -> &RunningYard {
        match kind {
            YardKind::Mapped => &self.mapped,
            YardKind::Unmapped => &self.unmapped,
        }
    }

    /// Returns an operation with its placeholders replaced.
    pub(super) fn fill(&self, operation: &str, yard: YardKind) -> String {
        let mut filled = operation.to_owned();
        for (name, id) in &self.yard(yard).executions {
            filled = filled.replace(&format!("{{{name}}}"), id);
        }
        for (name, upstream) in &self.upstreams {
            filled = filled.replace(&format!("{{address of {name}}}"), &upstream.url);
        }
        let demo = self.scratch.path("demo.toml");
        filled.replace("{command}", &format!("'{TOOLYARD}' stdio --config '{}'", demo.display()))
    }
}

impl RunningYard {
    async fn start(config: &str) -> Self {
        let server = Server::start(TOOLYARD, &[&SERVE[..], &["--config", config]].concat()).await;
        let settled = async {
            while get(&server, "/ready").await["status"] != "ready" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within_timeout("every server to start or to fail", settled).await;
        let mut yard =
            Self { server, executions: HashMap::new(), parked: OnceCell::new(), running: Vec::new() };
        for name in ["a", "b", "l"] {
            let id = yard.execute(&format!("mcp__{name}__echo"), json!({})).await;
            yard.executions.insert(format!("done-{name}"), id);
            yard.wait(name).await;
        }
        yard
    }

    /// Executes a tool as the other caller. Returns the id of the execution.
    pub(super) async fn execute(&self, tool: &str, params: Value) -> String {
        let token = format!("Bearer {}", secret(OTHER));
        let headers = [("authorization", token.as_str())];
        let path = format!("/mcp/tools/{tool}/execute");
        let answer = self.server.post_with(&path, &headers, &json!({"params": params})).await;
        assert_eq!(answer.status, 200, "{tool}: {}", answer.text);
        answer.header("x-execution-id").unwrap().to_owned()
    }

    /// Starts an execution of the other caller that does not end.
    async fn wait(&mut self, name: &str) {
        let token = format!("Bearer {}", secret(OTHER));
        let headers = [
            ("authorization", token.as_str()),
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
        ];
        let path = format!("/mcp/tools/mcp__{name}__wait/execute");
        let running = self.server.request("POST", &path, &headers, br#"{"params": {}}"#).await;
        let id = running.header("x-execution-id").unwrap().to_owned();
        self.executions.insert(format!("run-{name}"), id);
        self.running.push(running);
    }
}

/// Reads a path as the other caller.
pub(super) async fn get(server: &Arc<Server>, path: &str) -> Value {
    let token = format!("Bearer {}", secret(OTHER));
    server.request("GET", path, &[("authorization", &token)], b"").await.read_body().await.json()
}
