//! Configured servers in the yard: they appear, change and disappear with the file.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_testkit::harness::{Call, Client, Message, Scratch, Server, Signal, Version, within_timeout};

use super::{SERVE, TOOLYARD, processes};

/// Returns the configuration of a server that is Toolyard itself, with the demo tools.
fn inner(name: &str) -> String {
    format!("[servers.{name}]\ncommand = \"{TOOLYARD}\"\nargs = [\"stdio\", \"--config\", \"DEMO\"]\n")
}

async fn serve(config: &str) -> Arc<Server> {
    Server::start(TOOLYARD, &[&SERVE[..], &["--config", config]].concat()).await
}

async fn names(server: &Arc<Server>) -> Vec<String> {
    let mut client = Client::join(server, Version::V2026_07_28).await;
    let listed = client.ask("tools/list", "{}").await.answer;
    let tools = listed.result()["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the list of tools is as expected.
async fn until(server: &Arc<Server>, what: &str, fits: impl Fn(&[String]) -> bool) {
    within_timeout(what, async {
        while !fits(&names(server).await) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_comes_changes_and_goes_with_the_file() {
    let scratch = Scratch::new();
    let demo = scratch.file("demo.toml", "demo = true\n");
    let inner = |name: &str| inner(name).replace("DEMO", &demo);
    let config = scratch.file("toolyard.toml", &inner("one"));
    let server = serve(&config).await;
    until(&server, "the first server", |names| {
        names.len() == 8 && names.iter().all(|name| name.starts_with("mcp__one__"))
    })
    .await;

    scratch.file("toolyard.toml", &(inner("one") + &inner("two") + "disabled_tools = [\"f*\"]\n"));
    until(&server, "the second server", |names| {
        names.len() == 15 && !names.contains(&"mcp__two__fail".to_owned())
    })
    .await;
    let mut client = Client::join(&server, Version::V2025_11_25).await;
    let answer = client.call("mcp__two__add", r#"{"a":2,"b":3}"#).await.answer;
    assert_eq!(answer.result()["structuredContent"], json!({"sum": 5.0}));

    // An invalid configuration is reported, and the current one stays in use.
    scratch.file("toolyard.toml", "not a configuration");
    let reported = async {
        while !server.process().await.stderr().contains("toolyard.toml:1:") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within_timeout("the complaint", reported).await;
    assert_eq!(names(&server).await.len(), 15);

    scratch.file("toolyard.toml", &inner("two"));
    until(&server, "the first server gone", |names| names.len() == 8).await;
}

#[tokio::test]
async fn sighup_reads_the_configuration_again() {
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "demo = true\n");
    let server = serve(&config).await;
    server.process().await.signal(Signal::HangUp);
    let reported = async {
        while !server.process().await.stderr().contains("reloading the configuration") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within_timeout("the configuration to be read", reported).await;
    assert_eq!(names(&server).await.len(), 8);
}

#[tokio::test]
async fn a_server_that_cannot_start_does_not_affect_others() {
    let scratch = Scratch::new();
    let text = "demo = true\n[servers.missing]\ncommand = \"no-such-program-anywhere\"\n\
                [servers.unset]\ncommand = \"x\"\nenv = { TOKEN = \"${NOT_SET_ANYWHERE}\" }\n";
    let server = serve(&scratch.file("toolyard.toml", text)).await;
    assert_eq!(names(&server).await.len(), 8);
}

#[tokio::test]
async fn killing_the_yard_leaves_no_server_behind() {
    let scratch = Scratch::new();
    let demo = scratch.file("demo.toml", "demo = true\n");
    let server = serve(&scratch.file("toolyard.toml", &inner("one").replace("DEMO", &demo))).await;
    until(&server, "the server", |names| names.len() == 8).await;
    // The server and its keeper.
    assert_eq!(processes(&demo), 2);
    server.process().await.kill().await;
    let gone = async {
        while processes(&demo) > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within_timeout("the server to end", gone).await;
}

#[tokio::test]
async fn servers_are_started_also_after_our_own_file_is_gone() {
    let scratch = Scratch::new();
    let copy = scratch.path("toolyard-copy");
    std::fs::copy(TOOLYARD, &copy).unwrap();
    let config = scratch.file("toolyard.toml", "");
    let arguments = [&SERVE[..], &["--config", &config]].concat();
    let server = Server::start(copy.to_str().unwrap(), &arguments).await;
    std::fs::remove_file(&copy).unwrap();
    let demo = scratch.file("demo.toml", "demo = true\n");
    scratch.file("toolyard.toml", &inner("late").replace("DEMO", &demo));
    server.process().await.signal(Signal::HangUp);
    until(&server, "the server", |names| names.len() == 8).await;
}

/// A call whose tool has asked and whose client has not answered yet.
enum PendingCall {
    Legacy(Box<Call>, Value),
    Modern(Message),
}

async fn call_until_asked(client: &mut Client, version: Version, tool: &str) -> PendingCall {
    if version.is_modern() {
        let answer = client.ask("tools/call", json!({"name": tool, "arguments": {}})).await.answer;
        assert_eq!(answer.result()["resultType"], "input_required", "{tool}");
        return PendingCall::Modern(answer);
    }
    let mut call = client.begin_call(tool, "{}").await;
    let question = call.next().await.unwrap();
    assert_eq!(question.method(), Some("elicitation/create"), "{tool}");
    PendingCall::Legacy(Box::new(call), question.id().clone())
}

async fn answer(client: &mut Client, pending: PendingCall, tool: &str, name: &str) -> String {
    let answer = json!({"action": "accept", "content": {"name": name}});
    match pending {
        PendingCall::Legacy(call, id) => {
            client.reply(&id, answer).await;
            call.finish().await.answer.content().to_owned()
        }
        PendingCall::Modern(question) => {
            let key = question.result()["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
            let repeated = json!({
                "name": tool, "arguments": {}, "inputResponses": {key: answer},
                "requestState": question.result()["requestState"],
            });
            client.ask("tools/call", repeated).await.answer.content().to_owned()
        }
    }
}

#[tokio::test]
async fn questions_cross_from_era_to_era_and_reach_the_client_they_are_for() {
    let scratch = Scratch::new();
    let demo = scratch.file("demo.toml", "demo = true\n");
    let more = |era: &str| format!("era = \"{era}\"\nsessions = \"per-client\"\n");
    let server = |era: &str| inner(era).replace("DEMO", &demo) + &more(era);
    let config = scratch.file("toolyard.toml", &(server("legacy") + &server("modern")));
    let yard = serve(&config).await;
    until(&yard, "both servers", |names| names.len() == 16).await;
    for upstream in ["legacy", "modern"] {
        let tool = format!("mcp__{upstream}__ask_name");
        for (one, other) in [
            (Version::V2025_11_25, Version::V2025_11_25),
            (Version::V2026_07_28, Version::V2026_07_28),
            (Version::V2025_11_25, Version::V2026_07_28),
        ] {
            let mut ada = Client::join(&yard, one).await;
            let mut bob = Client::join(&yard, other).await;
            let of_ada = call_until_asked(&mut ada, one, &tool).await;
            let of_bob = call_until_asked(&mut bob, other, &tool).await;
            let to_bob = answer(&mut bob, of_bob, &tool, "Bob").await;
            let to_ada = answer(&mut ada, of_ada, &tool, "Ada").await;
            assert_eq!(
                (to_ada.as_str(), to_bob.as_str()),
                ("Hello, Ada!", "Hello, Bob!"),
                "{one} {other} {upstream}"
            );
        }
    }
}
