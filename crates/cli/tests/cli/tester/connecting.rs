//! What the tester can connect to, and the errors where it cannot.

use serde_json::{Value, json};
use toolyard_testkit::harness::Scratch;
use toolyard_testkit::odd::{Kind, start_in_process};
use toolyard_testkit::web::{Web, What};

use super::{QUICK, TOOLYARD, Tester, demo};

#[tokio::test]
async fn a_command_line_an_address_a_script_and_a_configured_name_are_connected_to() {
    let scratch = Scratch::new();
    let demo = demo(&scratch);
    let script = scratch.file("my server.sh", &format!("exec {demo}\n"));
    let web = start_in_process(Kind::LegacyOnly).await.unwrap();
    let config = format!(
        "{QUICK}[servers.known]\ncommand = \"{TOOLYARD}\"\nargs = [\"stdio\", \"--config\", \"{}\"]\n",
        scratch.path("demo.toml").display()
    );
    let mut tester = Tester::with(&config).await;
    let with_variable = format!("SOME=thing {demo}");
    for (url, transport) in [
        (demo.as_str(), "stdio"),
        (with_variable.as_str(), "stdio"),
        (script.as_str(), "stdio"),
        ("known", "stdio"),
        (web.url.as_str(), "streaming-http"),
    ] {
        let answer = tester.connect(url).await;
        let connection = &answer["connection"];
        assert_eq!(connection["server_url"], url);
        assert_eq!(connection["transport"], transport, "{answer:#}");
        assert!(connection["server_info"]["name"].is_string(), "{answer:#}");
        let status = tester.uses("get_connection_status", json!({})).await;
        assert_eq!((&status["connected"], &status["connection"]), (&json!(true), connection));
        let left = tester.uses("disconnect", json!({})).await;
        let before = &left["previous_connection"];
        assert_eq!(
            (&before["server_url"], &before["connected_at"]),
            (&json!(url), &connection["connected_at"])
        );
        assert!(before["disconnected_at"].as_str() >= before["connected_at"].as_str(), "{before:#}");
    }
}

#[tokio::test]
async fn times_have_a_zone_and_statistics_count_what_happened() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    let answer = tester.connect(&demo(&scratch)).await;
    let at = answer["connection"]["connected_at"].as_str().unwrap();
    assert!(at.ends_with('Z') && at.contains('T') && at.len() == "2026-01-01T00:00:00.000Z".len(), "{at}");
    tester.calls("add", json!({"a": 1, "b": 2})).await;
    tester
        .fails("execution_error", "call_tool", json!({"name": "fail", "arguments": {"message": "no"}}))
        .await;
    tester.fails("invalid_arguments", "call_tool", json!({"name": "add", "arguments": {}})).await;
    tester.fails("tool_not_found", "call_tool", json!({"name": "ad", "arguments": {}})).await;
    let listed = tester.uses("list_resources", json!({})).await;
    let uri = listed["resources"][0]["uri"].clone();
    assert_eq!(tester.uses("read_resource", json!({"uri": uri})).await["success"], true);
    tester.fails("resource_not_found", "read_resource", json!({"uri": "demo://nothing"})).await;
    let got = tester.uses("get_prompt", json!({"name": "explain_tool", "arguments": {"tool": "add"}})).await;
    assert_eq!(got["success"], true, "{got:#}");
    tester.fails("prompt_not_found", "get_prompt", json!({"name": "explain_tools"})).await;
    let status = tester.uses("get_connection_status", json!({})).await;
    // A call that was refused before it was sent does not count. A failed call does.
    let statistics = json!({
        "tools_called": 2, "resources_read": 1, "prompts_retrieved": 1, "protocol_violations": 0,
    });
    assert_eq!(status["statistics"], statistics);
}

#[tokio::test]
async fn connecting_while_connected_is_refused_and_names_the_open_connection() {
    let scratch = Scratch::new();
    let demo = demo(&scratch);
    let mut tester = Tester::start().await;
    tester.connect(&demo).await;
    let error = tester
        .fails("connection_failed", "connect_to_server", json!({"url": "http://127.0.0.1:1/mcp"}))
        .await;
    assert_eq!(error["details"]["server_url"], demo);
    assert!(error["message"].as_str().unwrap().contains(&demo), "{error}");
    assert_eq!(error["suggestion"], "call disconnect first");
    tester.calls("add", json!({"a": 1, "b": 2})).await;
}

/// An expected refusal: the target, and words of the message and of the suggestion.
struct Refusal {
    url: String,
    message: &'static str,
    suggestion: &'static str,
    details: Value,
}

fn refusal(
    url: impl Into<String>,
    message: &'static str,
    suggestion: &'static str,
    details: Value,
) -> Refusal {
    Refusal { url: url.into(), message, suggestion, details }
}

#[tokio::test]
async fn what_cannot_be_connected_to_is_named_with_a_way_out_and_the_next_one_works() {
    let scratch = Scratch::new();
    let page = Web::start(Web::answer("200 OK", "content-type: text/html\r\n", "<h1>Welcome</h1>")).await;
    let lost = Web::start(Web::answer("404 Not Found", "", "no such page")).await;
    let moved = Web::start(Web::answer("302 Found", "location: http://127.0.0.1:9/other\r\n", "")).await;
    let locked =
        Web::start(Web::answer("401 Unauthorized", "www-authenticate: Bearer realm=\"x\"\r\n", "")).await;
    let ill = Web::start(Web::answer("500 Internal Server Error", "", "oh no")).await;
    let half = Web::start(What::Says(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"json".to_owned(),
    ))
    .await;
    let garbage = Web::start(What::Says("\x01\x02 nothing that anybody speaks\r\n\r\n".to_owned())).await;
    let silent = Web::start(What::Silence).await;
    let stranger = Web::start(What::Stranger).await;
    let none = json!({});
    let cases = [
        refusal("http://127.0.0.1:1/mcp", "refused", "check the name and the port", none.clone()),
        refusal(
            "http://no-such-host.invalid/mcp",
            "cannot be reached",
            "check the name and the port",
            none.clone(),
        ),
        refusal(page.url(), "does not speak MCP", "often /mcp", none.clone()),
        refusal(lost.url(), "404", "check the path", json!({"http_status": 404, "body": "no such page"})),
        refusal(moved.url(), "http://127.0.0.1:9/other", "redirects to", json!({"http_status": 302})),
        refusal(
            locked.url(),
            "requires authorization",
            "toolyard login",
            json!({"http_status": 401, "www_authenticate": "Bearer realm=\"x\""}),
        ),
        refusal(ill.url(), "500", "look at its log", json!({"http_status": 500, "body": "oh no"})),
        refusal(half.url(), "", "", none.clone()),
        refusal(garbage.url(), "", "", none.clone()),
        refusal(silent.url(), "no response within 2 s", "listening", none.clone()),
        refusal(format!("https://{}/mcp", stranger.address), "certificate", "not trusted", none.clone()),
        refusal("ws://127.0.0.1/mcp", "ws", "http:// or https://", none.clone()),
        refusal("http://[broken", "address", "", none.clone()),
        refusal("", "nothing to connect to", "an address", none.clone()),
        refusal("'unclosed", "quote", "shell", none.clone()),
        refusal("no-such-program --flag", "\"no-such-program\" was not found", "PATH", none.clone()),
        refusal("./no-such-file.py", "not found", "check the path", none.clone()),
        refusal("knwon", "not found", "did you mean the configured server `known`?", none.clone()),
        refusal("broken", "cannot be used", "fix the configuration", none.clone()),
        refusal(
            "sh -c 'echo why >&2; exit 3'",
            "exited with code 3",
            "details.stderr",
            json!({"exit_code": 3, "stderr": ["why"]}),
        ),
        refusal(
            "sh -c 'while read line; do echo garbage; done'",
            "no response within 2 s",
            "by hand",
            none.clone(),
        ),
        refusal(
            "sh -c 'while read line; do echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":99,\\\"result\\\":{}}\"; done'",
            "no response within 2 s",
            "by hand",
            none.clone(),
        ),
        refusal("sleep 60", "no response within 2 s", "by hand", none.clone()),
        refusal("cat", "", "by hand", none.clone()),
        refusal("true", "exited with code 0", "by hand", json!({"exit_code": 0})),
    ];
    let config = format!(
        "{QUICK}[servers.known]\ncommand = \"x\"\n[servers.broken]\nurl = \"${{NO_SUCH_VARIABLE}}\"\n"
    );
    let mut tester = Tester::with(&config).await;
    for case in cases {
        let began = std::time::Instant::now();
        let error = tester.fails("connection_failed", "connect_to_server", json!({"url": case.url})).await;
        assert!(began.elapsed().as_secs() < 10, "{}: took {:?}", case.url, began.elapsed());
        let assert_contains = |key: &str, words: &str| {
            assert!(error[key].as_str().unwrap_or_default().contains(words), "{}: {error:#}", case.url);
        };
        assert_contains("message", case.message);
        assert_contains("suggestion", case.suggestion);
        for (key, value) in case.details.as_object().unwrap() {
            assert_eq!(&error["details"][key], value, "{}: {error:#}", case.url);
        }
        assert_eq!(tester.uses("get_connection_status", json!({})).await["connected"], false);
    }
    tester.connect(&demo(&scratch)).await;
    tester.calls("add", json!({"a": 1, "b": 2})).await;
}
