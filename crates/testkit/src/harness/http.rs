//! A server over HTTP. Each request has its own connection, which closes when the reply is dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::message::Message;
use super::process::Process;
use super::schema::Checker;
use super::within_timeout;

/// A server process and where it listens.
pub struct Server {
    /// `None` if another test owns the process.
    process: Option<Arc<Mutex<Process>>>,
    /// Path of the MCP endpoint.
    path: String,
    /// `127.0.0.1:PORT`
    pub address: String,
    /// The token that the server printed, if any.
    pub token: Option<String>,
}

impl Server {
    /// Starts a server and waits until it prints its address.
    pub async fn start(program: &str, arguments: &[&str]) -> Arc<Self> {
        let (process, _stdin, stdout) = Process::start(program, arguments);
        let mut lines = BufReader::new(stdout).lines();
        let line = within_timeout("the address", lines.next_line()).await.unwrap();
        let line = line.unwrap_or_else(|| panic!("no address; standard error: {}", process.stderr()));
        let addresses: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| serde_json::json!({"mcp": line}));
        let url = addresses["mcp"].as_str().unwrap();
        let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
        let token = addresses["token"].as_str().map(ToOwned::to_owned);
        let (process, path) = (Some(Arc::new(Mutex::new(process))), "/mcp".to_owned());
        Arc::new(Self { process, path, address: address.to_owned(), token })
    }

    /// Returns a server that is already running, by the address of its MCP endpoint.
    pub fn running_at(url: &str) -> Arc<Self> {
        let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        Arc::new(Self { process: None, path: format!("/{path}"), address: address.to_owned(), token: None })
    }

    /// Returns the same server at another of its endpoints.
    pub fn with_path(&self, path: &str) -> Arc<Self> {
        let (address, token) = (self.address.clone(), self.token.clone());
        Arc::new(Self { process: self.process.clone(), path: path.to_owned(), address, token })
    }

    pub async fn process(&self) -> tokio::sync::MutexGuard<'_, Process> {
        self.process.as_ref().unwrap().lock().await
    }

    /// Opens a bare connection, for bytes that no HTTP client would send.
    pub async fn connect(&self) -> TcpStream {
        within_timeout("a connection", TcpStream::connect(&self.address)).await.unwrap()
    }

    /// Sends one request to the MCP endpoint.
    pub async fn send(
        &self,
        method: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
        checker: Arc<Checker>,
    ) -> Reply {
        let stream = self.connect().await;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // The reply shows how the connection ended.
            let _ = connection.await;
        }));
        let mut request = Request::builder().method(method).uri(&self.path).header("host", &self.address);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Ok(text) = std::str::from_utf8(&body) {
            checker.record_sent(text);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            checker,
            _connection: connection,
        }
    }
}

/// A response. Dropping it closes the connection.
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    body: Incoming,
    checker: Arc<Checker>,
    _connection: AbortOnDropHandle<()>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    pub async fn text(self) -> String {
        let whole = within_timeout("the end of the body", self.body.collect()).await.unwrap().to_bytes();
        String::from_utf8(whole.to_vec()).unwrap()
    }

    /// Returns the body as a validated message, or `None` if the body is empty.
    pub async fn message(self) -> Option<Message> {
        let checker = Arc::clone(&self.checker);
        let text = self.text().await;
        (!text.is_empty()).then(|| checker.read(&text))
    }

    /// Returns the status and the error code in the body.
    pub async fn refusal(self) -> (u16, i64) {
        let status = self.status;
        (status, self.message().await.unwrap_or_else(|| panic!("status {status} without a body")).code())
    }

    pub fn events(self) -> Events {
        assert!(self.is_stream(), "not a stream: {} {:?}", self.status, self.headers);
        Events { reply: self, buffer: String::new(), ready: VecDeque::new() }
    }
}

/// A stream of events. Dropping it closes the connection.
pub struct Events {
    reply: Reply,
    buffer: String,
    ready: VecDeque<Event>,
}

/// One server-sent event.
#[derive(Debug, Clone, Default)]
pub struct Event {
    pub id: Option<String>,
    pub retry: Option<u64>,
    /// The message in the event. An event that only carries an id has none.
    pub message: Option<Message>,
}

impl Events {
    /// Returns the next event, or `None` at the end of the stream. Skips comments.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let frame = within_timeout("an event", self.reply.body.frame()).await?.unwrap();
            self.buffer.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
            while let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                self.ready.extend(self.parse(&block));
            }
        }
    }

    /// Returns the next event that has a message.
    pub async fn next_message(&mut self) -> Option<(Option<String>, Message)> {
        loop {
            let Event { id, message, .. } = self.next().await?;
            if let Some(message) = message {
                return Some((id, message));
            }
        }
    }

    fn parse(&self, block: &str) -> Option<Event> {
        let mut event = Event::default();
        let mut any = false;
        for line in block.lines().filter(|line| !line.is_empty() && !line.starts_with(':')) {
            any = true;
            let (field, value) = line.split_once(": ").unwrap_or((line, ""));
            match field {
                "id" => event.id = Some(value.to_owned()),
                "retry" => event.retry = Some(value.parse().unwrap()),
                "data" if value.is_empty() => {}
                "data" => event.message = Some(self.reply.checker.read(value)),
                _ => panic!("unknown field in {block:?}"),
            }
        }
        any.then_some(event)
    }
}
