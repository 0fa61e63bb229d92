//! The audit log and the history of the real binary: a killed process loses no answered call, and
//! past calls can be queried.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use toolyard_testkit::harness::{Proof, Scratch, Server, Signal, Socket, within_timeout};

use super::{SERVE, TOOLYARD};

const CALLERS: usize = 16;

async fn serve(config: &str) -> Arc<Server> {
    Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none", "--config", config]].concat()).await
}

/// Returns every line of these files. Each line must be complete.
fn lines(files: &[PathBuf]) -> Vec<Value> {
    let mut lines = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with('\n'), "{}: {:?}", file.display(), text.lines().last());
        lines.extend(text.lines().map(|line| -> Value {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
        }));
    }
    lines
}

fn with_those_aside(file: &Path, number: usize) -> Vec<PathBuf> {
    let aside = (1..=number).map(|number| PathBuf::from(format!("{}.{number}", file.display())));
    std::iter::once(file.to_owned()).chain(aside).collect()
}

/// Calls over one connection until it breaks or `stop` is set. Returns the names of the answered
/// calls.
async fn call_on(address: String, end: Arc<AtomicBool>, count: Arc<AtomicUsize>) -> Vec<String> {
    let mut answered = Vec::new();
    let Ok(stream) = TcpStream::connect(&address).await else { return answered };
    let Ok((mut sender, connection)) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await
    else {
        return answered;
    };
    let connection = tokio::spawn(connection);
    while !end.load(Ordering::Relaxed) {
        let body = json!({"params": {"a": answered.len(), "b": 1}}).to_string();
        let request = Request::post("/mcp/tools/add/execute").header("host", &address);
        let request = request.header("content-type", "application/json").body(Full::new(Bytes::from(body)));
        let Ok(response) = sender.send_request(request.unwrap()).await else { break };
        let Ok(body) = response.into_body().collect().await else { break };
        let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
        assert_eq!(body["success"], true, "{body}");
        let id = body["metadata"]["executionId"].as_str().unwrap();
        answered.push(id.strip_prefix("exec-").unwrap().to_owned());
        count.fetch_add(1, Ordering::Relaxed);
    }
    connection.abort();
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_it_under_load_again_and_again_loses_no_line_of_a_call_that_was_answered() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    // Small files, so that every round rotates some.
    let config = scratch.file(
        "toolyard.toml",
        &format!(
            "demo = true\n[limits]\ncalls_per_source = 0\n[audit]\nfile = {:?}\narguments = true\nrotate_bytes = 4096\n\
             keep_files = 5000\n[history]\nfile = {:?}\n",
            file,
            scratch.path("history.db"),
        ),
    );
    let mut answered: Vec<String> = Vec::new();
    for round in 0..6 {
        let server = serve(&config).await;
        let (end, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| tokio::spawn(call_on(server.address.clone(), Arc::clone(&end), Arc::clone(&count))))
            .collect();
        within_timeout("calls to be answered", async {
            while count.load(Ordering::Relaxed) < 100 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        // A random moment within a fifth of a second, from the clock.
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        tokio::time::sleep(Duration::from_micros(u64::from(clock.subsec_micros()) % 200_000)).await;
        let mut process = server.process().await;
        process.kill().await;
        end.store(true, Ordering::Relaxed);
        let before = answered.len();
        for caller in callers {
            answered.extend(within_timeout("a caller to notice", caller).await.unwrap());
        }
        assert!(answered.len() > before, "round {round}: no call was answered");
    }
    // The next writer removes an incomplete last line, if there is one.
    let server = serve(&config).await;
    let last = server.execute("add", json!({"a": 1, "b": 1})).await;
    answered.push(last.json()["metadata"]["executionId"].as_str().unwrap()[5..].to_owned());
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));

    let files = with_those_aside(&file, 5_000);
    let mut written: HashMap<String, usize> = HashMap::new();
    for line in lines(&files) {
        // A killed process no longer answers, but may have closed connections before.
        assert_eq!((&line["name"], &line["arguments"]["b"]), (&json!("add"), &json!(1)));
        *written.entry(line["id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(written.values().all(|count| *count == 1), "a line is duplicated");
    let lost: Vec<&String> = answered.iter().filter(|id| !written.contains_key(*id)).collect();
    assert!(lost.is_empty(), "{} of {} are lost", lost.len(), answered.len());
    assert_eq!(answered.iter().collect::<HashSet<_>>().len(), answered.len());
    let aside = files.iter().skip(1).filter(|file| file.exists()).count();
    println!("{} answered, {} lines, {aside} files put aside", answered.len(), written.len());
    assert!(aside >= 3, "{aside}");
}

#[tokio::test]
async fn every_front_is_in_the_audit_and_arguments_are_kept_without_secrets() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    let config = scratch.file(
        "toolyard.toml",
        &format!("demo = true\n[audit]\nfile = {file:?}\narguments = true\nredact = [\"text\"]\n"),
    );
    let server = serve(&config).await;
    server.execute("fail", json!({"message": "a\nb\"}\u{2028}", "api_key": "hunter2"})).await;
    server.execute("no%0A%7B%22time%22:such", json!({})).await;
    let context =
        json!({"params": {"text": "x"}, "context": {"sessionId": "s\n1", "userId": "u1", "priority": "low"}});
    server.post("/mcp/tools/stream_words/execute", &context).await;
    server.execute("add", json!({"a": "hunter2", "b": 2})).await;
    let mut lines = lines(&[file]);
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        assert_eq!(line["id"].as_str().unwrap().len(), 32);
        assert!(line["durationMs"].is_number() && line["time"].as_str().unwrap().ends_with('Z'));
        line.retain(|key, _| !["id", "time", "durationMs"].contains(&key.as_str()));
    }
    let usual = json!({"principal": "owner", "kind": "tool", "priority": "normal", "madeBy": "caller"});
    let with = |more: Value| {
        let mut all = usual.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(
        lines,
        [
            with(json!({
                "name": "fail",
                "server": "demo",
                "ended": "failed",
                "arguments": {"message": "a\nb\"}\u{2028}", "api_key": "[redacted]"},
            })),
            with(json!({
                "name": "no\n{\"time\":such", "ended": "failed",
                "error": {"kind": "unknown tool", "message": "unknown tool `no\n{\"time\":such`"}, "arguments": {},
            })),
            with(json!({
                "name": "stream_words", "server": "demo", "ended": "succeeded", "priority": "low",
                "sessionId": "s\n1", "userId": "u1", "arguments": {"text": "[redacted]"},
            })),
            with(json!({
                "name": "add", "server": "demo", "ended": "failed",
                "error": {"kind": "invalid arguments", "message": "invalid arguments: a"},
                "arguments": {"a": "hunter2", "b": 2},
            })),
        ]
    );
}

#[tokio::test]
async fn a_full_disk_refuses_calls_only_if_configured_to() {
    let scratch = Scratch::new();
    let going = scratch.file("going.toml", "demo = true\n[audit]\nfile = \"/dev/full\"\n");
    let server = serve(&going).await;
    for _ in 0..3 {
        assert_eq!(server.execute("add", json!({"a": 1, "b": 2})).await.status, 200);
    }
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));
    let stderr = process.stderr();
    assert_eq!(stderr.matches("cannot write the audit log").count(), 1, "{stderr}");

    let text = "demo = true\n[audit]\nfile = \"/dev/full\"\non_failure = \"refuse\"\n";
    let server = serve(&scratch.file("refusing.toml", text)).await;
    for message in [
        "the call cannot be recorded in the audit log, so its result is withheld",
        "calls are refused because the audit log cannot be written",
    ] {
        let refused = server.execute("add", json!({"a": 1, "b": 2})).await;
        assert_eq!(refused.refusal(), (502, "EXECUTION_ERROR".to_owned()));
        assert_eq!(refused.json()["error"]["message"], message);
    }
}

#[tokio::test]
async fn what_cannot_be_kept_ends_the_start_with_a_word() {
    let scratch = Scratch::new();
    let notes = scratch.file("notes.txt", "my notes");
    for (name, text, word) in [
        (
            "a.toml",
            format!("[audit]\nfile = {:?}\n", scratch.path("no/such/folder/a")),
            "cannot write the audit log",
        ),
        ("h.toml", format!("[history]\nfile = {notes:?}\n"), "is not a Toolyard history database"),
    ] {
        let config = scratch.file(name, &text);
        let arguments = [&SERVE[..], &["--auth", "none", "--config", &config]].concat();
        let (mut process, _stdin, _stdout) = toolyard_testkit::harness::Process::start(TOOLYARD, &arguments);
        assert_eq!(process.exit().await, Some(1));
        assert!(process.stderr().contains(word), "{}", process.stderr());
    }
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "my notes");
}

#[tokio::test]
async fn a_damaged_history_ends_the_start_with_a_command_that_helps_or_is_moved_aside() {
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "demo = true\n[history]\nfile = \"history.db\"\n");
    let server = serve(&config).await;
    server.execute("add", json!({"a": 1, "b": 2})).await;
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));
    let file = scratch.path("history.db");
    let mut damaged = std::fs::read(&file).unwrap();
    damaged[100..].fill(0x55);
    std::fs::write(&file, &damaged).unwrap();

    let arguments = [&SERVE[..], &["--auth", "none", "--config", &config]].concat();
    let (mut process, _stdin, _stdout) = toolyard_testkit::harness::Process::start(TOOLYARD, &arguments);
    assert_eq!(process.exit().await, Some(1));
    let stderr = process.stderr();
    let command = stderr.lines().find_map(|line| line.split_once("run: ")).map(|(_, command)| command);
    assert!(command.is_some() && stderr.contains("on_damage = \"move-aside\""), "{stderr}");
    std::process::Command::new("sh").args(["-c", command.unwrap()]).status().unwrap();
    assert!(!file.exists());
    let server = serve(&config).await;
    assert_eq!(server.get("/mcp/executions").await.json()["executions"], json!([]));
    drop(server);

    std::fs::write(&file, &damaged).unwrap();
    let config = scratch
        .file("moving.toml", "demo = true\n[history]\nfile = \"history.db\"\non_damage = \"move-aside\"\n");
    let server = serve(&config).await;
    assert_eq!(server.get("/mcp/executions").await.json()["executions"], json!([]));
    assert!(server.process().await.stderr().contains("damaged history moved aside"));
    let folder = std::fs::read_dir(scratch.path("")).unwrap().map(|entry| entry.unwrap().path());
    let moved: Vec<PathBuf> = folder.filter(|path| path.to_string_lossy().contains(".damaged-")).collect();
    assert!(
        moved.len() == 2 && moved.iter().all(|path| std::fs::read(path).unwrap() == damaged),
        "{moved:?}"
    );
}

#[tokio::test]
async fn executions_are_found_again_after_a_restart_by_pages_and_by_name() {
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "demo = true\n[history]\nfile = \"history.db\"\n");
    let server = serve(&config).await;
    let mut ids = Vec::new();
    for number in 0..4 {
        let added = server.execute("add", json!({"a": number, "b": 0})).await.json();
        ids.push(added["metadata"]["executionId"].as_str().unwrap().to_owned());
    }
    let odd = server.execute("add", json!({"a": "hunter2", "b": 0})).await.json();
    ids.push(odd["metadata"]["executionId"].as_str().unwrap().to_owned());
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));

    let server = serve(&config).await;
    let fresh = server.execute("stream_words", json!({"text": "x"})).await.json();
    ids.push(fresh["metadata"]["executionId"].as_str().unwrap().to_owned());
    ids.reverse();
    let mut seen = Vec::new();
    let mut path = "/mcp/executions?limit=2".to_owned();
    loop {
        let page = server.get(&path).await.json();
        let page_ids = page["executions"].as_array().unwrap().iter().map(|one| one["executionId"].clone());
        seen.extend(page_ids.map(|id| id.as_str().unwrap().to_owned()));
        let Some(next) = page["nextCursor"].as_str() else { break };
        path = format!("/mcp/executions?limit=2&cursor={next}");
    }
    assert_eq!(seen, ids);
    let count = async |query: &str| {
        let listed = server.get(&format!("/mcp/executions?{query}")).await.json();
        listed["executions"].as_array().unwrap().len()
    };
    assert_eq!(count("state=failed&tool=add").await, 1);
    assert_eq!(count("state=succeeded&tool=add").await, 4);
    assert_eq!(count("state=running").await, 0);
    assert_eq!(count("q=ADD").await, 5);
    assert_eq!(count("principal=owner").await, 6);
    assert_eq!(count("principal=unknown").await, 0);
    assert_eq!(count("since=2099-01-01T00:00:00Z").await, 0);
    assert_eq!(count("until=2099-01-01T00:00:00Z").await, 6);
    for wrong in ["cursor=x", "since=yesterday", "limit=0"] {
        assert_eq!(server.get(&format!("/mcp/executions?{wrong}")).await.refusal().0, 400, "{wrong}");
    }
    let mut past = server.get(&format!("/mcp/executions/{}", ids[1])).await.json();
    let members = past.as_object_mut().unwrap();
    members.retain(|key, _| !["timestamp", "duration"].contains(&key.as_str()));
    let expected = json!({
        "executionId": ids[1], "tool": "add", "server": "demo", "state": "failed", "principal": "owner",
        "outcomeKept": false,
        "error": {"code": "VALIDATION_ERROR", "message": "invalid arguments: a"},
    });
    assert_eq!(past, expected);
    let late =
        server.request("DELETE", &format!("/mcp/executions/{}", ids[2]), &[], b"").await.read_body().await;
    assert_eq!((late.status, &late.json()["state"]), (200, &json!("succeeded")));
    let unknown_path = format!("/mcp/executions/exec-{}", "0".repeat(32));
    assert_eq!(server.get(&unknown_path).await.refusal(), (404, "NOT_FOUND".to_owned()));
    assert_eq!(server.get("/mcp/executions/..%2f").await.refusal().0, 404);
}

#[tokio::test]
async fn how_a_call_ended_is_the_same_word_wherever_one_looks() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    let config = scratch.file(
        "toolyard.toml",
        &format!("demo = true\n[audit]\nfile = {file:?}\n[history]\nfile = \"history.db\"\n"),
    );
    let server = serve(&config).await;
    server.execute("add", json!({"a": 1, "b": 2})).await;
    server.execute("fail", json!({"message": "out of luck"})).await;
    server.execute("stream_words", json!({"text": 7})).await;
    let telling =
        server.listen("/mcp/tools/count_down/execute?detach=true", &json!({"params": {"from": 50}})).await;
    let words = async |server: &Server, query: &str| {
        let listed = server.get(&format!("/mcp/executions{query}")).await.json();
        words_by(&listed["executions"], "tool", "state")
    };
    assert_eq!(
        words(&server, "?state=running").await,
        [("count_down".to_owned(), "running".to_owned())].into()
    );
    let running = server.get("/mcp/executions?state=running").await.json();
    let id = running["executions"][0]["executionId"].as_str().unwrap().to_owned();
    server.request("DELETE", &format!("/mcp/executions/{id}"), &[], b"").await.read_body().await;
    within_timeout("the end of the call", async {
        while server.get(&format!("/mcp/executions/{id}")).await.json()["state"] == "running" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    drop(telling);

    let expected: HashMap<String, String> =
        [("add", "succeeded"), ("fail", "failed"), ("stream_words", "failed"), ("count_down", "cancelled")]
            .map(|(tool, word)| (tool.to_owned(), word.to_owned()))
            .into();
    assert_eq!(words(&server, "").await, expected, "REST");
    assert_eq!(words_by(&json!(lines(&[file])), "name", "ended"), expected, "the audit");
    let mut socket = Socket::open(&server.address, Proof::Nothing, &[]).await.unwrap();
    socket.send("hello", json!({})).await;
    socket.message().await;
    let past = socket.request("mcp_history", json!({})).await.unwrap();
    assert_eq!(words_by(&past["calls"], "subject", "status"), expected, "the control socket");
    // Formerly, the control socket called a succeeded call `completed`.
    for word in ["succeeded", "completed"] {
        let past = socket.request("mcp_history", json!({"status": word})).await.unwrap();
        assert_eq!(past["calls"][0]["subject"], "add", "{word}");
        assert_eq!(past["calls"].as_array().unwrap().len(), 1, "{word}");
    }
    let metrics = server.get("/metrics").await.text;
    let label = |line: &str, name: &str| {
        let (_, value) = line.split_once(&format!("{name}=\"")).unwrap();
        value.split_once('"').unwrap().0.to_owned()
    };
    let counted = metrics.lines().filter(|line| line.starts_with("toolyard_calls_total{"));
    let ends: Vec<[String; 3]> =
        counted.map(|line| ["tool", "end", "error"].map(|name| label(line, name))).collect();
    let counted = ends.iter().map(|[tool, end, _]| (tool.clone(), end.clone())).collect::<HashMap<_, _>>();
    assert_eq!(counted, expected, "the metrics");
    let errors = ends.into_iter().map(|[tool, _, error]| (tool, error)).collect::<HashMap<_, _>>();
    assert_eq!((errors["fail"].as_str(), errors["stream_words"].as_str()), ("", "invalid_arguments"));
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));
    assert_eq!(words(&*serve(&config).await, "").await, expected, "the history");
}

/// Returns the status of each call in a list, by its tool.
fn words_by(list: &Value, tool: &str, word: &str) -> HashMap<String, String> {
    let text = |call: &Value, key: &str| call[key].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(|call| (text(call, tool), text(call, word))).collect()
}

#[tokio::test]
async fn past_executions_of_others_are_for_who_may_observe() {
    let scratch = Scratch::new();
    // The SHA-256 of a, b and e.
    let token = |name: &str, digest: &str, permissions: &str| {
        format!("[[tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\npermissions = [{permissions}]\n")
    };
    let config = scratch.file(
        "toolyard.toml",
        &[
            "demo = true\n".to_owned(),
            token("ada", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", ""),
            token("bob", "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d", ""),
            token("eve", "3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea", "\"observe\""),
            "[history]\nfile = \"history.db\"\n".to_owned(),
        ]
        .concat(),
    );
    let start = async || Server::start(TOOLYARD, &[&SERVE[..], &["--config", &config]].concat()).await;
    let ask = async |server: &Server, method: &str, path: &str, secret: &str, body: &str| {
        let token = format!("Bearer {secret}");
        let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
        server.request(method, path, &headers, body.as_bytes()).await.read_body().await
    };
    let server = start().await;
    let body = r#"{"params":{"a":1,"b":2}}"#;
    let made = ask(&server, "POST", "/mcp/tools/add/execute", "a", body).await.json();
    let path = format!("/mcp/executions/{}", made["metadata"]["executionId"].as_str().unwrap());
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));

    let server = start().await;
    let get = async |path: &str, secret: &str| ask(&server, "GET", path, secret, "").await;
    assert_eq!(get(&path, "a").await.json().get("principal"), None);
    assert_eq!(get(&path, "b").await.refusal(), (404, "NOT_FOUND".to_owned()));
    assert_eq!(get(&path, "e").await.json()["principal"], "ada");
    assert_eq!(get("/mcp/executions", "b").await.json(), json!({"executions": []}));
    assert_eq!(get("/mcp/executions?principal=ada", "b").await.json(), json!({"executions": []}));
    assert_eq!(get("/mcp/executions?principal=ada", "e").await.json()["executions"][0]["principal"], "ada");
    assert_eq!(get("/mcp/executions", "a").await.json()["executions"].as_array().unwrap().len(), 1);
}
