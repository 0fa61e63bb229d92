//! A proxy between clients and a server behind a URL. Requests and responses pass with their
//! headers, event streams as they arrive; the messages in them are recorded. Headers are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use reqwest::Url;
use reqwest::redirect::Policy;
use tokio_util::sync::CancellationToken;
use toolyard_upstream::{MESSAGE_BYTES, tls_config};
use toolyard_wire::{MessageTap, WireDirection};

use crate::http_front::{BoundFront, FrontBody, full_body, read_body, text_response};
use crate::lines::{LineSplitter, SplitLine};
use crate::record_stdio::too_long;
use crate::writer::CassetteWriter;

/// Headers that belong to one connection, and those that the proxy sets itself. Without
/// `accept-encoding`, the recording contains text.
const OWN: [HeaderName; 10] = [
    header::CONNECTION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::ACCEPT_ENCODING,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
];

/// The server that a recording is about.
#[derive(Debug, Clone)]
pub struct ProxyTarget {
    url: Url,
    /// Replace headers of the client with the same name.
    headers: HeaderMap,
    client: reqwest::Client,
}

impl ProxyTarget {
    pub fn new(url: Url, headers: HeaderMap) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls_config())
            .connect_timeout(Duration::from_secs(10))
            // The client decides what to do with a redirect.
            .redirect(Policy::none())
            .build()?;
        Ok(Self { url, headers, client })
    }

    /// The path of the endpoint, here and at the server.
    pub fn path(&self) -> &str {
        self.url.path()
    }
}

/// Serves clients at the path of the target until `stop` is canceled.
pub async fn record_http(
    target: ProxyTarget,
    writer: Arc<CassetteWriter>,
    front: BoundFront,
    stop: CancellationToken,
) {
    let proxy = Arc::new(RecordingProxy { target, writer, exchanges: AtomicU64::new(0) });
    let handle = move |request| {
        let proxy = Arc::clone(&proxy);
        async move { proxy.forward(request).await.unwrap_or_else(|refusal| refusal) }
    };
    front.serve(handle, stop).await;
}

struct RecordingProxy {
    target: ProxyTarget,
    writer: Arc<CassetteWriter>,
    /// The number of HTTP requests so far.
    exchanges: AtomicU64,
}

impl RecordingProxy {
    async fn forward(&self, request: Request<Incoming>) -> Result<Response<FrontBody>, Response<FrontBody>> {
        let (head, body) = request.into_parts();
        let mut url = self.target.url.clone();
        let is_endpoint = head.uri.path() == self.target.path();
        if !is_endpoint || head.uri.query().is_some() {
            url.set_path(head.uri.path());
            url.set_query(head.uri.query());
        }
        let stream = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let body = read_body(body, MESSAGE_BYTES).await?;
        let mut headers = passed_on(&head.headers);
        for (name, value) in &self.target.headers {
            headers.insert(name, value.clone());
        }
        if is_endpoint && head.method == Method::POST && !body.is_empty() {
            self.writer.tap(Some(stream), Option::default())(WireDirection::ToServer, &body);
        }
        let sent = self.target.client.request(head.method, url).headers(headers).body(body).send().await;
        let answer = sent.map_err(|error| {
            // The URL can contain a secret.
            let reason = error.without_url();
            let text = format!("the recorder cannot reach the server: {reason}\n");
            self.writer.write_note(text.trim_end());
            text_response(StatusCode::BAD_GATEWAY, text)
        })?;
        let status = answer.status();
        let headers = passed_on(answer.headers());
        let other = (status != StatusCode::OK).then_some(status.as_u16());
        let tap = is_endpoint.then(|| self.writer.tap(Some(stream), other));
        let is_stream = headers
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"));
        let body = match is_stream {
            true => self.relay_stream(answer, tap),
            false => full_body(self.relay_body(answer, tap).await?),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Reads a body that is one message, or none.
    async fn relay_body(
        &self,
        answer: reqwest::Response,
        tap: Option<MessageTap>,
    ) -> Result<Bytes, Response<FrontBody>> {
        let mut body = Vec::new();
        let mut chunks = answer.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| {
                let text = format!("the response of the server broke off: {}\n", error.without_url());
                self.writer.write_note(text.trim_end());
                text_response(StatusCode::BAD_GATEWAY, text)
            })?;
            body.extend_from_slice(&chunk);
            if body.len() > MESSAGE_BYTES {
                let text = too_long(WireDirection::FromServer);
                self.writer.write_note(&text);
                return Err(text_response(StatusCode::BAD_GATEWAY, format!("{text}\n")));
            }
        }
        if let Some(tap) = tap
            && !body.trim_ascii().is_empty()
        {
            tap(WireDirection::FromServer, &body);
        }
        Ok(body.into())
    }

    /// Passes on events as they arrive.
    fn relay_stream(&self, answer: reqwest::Response, tap: Option<MessageTap>) -> FrontBody {
        let mut events = tap.map(|tap| EventTap::new(tap, Arc::clone(&self.writer)));
        let frames = answer.bytes_stream().map_err(std::io::Error::other).map_ok(move |chunk| {
            if let Some(events) = &mut events {
                events.push(&chunk);
            }
            Frame::data(chunk)
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// Records the messages of an event stream.
struct EventTap {
    tap: MessageTap,
    writer: Arc<CassetteWriter>,
    lines: LineSplitter,
    data: Vec<u8>,
}

impl EventTap {
    fn new(tap: MessageTap, writer: Arc<CassetteWriter>) -> Self {
        Self { tap, writer, lines: LineSplitter::new(MESSAGE_BYTES), data: Vec::new() }
    }

    fn push(&mut self, chunk: &[u8]) {
        let Self { tap, writer, lines, data } = self;
        lines.push(chunk, |line| {
            let SplitLine::Complete(line) = line else {
                return writer.write_note(&too_long(WireDirection::FromServer));
            };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(more) = line.strip_prefix(b"data:") {
                if !data.is_empty() {
                    data.push(b'\n');
                }
                data.extend_from_slice(more.strip_prefix(b" ").unwrap_or(more));
            }
            if data.len() > MESSAGE_BYTES {
                data.clear();
                writer.write_note(&too_long(WireDirection::FromServer));
            }
            if line.is_empty() && !data.is_empty() {
                tap(WireDirection::FromServer, data);
                data.clear();
            }
        });
    }
}

/// Returns the headers without those of one connection.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let of_connection: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let is_passed_on = |name: &HeaderName| {
        !OWN.contains(name)
            && name != "keep-alive"
            && !of_connection.iter().any(|other| other == name.as_str())
    };
    headers
        .iter()
        .filter(|(name, _)| is_passed_on(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
