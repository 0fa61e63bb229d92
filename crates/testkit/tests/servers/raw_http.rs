//! Hand-written HTTP servers, for answers that no library would send: a legacy MCP server over
//! streamable HTTP that redirects its calls, and one over the old HTTP+SSE transport with results
//! of any size.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// A server on a loopback address. It stops when this value is dropped.
pub(super) struct RawServer {
    pub(super) url: String,
    /// The head of every `tools/call` request, in lowercase.
    pub(super) calls: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

/// Speaks streamable HTTP with a session, and answers every call with this status line and
/// `location`.
pub(super) async fn redirecting_calls(status: &'static str, location: String) -> RawServer {
    serve(move |stream, calls| answer_or_redirect(stream, calls, status, location.clone())).await
}

/// Speaks the old HTTP+SSE transport. Its tool `large` returns a text of this many bytes, `small`
/// one of two bytes.
pub(super) async fn over_old_sse(bytes: usize) -> RawServer {
    let events: Arc<Mutex<Option<mpsc::Sender<String>>>> = Arc::default();
    serve(move |stream, calls| stream_or_post(stream, calls, Arc::clone(&events), bytes)).await
}

async fn serve<F>(answer: impl Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> F + Send + 'static) -> RawServer
where
    F: Future<Output = Option<()>> + Send + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&calls);
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        let mut open = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.spawn(answer(stream, Arc::clone(&seen)));
        }
    }));
    RawServer { url, calls, _task: task }
}

async fn answer_or_redirect(
    mut stream: TcpStream,
    calls: Arc<Mutex<Vec<String>>>,
    status: &str,
    location: String,
) -> Option<()> {
    let (head, message) = read_request(&mut stream).await?;
    let answer = match message["method"].as_str() {
        Some("tools/call") => {
            calls.lock().push(head);
            format!("HTTP/1.1 {status}\r\nlocation: {location}\r\n{NO_BODY}")
        }
        _ => match result_of(&message, 0) {
            Some(text) => {
                let length = text.len();
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s3ssion\r\n\
                     content-length: {length}\r\nconnection: close\r\n\r\n{text}"
                )
            }
            None => format!("HTTP/1.1 202 Accepted\r\n{NO_BODY}"),
        },
    };
    stream.write_all(answer.as_bytes()).await.ok()
}

async fn stream_or_post(
    mut stream: TcpStream,
    calls: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<Option<mpsc::Sender<String>>>>,
    bytes: usize,
) -> Option<()> {
    let (head, message) = read_request(&mut stream).await?;
    if head.starts_with("get ") {
        let (sender, mut queued) = mpsc::channel(16);
        *events.lock() = Some(sender);
        let begin = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                     event: endpoint\ndata: /post\n\n";
        stream.write_all(begin.as_bytes()).await.ok()?;
        while let Some(text) = queued.recv().await {
            stream.write_all(format!("event: message\ndata: {text}\n\n").as_bytes()).await.ok()?;
        }
        return Some(());
    }
    stream.write_all(format!("HTTP/1.1 202 Accepted\r\n{NO_BODY}").as_bytes()).await.ok()?;
    if message["method"] == "tools/call" {
        calls.lock().push(head);
    }
    let sender = events.lock().clone();
    sender?.send(result_of(&message, bytes)?).await.ok()
}

const NO_BODY: &str = "content-length: 0\r\nconnection: close\r\n\r\n";

/// Returns the head of a request in lowercase, and its body.
async fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some((head, serde_json::from_str(body).unwrap_or_default()));
        }
    }
}

/// Returns the answer to a legacy request, or `None` for a notification.
fn result_of(message: &Value, bytes: usize) -> Option<String> {
    let id = message.get("id")?;
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let result = match (message["method"].as_str()?, message["params"]["name"].as_str()) {
        ("initialize", _) => json!({
            "protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "1"},
        }),
        ("tools/list", _) => json!({"tools": [tool("large"), tool("small")]}),
        ("tools/call", name) => {
            let length = if name == Some("large") { bytes } else { 2 };
            json!({"content": [{"type": "text", "text": "x".repeat(length)}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}
