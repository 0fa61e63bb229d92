//! `toolyard watch` with a yard that runs, stops and comes back.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStdout;
use toolyard_testkit::harness::{Process, Scratch, Server, Signal, within_timeout};

use super::{SERVE, TOOLYARD};

struct Watching {
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(url: &str, more: &[&str]) -> Self {
        let arguments = [&["watch", "--url", url][..], more].concat();
        let (process, _, stdout) = Process::start(TOOLYARD, &arguments);
        Self { process, lines: BufReader::new(stdout).lines() }
    }

    async fn line(&mut self) -> String {
        let line = within_timeout("a line", self.lines.next_line()).await.unwrap();
        line.unwrap_or_else(|| panic!("no more lines; {}", self.process.stderr()))
    }

    /// Returns the next line that contains this text.
    async fn until(&mut self, part: &str) -> String {
        loop {
            let line = self.line().await;
            if line.contains(part) {
                return line;
            }
        }
    }

    async fn says(&self, part: &str) {
        within_timeout(part, async {
            while !self.process.stderr().contains(part) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

/// Calls a tool over REST until a watcher has seen it.
async fn call(server: &Server, token: &str, tool: &str, params: Value) {
    let bearer = format!("Bearer {token}");
    let address = format!("/mcp/tools/{tool}/execute");
    let answer = server.post_with(&address, &[("authorization", &bearer)], &json!({"params": params})).await;
    assert_eq!(answer.status, 200);
}

/// Calls until the watcher, which may still be connecting, reports it.
async fn call_until(server: &Server, token: &str, watching: &mut Watching, part: &str) -> String {
    let calling = async {
        loop {
            call(server, token, "add", json!({"a": 1, "b": 2})).await;
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        line = watching.until(part) => line,
        () = calling => String::new(),
    }
}

#[tokio::test]
async fn a_watcher_sees_calls_and_servers_and_comes_back_with_the_yard() {
    let scratch = Scratch::new();
    let demo = scratch.file("demo.toml", "demo = true\n");
    let inner = format!(
        "demo = true\n[servers.inner]\ncommand = \"{TOOLYARD}\"\nargs = [\"stdio\", \"--config\", \"{demo}\"]\n"
    );
    let config = scratch.file("toolyard.toml", &inner);
    let token = ["--token", "the token of this test"];
    let arguments = [&SERVE[..], &["--config", &config], &token].concat();
    let server = Server::start(TOOLYARD, &arguments).await;
    let url = format!("http://{}", server.address);
    let idle = Watching::start(&url, &token);
    idle.says(&format!("note: watching {url}/ as `owner`; press Ctrl-C to stop\n")).await;
    let mut words = Watching::start(&format!("{url}/#token=the token of this test"), &[]);
    let mut lines = Watching::start(&url, &["--token", token[1], "--json", "--calls"]);
    let ended = call_until(&server, token[1], &mut words, "call_ended").await;
    assert!(ended.contains(" add by owner over rest succeeded after "), "{ended}");
    let started: Value =
        serde_json::from_str(&call_until(&server, token[1], &mut lines, "call_started").await).unwrap();
    assert_eq!((&started["call"]["subject"], &started["call"]["status"]), (&json!("add"), &json!("running")));

    // The yard stops and comes back at the same address.
    let address = server.address.clone();
    server.process().await.signal(Signal::Terminate);
    server.process().await.exit().await;
    words.says("connection lost").await;
    let again = ["serve", "--listen", &address, "--json", "--config", &config, "--token", token[1]];
    let server = Server::start(TOOLYARD, &again).await;
    words.says("reconnected").await;
    words.says("some events were missed while disconnected").await;
    call_until(&server, token[1], &mut words, "call_ended").await;

    words.process.signal(Signal::Interrupt);
    assert_eq!(words.process.exit().await, Some(0));
}

#[tokio::test]
async fn one_server_can_be_watched_alone() {
    let scratch = Scratch::new();
    let demo = scratch.file("demo.toml", "demo = true\n");
    let one = |name: &str| {
        format!("[servers.{name}]\ncommand = \"{TOOLYARD}\"\nargs = [\"stdio\", \"--config\", \"{demo}\"]\n")
    };
    let config = scratch.file("toolyard.toml", &format!("demo = true\n{}", one("one")));
    let server = Server::start(TOOLYARD, &[&SERVE[..], &["--config", &config]].concat()).await;
    let token = server.token.clone().unwrap();
    let url = format!("http://{}", server.address);
    let mut watching = Watching::start(&url, &["--token", &token, "--server", "one", "--json"]);
    // The file changes: the server is removed, and another one appears.
    let calling = async {
        loop {
            call(&server, &token, "add", json!({"a": 1, "b": 2})).await;
            call(&server, &token, "mcp__one__add", json!({"a": 1, "b": 2})).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let seen = tokio::select! {
        line = watching.until("call_ended") => line,
        () = calling => String::new(),
    };
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["call"]["subject"], "mcp__one__add");
    scratch.file("toolyard.toml", &format!("demo = true\n{}", one("two")));
    let gone = loop {
        let line = watching.line().await;
        assert!(!line.contains("\"two\"") && !line.contains("\"subject\":\"add\""), "{line}");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["gone"] == true {
            break event;
        }
    };
    assert_eq!(gone["serverName"], "one");
}

#[tokio::test]
async fn a_watcher_that_cannot_watch_says_why() {
    let server = Server::start(TOOLYARD, &SERVE).await;
    let url = format!("http://{}", server.address);
    for (arguments, code, message) in [
        (vec!["--token", "wrong"], 3, "the yard rejected the connection"),
        (vec![], 3, "pass a valid token with --token"),
        (vec!["--token", "x", "--url", "http://127.0.0.1:9"], 4, "cannot watch http://127.0.0.1:9/"),
    ] {
        let mut all = vec!["watch"];
        if !arguments.contains(&"--url") {
            all.extend(["--url", &url]);
        }
        all.extend(arguments);
        let (mut process, _, _) = Process::start(TOOLYARD, &all);
        assert_eq!(process.exit().await, Some(code), "{}", process.stderr());
        assert!(process.stderr().contains(message), "{}", process.stderr());
    }
}
