//! A server over streamable HTTP, in either era: every message is a POST of its own.

mod pool;
mod reply;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use parking_lot::RwLock;
use reqwest::Url;
use tokio::sync::{Notify, oneshot};
use tokio_util::task::TaskTracker;

use self::reply::{HttpReply, HttpSender};
use super::authorization::{Authorization, auth_challenge};
use super::events::SseReader;
use super::message_log::{MessageLog, WireDirection};
use super::pending_requests::{PendingRequests, read_error, unreadable_error};
use super::same_origin::{SameOriginHttp, cross_origin_error};
use super::stdio::write_cancelled;
use super::{OutboundRequest, ServerMessage, ServerMessageHandler, WireError};
use crate::RawJson;
use crate::header as mirrored;
use crate::message::{Packet, RequestId, RpcMessage, parse, parse_all, write_request};
use crate::version::Version;

pub(crate) use self::reply::{is_event_stream, transport_error};

/// How often an interrupted legacy stream is resumed for one request.
const MOST_RESUMES: usize = 20;
/// The maximum number of characters of an error page in a message.
const PAGE: usize = 500;
/// The maximum size of an error response.
const LONGEST_REFUSAL: usize = 1024 * 1024;
/// The number of headers of a request besides those from the configuration, so that the map is
/// allocated only once.
const ROOM: usize = 12;

/// The settings of a connection over HTTP.
#[derive(Clone)]
pub struct HttpClientSettings {
    pub http: SameOriginHttp,
    pub url: Url,
    /// Headers from the configuration, sent with every request.
    pub headers: HeaderMap,
    pub authorization: Authorization,
    /// The maximum size of a message from the server.
    pub max_message_bytes: usize,
    pub listener: ServerMessageHandler,
    pub message_log: Arc<MessageLog>,
}

impl fmt::Debug for HttpClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClientSettings").field("url", &self.url.host_str()).finish_non_exhaustive()
    }
}

/// A server over streamable HTTP.
pub struct StreamableHttpClient {
    settings: HttpClientSettings,
    sender: Arc<HttpSender>,
    pending: PendingRequests,
    negotiated: RwLock<NegotiatedSession>,
    tasks: TaskTracker,
}

/// The negotiated session and protocol version.
#[derive(Debug, Clone, Default)]
struct NegotiatedSession {
    version: Option<Version>,
    session: Option<HeaderValue>,
}

impl StreamableHttpClient {
    pub fn new(settings: HttpClientSettings) -> Self {
        let pending = PendingRequests::new(Arc::clone(&settings.message_log));
        let sender = Arc::new(HttpSender::new(settings.http.clone(), settings.url.clone()));
        Self { settings, sender, pending, negotiated: RwLock::default(), tasks: TaskTracker::new() }
    }

    pub(crate) fn set_version(&self, version: Option<Version>) {
        self.lock_session().version = version;
    }

    pub(crate) async fn request(&self, request: OutboundRequest) -> Result<RawJson, WireError> {
        let id = self.pending.next_id();
        let text = write_request(&id, request.method, &request.params);
        let spoken = self.negotiated_session();
        let modern = spoken.session.is_none() && request.headers.contains_key("mcp-method");
        // Closing the stream cancels a modern request. A legacy request needs a notification.
        let mut guard = CancelOnDrop { client: (!modern).then_some(self), id: id.clone() };
        let answer = async {
            let response = self.post(text, &request.headers, &spoken).await?;
            if request.method == "initialize" {
                let session = response.headers.get(mirrored::SESSION).cloned();
                self.lock_session().session = session;
            }
            let awaited = AwaitedRequest { id: &id, tag: request.tag };
            if request.method == "subscriptions/listen" && !is_event_stream(&response.headers) {
                // Boxed because this future is large and plain responses do not need it.
                return Box::pin(self.read_json_lines(response, awaited)).await;
            }
            self.read_response(response, awaited).await
        }
        .await;
        guard.client = None;
        answer
    }

    pub(crate) async fn send(&self, text: String) -> Result<(), WireError> {
        let spoken = self.negotiated_session();
        self.post(text, &HeaderMap::new(), &spoken).await.map(drop)
    }

    /// Listens to the standing stream of a legacy session until it ends for good: the server does
    /// not offer one, or the session is gone. `opened` is dropped as soon as it is known whether
    /// the server offers one.
    pub async fn listen(&self, opened: oneshot::Sender<()>) -> WireError {
        let mut opened = Some(opened);
        let mut last: Option<String> = None;
        let mut wait = Duration::from_secs(1);
        loop {
            let answer = self.get(last.as_deref()).await;
            opened.take();
            let response = match answer {
                Ok(response) => response,
                Err(WireError::Unreachable(_) | WireError::Lost(_)) => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(Duration::from_secs(60));
                    continue;
                }
                Err(failure) => return failure,
            };
            let mut events = SseReader::new(response.body, self.settings.max_message_bytes);
            while let Ok(Some(event)) = events.next().await {
                last = event.id.or(last);
                wait = event.retry.map_or(wait, Duration::from_millis);
                self.handle_message(&event.data, None);
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Ends a legacy session.
    pub async fn end_session(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        let spoken = self.negotiated_session();
        if spoken.session.is_some() {
            let request = self.sender.send(Method::DELETE, || self.headers(&spoken), "");
            let _ = tokio::time::timeout(Duration::from_secs(2), request).await;
        }
    }

    async fn post(
        &self,
        text: String,
        more: &HeaderMap,
        spoken: &NegotiatedSession,
    ) -> Result<HttpReply, WireError> {
        self.pending.message_log.write(WireDirection::ToServer, &text);
        let response = self.sender.send(Method::POST, || self.post_headers(spoken, more), text).await?;
        self.check_status(response, spoken).await
    }

    async fn get(&self, last: Option<&str>) -> Result<HttpReply, WireError> {
        let spoken = self.negotiated_session();
        let headers = || {
            let mut headers = self.headers(&spoken);
            headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
            if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
                headers.insert(HeaderName::from_static("last-event-id"), last);
            }
            headers
        };
        let response = self.sender.send(Method::GET, headers, "").await?;
        self.check_status(response, &spoken).await
    }

    /// Turns an unsuccessful status into an error.
    async fn check_status(
        &self,
        response: HttpReply,
        spoken: &NegotiatedSession,
    ) -> Result<HttpReply, WireError> {
        match response.status.is_success() {
            true => Ok(response),
            // Boxed because this future is large and most requests do not need it.
            false => Err(Box::pin(status_error(response, spoken, &self.settings)).await),
        }
    }

    /// Returns the headers of a POST. `more` takes precedence.
    fn post_headers(&self, spoken: &NegotiatedSession, more: &HeaderMap) -> HeaderMap {
        let mut headers = self.headers(spoken);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        for name in more.keys() {
            headers.remove(name);
        }
        for (name, value) in more {
            headers.append(name, value.clone());
        }
        headers
    }

    fn headers(&self, spoken: &NegotiatedSession) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.settings.headers.len() + ROOM);
        headers.extend(self.settings.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(version) = spoken.version {
            headers.insert(
                HeaderName::from_static(mirrored::VERSION),
                HeaderValue::from_static(version.as_str()),
            );
        }
        if let Some(session) = &spoken.session {
            headers.insert(HeaderName::from_static(mirrored::SESSION), session.clone());
        }
        self.settings.authorization.add_to(&mut headers);
        headers
    }

    async fn read_response(
        &self,
        response: HttpReply,
        awaited: AwaitedRequest<'_>,
    ) -> Result<RawJson, WireError> {
        if is_event_stream(&response.headers) {
            // Boxed because this future is large and plain responses do not need it.
            return Box::pin(self.read_event_stream(response, awaited)).await;
        }
        let text = response.read_body(self.settings.max_message_bytes).await?;
        self.pending.message_log.write(WireDirection::FromServer, &text);
        match parse(&text) {
            Ok(Packet::Single(RpcMessage::Response(response))) if response.id == *awaited.id => {
                response.result.map_err(|error| WireError::Rpc(self.pending.parse_error(&error)))
            }
            Ok(Packet::Single(RpcMessage::Response(response))) => Err(WireError::Protocol(format!(
                "the response ID {:?} does not match the request",
                response.id
            ))),
            Ok(_) => Err(WireError::Protocol("the message is not a response to the request".to_owned())),
            Err(refusal) => Err(WireError::Protocol(refusal.error.message)),
        }
    }

    /// Reads the stream up to the response. Resumes an interrupted stream if the server is a legacy
    /// one that supports this.
    async fn read_event_stream(
        &self,
        response: HttpReply,
        awaited: AwaitedRequest<'_>,
    ) -> Result<RawJson, WireError> {
        let mut last: Option<String> = None;
        let mut retry = Duration::from_secs(1);
        let mut response = response;
        for _ in 0..MOST_RESUMES {
            let mut events = SseReader::new(response.body, self.settings.max_message_bytes);
            let mut paused = false;
            let broke = loop {
                match events.next().await {
                    Ok(Some(event)) => {
                        last = event.id.filter(|id| !id.is_empty()).or(last);
                        retry = event.retry.map_or(retry, Duration::from_millis);
                        if let Some(answer) = self.handle_message(&event.data, Some(awaited)) {
                            return answer;
                        }
                    }
                    Ok(None) => {
                        paused = true;
                        break "the stream ended before the response".to_owned();
                    }
                    Err(WireError::Lost(why)) => break why,
                    Err(failure) => return Err(failure),
                }
            };
            let resumable = last.as_deref().filter(|_| self.negotiated_session().session.is_some());
            let Some(from) = resumable else { return Err(WireError::Lost(broke)) };
            let returned = Arc::<Notify>::default();
            if paused {
                let returned = Arc::clone(&returned);
                (self.settings.listener)(ServerMessage::Paused { tag: awaited.tag, retry, returned });
            }
            // If our own client has reconnected, it does not have to wait: the server would have
            // responded by now.
            let _ = tokio::time::timeout(retry, returned.notified()).await;
            response = self.get(Some(from)).await.map_err(|_| WireError::Lost(broke))?;
        }
        Err(WireError::Lost("the stream was interrupted too often".to_owned()))
    }

    /// Reads messages line by line up to the response. Some servers send a subscription as JSON
    /// instead of events, and its body is incomplete until the subscription ends.
    async fn read_json_lines(
        &self,
        response: HttpReply,
        awaited: AwaitedRequest<'_>,
    ) -> Result<RawJson, WireError> {
        let mut events = SseReader::new(response.body, self.settings.max_message_bytes);
        while let Some(line) = events.next_line().await? {
            if let Some(answer) = self.handle_message(&line, Some(awaited)) {
                return answer;
            }
        }
        Err(WireError::Lost("the stream ended before the response".to_owned()))
    }

    /// Processes one event. Returns the response if it matches the awaited request.
    fn handle_message(
        &self,
        data: &str,
        awaited: Option<AwaitedRequest<'_>>,
    ) -> Option<Result<RawJson, WireError>> {
        if data.trim().is_empty() {
            return None;
        }
        self.pending.message_log.write(WireDirection::FromServer, data);
        let tag = awaited.map(|awaited| awaited.tag);
        let mut answer = None;
        for message in parse_all(data.as_bytes()) {
            match message {
                Ok(RpcMessage::Response(response))
                    if awaited.is_some_and(|awaited| response.id == *awaited.id) =>
                {
                    answer = Some(
                        response.result.map_err(|error| WireError::Rpc(self.pending.parse_error(&error))),
                    );
                }
                Ok(RpcMessage::Response(response)) => self.pending.record_stray_response(&response.id),
                Ok(RpcMessage::Notification(message)) => {
                    (self.settings.listener)(ServerMessage::Notification(message, tag))
                }
                Ok(RpcMessage::Request(message)) => {
                    (self.settings.listener)(ServerMessage::Request(message, tag))
                }
                Err(refusal) => {
                    self.pending.record_invalid_message("the event stream", &refusal, data);
                    (self.settings.listener)(ServerMessage::UnparsableLine(
                        data.chars().take(PAGE).collect(),
                    ));
                }
            }
        }
        answer
    }

    fn negotiated_session(&self) -> NegotiatedSession {
        self.negotiated.read().clone()
    }

    fn lock_session(&self) -> parking_lot::RwLockWriteGuard<'_, NegotiatedSession> {
        self.negotiated.write()
    }
}

impl fmt::Debug for StreamableHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamableHttpClient")
            .field("url", &self.settings.url.host_str())
            .finish_non_exhaustive()
    }
}

/// The request whose response is awaited.
#[derive(Clone, Copy)]
struct AwaitedRequest<'a> {
    id: &'a RequestId,
    tag: u64,
}

struct CancelOnDrop<'a> {
    client: Option<&'a StreamableHttpClient>,
    id: RequestId,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(post) = self.client else { return };
        let headers = post.post_headers(&post.negotiated_session(), &HeaderMap::new());
        let (way, text) = (Arc::clone(&post.sender), write_cancelled(&self.id));
        post.tasks.spawn(async move {
            let sent = way.send(Method::POST, || headers.clone(), text);
            let _ = tokio::time::timeout(Duration::from_secs(5), sent).await;
        });
    }
}

async fn status_error(
    response: HttpReply,
    spoken: &NegotiatedSession,
    settings: &HttpClientSettings,
) -> WireError {
    let status = response.status.as_u16();
    let challenge = auth_challenge(&response.headers);
    if status == 401 || (status == 403 && challenge.is_some()) {
        return WireError::Unauthorized { challenge, status };
    }
    if status == 404 && spoken.session.is_some() {
        return WireError::SessionGone;
    }
    if let Some(crossing) = cross_origin_error(&settings.url, response.status, &response.headers) {
        return crossing;
    }
    if let Some(place) = response.headers.get(header::LOCATION).filter(|_| response.status.is_redirection()) {
        let body = format!("redirects to {}", String::from_utf8_lossy(place.as_bytes()));
        return WireError::Status { status, body };
    }
    // Longer bodies are not reported, and protocol errors are short.
    let text = response.read_body(settings.max_message_bytes.min(LONGEST_REFUSAL)).await.unwrap_or_default();
    #[derive(serde::Deserialize)]
    struct ErrorBody {
        error: RawJson,
    }
    // A protocol error is more specific than the HTTP status.
    if let Ok(ErrorBody { error }) = serde_json::from_slice(&text)
        && error.get().contains("\"code\"")
    {
        let error = read_error(&error).unwrap_or_else(|| unreadable_error(&error));
        if spoken.session.is_some() && is_session_gone(status, &error.message) {
            return WireError::SessionGone;
        }
        return WireError::Rpc(error.with_status(status));
    }
    let body: String = String::from_utf8_lossy(&text).chars().take(PAGE).collect();
    if spoken.session.is_some() && is_session_gone(status, &body) {
        return WireError::SessionGone;
    }
    WireError::Status { status, body: body.trim().to_owned() }
}

/// Returns whether an error with status 400 means that the server does not know the session. The
/// protocol requires 404, but servers that were restarted do not always send it: the examples of
/// the TypeScript SDK send 400 with "No valid session ID provided".
fn is_session_gone(status: u16, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let words = ["session id", "session not found", "session is gone", "unknown session", "invalid session"];
    status == 400 && words.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests;
