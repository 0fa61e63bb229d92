//! Clients that send invalid input or never read.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use toolyard_testkit::harness::within_timeout;

use super::house::House;

#[tokio::test]
async fn a_message_that_is_none_closes_the_socket_and_nothing_else() {
    let house = House::new().await;
    let mut witness = house.owner().await;
    for text in [
        "",
        "garbage",
        "[]",
        "null",
        r#"{"subtype":"mcp_servers"}"#,
        r#"{"id":{},"subtype":"mcp_servers"}"#,
        r#"{"id":1}"#,
        r#"{"id":1,"subtype":["mcp_servers"]}"#,
        r#"{"id":1,"subtype":"mcp_servers"}{"id":2}"#,
        &format!(r#"{{"id":"{}","subtype":"mcp_servers"}}"#, "x".repeat(65)),
        &"[".repeat(100_000),
    ] {
        let mut socket = house.owner().await;
        socket.send_text(text).await;
        assert_eq!(socket.wait_closed().await, 4400, "{text:.80}");
    }
    let mut socket = house.owner().await;
    socket.send_raw(Message::binary(br#"{"id":1,"subtype":"mcp_servers"}"#.to_vec())).await;
    assert_eq!(socket.wait_closed().await, 4400);
    assert!(witness.request("mcp_servers", json!({})).await.is_ok());
}

#[tokio::test]
async fn frames_that_are_none_close_the_socket() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let house = House::new().await;
    let mut stream = tokio::net::TcpStream::connect(&house.address).await.unwrap();
    let head = format!(
        "GET /control HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer owner's token\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        house.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // An unknown opcode in an unmasked frame that claims to be very long.
    stream.write_all(&[0x0f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]).await.unwrap();
    let mut received = Vec::new();
    within_timeout("the end", stream.read_to_end(&mut received)).await.unwrap();
    assert!(received.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&received));
    assert!(house.owner().await.request("mcp_servers", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_message_that_is_too_large_is_not_read() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    let fits = json!({"tool": "echo", "arguments": {"x": "y".repeat(1024 * 1024 - 100)}});
    assert!(socket.request("mcp_call", fits).await.is_ok());
    // The payload of a call has a separate limit.
    let much = format!(r#"{{"id":"much","subtype":"mcp_servers","x":"{}"}}"#, "y".repeat(1_200_000));
    socket.send_text(&much).await;
    assert_eq!(socket.wait_closed().await, 1009);
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_and_the_socket_stays() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    for text in [
        r#"{"id":"w","subtype":"mcp_nothing"}"#,
        r#"{"id":"w","subtype":""}"#,
        r#"{"id":"w","subtype":"mcp_servers","more":1}"#,
        r#"{"id":"w","subtype":"mcp_call"}"#,
        r#"{"id":"w","subtype":"mcp_call","tool":7}"#,
        r#"{"id":"w","subtype":"mcp_call","tool":"echo","timeout_ms":-1}"#,
        r#"{"id":"w","subtype":"mcp_call","tool":"echo","asks":["anything"]}"#,
        r#"{"id":"w","subtype":"mcp_call","tool":"echo","arguments":"{}"}"#,
        r#"{"id":"w","subtype":"mcp_call","tool":"echo","arguments":[1]}"#,
        r#"{"id":"w","subtype":"mcp_complete","ref":{"type":"ref/nothing"},"argument":{"name":"a","value":"b"}}"#,
        r#"{"id":"w","subtype":"mcp_history","limit":0}"#,
        r#"{"id":"w","subtype":"mcp_history","limit":501}"#,
        r#"{"id":"w","subtype":"mcp_history","cursor":"x"}"#,
        r#"{"id":"w","subtype":"mcp_history","status":"late"}"#,
        r#"{"id":"w","subtype":"subscribe"}"#,
        r#"{"id":"w","subtype":"subscribe","events":["everything"]}"#,
        r#"{"id":"w","subtype":"subscribe","events":["server"],"after":-1}"#,
        r#"{"id":"w","subtype":"mcp_cancel"}"#,
        r#"{"id":"w","subtype":"mcp_answer","request":1,"answers":[]}"#,
    ] {
        socket.send_text(text).await;
        let end = socket.next_matching("the refusal", |message| message["id"] == "w").await;
        assert_eq!(
            (&end["type"], &end["error"]["code"]),
            (&json!("error"), &json!("VALIDATION_ERROR")),
            "{text}"
        );
    }
    let tool = json!({"tool": "ech"});
    let id = socket.send("mcp_call", tool).await;
    let suggestion = socket.response(id).await["error"]["suggestion"].clone();
    assert!(suggestion.as_str().unwrap().contains("echo"), "{suggestion}");
}

#[tokio::test]
async fn an_id_that_is_in_use_closes_the_socket_and_one_that_was_is_free_again() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    for _ in 0..3 {
        socket.send_text(r#"{"id":7,"subtype":"mcp_servers"}"#).await;
        assert_eq!(socket.response(7).await["type"], "response");
    }
    socket.send_text(r#"{"id":8,"subtype":"mcp_call","tool":"slow","arguments":{"ms":60000}}"#).await;
    socket.send_text(r#"{"id":8,"subtype":"mcp_cancel","request":8}"#).await;
    assert_eq!(socket.wait_closed().await, 4400);
}

#[tokio::test]
async fn more_requests_than_are_allowed_at_once_are_refused_one_by_one() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    let slow = json!({"tool": "slow", "arguments": {"ms": 1_000}});
    for _ in 0..100 {
        socket.send("mcp_call", slow.clone()).await;
    }
    let (mut fine, mut refused) = (0, 0);
    for id in 1..=100 {
        let end = socket.response(id).await;
        match end["error"]["code"].as_str() {
            None => fine += 1,
            Some("RATE_LIMIT_ERROR") => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((fine, refused), (64, 36));
}

#[tokio::test]
async fn a_client_that_never_reads_is_dropped_without_affecting_others() {
    let house = House::new().await;
    let mut witness = house.owner().await;
    let mut mute = house.owner().await;
    // More than the buffers of two sockets hold. The client reads none of it.
    for _ in 0..60 {
        mute.send("mcp_call", json!({"tool": "big", "arguments": {"bytes": 900_000}})).await;
    }
    let began = Instant::now();
    let flood = async {
        // Refusals are sent out of turn and accumulate until the limit is reached.
        loop {
            mute.send_text(r#"{"id":"f","subtype":"mcp_nothing_of_the_kind"}"#).await;
            if began.elapsed() > Duration::from_secs(40) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let quick = async {
        while began.elapsed() < Duration::from_secs(15) {
            let start = Instant::now();
            witness.request("mcp_servers", json!({})).await.unwrap();
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = flood => {}
        () = quick => {}
    }
    // The client receives only part of it before the connection is closed.
    assert_ne!(mute.wait_closed().await, 1000);
    assert!(witness.request("mcp_servers", json!({})).await.is_ok());
}

#[tokio::test]
async fn sockets_have_a_limit_and_places_come_back() {
    let house = House::new().await;
    let mut sockets = Vec::new();
    for _ in 0..256 {
        sockets.push(house.owner().await);
    }
    let over = toolyard_testkit::harness::Proof::Header(super::house::OWNER);
    let mut late = toolyard_testkit::harness::Socket::open(&house.address, over, &[]).await.unwrap();
    assert_eq!(late.next().await, Err(1013));
    // Unauthenticated clients have a separate, lower limit.
    let mut strangers = Vec::new();
    for _ in 0..64 {
        let proof = toolyard_testkit::harness::Proof::Nothing;
        strangers.push(toolyard_testkit::harness::Socket::open(&house.address, proof, &[]).await.unwrap());
    }
    let proof = toolyard_testkit::harness::Proof::Nothing;
    let mut stranger = toolyard_testkit::harness::Socket::open(&house.address, proof, &[]).await.unwrap();
    assert_eq!(stranger.next().await, Err(1013));
    sockets.truncate(200);
    within_timeout("a free connection", async {
        loop {
            let mut again = toolyard_testkit::harness::Socket::open(&house.address, over, &[]).await.unwrap();
            if again.next().await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}
