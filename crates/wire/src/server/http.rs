//! Streamable HTTP for both eras on one endpoint. This file detects the era of a request;
//! [`modern`] and [`legacy`] respond to it. The caller is already authenticated.

mod charged_response;
mod legacy;
mod modern;
pub(crate) mod stream;
pub(crate) mod stream_log;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Method, Request as HttpRequest, Response as HttpResponse, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client_channel::{ClientChannel, OutgoingFrame, PendingClientRequests, QUEUE};
use super::session::SessionRegistry;
use super::{ResponseFuture, RpcResult, Service};
use crate::header as mirrored;
use crate::message::{Packet, RequestId, RpcMessage, parse, write_error};
use crate::meta::Meta;
use crate::rpc_error::RpcError;
use crate::version::{Era, Version};
use stream::Retention;

/// The settings of an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointSettings {
    /// The maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    /// How long a client may take to send a request body.
    pub body_timeout: Duration,
    /// The maximum number of open legacy sessions. At the limit, a new session replaces the
    /// caller's own session that has been idle longest.
    pub max_sessions: usize,
    /// How long an unused legacy session stays open.
    pub session_idle: Duration,
    /// How long a call continues after its legacy client was disconnected, so that the client can
    /// come back.
    pub resume_timeout: Duration,
    /// How long a call may be silent before its response becomes a stream, so that no intermediary
    /// closes the connection.
    pub stream_after: Duration,
    /// The events that are retained for clients that come back. Endpoints with clones of the same
    /// settings share it.
    pub retention: Retention,
}

impl Default for EndpointSettings {
    fn default() -> Self {
        Self {
            max_body_bytes: 10 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            max_sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            resume_timeout: Duration::from_secs(30),
            stream_after: Duration::from_secs(5),
            retention: Retention::default(),
        }
    }
}

/// An MCP endpoint.
#[derive(Debug)]
pub struct Endpoint<S: Service> {
    service: Arc<S>,
    settings: EndpointSettings,
    registry: Arc<SessionRegistry<S::Caller>>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl<S: Service> Endpoint<S> {
    /// Creates an endpoint. Must be called inside a runtime, because the endpoint closes idle
    /// sessions in the background until it is closed.
    pub fn new(service: Arc<S>, settings: EndpointSettings) -> Arc<Self> {
        let endpoint = Arc::new(Self {
            service,
            registry: Arc::new(SessionRegistry::new(settings.max_sessions)),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            settings,
        });
        let (roster, idle) = (Arc::clone(&endpoint.registry), endpoint.settings.session_idle);
        let closing = endpoint.closing.clone();
        endpoint.tasks.spawn(closing.run_until_cancelled_owned(async move {
            loop {
                tokio::time::sleep(idle.min(Duration::from_secs(60))).await;
                roster.sweep(idle);
            }
        }));
        endpoint
    }

    /// Returns the open legacy sessions, for announcements.
    pub fn sessions(&self) -> &Arc<SessionRegistry<S::Caller>> {
        &self.registry
    }

    /// Ends what never ends on its own: standing streams and subscriptions. Calls in flight
    /// continue.
    pub fn close(&self) {
        self.closing.cancel();
        for (_, session) in self.registry.all() {
            if let Some(standing) = session.standing_streams() {
                standing.end();
            }
        }
    }

    /// Waits for calls that outlive their connection, then closes all sessions.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.registry.close_all();
    }

    /// Closes all sessions immediately and cancels their calls.
    pub fn close_sessions(&self) {
        self.registry.close_all();
    }

    /// Responds to one HTTP request.
    pub async fn respond(
        self: &Arc<Self>,
        caller: S::Caller,
        request: HttpRequest<Body>,
    ) -> HttpResponse<Body> {
        let (parts, body) = request.into_parts();
        let bytes = match parts.method {
            Method::POST => match self.read_body(&parts.headers, body).await {
                Ok(bytes) => bytes,
                Err(refused) => return refused,
            },
            _ => bytes::Bytes::new(),
        };
        if let Some(response) = self.service.forward(&caller, &self.registry, &parts, &bytes).await {
            return response;
        }
        match parts.method {
            Method::POST => self.post(caller, parts.headers, &bytes).await,
            Method::GET => self.listen(&caller, &parts.headers).await,
            Method::DELETE => self.delete(&caller, &parts.headers),
            _ => method_not_allowed(),
        }
    }

    async fn read_body(&self, headers: &HeaderMap, body: Body) -> Result<bytes::Bytes, HttpResponse<Body>> {
        let kind =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let error = RpcError::invalid_request("`content-type` must be `application/json`");
            return Err(error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &error));
        }
        let whole = Limited::new(body, self.settings.max_body_bytes).collect();
        match tokio::time::timeout(self.settings.body_timeout, whole).await {
            Ok(Ok(whole)) => Ok(whole.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let message = format!("message exceeds the limit of {} bytes", self.settings.max_body_bytes);
                let error = RpcError::invalid_request(message);
                Err(error_response(StatusCode::PAYLOAD_TOO_LARGE, None, &error))
            }
            Ok(Err(error)) => {
                let error = RpcError::parse(format!("cannot read the body: {error}"));
                Err(error_response(StatusCode::BAD_REQUEST, None, &error))
            }
            Err(_) => {
                let error = RpcError::invalid_request("the body did not arrive in time");
                Err(error_response(StatusCode::REQUEST_TIMEOUT, None, &error))
            }
        }
    }

    async fn post(
        self: &Arc<Self>,
        caller: S::Caller,
        headers: HeaderMap,
        bytes: &[u8],
    ) -> HttpResponse<Body> {
        let packet = match parse(bytes) {
            Ok(packet) => packet,
            Err(refusal) => {
                return error_response(StatusCode::BAD_REQUEST, refusal.id.as_ref(), &refusal.error);
            }
        };
        let id = match &packet {
            Packet::Single(RpcMessage::Request(request)) => Some(request.id.clone()),
            _ => None,
        };
        match detect_era(&headers, &packet) {
            Ok(Era::Modern) => match packet {
                Packet::Single(message) => self.answer_modern(caller, headers, message).await,
                Packet::Batch(_) => {
                    let error = RpcError::invalid_request("this protocol version does not support batches");
                    error_response(StatusCode::BAD_REQUEST, None, &error)
                }
            },
            Ok(Era::Legacy) => self.answer_legacy(caller, headers, packet).await,
            Err(error) => error_response(StatusCode::BAD_REQUEST, id.as_ref(), &error),
        }
    }
}

/// Detects the era of a request. It is legacy if the header has a legacy version, or if neither
/// header nor body has a version.
fn detect_era(headers: &HeaderMap, packet: &Packet) -> Result<Era, RpcError> {
    let requested = mirrored::header_text(headers, mirrored::VERSION)?;
    if let Some(requested) = requested {
        let version = Version::parse(requested);
        let legacy = match version {
            Some(version) => version.era() == Era::Legacy,
            None => headers.contains_key(mirrored::SESSION),
        };
        return Ok(if legacy { Era::Legacy } else { Era::Modern });
    }
    let Packet::Single(RpcMessage::Request(request)) = packet else { return Ok(Era::Legacy) };
    let modern = request.method == "server/discover" || Meta::read(request.params.as_deref())?.has_version();
    Ok(if modern { Era::Modern } else { Era::Legacy })
}

/// The response formats that the client accepts. A client that sends no `Accept` header accepts
/// both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcceptHeader {
    json: bool,
    events: bool,
    /// Whether event streams are listed first. Such a client gets a stream even if no message
    /// precedes the response.
    events_first: bool,
}

impl AcceptHeader {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut any = false;
        let mut accepts = Self { json: false, events: false, events_first: false };
        for value in headers.get_all(header::ACCEPT) {
            any = true;
            for kind in value.to_str().unwrap_or_default().split(',') {
                match kind.split(';').next().unwrap_or_default().trim() {
                    "*/*" => (accepts.json, accepts.events) = (true, true),
                    "application/json" | "application/*" => accepts.json = true,
                    "text/event-stream" => {
                        accepts.events_first |= !accepts.json && !accepts.events;
                        accepts.events = true;
                    }
                    "text/*" => accepts.events = true,
                    _ => {}
                }
            }
        }
        if any { accepts } else { Self { json: true, events: true, events_first: false } }
    }

    fn accepts_nothing(self) -> bool {
        !self.json && !self.events
    }
}

pub(crate) fn error_response(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &RpcError,
) -> HttpResponse<Body> {
    json_response(status, write_error(id, error))
}

pub(crate) fn json_response(status: StatusCode, text: String) -> HttpResponse<Body> {
    response_with_body(status, Some("application/json"), Body::from(text))
}

pub(crate) fn event_stream_response(body: Body) -> HttpResponse<Body> {
    let mut response = response_with_body(StatusCode::OK, Some("text/event-stream"), body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    response
}

pub(crate) fn empty_response(status: StatusCode) -> HttpResponse<Body> {
    response_with_body(status, None, Body::empty())
}

fn response_with_body(status: StatusCode, kind: Option<&'static str>, body: Body) -> HttpResponse<Body> {
    let mut response = HttpResponse::new(body);
    *response.status_mut() = status;
    if let Some(kind) = kind {
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    }
    response
}

pub(crate) fn method_not_allowed() -> HttpResponse<Body> {
    let mut response = empty_response(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST, GET, DELETE"));
    response
}

/// A request in progress and the messages that it sends, in order and all before the response.
pub(crate) struct RunningRequest {
    future: ResponseFuture,
    outgoing: mpsc::Receiver<OutgoingFrame>,
    answer: Option<RpcResult>,
}

/// The next step of a running request.
#[derive(Debug)]
pub(crate) enum RunningRequestEvent {
    Outgoing(OutgoingFrame),
    Response(RpcResult),
    /// No event for this long.
    Idle,
}

impl RunningRequest {
    /// Starts a request with a channel that leads here.
    pub(crate) fn start(
        asks: Option<Arc<PendingClientRequests>>,
        begin: impl FnOnce(ClientChannel) -> ResponseFuture,
    ) -> Self {
        let (sender, outgoing) = mpsc::channel(QUEUE);
        Self { future: begin(ClientChannel::new(sender, asks)), outgoing, answer: None }
    }

    pub(crate) async fn next_event(&mut self, patience: Duration) -> RunningRequestEvent {
        if self.answer.is_none() {
            tokio::select! {
                biased;
                Some(frame) = self.outgoing.recv() => return RunningRequestEvent::Outgoing(frame),
                answer = &mut self.future => self.answer = Some(answer),
                () = tokio::time::sleep(patience) => return RunningRequestEvent::Idle,
            }
        }
        // Messages that were sent together with the response come before it.
        if let Ok(frame) = self.outgoing.try_recv() {
            return RunningRequestEvent::Outgoing(frame);
        }
        match self.answer.take() {
            Some(answer) => RunningRequestEvent::Response(answer),
            None => RunningRequestEvent::Idle,
        }
    }

    /// Cancels the request. Returns its last messages, which cancel its pending requests to the
    /// client.
    pub(crate) fn cancel(mut self) -> Vec<OutgoingFrame> {
        while self.outgoing.try_recv().is_ok() {}
        drop(self.future);
        std::iter::from_fn(|| self.outgoing.try_recv().ok()).collect()
    }
}

#[cfg(test)]
mod tests;
