//! Each misbehaving server has its documented fault and is correct otherwise. Where possible, a
//! client of the harness reads it and validates every message against the protocol's schema. The
//! others are read line by line.

mod calls;
mod definitions;
mod lives;
mod sessions;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use toolyard_testkit::harness::{Client, Over, Process, Version, within_timeout};

use super::ODD;

/// Every combination of transport and era for a server that supports both eras.
async fn clients(name: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    for over in Client::BOTH {
        for version in Version::NEWEST {
            clients.push(client(name, over, version).await);
        }
    }
    clients
}

async fn client(name: &str, over: Over, version: Version) -> Client {
    Client::start(ODD, &[name], over, version).await
}

/// A server over stdio whose output is read line by line, whatever the lines contain.
struct Plain {
    process: Process,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Plain {
    fn start(name: &str) -> Self {
        Self::run(ODD, &[name, "stdio"])
    }

    /// Like the above, with a file for the server's counters.
    fn counting(name: &str, file: &str) -> Self {
        Self::run("sh", &["-c", r#"ODD_FILE="$1" exec "$2" "$3" stdio"#, "sh", file, ODD, name])
    }

    fn run(program: &str, arguments: &[&str]) -> Self {
        let (process, stdin, stdout) = Process::start(program, arguments);
        Self { process, stdin, stdout: BufReader::new(stdout), next: 1 }
    }

    async fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        id
    }

    /// Returns the next line, or `None` at the end.
    async fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = within_timeout("a line", self.stdout.read_until(b'\n', &mut line)).await.unwrap();
        (read > 0).then(|| String::from_utf8_lossy(&line).into_owned())
    }

    /// Returns the answer to a request as text, with all lines before it.
    async fn answer(&mut self, id: u64) -> (String, Vec<String>) {
        let mut before = Vec::new();
        loop {
            let line = self.line().await.unwrap();
            if line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)) {
                return (line, before);
            }
            before.push(line);
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, &params).await;
        let (line, _) = self.answer(id).await;
        // Some numbers exceed the range of a double on purpose.
        serde_json::from_str(&line.replace("1e400", "1e300")).unwrap()
    }

    async fn call(&mut self, name: &str) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": {}})).await
    }

    /// Returns the last tool, which is the unusual one.
    async fn odd_tool(&mut self) -> Value {
        self.ask("tools/list", json!({})).await["result"]["tools"].as_array().unwrap().last().unwrap().clone()
    }

    async fn silent(&mut self) -> bool {
        let mut line = Vec::new();
        let reading = self.stdout.read_until(b'\n', &mut line);
        tokio::time::timeout(Duration::from_millis(300), reading).await.is_err()
    }
}
