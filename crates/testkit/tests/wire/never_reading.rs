//! Clients that send requests and never read. They may wait forever, but must not use up memory or
//! delay others.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use toolyard_testkit::harness::{Client, Process, Version, within_timeout};

use super::start::{FIXTURE, modern_call, server};

/// The most memory that misbehaving clients may cost.
const MEGABYTES: u64 = 100;
/// The same for the flood over stdio: some 550 answers of 100 kB are waiting when the server stops
/// reading, and the system allocator of the fixture keeps up to as much again.
const FLOOD_MEGABYTES: u64 = 160;
/// The most requests that the server may read while its answers are not read. It limits the requests
/// in progress, and the pipe holds a few more.
const FLOOD_REQUESTS: u32 = 1_000;
/// Far less than the timeout for a client that does not read, which is how long a blocked server
/// would take.
const QUICKLY: Duration = Duration::from_secs(10);
/// How long a pipe must accept nothing before the test considers it full.
const FULL: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_flood_of_requests_with_unread_answers_stops_being_read() {
    let (process, mut stdin, stdout) = Process::start(FIXTURE, &["stdio", "--yard", "probe"]);
    let before = process.megabytes();
    let mut sent = 0;
    loop {
        let line = modern_call(sent, "big", &json!({"bytes": 100_000})) + "\n";
        match timeout(FULL, stdin.write_all(line.as_bytes())).await {
            Ok(written) => written.unwrap(),
            Err(_) => break,
        }
        sent += 1;
        assert!(sent < FLOOD_REQUESTS, "the server does not stop reading");
    }
    let grown = process.megabytes().saturating_sub(before);
    assert!(grown < FLOOD_MEGABYTES, "{grown} MB more after {sent} requests");

    // Once the client reads, every complete request is answered.
    drop(stdin);
    let mut answers = BufReader::new(stdout).lines();
    let mut answered = 0;
    while within_timeout("the answers", answers.next_line()).await.unwrap().is_some() {
        answered += 1;
    }
    assert!(answered >= sent, "{answered} answers to {sent} requests");
}

#[tokio::test]
async fn unread_streams_do_not_delay_others() {
    let server = server().await;
    let mut other = Client::join(&server, Version::V2026_07_28).await;
    other.ask("tools/list", "{}").await.answer.result();
    let before = server.process().await.megabytes();
    let mut silent = Vec::new();
    for at in 0..8 {
        silent.push(post(&server.address, "flood", &modern_call(at, "flood", &json!({"n": 20_000}))).await);
        silent
            .push(post(&server.address, "big", &modern_call(at, "big", &json!({"bytes": 3_000_000}))).await);
    }
    let mut legacy = Vec::new();
    for version in [Version::LEGACY, Version::LEGACY].concat() {
        let mut client = Client::join(&server, version).await;
        legacy.push(client.begin_watched_call("flood", json!({"n": 20_000}), "t").await);
    }
    for _ in 0..50 {
        let start = Instant::now();
        other.ask("tools/list", "{}").await.answer.result();
        assert!(start.elapsed() < QUICKLY, "an answer took {:?}", start.elapsed());
    }
    assert_eq!(other.call("slow", json!({"ms": 1})).await.answer.content(), "at last");
    let grown = server.process().await.megabytes().saturating_sub(before);
    assert!(grown < MEGABYTES, "{grown} MB more");
}

async fn post(address: &str, tool: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}
