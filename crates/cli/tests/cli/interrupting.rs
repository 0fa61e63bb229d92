//! Servers that block a command, or die, and Ctrl-C meanwhile: the server is notified, the exit
//! code shows it, and a second Ctrl-C ends the command immediately.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{Principal, Yard};
use toolyard_serve::{
    Auth, ConnectionLimits, ControlSettings, EndpointSettings, McpSettings, ServeAuthSettings, ServeSettings,
    bind,
};
use toolyard_testkit::harness::{Process, Scratch, Signal, within_timeout};
use toolyard_testkit::probe;

use super::{TOOLYARD, processes};

/// A legacy server in a few lines of shell with one tool, `go`, which runs this script when it is
/// called. It records everything that it receives in the file `heard` next to it.
fn server(scratch: &Scratch, name: &str, on_call: &str) -> String {
    let received = scratch.path("heard").display().to_string();
    let text = r#"answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
while read -r line; do
echo "$line" >> "HEARD"
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"server/discover"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
*'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
*'"tools/list"'*) answer '"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}' ;;
*'"tools/call"'*) ON_CALL ;;
esac
done
"#;
    scratch.file(name, &text.replace("HEARD", &received).replace("ON_CALL", on_call))
}

#[tokio::test]
async fn ctrl_c_cancels_the_call_at_a_server_that_was_started() {
    let scratch = Scratch::new();
    let script = server(&scratch, "waits.sh", ":");
    let (mut process, _stdin, _stdout) = Process::start(TOOLYARD, &["call", "go", "--", "sh", &script]);
    let received = || std::fs::read_to_string(scratch.path("heard")).unwrap_or_default();
    let called = async {
        while !received().contains("tools/call") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_timeout("the call", called).await;
    process.signal(Signal::Interrupt);
    assert_eq!(process.exit().await, Some(130));
    assert_eq!(process.stderr(), "error: `mcp__waits__go` was canceled\n");
    let last = received().lines().last().unwrap_or_default().to_owned();
    assert!(last.contains("\"notifications/cancelled\""), "{last}");
}

#[tokio::test]
async fn ctrl_c_cancels_the_call_at_a_server_over_http() {
    for era in ["legacy", "modern"] {
        let scratch = Scratch::new();
        let door = ServeAuthSettings {
            auth: Auth::None(Principal::owner()),
            hosts: Vec::new(),
            origins: Vec::new(),
        };
        let settings = ServeSettings {
            listen: ([127, 0, 0, 1], 0).into(),
            auth: door,
            mcp: McpSettings::default(),
            endpoint: EndpointSettings::default(),
            control: ControlSettings::default(),
            connections: ConnectionLimits::default(),
            builtin_endpoints: Vec::new(),
            drain: Duration::ZERO,
        };
        let bound = bind(Yard::with_sources([probe::source()]), settings).await.unwrap();
        let config = format!("[servers.probe]\nurl = \"http://{}/mcp\"\nera = \"{era}\"\n", bound.address());
        let config = scratch.file("c.toml", &config);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(bound.serve(stop.clone()));
        let traces = scratch.traces("t");
        let arguments = traces.arguments().to_string();
        let call = ["call", "mcp__probe__wait_until_cancelled", "--args", &arguments, "--config", &config];
        let (mut process, _stdin, _stdout) = Process::start(TOOLYARD, &call);
        traces.wait_started().await;
        process.signal(Signal::Interrupt);
        assert_eq!(process.exit().await, Some(130), "{era}: {}", process.stderr());
        traces.wait_cancelled().await;
        stop.cancel();
        within_timeout("the server to end", serving).await.unwrap();
    }
}

#[tokio::test]
async fn ctrl_c_while_a_server_starts_ends_with_130_and_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let script = scratch.file("never-answers.sh", "while read line; do :; done\n");
    let (mut process, _stdin, _stdout) = Process::start(TOOLYARD, &["list", "--", "sh", &script]);
    has_started(&script).await;
    process.signal(Signal::Interrupt);
    assert_eq!(process.exit().await, Some(130), "{}", process.stderr());
    has_ended(&script).await;
}

#[tokio::test]
async fn a_second_ctrl_c_ends_at_once() {
    let scratch = Scratch::new();
    // The server neither answers nor ends on request.
    let script = scratch.file("stubborn.sh", "trap '' TERM\nwhile :; do read line || sleep 60; done\n");
    let (mut process, _stdin, _stdout) = Process::start(TOOLYARD, &["list", "--", "sh", &script]);
    has_started(&script).await;
    process.signal(Signal::Interrupt);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = std::time::Instant::now();
    process.signal(Signal::Interrupt);
    assert_eq!(process.exit().await, Some(130));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    has_ended(&script).await;
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_of_a_call_is_told_with_its_last_words() {
    let scratch = Scratch::new();
    let script = server(&scratch, "dies.sh", "echo out of memory >&2; exit 9");
    let (mut process, _stdin, _stdout) = Process::start(TOOLYARD, &["call", "go", "--", "sh", &script]);
    assert_eq!(process.exit().await, Some(4), "{}", process.stderr());
    insta::assert_snapshot!(process.stderr());
}

/// A server that takes longer to start than the timeout after which the client tries the legacy
/// era, which the server refuses.
#[tokio::test]
async fn a_modern_server_that_is_slow_to_start_is_not_taken_for_a_legacy_one() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "slow.sh",
        r#"sleep 6
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"server/discover"'*) answer '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
*'"initialize"'*) answer '"error":{"code":-32600,"message":"this connection speaks 2026-07-28"}' ;;
*'"tools/list"'*) answer '"result":{"resultType":"complete","tools":[{"name":"go","inputSchema":{"type":"object"}}]}' ;;
esac
done
"#,
    );
    let (mut process, _stdin, mut stdout) = Process::start(TOOLYARD, &["list", "--", "sh", &script]);
    let mut listed = String::new();
    stdout.read_to_string(&mut listed).await.unwrap();
    assert_eq!(process.exit().await, Some(0), "{}", process.stderr());
    assert_eq!(listed, "mcp__slow__go\t\n");
}

/// Waits until the server, its keeper and the command itself are running.
async fn has_started(script: &str) {
    let started = async {
        while processes(script) < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_timeout("the server to start", started).await;
}

async fn has_ended(script: &str) {
    let gone = async {
        while processes(script) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_timeout("the server to end", gone).await;
}
