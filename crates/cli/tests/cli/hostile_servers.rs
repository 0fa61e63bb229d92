//! Servers that flood, hang and send without end, behind the real binary: it stays small, quiet and
//! easy to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_testkit::harness::{Scratch, Server, Signal, within_timeout};
use toolyard_testkit::odd::{Kind, start_in_process};

use super::{SERVE, TOOLYARD};

/// Starts the binary with these servers and without authentication.
async fn serve(scratch: &Scratch, config: &str) -> Arc<Server> {
    let config = scratch.file("toolyard.toml", config);
    Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none", "--config", &config]].concat()).await
}

/// Waits until the status of a server matches.
async fn until(server: &Server, name: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let seen = async {
        loop {
            let all = server.get("/mcp/servers").await.json();
            let found = all["servers"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned();
            match found.filter(&fits) {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    within_timeout(what, seen).await
}

#[tokio::test]
async fn a_server_that_lists_without_end_is_refused_and_the_memory_stays_small() {
    let scratch = Scratch::new();
    let endless = start_in_process(Kind::EndlessPages).await.unwrap();
    let sound = start_in_process(Kind::ModernOnly).await.unwrap();
    let config =
        format!("[servers.endless]\nurl = {:?}\n[servers.sound]\nurl = {:?}\n", endless.url, sound.url);
    let server = serve(&scratch, &config).await;
    let seen = until(&server, "endless", "the refusal", |one| one["state"] == "retrying").await;
    let reason = seen["reason"].as_str().unwrap();
    assert!(reason.contains("67108864 bytes") && reason.contains("definition_bytes_per_source"), "{reason}");
    let echoed = server.execute("mcp__sound__echo", json!({"a": 1})).await;
    assert_eq!(echoed.json()["result"], json!({"a": 1}));
    let peak = server.process().await.peak_megabytes();
    // 64 MiB of definitions, one more page, and the base memory of the binary.
    assert!(peak < 200, "{peak} MB");
}

#[tokio::test]
async fn a_server_that_hangs_while_it_is_listed_again_does_not_delay_the_end() {
    let scratch = Scratch::new();
    let hangs = start_in_process(Kind::HangsLater).await.unwrap();
    let server = serve(&scratch, &format!("[servers.hangs]\nurl = {:?}\n", hangs.url)).await;
    let hung = async {
        loop {
            let counted = server.execute("mcp__hangs__requests", json!({})).await.json();
            if counted["result"]["methods"]["tools/list"] == 2 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_timeout("the second list", hung).await;
    let began = Instant::now();
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_server_that_floods_requests_fills_no_log_and_what_was_left_out_is_counted() {
    let scratch = Scratch::new();
    let floods = start_in_process(Kind::FloodsRequests).await.unwrap();
    let server = serve(&scratch, &format!("[servers.floods]\nurl = {:?}\n", floods.url)).await;
    until(&server, "floods", "the server", |one| one["state"] == "ready").await;
    // Once a later call is answered and no more lines arrive, everything that the server sent has
    // been read.
    let line = "request of the server dropped";
    let flooded = async {
        let mut before = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let now = server.process().await.stderr().matches(line).count();
            if now > 0 && now == before {
                return;
            }
            before = now;
        }
    };
    within_timeout("the end of the flood", flooded).await;
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));
    let log = process.stderr();
    let lines = log.matches(line).count();
    assert!((1..=25).contains(&lines), "{lines} lines, {} bytes", log.len());
    assert!(log.contains("similar log lines were suppressed") && log.contains("floods"), "{log}");
    assert!(log.len() < 20_000, "{} bytes", log.len());
}

#[tokio::test]
async fn a_server_that_dies_for_want_of_a_variable_is_told_of_with_its_name_and_never_its_value() {
    let scratch = Scratch::new();
    let script = scratch.file("server.sh", "echo \"fatal: MY_API_KEY is not set\" >&2; exit 3\n");
    let run = |config: String| {
        let config = scratch.file("toolyard.toml", &config);
        let mut command = std::process::Command::new(TOOLYARD);
        command.args(["list", "--config", &config]).env("MY_API_KEY", "s3cret").env("HEADER_KEY", "s3cret");
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let server = format!("[servers.s]\ncommand = \"sh\"\nargs = [{script:?}]\n");
    let log = run(server.clone());
    assert!(log.contains("withheld environment variables: MY_API_KEY, "), "{log}");
    assert!(log.contains("inherit_env = true") && !log.contains("s3cret"), "{log}");
    let log = run(format!("{server}inherit_env = true\n"));
    assert!(log.contains("exited with code 3") && !log.contains("withheld"), "{log}");
}
