//! The attackers: each has a fixed rate and a concurrency limit, and gives up by itself.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use toolyard_testkit::harness::Server;

use super::raw;

/// How long an attacker waits for an answer that may not come.
const PATIENCE: Duration = Duration::from_secs(10);
const IDLE_CONNECTIONS: usize = 2_060;
/// The number of addresses that the idle connections come from.
const IDLE_ADDRESSES: u64 = 16;
const WEBSOCKETS: usize = 64;
const FRAME: u64 = 10_000_000;

pub(crate) struct Tokens {
    pub(crate) good: String,
    pub(crate) hostile: String,
    /// May start programs, so that it can point the tester at any server.
    pub(crate) tester: String,
}

/// The counters of each attack.
pub(crate) struct Attackers(Vec<(&'static str, Arc<Counts>)>);

#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    /// How many the gateway has answered, including refusals.
    answered: AtomicU64,
}

/// One kind of attack: its rate per second and its concurrency.
#[derive(Clone, Copy)]
struct Pace {
    name: &'static str,
    per_second: u64,
    at_once: usize,
}

const fn pace(name: &'static str, per_second: u64, at_once: usize) -> Pace {
    Pace { name, per_second, at_once }
}

#[derive(Clone)]
struct Target {
    /// Each kind of attack has its own address, so that none blocks another.
    from: Ipv4Addr,
    address: String,
    hostile: String,
    tester: String,
}

impl Attackers {
    /// Starts all attacks until the given time.
    pub(crate) fn start(server: &Server, tokens: &Tokens, until: Instant, tasks: &mut JoinSet<()>) -> Self {
        let mut all = Self(Vec::new());
        let mut attack = |pace: Pace, act: fn(Arc<Target>, u64) -> Act| {
            let counts = Arc::new(Counts::default());
            all.0.push((pace.name, Arc::clone(&counts)));
            let target = Arc::new(Target {
                from: Ipv4Addr::new(127, 0, 1, all.0.len() as u8),
                address: server.address.clone(),
                hostile: tokens.hostile.clone(),
                tester: tokens.tester.clone(),
            });
            tasks.spawn(repeat(pace, target, until, counts, act));
        };
        attack(pace("results with patterns", 2, 8), |target, _| Box::pin(patterns(target)));
        attack(pace("endless lists", 1, 2), |target, _| Box::pin(endless_list(target)));
        attack(pace("subscriptions", 1, 1), |target, n| Box::pin(subscriptions(target, n)));
        attack(pace("WebSockets", 32, WEBSOCKETS), |target, _| Box::pin(web_socket(target)));
        attack(pace("idle connections", 1_000, IDLE_CONNECTIONS), |target, n| Box::pin(idle(target, n)));
        attack(pace("batches of lists", 4, 16), |target, _| Box::pin(batch(target)));
        attack(pace("sessions", 20, 8), |target, _| Box::pin(session(target)));
        attack(pace("programs", 2, 8), |target, _| Box::pin(program(target)));
        attack(pace("parked calls", 10, 16), |target, n| Box::pin(parked(target, n)));
        all
    }

    pub(crate) fn summary(&self) -> String {
        let counted = |(name, counts): &(&str, Arc<Counts>)| {
            let (begun, answered) = counts.read();
            format!("{name} {answered} of {begun}")
        };
        self.0.iter().map(counted).collect::<Vec<_>>().join(", ")
    }

    /// Checks that every attack began. A short attack may end before a slow one is answered.
    pub(crate) fn assert_all_took_part(&self, lasted: Duration) {
        for (name, counts) in &self.0 {
            let (begun, answered) = counts.read();
            assert!(begun > 0, "no attack by {name} began");
            assert!(answered > 0 || lasted < Duration::from_secs(30), "no attack by {name} was answered");
        }
    }
}

impl Counts {
    fn read(&self) -> (u64, u64) {
        (self.begun.load(Ordering::Relaxed), self.answered.load(Ordering::Relaxed))
    }
}

type Act = std::pin::Pin<Box<dyn Future<Output = Option<()>> + Send>>;

/// Acts at a fixed rate. Slow actions overlap with the next ones, up to the concurrency limit.
async fn repeat(
    pace: Pace,
    target: Arc<Target>,
    until: Instant,
    counts: Arc<Counts>,
    act: fn(Arc<Target>, u64) -> Act,
) {
    let permits = Arc::new(Semaphore::new(pace.at_once));
    let mut tick = interval(Duration::from_micros(1_000_000 / pace.per_second));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut acting = JoinSet::new();
    let mut number = 0;
    while Instant::now() < until {
        tick.tick().await;
        while acting.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        number += 1;
        let (acted, counts) = (act(Arc::clone(&target), number), Arc::clone(&counts));
        counts.begun.fetch_add(1, Ordering::Relaxed);
        acting.spawn(async move {
            let _place = permit;
            if acted.await.is_some() {
                counts.answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

async fn exchange(target: &Target, request: &[u8], most: usize) -> Option<Vec<u8>> {
    raw::exchange(target.from, &target.address, request, most, PATIENCE).await
}

async fn connect(target: &Target) -> Option<TcpStream> {
    timeout(PATIENCE, raw::connect(target.from, &target.address)).await.ok()?
}

fn post(target: &Target, token: &str, path: &str, headers: &str, body: &Value) -> Vec<u8> {
    raw::post(&target.address, token, path, headers, body)
}

async fn execute(target: &Target, token: &str, tool: &str, params: Value) -> Option<()> {
    let path = format!("/mcp/tools/{tool}/execute");
    let request = post(target, token, &path, "", &json!({"params": params}));
    exchange(target, &request, usize::MAX).await.map(|_| ())
}

async fn patterns(target: Arc<Target>) -> Option<()> {
    execute(&target, &target.hostile, "mcp__patterns__match", json!({})).await
}

/// Points the tester at a server whose list never ends.
async fn endless_list(target: Arc<Target>) -> Option<()> {
    let session = open_session(&target, &target.tester, "/tester/mcp", "2025-11-25").await?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/overload/hostile.py");
    for (tool, arguments) in
        [("connect_to_server", json!({"url": format!("python3 {script} pages")})), ("list_tools", json!({}))]
    {
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        let request = post(&target, &target.tester, "/tester/mcp", &headers, &call);
        exchange(&target, &request, 1_000_000).await?;
    }
    Some(())
}

/// Subscribes to a hundred resources and unsubscribes again.
async fn subscriptions(target: Arc<Target>, number: u64) -> Option<()> {
    let session = open_session(&target, &target.hostile, "/mcp", "2025-11-25").await?;
    let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    for one in 0..100 {
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let params = json!({"uri": format!("hostile://{number}/{one}")});
            let message = json!({"jsonrpc": "2.0", "id": one, "method": method, "params": params});
            let request = post(&target, &target.hostile, "/mcp", &headers, &message);
            exchange(&target, &request, 100_000).await?;
        }
    }
    Some(())
}

/// Starts a large frame before authenticating, and sends as much of it as the server accepts.
async fn web_socket(target: Arc<Target>) -> Option<()> {
    let mut stream = connect(&target).await?;
    let upgrade = format!(
        "GET /control HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
         Sec-WebSocket-Protocol: toolyard.control.v1\r\n\r\n",
        target.address
    );
    stream.write_all(upgrade.as_bytes()).await.ok()?;
    let mut head = [0; 1024];
    timeout(PATIENCE, stream.read(&mut head)).await.ok()?.ok()?;
    let mut frame = vec![0x81, 0xff];
    frame.extend_from_slice(&FRAME.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    stream.write_all(&frame).await.ok()?;
    let chunk = vec![b'x'; 65_536];
    // All but the last byte, and then nothing more.
    let sending = async {
        for _ in 0..(FRAME / 65_536) {
            if stream.write_all(&chunk).await.is_err() {
                return;
            }
        }
        let _ = stream.read(&mut head).await;
    };
    let _ = timeout(PATIENCE, sending).await;
    Some(())
}

/// Opens a connection and sends nothing.
async fn idle(target: Arc<Target>, number: u64) -> Option<()> {
    let from = Ipv4Addr::new(127, 0, 2, (1 + number % IDLE_ADDRESSES) as u8);
    let mut stream = timeout(PATIENCE, raw::connect(from, &target.address)).await.ok()??;
    let _ = stream.read(&mut [0; 16]).await;
    Some(())
}

/// Requests a list of several megabytes fifty times in one batch, and reads almost nothing of the
/// answer.
async fn batch(target: Arc<Target>) -> Option<()> {
    let session = open_session(&target, &target.hostile, "/mcp", "2025-03-26").await?;
    let one = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let batch: Vec<Value> = (0..50).map(one).collect();
    let headers = format!("Mcp-Session-Id: {session}\r\n");
    let request = post(&target, &target.hostile, "/mcp", &headers, &json!(batch));
    let mut stream = connect(&target).await?;
    stream.write_all(&request).await.ok()?;
    timeout(PATIENCE, stream.read(&mut [0; 64])).await.ok()?.ok()?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    Some(())
}

/// Opens a session and never returns.
async fn session(target: Arc<Target>) -> Option<()> {
    open_session(&target, &target.hostile, "/mcp", "2025-11-25").await.map(|_| ())
}

/// The id of the session.
async fn open_session(target: &Target, token: &str, path: &str, version: &str) -> Option<String> {
    let params = json!({"protocolVersion": version, "capabilities": {},
        "clientInfo": {"name": "hostile", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let answer = exchange(target, &post(target, token, path, "", &message), 100_000).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"))?;
    line.split_once(':').map(|(_, id)| id.trim().to_owned())
}

async fn program(target: Arc<Target>) -> Option<()> {
    execute(&target, &target.hostile, "execute_program", json!({"code": "import time\ntime.sleep(5)"})).await
}

/// Calls a tool that asks, and never answers.
async fn parked(target: Arc<Target>, number: u64) -> Option<()> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "hostile", "version": "1"}});
    let params = json!({"name": "ask_name", "arguments": {}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ask_name\r\n";
    let request = post(&target, &target.hostile, "/mcp", headers, &message);
    exchange(&target, &request, 100_000).await.map(|_| ())
}
