//! The control socket as a client uses it.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, client_async};
use toolyard_hub::{Quota, QuotaLimits, RateLimit, Yard, YardLimits};
use toolyard_random::SimulatedOutage;
use toolyard_testkit::harness::assert_server_message;

use super::quotas::{quotas, wordy};
use super::{Listening, PATIENCE, listening_to};

pub(super) type Socket = WebSocketStream<TcpStream>;

pub(super) async fn open(server: &Listening, token: &str) -> Option<Socket> {
    let mut request = format!("ws://{}/control", server.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    let connecting = client_async(request, server.connect().await);
    tokio::time::timeout(PATIENCE, connecting).await.unwrap().ok().map(|(socket, _)| socket)
}

pub(super) async fn next(socket: &mut Socket) -> Option<Message> {
    tokio::time::timeout(PATIENCE, socket.next()).await.unwrap()?.ok()
}

async fn send(socket: &mut Socket, request: &Value) {
    socket.send(Message::Text(request.to_string().into())).await.unwrap();
}

/// Sends a request and waits for its response.
pub(super) async fn ask(socket: &mut Socket, request: &Value) -> Value {
    send(socket, request).await;
    loop {
        let Some(Message::Text(text)) = next(socket).await else { panic!("the socket is closed") };
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_server_message(&message);
        if message["id"] == request["id"] {
            return message;
        }
    }
}

/// Waits for the first message after the welcome, or returns the reason of the close frame.
async fn welcomed(socket: &mut Socket) -> Result<(), String> {
    loop {
        match next(socket).await {
            Some(Message::Text(text)) if text.contains("\"welcome\"") => {}
            Some(Message::Text(_)) => return Ok(()),
            Some(Message::Close(Some(frame))) => return Err(frame.reason.to_string()),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn every_list_of_the_control_socket_takes_from_the_rate_of_its_caller() {
    let rate = Some(RateLimit { per_second: 0.001, burst: 1.0 });
    let of_server = ["mcp_transcript", "mcp_stderr"];
    let plain = ["mcp_servers", "mcp_tools", "mcp_prompts", "mcp_list", "mcp_history"];
    for subtype in plain.into_iter().chain(of_server) {
        let server = listening_to(wordy(YardLimits { rate, ..YardLimits::default() })).await;
        let request = |id: u32| match of_server.contains(&subtype) {
            true => json!({"id": id, "subtype": subtype, "server_name": "wordy"}),
            false => json!({"id": id, "subtype": subtype}),
        };
        let mut socket = open(&server, "secret").await.unwrap();
        let first = ask(&mut socket, &request(1)).await;
        assert_ne!(first["error"]["code"], "RATE_LIMIT_ERROR", "{first}");
        let second = ask(&mut socket, &request(2)).await;
        assert_eq!(second["error"]["code"], "RATE_LIMIT_ERROR", "{subtype}: {second}");
        let mut other = open(&server, "other").await.unwrap();
        let others = ask(&mut other, &request(1)).await;
        assert_ne!(others["error"]["code"], "RATE_LIMIT_ERROR", "{others}");
    }
}

#[tokio::test]
async fn control_sockets_count_among_the_streams_of_their_principal() {
    let yard = wordy(quotas(QuotaLimits { streams: 1, ..QuotaLimits::default() }));
    let server = listening_to(Arc::clone(&yard)).await;
    let ping = json!({"id": 1, "subtype": "mcp_servers"});
    let mut first = open(&server, "secret").await.unwrap();
    assert!(ask(&mut first, &ping).await["response"].is_object());
    let mut second = open(&server, "secret").await.unwrap();
    let _ = second.send(Message::Text(ping.to_string().into())).await;
    assert_eq!(welcomed(&mut second).await, Err("this principal has too many open streams".to_owned()));
    let mut other = open(&server, "other").await.unwrap();
    assert!(ask(&mut other, &ping).await["response"].is_object());
    drop(first);
    while yard.charge(&super::ada(), Quota::Streams, 1).is_err() {
        tokio::task::yield_now().await;
    }
    let mut third = open(&server, "secret").await.unwrap();
    assert!(ask(&mut third, &ping).await["response"].is_object());
}

#[tokio::test]
async fn answers_of_the_control_socket_count_among_the_bytes_of_their_principal() {
    let yard = wordy(quotas(QuotaLimits { bytes: 150_000, ..QuotaLimits::default() }));
    let server = listening_to(Arc::clone(&yard)).await;
    let (mut ada, mut bob) = (open(&server, "secret").await.unwrap(), open(&server, "other").await.unwrap());
    let tools = json!({"id": 1, "subtype": "mcp_tools"});
    let unread = yard.charge(&super::ada(), Quota::Bytes, 100_000).unwrap();
    let refused = ask(&mut ada, &tools).await;
    assert_eq!(refused["error"]["code"], "EXECUTION_ERROR");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("limit of 150000 bytes"), "{message}");
    assert_eq!(ask(&mut bob, &tools).await["response"]["count"], 1);
    drop(unread);
    for id in 2..5 {
        let response = ask(&mut ada, &json!({"id": id, "subtype": "mcp_tools"})).await;
        assert_eq!(response["response"]["count"], 1, "sent bytes are no longer charged");
        while yard.quotas().report().quotas[0].1 > 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn without_random_numbers_no_control_socket_is_opened() {
    let server = listening_to(Yard::with_sources([])).await;
    let outage = SimulatedOutage::begin();
    // The client's key is not secret and need not be random.
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer secret\r\n";
    let mut stream = server.connect().await;
    super::status(&mut stream, "/control", upgrade).await;
    assert!(super::is_closed(&mut stream).await, "the socket is closed without a message");
    drop(outage);
    let mut socket = open(&server, "secret").await.unwrap();
    assert!(ask(&mut socket, &json!({"id": 1, "subtype": "mcp_servers"})).await["response"].is_object());
}
