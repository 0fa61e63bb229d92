//! Authentication: who may connect, how they prove it, and for how long.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolyard_serve::BearerCredentials;
use toolyard_testkit::harness::{Proof, Socket, within_timeout};

use super::house::{ADA, House, OWNER, WATCHER, tokens, tokens_expiring};

#[tokio::test]
async fn a_token_comes_by_header_by_subprotocol_or_in_the_first_message() {
    let house = House::new().await;
    for proof in [Proof::Header(ADA), Proof::Subprotocol(ADA), Proof::Nothing] {
        let mut socket = Socket::open(&house.address, proof, &[]).await.unwrap();
        let mut id = None;
        if let Proof::Nothing = proof {
            id = Some(socket.send("hello", json!({"token": ADA})).await);
        }
        let welcome = socket.message().await;
        assert_eq!(welcome["principal"], json!({"name": "ada", "manage": false, "observe": false}));
        assert_eq!(welcome["server"]["name"], "toolyard");
        assert_eq!(welcome["id"].as_i64(), id);
    }
    let mut watcher = Socket::open(&house.address, Proof::Subprotocol(WATCHER), &[]).await.unwrap();
    assert_eq!(
        watcher.message().await["principal"],
        json!({"name": "watcher", "manage": false, "observe": true})
    );
}

#[tokio::test]
async fn a_wrong_token_is_told_so() {
    let house = House::new().await;
    assert_eq!(Socket::open(&house.address, Proof::Header("wrong"), &[]).await.err(), Some(401));
    for token in ["wrong", ""] {
        let mut socket = Socket::open(&house.address, Proof::Subprotocol(token), &[]).await.unwrap();
        assert_eq!(socket.wait_closed().await, 4401);
        let mut socket = Socket::open(&house.address, Proof::Nothing, &[]).await.unwrap();
        socket.send("hello", json!({"token": token})).await;
        assert_eq!(socket.wait_closed().await, 4401);
    }
    // A subprotocol that is not valid base64url is unknown.
    let headers = [("sec-websocket-protocol", "toolyard.control.v1, toolyard.token.!!!")];
    let mut socket = Socket::open(&house.address, Proof::Nothing, &headers).await.unwrap();
    assert_eq!(socket.wait_closed().await, 4401);
    // The server sends nothing to a client that does not authenticate.
    for text in [r#"{"id":1,"subtype":"mcp_servers"}"#, r#"{"id":1,"subtype":"hello"}"#] {
        let mut socket = Socket::open(&house.address, Proof::Nothing, &[]).await.unwrap();
        socket.send_text(text).await;
        assert_eq!(socket.next().await, Err(4401));
    }
}

#[tokio::test]
async fn who_never_says_who_it_is_is_not_waited_for() {
    let house = House::new().await;
    let began = std::time::Instant::now();
    let mut socket = Socket::open(&house.address, Proof::Nothing, &[]).await.unwrap();
    assert_eq!(socket.next().await, Err(4401));
    assert!((9..40).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn pages_of_strangers_and_rebound_names_are_kept_out() {
    let house = House::new().await;
    let open = async |name: &'static str, value: &'static str| {
        Socket::open(&house.address, Proof::Subprotocol(OWNER), &[(name, value)]).await.err()
    };
    assert_eq!(open("origin", "https://evil.example").await, Some(403));
    assert_eq!(open("origin", "null").await, Some(403));
    assert_eq!(open("host", "evil.example").await, Some(403));
    assert_eq!(open("origin", "https://page.example").await, None);
    assert_eq!(open("origin", "http://localhost:5173").await, None);
}

#[tokio::test]
async fn a_request_that_wants_no_socket_is_told_what_this_is() {
    let house = House::new().await;
    let mut stream = tokio::net::TcpStream::connect(&house.address).await.unwrap();
    let request = format!("GET /control HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", house.address);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within_timeout("the answer", stream.read_to_string(&mut answer)).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 426 ")
            && answer.contains("this endpoint accepts only WebSocket connections"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_token_that_expires_ends_the_socket_and_its_calls() {
    let house = House::new().await;
    house.keyring.replace(BearerCredentials {
        tokens: tokens_expiring(Duration::from_secs(2)),
        ..BearerCredentials::default()
    });
    let (mut ada, mut owner) = (house.ada().await, house.owner().await);
    owner.request("subscribe", json!({"events": ["call_ended"]})).await.unwrap();
    ada.send("mcp_call", json!({"tool": "slow", "arguments": {"ms": 60_000}})).await;
    assert_eq!(ada.wait_closed().await, 4401);
    assert_eq!(owner.event("call_ended").await["call"]["status"], "cancelled");
    // The same applies to a token that is removed from the configuration.
    house
        .keyring
        .replace(BearerCredentials { tokens: tokens().split_off(1), ..BearerCredentials::default() });
    assert_eq!(owner.wait_closed().await, 4401);
}

#[tokio::test]
async fn a_socket_outlives_a_token_where_another_one_comes_in_time() {
    let house = House::new().await;
    let mut tokens = tokens_expiring(Duration::from_secs(2));
    let ada = toolyard_hub::Principal::new("ada", toolyard_hub::Permissions::Only(Default::default()));
    tokens.push(toolyard_serve::BearerToken::new("ada's next token", ada));
    house.keyring.replace(BearerCredentials { tokens, ..BearerCredentials::default() });
    let mut ada = house.ada().await;
    let hello = ada.send("hello", json!({"token": "ada's next token"})).await;
    assert_eq!(ada.response(hello).await["type"], "welcome");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(ada.request("mcp_servers", json!({})).await.is_ok());
    ada.send("hello", json!({"token": OWNER})).await;
    assert_eq!(ada.wait_closed().await, 4401);
}

#[tokio::test]
async fn permissions_that_change_hold_for_sockets_that_are_open() {
    let house = House::new().await;
    let mut ada = house.ada().await;
    assert_eq!(
        ada.request("mcp_stderr", json!({"server_name": "probe"})).await,
        Err("PERMISSION_ERROR".to_owned())
    );
    let mut tokens = tokens();
    let more = toolyard_hub::Permissions::Only(["observe".to_owned()].into());
    tokens[1] = toolyard_serve::BearerToken::new(ADA, toolyard_hub::Principal::new("ada", more));
    house.keyring.replace(BearerCredentials { tokens, ..BearerCredentials::default() });
    within_timeout("the new permission", async {
        while ada.request("mcp_stderr", json!({"server_name": "probe"})).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}
