//! Servers of the configuration behind the yard: they appear, change and disappear with the file.

use std::sync::Arc;
use std::time::Duration;

use toolyard_testkit::harness::{Client, Scratch, Server, Signal, Version, soon};

use super::{SERVE, TOOLYARD};

/// A server that is Toolyard itself, with the demo tools.
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
    soon(what, async {
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
    assert_eq!(answer.result()["structuredContent"], serde_json::json!({"sum": 5.0}));

    // What cannot be used is told, and what runs goes on.
    scratch.file("toolyard.toml", "this is no configuration");
    let told = async {
        while !server.process().await.stderr().contains("toolyard.toml:1:") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("the complaint", told).await;
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
    let told = async {
        while !server.process().await.stderr().contains("reading the configuration again") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("the configuration to be read", told).await;
    assert_eq!(names(&server).await.len(), 8);
}

#[tokio::test]
async fn a_server_that_cannot_start_hurts_nobody_else() {
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
    let running = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&demo)).count()
    };
    // The server and its keeper.
    assert_eq!(running(), 2);
    server.process().await.kill().await;
    let gone = async {
        while running() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("the server to end", gone).await;
}
