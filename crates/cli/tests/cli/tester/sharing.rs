//! Who owns a connection, and what happens when several requests arrive at the same time.

use serde_json::json;
use toolyard_testkit::harness::{Client, Scratch, Server, Version, within_timeout};

use super::{QUICK, SERVE, TOOLYARD, Tester, demo};
use crate::cli::{access, processes};

async fn serve(scratch: &Scratch, config: &str) -> std::sync::Arc<Server> {
    let config = scratch.file("toolyard.toml", config);
    Server::start(TOOLYARD, &[&SERVE[..], &["--config", &config]].concat()).await
}

#[tokio::test]
async fn over_http_every_session_has_its_own_connection_and_a_principal_without_sessions_one() {
    let scratch = Scratch::new();
    let server = serve(&scratch, QUICK).await;
    let demo = demo(&scratch);
    let mut ada = Tester::join(&server, Version::V2025_11_25).await;
    let mut bob = Tester::join(&server, Version::V2025_11_25).await;
    ada.connect(&demo).await;
    bob.fails("not_connected", "list_tools", json!({})).await;
    bob.connect(&demo).await;
    ada.uses("disconnect", json!({})).await;
    bob.calls("add", json!({"a": 1, "b": 2})).await;
    ada.fails("not_connected", "list_tools", json!({})).await;
    // The modern era has no sessions, so all clients with this token share one connection.
    let mut cyd = Tester::join(&server, Version::V2026_07_28).await;
    let mut dan = Tester::join(&server, Version::V2026_07_28).await;
    cyd.fails("not_connected", "list_tools", json!({})).await;
    cyd.connect(&demo).await;
    dan.calls("add", json!({"a": 1, "b": 2})).await;
}

#[tokio::test]
async fn over_http_a_command_line_needs_the_permission_spawn_and_a_configured_server_its_own() {
    let scratch = Scratch::new();
    let file = scratch.file("demo.toml", "demo = true\n");
    let known = |name: &str, more: &str| {
        format!(
            "[servers.{name}]\ncommand = \"{TOOLYARD}\"\nargs = [\"stdio\", \"--config\", \"{file}\"]\n{more}"
        )
    };
    let config = format!(
        "permissions = [\"read\"]\n{QUICK}{}{}{}",
        known("open", "permissions = [\"read\"]\n"),
        known("closed", "permissions = { \"add*\" = [\"write\"] }\n"),
        known("partial", "disabled_tools = [\"fail\"]\n")
    );
    let server = serve(&scratch, &config).await;
    let mut tester = Tester::join(&server, Version::V2025_11_25).await;
    for (url, missing) in [(demo(&scratch).as_str(), "spawn"), ("closed", "write"), ("partial", "manage")] {
        let error = tester.fails("execution_error", "connect_to_server", json!({"url": url})).await;
        assert!(
            error["message"].as_str().unwrap().ends_with(&format!("needs the permission `{missing}`")),
            "{error:#}"
        );
    }
    tester.connect("open").await;
    tester.calls("add", json!({"a": 1, "b": 2})).await;
}

#[tokio::test]
async fn connecting_to_the_yard_itself_gives_a_token_nothing_more() {
    let scratch = Scratch::new();
    let (low, lines) = access::make(&["--name", "low"]).await;
    let (guest, more) =
        access::make(&["--name", "guest", "--permission", "connect", "--permission", "connect-inside"]).await;
    let server = access::serve(&scratch, &format!("demo = true\n{QUICK}{lines}\n{more}\n")).await;
    let join = async |token: String| {
        let client =
            Client::join_as(&server.with_path("/tester/mcp"), Version::V2025_11_25, Some(token)).await;
        Tester::of(client)
    };
    let (mut low, mut guest) = (join(low).await, join(guest).await);
    for path in ["mcp", "tester/mcp", "programs/mcp", "control", "health", ""] {
        let url = format!("http://{}/{path}", server.address);
        let error = guest.fails("connection_failed", "connect_to_server", json!({"url": url})).await;
        assert_eq!(error["message"], format!("cannot connect to {url}"));
        let error = low.fails("execution_error", "connect_to_server", json!({"url": url})).await;
        assert_eq!(error["message"], "connecting to an address needs the permission `connect`");
    }
}

#[tokio::test]
async fn of_two_connects_at_once_one_is_refused() {
    let mut tester = Tester::start().await;
    let mut first = tester.client.begin_call("connect_to_server", json!({"url": "sleep 60"})).await;
    let _second = tester.client.begin_call("connect_to_server", json!({"url": "sleep 60"})).await;
    // The second request is refused immediately, and the first ends at its time limit.
    let mut messages = Vec::new();
    for _ in 0..2 {
        let answer = first.next().await.unwrap();
        let answer = tester.checked("connect_to_server", answer.result());
        messages.push(answer["error"]["message"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        messages,
        ["already connecting to sleep 60", "cannot connect to sleep 60: no response within 2 s"]
    );
}

#[tokio::test]
async fn disconnecting_ends_what_is_under_way() {
    let scratch = Scratch::new();
    let server = serve(&scratch, QUICK).await;
    let mut tester = Tester::join(&server, Version::V2026_07_28).await;
    tester.connect(&demo(&scratch)).await;
    let call = json!({"name": "count_down", "arguments": {"from": 20, "pause_ms": 1000}});
    let running = tester.client.begin_call("call_tool", call).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let left = tester.uses("disconnect", json!({})).await;
    assert_eq!(left["success"], true, "{left:#}");
    let ended = within_timeout("the end of the call", running.finish()).await.answer;
    let ended = tester.checked("call_tool", ended.result());
    assert_eq!(ended["error"]["type"], "not_connected", "{ended:#}");
}

#[tokio::test]
async fn progress_of_the_server_reaches_the_tester_client() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    tester.connect(&demo(&scratch)).await;
    let call = json!({"name": "count_down", "arguments": {"from": 3}});
    let watched = tester.client.begin_watched_call("call_tool", call, "mine").await;
    let exchange = watched.finish().await;
    let progress = exchange.notifications("notifications/progress");
    assert!(progress.len() >= 3, "{progress:?}");
    assert!(progress.iter().all(|params| params["progressToken"] == "mine"), "{progress:?}");
}

#[tokio::test]
async fn questions_of_the_server_reach_the_tester_client() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    tester.connect(&demo(&scratch)).await;
    let mut asking =
        tester.client.begin_call("call_tool", json!({"name": "ask_name", "arguments": {}})).await;
    let question = asking.next().await.unwrap();
    assert_eq!(question.method(), Some("elicitation/create"));
    tester.client.reply(question.id(), json!({"action": "accept", "content": {"name": "Ada"}})).await;
    let answer = asking.finish().await.answer;
    let answer = tester.checked("call_tool", answer.result());
    assert_eq!(answer["tool_call"]["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn ending_a_session_ends_its_connection() {
    let scratch = Scratch::new();
    let server = serve(&scratch, QUICK).await;
    let mut tester = Tester::join(&server, Version::V2025_11_25).await;
    tester.connect(&demo(&scratch)).await;
    let file = scratch.path("demo.toml").display().to_string();
    assert_eq!(processes(&file), 2);
    let headers = tester.client.own_headers("application/json");
    assert_eq!(tester.client.send("DELETE", &headers, Vec::new()).await.status, 204);
    until_gone(&file).await;
}

#[tokio::test]
async fn ending_the_tester_ends_what_it_started() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    let file = scratch.path("demo.toml").display().to_string();
    tester.connect(&demo(&scratch)).await;
    assert_eq!(processes(&file), 2);
    let Tester { client, .. } = tester;
    close(client).await;
    until_gone(&file).await;
}

async fn until_gone(file: &str) {
    let gone = async {
        while processes(file) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    within_timeout("the server to end", gone).await;
}

async fn close(client: Client) {
    client.line().close_stdin().await;
}
