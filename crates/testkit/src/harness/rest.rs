//! Plain HTTP requests to a server, on any path: complete answers and event streams.

use std::collections::VecDeque;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::http::Server;
use super::within_timeout;

/// The head of an answer whose body is still to come. Dropping it closes the connection.
pub struct PendingResponse {
    pub status: u16,
    pub headers: HeaderMap,
    body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct RestEvent {
    pub id: String,
    pub name: String,
    pub data: Value,
}

/// A stream of events. Dropping it closes the connection.
pub struct RestEventStream {
    pub head: PendingResponse,
    buffer: String,
    ready: VecDeque<RestEvent>,
}

impl Server {
    /// Sends a request and waits for the head of the answer.
    pub async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> PendingResponse {
        let stream = self.connect().await;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // The answer shows how the connection ended.
            let _ = connection.await;
        }));
        let mut request = Request::builder().method(method).uri(path).header("host", &self.address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        let response = within_timeout("an answer", sender.send_request(request)).await.unwrap();
        let (parts, body) = response.into_parts();
        PendingResponse {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            _connection: connection,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"").await.read_body().await
    }

    /// Sends JSON and waits for the answer.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, &[], body).await
    }

    pub async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        self.request("POST", path, &headers, body.to_string().as_bytes()).await.read_body().await
    }

    /// Executes a tool with these params.
    pub async fn execute(&self, tool: &str, params: Value) -> Answer {
        self.post(&format!("/mcp/tools/{tool}/execute"), &serde_json::json!({"params": params})).await
    }

    /// Executes a tool and reads its events.
    pub async fn listen(&self, path: &str, body: &Value) -> RestEventStream {
        let headers = [("content-type", "application/json"), ("accept", "text/event-stream")];
        let head = self.request("POST", path, &headers, body.to_string().as_bytes()).await;
        assert_eq!(head.header("content-type"), Some("text/event-stream"), "{}", head.status);
        RestEventStream { head, buffer: String::new(), ready: VecDeque::new() }
    }
}

impl PendingResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub async fn read_body(self) -> Answer {
        let bytes = within_timeout("the end of the body", self.body.collect()).await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: self.status, headers: self.headers, text }
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the body as JSON. Replaces the one number that exceeds the range of a double.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text.replace("1e400", "1e300"))
            .unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Returns the status and the code of an error, whose envelope must be complete.
    pub fn refusal(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["success"], false, "{body}");
        assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        for (key, right) in [
            ("executionId", body["metadata"]["executionId"].is_string()),
            ("duration", body["metadata"]["duration"].is_u64()),
            ("timestamp", body["metadata"]["timestamp"].is_string()),
        ] {
            assert!(right, "no {key} in {body}");
        }
        assert_eq!(self.header("content-type"), Some("application/json"));
        (self.status, body["error"]["code"].as_str().unwrap().to_owned())
    }
}

impl RestEventStream {
    /// Returns the next event, or `None` at the end. Skips comments.
    pub async fn next(&mut self) -> Option<RestEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let frame = within_timeout("an event", self.head.body.frame()).await?.unwrap();
            self.buffer.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
            while let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                self.ready.extend(parse(&block));
            }
        }
    }

    /// Reads all events to the end.
    pub async fn all(mut self) -> Vec<RestEvent> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

fn parse(block: &str) -> Option<RestEvent> {
    let lines: Vec<&str> = block.lines().filter(|line| !line.is_empty() && !line.starts_with(':')).collect();
    if lines.is_empty() {
        return None;
    }
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        let values: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(&prefix)).collect();
        values.join("\n")
    };
    let data = serde_json::from_str(&field("data")).unwrap_or_else(|error| panic!("{error} in {block:?}"));
    Some(RestEvent { id: field("id"), name: field("event"), data })
}
