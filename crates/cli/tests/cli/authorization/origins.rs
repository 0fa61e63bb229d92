//! Which pages may use this server, and under which names it answers: `Origin` and `Host`, for
//! every class of routes, with and without authentication.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolyard_testkit::harness::{Scratch, Server, within_timeout};

use super::super::{SERVE, TOOLYARD};
use super::table::{Row, Table};

const ORIGINS: &str = include_str!("origins.txt");

/// The class of a route, as the columns name it: `token:rest` is REST at a yard that requires a
/// token, with a valid one.
async fn ask(server: &Server, token: Option<&str>, class: &str, host: &str, origin: Option<&str>) -> String {
    let (method, path) = match class {
        "health" => ("GET", "/health"),
        "page" => ("GET", "/"),
        "rest" => ("GET", "/mcp/tools"),
        "mcp" => ("POST", "/mcp"),
        "socket" => ("GET", "/control"),
        "preflight" => ("OPTIONS", "/mcp/tools"),
        other => panic!("unknown class {other}"),
    };
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"page","version":"1"}}}"#;
    let body = if class == "mcp" { body } else { "" };
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\n", body.len());
    if let Some(origin) = origin {
        head.push_str(&format!("origin: {origin}\r\n"));
    }
    if let (Some(token), false) = (token, class == "preflight") {
        head.push_str(&format!("authorization: Bearer {token}\r\n"));
    }
    head.push_str(match class {
        "socket" => {
            "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: toolyard.control.v1\r\n"
        }
        "preflight" => "access-control-request-method: GET\r\nconnection: close\r\n",
        "mcp" => {
            "content-type: application/json\r\naccept: application/json, text/event-stream\r\nconnection: close\r\n"
        }
        _ => "connection: close\r\n",
    });
    let mut stream = server.connect().await;
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut bytes = [0; 4096];
        let read = within_timeout("the head of an answer", stream.read(&mut bytes)).await.unwrap();
        assert_ne!(read, 0, "{class}, {host}, {origin:?}: {}", String::from_utf8_lossy(&answer));
        answer.extend(&bytes[..read]);
    }
    let head = String::from_utf8_lossy(&answer).to_lowercase();
    let readable = head.contains("\naccess-control-allow-origin:");
    let word = match head.split(' ').nth(1).unwrap_or_default() {
        "101" | "200" | "204" => "ok",
        status => status,
    };
    // A page of another origin can read the answer.
    if readable { format!("{word}+cors") } else { word.to_owned() }
}

#[tokio::test]
async fn pages_and_host_names_are_let_in_as_the_table_says() {
    let table = Table::read(ORIGINS);
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "demo = true\norigins = [\"https://page.example\"]\n");
    let start = async |more: &'static [&'static str]| -> Arc<Server> {
        Server::start(TOOLYARD, &[&SERVE[..], &["--config", &config], more].concat()).await
    };
    let (guarded, open) = tokio::join!(start(&[]), start(&["--auth", "none"]));
    let mut wrong = String::new();
    for row in &table.rows {
        let mut observed = Vec::new();
        for column in &table.columns {
            let (auth, class) = column.split_once(':').unwrap();
            let server = if auth == "token" { &guarded } else { &open };
            observed.push(observe(server, class, row).await);
        }
        wrong.extend(table.compare(row, &observed));
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Checks one cell: `Origin` and `Host` as in the row, with the port of this server for `PORT`.
async fn observe(server: &Server, class: &str, row: &Row) -> String {
    let port = server.address.rsplit(':').next().unwrap_or_default();
    let operation = row.operation.replace("PORT", port);
    let mut words = operation.split_whitespace();
    let (host, origin) = (words.next().unwrap_or_default(), words.next().filter(|word| *word != "-"));
    ask(server, server.token.as_deref(), class, host, origin).await
}
