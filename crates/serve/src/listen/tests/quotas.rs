//! The quotas of one principal, and that they never affect another.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    BoxFuture, ErrorKind, HubError, Outcome, QuotaLimits, RateLimit, Source, SourceCall, SourceName,
    SourceOffer, ToolListing, ToolOffer, Yard, YardLimits, YardSettings,
};

use super::{BEARER, Listening, PATIENCE, listening_to, status};

pub(super) const OTHER: &str = "authorization: Bearer other\r\n";
const SIZE: usize = 50_000;

/// A source whose list is 50 KB long.
struct Wordy {
    name: SourceName,
    offer: Arc<SourceOffer>,
}

impl Source for Wordy {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer)
    }

    fn call<'a>(&'a self, _: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(async {
            tokio::task::yield_now().await;
            Err(HubError::new(ErrorKind::ToolFailed, "it only has a description"))
        })
    }
}

pub(super) fn wordy(limits: YardLimits) -> Arc<Yard> {
    let definition =
        json!({"name": "talk", "description": "x".repeat(SIZE), "inputSchema": {"type": "object"}});
    let tool = ToolOffer {
        definition: to_raw(&definition),
        permissions: Vec::new(),
        metadata: serde_json::Map::new(),
        hooks: Vec::new(),
        listing: ToolListing::Listed,
    };
    let offer = Arc::new(SourceOffer { tools: vec![tool], ..SourceOffer::default() });
    let yard = Yard::new(YardSettings { limits, ..YardSettings::default() });
    yard.add(Arc::new(Wordy { name: SourceName::new("wordy"), offer }));
    yard
}

pub(super) fn quotas(quotas: QuotaLimits) -> YardLimits {
    YardLimits { quotas, ..YardLimits::default() }
}

/// Sends an MCP message and returns the head and the body of the response.
pub(super) async fn post(server: &Listening, more: &str, message: &Value) -> (String, Value) {
    let mut stream = server.connect().await;
    let body = message.to_string();
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\n{more}content-type: application/json\r\n\
         accept: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap_or_default())
}

/// Starts a session and returns the headers of its requests.
pub(super) async fn session(server: &Listening, bearer: &str) -> Result<String, String> {
    let params = json!({"protocolVersion": "2025-03-26", "capabilities": {}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let (head, _) = post(server, bearer, &message).await;
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    id.map(|id| format!("{bearer}mcp-session-id: {id}\r\n")).ok_or(head)
}

fn list() -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})
}

#[tokio::test]
async fn a_batch_of_lists_stops_at_the_bytes_that_its_principal_may_have_in_flight() {
    let limits = QuotaLimits { bytes: 4 * SIZE, ..QuotaLimits::default() };
    let yard = wordy(quotas(limits));
    let server = listening_to(Arc::clone(&yard)).await;
    let ada = session(&server, BEARER).await.unwrap();
    let batch: Vec<Value> =
        (0..100).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).collect();
    let (head, answers) = post(&server, &ada, &json!(batch)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let answers = answers.as_array().unwrap();
    let (results, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer["error"].is_null());
    assert_eq!((results.len(), refused.len()), (3, 97));
    let message = refused[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("limit of 200000 bytes"), "{message}");
    // The charge ends once the response is sent.
    let held = || yard.quotas().report().quotas[0].1;
    while held() > 0 {
        tokio::task::yield_now().await;
    }
    let (_, answer) = post(&server, &ada, &list()).await;
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 1);
    let many: Vec<Value> = (0..1_001).map(|_| list()).collect();
    assert!(post(&server, &ada, &json!(many)).await.0.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn unread_bytes_block_only_their_own_principal() {
    let limits = QuotaLimits { bytes: 3 * SIZE, ..QuotaLimits::default() };
    let yard = wordy(quotas(limits));
    let server = listening_to(Arc::clone(&yard)).await;
    let charge = yard.charge(&super::ada(), toolyard_hub::Quota::Bytes, 3 * SIZE).unwrap();
    assert_eq!(server.status("/mcp/tools", BEARER).await, 429);
    assert_eq!(server.status("/mcp/tools", OTHER).await, 200);
    drop(charge);
    assert_eq!(server.status("/mcp/tools", BEARER).await, 200);
}

#[tokio::test]
async fn sessions_of_one_principal_never_push_out_those_of_another() {
    let limits = QuotaLimits { sessions: 2, ..QuotaLimits::default() };
    let server = listening_to(wordy(quotas(limits))).await;
    let bob = session(&server, OTHER).await.unwrap();
    let mut ada = Vec::new();
    for _ in 0..10 {
        ada.push(session(&server, BEARER).await.unwrap());
    }
    let works = async |session: &str| post(&server, session, &list()).await.0.starts_with("HTTP/1.1 200");
    assert!(works(&bob).await, "the oldest session, but of another principal");
    assert!(works(&ada[9]).await && works(&ada[8]).await);
    assert!(!works(&ada[7]).await, "the principal's own idlest session is evicted");
}

#[tokio::test]
async fn open_streams_are_counted_for_each_principal() {
    let limits = QuotaLimits { streams: 1, ..QuotaLimits::default() };
    let yard = wordy(quotas(limits));
    let server = listening_to(Arc::clone(&yard)).await;
    let open = async |bearer: &str| {
        let session = session(&server, bearer).await.unwrap();
        let mut stream = server.connect().await;
        let status = status(&mut stream, "/mcp", &format!("{session}accept: text/event-stream\r\n")).await;
        (stream, status.unwrap())
    };
    let (first, opened): (TcpStream, u16) = open(BEARER).await;
    assert_eq!(opened, 200);
    assert_eq!(open(BEARER).await.1, 429);
    assert_eq!(open(OTHER).await.1, 200);
    drop(first);
    while yard.charge(&super::ada(), toolyard_hub::Quota::Streams, 1).is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(open(BEARER).await.1, 200);
}

#[tokio::test]
async fn lists_take_from_the_rate_of_their_caller_on_every_front() {
    let rate = Some(RateLimit { per_second: 0.001, burst: 3.0 });
    let server = listening_to(wordy(YardLimits { rate, ..YardLimits::default() })).await;
    let ada = session(&server, BEARER).await.unwrap();
    for _ in 0..2 {
        assert!(post(&server, &ada, &list()).await.1["result"].is_object());
    }
    assert_eq!(server.status("/mcp/tools", BEARER).await, 200);
    assert_eq!(server.status("/mcp/tools", BEARER).await, 429);
    let (_, answer) = post(&server, &ada, &list()).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(server.status("/mcp/tools", OTHER).await, 200);
}

#[tokio::test]
async fn every_list_of_the_rest_front_takes_from_the_rate_of_its_caller() {
    let rate = Some(RateLimit { per_second: 0.001, burst: 1.0 });
    for path in ["/mcp/tools", "/openapi.json", "/mcp/servers", "/mcp/executions"] {
        let server = listening_to(wordy(YardLimits { rate, ..YardLimits::default() })).await;
        assert_eq!(server.status(path, BEARER).await, 200);
        assert_eq!(server.status(path, BEARER).await, 429, "{path}");
        assert_eq!(server.status(path, OTHER).await, 200);
    }
}
