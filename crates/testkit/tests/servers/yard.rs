//! Misbehaving and correct servers in one yard: a failing server does not affect others, and its
//! failure is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallTarget, ClientCapabilities, ErrorKind, Principal, Source, SourceCommand, SourceName, SourceState,
    SourceStatus, TranscriptDirection, Yard, YardLimits, YardSettings,
};
use toolyard_sdk::testing::{TestCaller, TestReport};
use toolyard_testkit::harness::within_timeout;
use toolyard_upstream::{ServerSettings, SessionSharing, TransportSettings, Upstream, UpstreamContext};

use super::ODD;
use super::tree::{command, keeper, mark, marked, until_gone};

const SOUND: [&str; 2] = ["legacy-only", "modern-only"];

struct Servers {
    yard: Arc<Yard>,
    running: Vec<Arc<Upstream>>,
}

impl Servers {
    fn new() -> Self {
        // No rate limit: the test measures how often servers can die.
        let limits = YardLimits { rate: None, ..YardLimits::default() };
        Self { yard: Yard::new(YardSettings { limits, ..YardSettings::default() }), running: Vec::new() }
    }

    /// Starts a misbehaving server over stdio under a name, with a mark to recognize its process
    /// by.
    fn add(&mut self, name: &str, kind: &str, mark: &str) {
        self.add_with(name, kind, mark, SessionSharing::Auto);
    }

    fn add_with(&mut self, name: &str, kind: &str, mark: &str, sessions: SessionSharing) {
        // The shell keeps the mark in its arguments while the server runs.
        let transport = command("sh", &["-c", r#""$1" "$2" stdio"#, "sh", ODD, kind, mark]);
        let settings = ServerSettings {
            call_timeout: Duration::from_secs(20),
            sessions,
            ..ServerSettings::new(SourceName::new(name), TransportSettings::Command(transport))
        };
        let me = to_raw(&json!({"name": "test", "version": "1"}));
        let upstream = Upstream::start(settings, UpstreamContext::new(keeper(), me).unwrap());
        self.yard.add(Arc::clone(&upstream) as _);
        self.running.push(upstream);
    }

    /// Calls as a client that cannot be asked anything, over the shared connection.
    async fn call(&self, tool: &str, arguments: Value) -> TestReport {
        self.call_as(TestCaller::new().capabilities(ClientCapabilities::default()), tool, arguments).await
    }

    async fn call_as(&self, caller: TestCaller, tool: &str, arguments: Value) -> TestReport {
        let what = CallTarget::Tool { name: tool.to_owned(), arguments: Some(to_raw(&arguments)) };
        caller.request(&self.yard, what).await
    }

    fn status(&self, name: &str) -> SourceStatus {
        let all = self.yard.statuses();
        all.into_iter().find(|(source, _)| source.as_str() == name).unwrap().1
    }

    async fn until(&self, name: &str, state: SourceState) {
        let reached = async {
            while self.status(name).state != state {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), reached).await;
        assert!(waited.is_ok(), "{name} does not become {state:?}: {:?}", self.status(name));
    }

    async fn stop(self) {
        for upstream in &self.running {
            upstream.stop().await;
        }
    }
}

fn names(yard: &Yard) -> Vec<String> {
    yard.catalog().tools().iter().map(|tool| tool.full_name.to_string()).collect()
}

#[tokio::test]
async fn six_odd_servers_hurt_none_of_six_sound_ones() {
    let mark = mark();
    let mut servers = Servers::new();
    for at in 0..6 {
        servers.add(&format!("sound{at}"), SOUND[at % 2], &mark);
    }
    for kind in ["dies-at-start", "mute", "never-answers", "floods", "exits-mid-call", "noisy"] {
        servers.add(kind, kind, &mark);
    }
    // One of them never settles. Waiting for the first list is bounded.
    servers.yard.wait_for_startup(Duration::from_secs(3)).await;
    let listed = names(&servers.yard);
    for at in 0..6 {
        assert!(listed.contains(&format!("mcp__sound{at}__echo")), "{listed:?}");
    }
    assert!(!servers.yard.is_startup_complete());

    // Hung calls use up only the permits of their own server.
    let hung: Vec<_> = (0..12)
        .map(|_| {
            let yard = Arc::clone(&servers.yard);
            tokio::spawn(async move {
                let what = CallTarget::Tool { name: "mcp__never-answers__echo".to_owned(), arguments: None };
                TestCaller::new().request(&yard, what).await
            })
        })
        .collect();
    let lost = servers.call("mcp__exits-mid-call__exit", json!({})).await;
    assert_eq!(lost.error_kind(), Some(ErrorKind::ConnectionLost), "{:?}", lost.outcome);
    for at in 0..6 {
        let report = servers.call(&format!("mcp__sound{at}__echo"), json!({"text": "hi"})).await;
        assert!(report.outcome.as_ref().is_ok_and(|outcome| !outcome.failed), "{:?}", report.outcome);
    }
    hung.iter().for_each(tokio::task::JoinHandle::abort);

    // Every failure is reported.
    let status = servers.status("dies-at-start");
    assert_eq!(status.state, SourceState::Retrying);
    assert!(status.reason.as_deref().unwrap().contains("exited with code 3"), "{status:?}");
    assert!(status.stderr.iter().any(|line| line.contains("cannot open the database")), "{status:?}");
    assert_eq!(servers.status("mute").state, SourceState::Starting);
    servers.until("exits-mid-call", SourceState::Ready).await;
    servers.stop().await;
    until_gone(&mark).await;
}

#[tokio::test]
async fn a_call_is_one_request_to_the_server() {
    for kind in SOUND {
        let mark = mark();
        let mut servers = Servers::new();
        servers.add("server", kind, &mark);
        servers.until("server", SourceState::Ready).await;
        let count = async || {
            let report = servers.call("requests", json!({})).await;
            report.text().parse::<u64>().unwrap()
        };
        let before = count().await;
        for _ in 0..50 {
            servers.call("echo", json!({"text": "hi"})).await;
        }
        assert_eq!(count().await - before, 51, "{kind}");
        servers.stop().await;
    }
}

#[tokio::test]
async fn a_private_session_that_dies_is_replaced() {
    let mark = mark();
    let mut servers = Servers::new();
    servers.add_with("server", "legacy-only", &mark, SessionSharing::PerClient);
    servers.until("server", SourceState::Ready).await;
    let shells = || marked(&mark).into_iter().filter(|pid| is_shell(*pid)).collect::<Vec<_>>();
    let shared = shells();
    assert_eq!(shared.len(), 1);
    let call = async || servers.call_as(TestCaller::new(), "echo", json!({"text": "hi"})).await;
    for _ in 0..3 {
        assert!(call().await.outcome.is_ok());
    }
    // Sequential calls share the private session.
    let private: Vec<u32> = shells().into_iter().filter(|pid| !shared.contains(pid)).collect();
    assert_eq!(private.len(), 1);
    // When it dies, the call in flight fails, and the next one gets a new session.
    kill(private[0]);
    within_timeout("another process", async {
        while call().await.outcome.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(servers.status("server").state, SourceState::Ready);
    servers.stop().await;
    until_gone(&mark).await;
}

#[tokio::test]
async fn the_transcript_starts_when_it_is_first_read() {
    for kind in SOUND {
        let mark = mark();
        let mut servers = Servers::new();
        servers.add("server", kind, &mark);
        servers.until("server", SourceState::Ready).await;
        let upstream = &servers.running[0];
        assert_eq!(upstream.transcript(None), []);
        servers.call("echo", json!({"text": "on the tape"})).await;
        // Messages about subscriptions may or may not be recorded.
        let about_the_call = |text: &String| !text.contains("subscriptions/");
        let messages = upstream.transcript(None).into_iter().map(|taped| (taped.direction, taped.text));
        let messages: Vec<_> = messages.filter(|(_, text)| about_the_call(text)).collect();
        let [(TranscriptDirection::ToSource, to), (TranscriptDirection::FromSource, from)] =
            messages.as_slice()
        else {
            panic!("{messages:?}");
        };
        assert!(to.contains("tools/call") && to.contains("on the tape"), "{to}");
        assert!(from.contains("result") && from.contains("on the tape"), "{from}");
        servers.stop().await;
    }
}

#[tokio::test]
async fn a_server_is_disabled_enabled_and_reconnected_from_a_front() {
    let mark = mark();
    let mut servers = Servers::new();
    servers.add("server", "modern-only", &mark);
    servers.until("server", SourceState::Ready).await;
    let owner = Principal::owner();
    let status = servers.status("server");
    assert_eq!(
        (status.transport, status.era, status.authorization.label()),
        (Some("stdio"), Some("modern"), None)
    );

    servers.yard.manage(&owner, "server", SourceCommand::Disable).unwrap();
    servers.until("server", SourceState::Disabled).await;
    assert_eq!(names(&servers.yard), Vec::<String>::new());
    until_gone(&mark).await;
    // Disabling is idempotent.
    servers.yard.manage(&owner, "server", SourceCommand::Disable).unwrap();

    servers.yard.manage(&owner, "server", SourceCommand::Enable).unwrap();
    servers.until("server", SourceState::Ready).await;
    assert!(names(&servers.yard).contains(&"mcp__server__echo".to_owned()));
    let before = marked(&mark);
    // It is already connected: enabling changes nothing, reconnecting restarts it.
    servers.yard.manage(&owner, "server", SourceCommand::Enable).unwrap();
    assert_eq!(servers.call("echo", json!({"text": "still there"})).await.error_kind(), None);
    assert_eq!(marked(&mark), before);
    servers.yard.manage(&owner, "server", SourceCommand::Reconnect).unwrap();
    within_timeout("another process", async {
        while marked(&mark).iter().all(|pid| before.contains(pid)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    servers.until("server", SourceState::Ready).await;
    servers.stop().await;
    until_gone(&mark).await;
}

fn is_shell(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with(b"sh\0")
}

fn kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

/// Kills the server repeatedly under a constant load of calls. The long form is `./check soak`.
#[tokio::test]
async fn a_server_that_is_killed_again_and_again_comes_back_and_no_call_hangs() {
    let cycles = std::env::var("TOOLYARD_KILL_CYCLES").map_or(30, |cycles| cycles.parse().unwrap());
    let mark = mark();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    let mut servers = Servers::new();
    servers.add("server", "legacy-only", &mark);
    servers.until("server", SourceState::Ready).await;
    let (stop, answered, refused) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let worker = async |name: usize| {
        for at in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let text = format!("{name}-{at}");
            let report = within_timeout("a call", servers.call("echo", json!({"text": text}))).await;
            match report.outcome {
                Ok(outcome) => {
                    assert!(outcome.body.get().contains(&text), "a wrong answer: {}", outcome.body);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    let kind = error.kind();
                    assert!(matches!(kind, ErrorKind::ConnectionLost | ErrorKind::CannotConnect), "{error}");
                    refused.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    };
    let killer = async {
        for _ in 0..cycles {
            // The keeper carries the mark too, and is left alone.
            kill(marked(&mark).into_iter().find(|pid| is_shell(*pid)).unwrap());
            servers.until("server", SourceState::Retrying).await;
            servers.until("server", SourceState::Ready).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(killer, worker(0), worker(1), worker(2), worker(3));
    let (answered, refused) = (answered.into_inner(), refused.into_inner());
    println!("{cycles} kills: {answered} calls answered, {refused} refused, none wrong, none hung");
    assert!(answered > 100 && refused > 0, "{answered} answered, {refused} refused");
    servers.stop().await;
    until_gone(&mark).await;
    // Other tests in this process open and close descriptors at the same time.
    assert!(descriptors() < before + 100, "{} descriptors, {before} before", descriptors());
}
