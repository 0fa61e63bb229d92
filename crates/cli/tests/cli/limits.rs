//! How much memory and how many connections one client of the real binary may take from the others.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use toolyard_testkit::harness::{Scratch, Server, within_timeout};

use super::access::{make, serve};

/// Starts a yard with the tokens of two principals.
async fn with_tokens(scratch: &Scratch, more: &str) -> (Arc<Server>, [String; 2]) {
    let mut config = format!("demo = true\n{more}\n");
    let mut tokens = Vec::new();
    for name in ["heavy", "light"] {
        let (token, lines) = make(&["--name", name, "--permission", "none"]).await;
        config = format!("{config}\n{lines}\n");
        tokens.push(format!("Bearer {token}"));
    }
    (serve(scratch, &config).await, <[String; 2]>::try_from(tokens).unwrap())
}

async fn add(server: &Server, bearer: &str) -> (u16, Option<String>) {
    let params = json!({"params": {"a": 1, "b": 2}});
    let answer = server.post_with("/mcp/tools/add/execute", &[("authorization", bearer)], &params).await;
    (answer.status, answer.header("retry-after").map(str::to_owned))
}

/// Opens sessions and keeps them open.
async fn open_sessions(server: &Server, bearer: &str) {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let headers = [("authorization", bearer), ("accept", "application/json, text/event-stream")];
    for _ in 0..20 {
        assert_eq!(server.post_with("/mcp", &headers, &message).await.status, 200);
    }
}

#[tokio::test]
async fn above_the_memory_mark_the_heaviest_principal_is_refused_and_a_light_one_is_served() {
    let scratch = Scratch::new();
    let (server, [heavy, _]) = with_tokens(&scratch, "").await;
    open_sessions(&server, &heavy).await;
    assert_eq!(add(&server, &heavy).await, (200, None));
    let used = server.process().await.megabytes() * 1024 * 1024;
    server.process().await.kill().await;

    // The same work takes a process above this mark, but far below a third above it.
    let mark = used / 100 * 90;
    let (server, [heavy, light]) =
        with_tokens(&scratch, &format!("[limits]\nmemory_mark_bytes = {mark}")).await;
    open_sessions(&server, &heavy).await;
    let refused = within_timeout("a refusal", async {
        loop {
            match add(&server, &heavy).await {
                (200, _) => tokio::time::sleep(Duration::from_millis(20)).await,
                refused => return refused,
            }
        }
    });
    assert_eq!(refused.await, (429, Some("1".to_owned())));
    assert_eq!(add(&server, &light).await, (200, None));
    let list = server.request("GET", "/mcp/tools", &[("authorization", &light)], b"").await;
    assert_eq!(list.status, 200);
    assert_eq!(server.get("/health").await.status, 200);
}

#[tokio::test]
async fn hundreds_of_idle_connections_do_not_block_new_clients() {
    let scratch = Scratch::new();
    let limits = "[connections]\ntotal = 150\nunauthenticated = 100\nunauthenticated_per_address = 100";
    let (server, [known, _]) = with_tokens(&scratch, limits).await;
    let mut idle: Vec<TcpStream> = Vec::new();
    for number in 0..400 {
        idle.push(server.connect().await);
        if number % 50 == 49 {
            assert_eq!(server.get("/health").await.status, 200, "beside {number}");
            assert_eq!(add(&server, &known).await.0, 200, "beside {number}");
        }
    }
    let read = within_timeout("the oldest connection to close", idle[0].read(&mut [0; 1])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    // The newest are still open. Only as many connections as needed are closed.
    let newest = idle.last_mut().unwrap();
    let open = tokio::time::timeout(Duration::from_millis(50), newest.read(&mut [0; 1])).await;
    assert!(open.is_err(), "{open:?}");
}
