//! HTTP as bytes on a separate connection, from a chosen loopback address.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Returns a POST with a JSON body. `headers` are complete lines.
pub(crate) fn post(address: &str, token: &str, path: &str, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends a request and reads up to `most` bytes of the answer. Returns `None` if the server sends
/// no answer.
pub(crate) async fn exchange(
    from: Ipv4Addr,
    address: &str,
    request: &[u8],
    most: usize,
    patience: Duration,
) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    let talking = async {
        let mut stream = connect(from, address).await?;
        stream.write_all(request).await.ok()?;
        let mut buffer = [0; 8192];
        while answer.len() < most {
            match stream.read(&mut buffer).await {
                Ok(read @ 1..) => answer.extend_from_slice(&buffer[..read]),
                _ => break,
            }
        }
        Some(())
    };
    let _ = timeout(patience, talking).await;
    (!answer.is_empty()).then_some(answer)
}

pub(crate) async fn connect(from: Ipv4Addr, address: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.bind(SocketAddr::new(from.into(), 0)).ok()?;
    socket.connect(address.parse().ok()?).await.ok()
}
