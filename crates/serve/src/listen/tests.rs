//! The listener over real loopback connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::{OBSERVE, Permissions, Principal, Yard, YardLimits};
use toolyard_random::SimulatedOutage;
use toolyard_wire::EndpointSettings;

use super::{ServeError, ServeSettings, bind};
use crate::auth::{Auth, BearerCredentials, BearerToken, BearerTokenStore, ServeAuthSettings};
use crate::connections::ConnectionLimits;
use crate::control::ControlSettings;
use crate::mcp::McpSettings;

mod cluster_view;
mod control;
mod members;
mod placement;
mod quotas;
mod replicas;
mod waiting;

const PATIENCE: Duration = Duration::from_secs(20);

fn ada() -> Principal {
    Principal::new("ada", Permissions::Only(Default::default()))
}

fn settings(connections: ConnectionLimits) -> ServeSettings {
    let bob = Principal::new("bob", Permissions::Only(Default::default()));
    let eve = Principal::new("eve", Permissions::Only([OBSERVE.to_owned()].into()));
    let tokens = [("secret", ada()), ("other", bob), ("observer", eve)];
    let tokens = tokens.map(|(token, principal)| BearerToken::new(token, principal)).into();
    let store = BearerTokenStore::new(BearerCredentials { tokens, ..BearerCredentials::default() });
    ServeSettings {
        listen: ([127, 0, 0, 1], 0).into(),
        auth: ServeAuthSettings { auth: Auth::TokenStore(store), hosts: Vec::new(), origins: Vec::new() },
        mcp: McpSettings::default(),
        endpoint: EndpointSettings { max_body_bytes: 64 * 1024, ..EndpointSettings::default() },
        control: ControlSettings::default(),
        connections,
        builtin_endpoints: Vec::new(),
        drain: Duration::from_secs(1),
    }
}

struct Listening {
    address: String,
    store: BearerTokenStore,
    _serving: AbortOnDropHandle<()>,
}

async fn listening(connections: ConnectionLimits) -> Listening {
    serving(Yard::with_sources([]), settings(connections)).await
}

async fn listening_to(yard: Arc<Yard>) -> Listening {
    serving(yard, settings(ConnectionLimits::default())).await
}

async fn serving(yard: Arc<Yard>, settings: ServeSettings) -> Listening {
    let Auth::TokenStore(store) = settings.auth.auth.clone() else { unreachable!() };
    let bound = bind(yard, settings).await.unwrap();
    let address = bound.address().to_string();
    let serving = AbortOnDropHandle::new(tokio::spawn(bound.serve(CancellationToken::new())));
    Listening { address, store, _serving: serving }
}

impl Listening {
    async fn connect(&self) -> TcpStream {
        tokio::time::timeout(PATIENCE, TcpStream::connect(&self.address)).await.unwrap().unwrap()
    }

    /// Sends one request on a new connection and returns the status.
    async fn status(&self, path: &str, more: &str) -> u16 {
        let mut stream = self.connect().await;
        status(&mut stream, path, more).await.unwrap()
    }
}

/// Sends one request and returns the status, or `None` if the connection is closed instead.
async fn status(stream: &mut TcpStream, path: &str, more: &str) -> Option<u16> {
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{more}\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        match tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap() {
            Ok(0) | Err(_) => return None,
            Ok(count) => answer.extend(&buffer[..count]),
        }
    }
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

/// Returns whether the server closes the connection.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 1])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

const BEARER: &str = "authorization: Bearer secret\r\n";

#[tokio::test]
async fn idle_connections_never_starve_health_checks_or_those_with_a_token() {
    let limits = ConnectionLimits {
        total: 64,
        unauthenticated: 16,
        unauthenticated_per_address: 16,
        health_reserve: 2,
        ..ConnectionLimits::default()
    };
    let server = listening(limits).await;
    let mut known = server.connect().await;
    assert_eq!(status(&mut known, "/mcp/tools", BEARER).await, Some(200));
    let mut idle = Vec::new();
    for number in 0..100 {
        idle.push(server.connect().await);
        if number % 10 == 0 {
            assert_eq!(server.status("/health", "").await, 200);
            assert_eq!(server.status("/mcp/tools", BEARER).await, 200);
        }
    }
    assert!(is_closed(&mut idle[0]).await, "the oldest connection is evicted");
    assert_eq!(
        status(&mut known, "/mcp/tools", BEARER).await,
        Some(200),
        "an authenticated connection is never evicted"
    );
}

#[tokio::test]
async fn a_request_that_has_come_is_answered_before_its_connection_makes_room() {
    let limits = ConnectionLimits { unauthenticated: 2, ..ConnectionLimits::default() };
    let server = serving(quotas::wordy(YardLimits::default()), settings(limits)).await;
    // All requests are sent before the server can accept the first connection.
    let request = format!(
        "POST /mcp/tools/mcp__wordy__talk/execute HTTP/1.1\r\nhost: localhost\r\n{BEARER}\
         content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
    );
    let send = |_| {
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        TcpStream::from_std(stream).unwrap()
    };
    let sent: Vec<TcpStream> = (0..100).map(send).collect();
    for mut stream in sent {
        let mut answer = String::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap();
        assert!(read.is_ok() && answer.contains("it only has a description"), "{read:?} {answer}");
    }
}

#[tokio::test]
async fn slow_heads_are_cut_off_earlier_under_pressure() {
    let limits = ConnectionLimits {
        unauthenticated: 8,
        pressed_head_time: Duration::from_millis(100),
        ..ConnectionLimits::default()
    };
    let server = listening(limits).await;
    let mut slow = Vec::new();
    for _ in 0..6 {
        let mut stream = server.connect().await;
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: loc").await.unwrap();
        slow.push(stream);
    }
    // Well before the usual time limit of 30 seconds.
    assert!(is_closed(&mut slow[0]).await);
    assert_eq!(server.status("/health", "").await, 200);
}

#[tokio::test]
async fn behind_a_trusted_proxy_one_client_does_not_shut_out_another() {
    let limits = ConnectionLimits {
        unauthenticated_per_address: 2,
        trusted_proxies: ["127.0.0.1".parse().unwrap()].into_iter().collect(),
        ..ConnectionLimits::default()
    };
    let server = listening(limits).await;
    let mut bob = server.connect().await;
    assert_eq!(status(&mut bob, "/mcp/tools", "x-forwarded-for: 192.0.2.2\r\n").await, Some(401));
    let mut ada = Vec::new();
    for _ in 0..5 {
        let mut stream = server.connect().await;
        assert_eq!(status(&mut stream, "/mcp/tools", "x-forwarded-for: 192.0.2.1\r\n").await, Some(401));
        ada.push(stream);
    }
    assert!(is_closed(&mut ada[0]).await && is_closed(&mut ada[2]).await);
    assert_eq!(status(&mut bob, "/health", "").await, Some(200));
    assert_eq!(status(&mut ada[4], "/health", "").await, Some(200));
}

#[tokio::test]
async fn a_refusal_can_be_read_by_a_client_that_sends_its_whole_body_first() {
    let server = listening(ConnectionLimits::default()).await;
    let body = vec![b' '; 8 * 1024 * 1024];
    let json = "content-type: application/json\r\n";
    for (path, more, expected) in [
        ("/mcp", json.to_owned(), 401),
        ("/mcp", format!("{json}{BEARER}"), 413),
        ("/mcp", format!("content-type: text/plain\r\n{BEARER}"), 415),
        ("/mcp/tools/x/execute", format!("{json}{BEARER}"), 413),
        ("/nowhere", format!("{json}{BEARER}"), 404),
    ] {
        let mut stream = server.connect().await;
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let sent = tokio::time::timeout(PATIENCE, stream.write_all(&body)).await.unwrap();
        assert!(sent.is_ok(), "{path} {expected}: the body cannot be sent: {sent:?}");
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        assert!(read.is_ok(), "{path} {expected}: the response cannot be read: {read:?}");
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}");
        assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn pythons_urllib_reads_a_refusal_of_a_large_body() {
    let server = listening(ConnectionLimits::default()).await;
    let script = "
import sys, urllib.request, urllib.error
headers = {'content-type': 'application/json'}
if sys.argv[2]: headers['authorization'] = 'Bearer ' + sys.argv[2]
request = urllib.request.Request(sys.argv[1], data=b' ' * (8 << 20), headers=headers)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try: print(opener.open(request, timeout=20).status)
except urllib.error.HTTPError as error: print(error.code, len(error.read()) > 0)
except Exception as error: print(repr(error))
";
    for (token, expected) in [("", "401 True"), ("secret", "413 True")] {
        let url = format!("http://{}/mcp", server.address);
        let python = tokio::process::Command::new("python3").args(["-c", script, &url, token]).output();
        let output = tokio::time::timeout(PATIENCE, python).await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected);
    }
}

#[tokio::test]
async fn without_random_numbers_the_server_does_not_start() {
    let _outage = SimulatedOutage::begin();
    let bound = bind(Yard::with_sources([]), settings(ConnectionLimits::default())).await;
    assert!(matches!(bound, Err(ServeError::Random(_))), "{bound:?}");
}

#[tokio::test]
async fn the_header_of_a_large_frame_closes_an_unauthenticated_control_socket() {
    let server = listening(ConnectionLimits::default()).await;
    let mut stream = server.connect().await;
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    assert_eq!(status(&mut stream, "/control", upgrade).await, Some(101));
    let mut frame = vec![0x81, 0x80 | 127];
    frame.extend((10_u64 << 20).to_be_bytes());
    frame.extend([0; 4]);
    stream.write_all(&frame).await.unwrap();
    let mut close = [0; 4];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut close)).await.unwrap().unwrap();
    assert_eq!((close[0], u16::from_be_bytes([close[2], close[3]])), (0x88, 1009));
}

#[tokio::test]
async fn a_standing_stream_ends_with_its_token() {
    let server = listening(ConnectionLimits::default()).await;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    let mut stream = server.connect().await;
    let length = initialize.len();
    let post = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\n{BEARER}content-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{initialize}"
    );
    stream.write_all(post.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let mut listening = server.connect().await;
    let more = format!("{BEARER}accept: text/event-stream\r\nmcp-session-id: {session}\r\n");
    assert_eq!(status(&mut listening, "/mcp", &more).await, Some(200));
    server.store.replace(BearerCredentials::default());
    let mut rest = Vec::new();
    // A stream ends with the last chunk of the body.
    while !rest.ends_with(b"0\r\n\r\n") {
        let mut buffer = [0; 1024];
        let count = tokio::time::timeout(PATIENCE, listening.read(&mut buffer)).await.unwrap().unwrap();
        assert!(count > 0);
        rest.extend(&buffer[..count]);
    }
    assert_eq!(server.status("/mcp/tools", BEARER).await, 401);
}
