//! Replays a recording over streamable HTTP, to any number of clients. Legacy clients get a session
//! and with it a position of their own in the recording; all modern clients share one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_upstream::MESSAGE_BYTES;
use toolyard_wire::{Packet, RequestId, RpcError, RpcMessage, parse};

use crate::answer_error::write_error_response;
use crate::http_front::{
    BoundFront, FrontBody, empty_response, full_body, read_body, response, text_response,
};
use crate::play::{FrameKind, Playing, Replay, ReplayFrame, ReplaySession};

/// The path of the endpoint.
pub(crate) const PATH: &str = "/mcp";
const SESSION: &str = "mcp-session-id";
const QUEUE: usize = 64;
/// At this many sessions, a new one replaces the oldest.
const MOST_SESSIONS: usize = 1_000;
/// The error has no request to name.
const NO_ID: Option<&RequestId> = None;

/// Serves clients at `/mcp` until `stop` is canceled.
pub async fn replay_http(replay: Arc<Replay>, front: BoundFront, stop: CancellationToken) {
    let endpoint = Arc::new(ReplayEndpoint {
        stateless: HttpReplaySession::new(Arc::clone(&replay)),
        replay,
        sessions: Mutex::default(),
        tasks: TaskTracker::new(),
        stop: stop.clone(),
    });
    let handling = Arc::clone(&endpoint);
    let handle = move |request| {
        let endpoint = Arc::clone(&handling);
        async move { endpoint.respond(request).await }
    };
    front.serve(handle, stop).await;
    endpoint.tasks.close();
    endpoint.tasks.wait().await;
}

struct ReplayEndpoint {
    replay: Arc<Replay>,
    /// For requests without a session.
    stateless: Arc<HttpReplaySession>,
    sessions: Mutex<HttpReplaySessions>,
    /// What notifications of clients have started.
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Default)]
struct HttpReplaySessions {
    by_id: HashMap<String, Arc<HttpReplaySession>>,
    oldest: VecDeque<String>,
}

struct HttpReplaySession {
    session: Arc<ReplaySession>,
    /// Messages that belong to no request, until a standing stream takes them.
    standing: Mutex<Option<mpsc::Receiver<ReplayFrame>>>,
}

impl HttpReplaySession {
    fn new(replay: Arc<Replay>) -> Arc<Self> {
        let (standing, frames) = mpsc::channel(QUEUE);
        let session = ReplaySession::new(replay, standing);
        Arc::new(Self { session, standing: Mutex::new(Some(frames)) })
    }
}

impl ReplayEndpoint {
    async fn respond(self: &Arc<Self>, request: Request<Incoming>) -> Response<FrontBody> {
        if request.uri().path() != PATH {
            return text_response(StatusCode::NOT_FOUND, "the recording is served at /mcp\n");
        }
        let id = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
        let session = match &id {
            None => Some(Arc::clone(&self.stateless)),
            Some(id) => self.sessions.lock().by_id.get(id).cloned(),
        };
        let Some(session) = session else {
            return refuse(StatusCode::NOT_FOUND, &RpcError::invalid_request("no such session"));
        };
        match *request.method() {
            Method::POST => self.post(session, request).await,
            Method::GET if id.is_some() => open_standing_stream(&session),
            Method::DELETE if id.is_some() => {
                self.close_session(&id.unwrap_or_default());
                empty_response(StatusCode::OK)
            }
            _ => {
                let mut refusal = empty_response(StatusCode::METHOD_NOT_ALLOWED);
                refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
                refusal
            }
        }
    }

    async fn post(
        self: &Arc<Self>,
        session: Arc<HttpReplaySession>,
        request: Request<Incoming>,
    ) -> Response<FrontBody> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json")) {
            let error = RpcError::invalid_request("`content-type` must be `application/json`");
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &error);
        }
        let has_session = request.headers().contains_key(SESSION);
        let body = match read_body(request.into_body(), MESSAGE_BYTES).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let message = match parse(&body) {
            Ok(Packet::Single(message)) => message,
            Ok(Packet::Batch(_)) => {
                let error = RpcError::invalid_request("a replay does not support batches");
                return refuse(StatusCode::BAD_REQUEST, &error);
            }
            Err(invalid) => {
                let text = write_error_response(invalid.id.as_ref(), &invalid.error);
                return response(StatusCode::BAD_REQUEST, "application/json", full_body(text));
            }
        };
        let RpcMessage::Request(request) = &message else {
            // The sender is not used: these messages have no response.
            let (out, _) = mpsc::channel(1);
            if let Some(play) = session.session.accept(message, out) {
                let stop = self.stop.clone();
                self.tasks.spawn(async move { stop.run_until_cancelled(play).await });
            }
            return empty_response(StatusCode::ACCEPTED);
        };
        let opens_session = request.method == "initialize" && !has_session;
        let (session, id) = match opens_session.then(|| self.open_session()) {
            Some(Ok((id, opened))) => (opened, Some(id)),
            Some(Err(refusal)) => return refusal,
            None => (session, None),
        };
        let (out, frames) = mpsc::channel(QUEUE);
        let Some(play) = session.session.accept(message, out) else {
            return empty_response(StatusCode::ACCEPTED);
        };
        let mut response = RequestFrames { play, frames, has_ended: false }.into_response().await;
        if let Some(Ok(id)) = id.map(HeaderValue::try_from) {
            response.headers_mut().insert(SESSION, id);
        }
        response
    }

    fn open_session(&self) -> Result<(String, Arc<HttpReplaySession>), Response<FrontBody>> {
        let id = toolyard_random::hex_id()
            .map_err(|error| text_response(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))?;
        let session = HttpReplaySession::new(Arc::clone(&self.replay));
        let mut sessions = self.sessions.lock();
        if sessions.oldest.len() >= MOST_SESSIONS
            && let Some(oldest) = sessions.oldest.pop_front()
            && let Some(closed) = sessions.by_id.remove(&oldest)
        {
            closed.session.close();
        }
        sessions.oldest.push_back(id.clone());
        sessions.by_id.insert(id.clone(), Arc::clone(&session));
        Ok((id, session))
    }

    fn close_session(&self, id: &str) {
        let mut sessions = self.sessions.lock();
        sessions.oldest.retain(|other| other != id);
        if let Some(closed) = sessions.by_id.remove(id) {
            closed.session.close();
        }
    }
}

/// A request in progress. It ends when the client no longer reads its response.
struct RequestFrames {
    play: Playing,
    frames: mpsc::Receiver<ReplayFrame>,
    has_ended: bool,
}

impl RequestFrames {
    async fn next(&mut self) -> Option<ReplayFrame> {
        loop {
            tokio::select! {
                biased;
                frame = self.frames.recv() => return frame,
                () = &mut self.play, if !self.has_ended => self.has_ended = true,
            }
        }
    }

    /// Responds with JSON, or with a stream if the server sent other messages first.
    async fn into_response(mut self) -> Response<FrontBody> {
        let Some(first) = self.next().await else {
            // The request was canceled.
            return empty_response(StatusCode::ACCEPTED);
        };
        match first.kind {
            FrameKind::Response(status) => {
                let status = status.and_then(|status| StatusCode::from_u16(status).ok());
                response(status.unwrap_or(StatusCode::OK), "application/json", full_body(first.text))
            }
            FrameKind::Body { status, .. } => {
                text_response(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), first.text)
            }
            FrameKind::Message => {
                let rest = stream::unfold((self, Some(first)), |(mut frames, first)| async move {
                    let frame = match first {
                        Some(first) => first,
                        None => frames.next().await?,
                    };
                    Some((Ok(event(&frame.text)), (frames, None)))
                });
                event_stream(StreamBody::new(rest).boxed_unsync())
            }
        }
    }
}

/// Returns a stream of messages that belong to no request. A session has one at a time.
fn open_standing_stream(session: &Arc<HttpReplaySession>) -> Response<FrontBody> {
    let Some(frames) = session.standing.lock().take() else {
        return text_response(StatusCode::CONFLICT, "the session already has a stream\n");
    };
    let standing = StandingStream { frames: Some(frames), session: Arc::clone(session) };
    let events = stream::unfold(standing, |mut standing| async move {
        let frame = standing.frames.as_mut()?.recv().await?;
        Some((Ok(event(&frame.text)), standing))
    });
    event_stream(StreamBody::new(events).boxed_unsync())
}

/// A standing stream. When it ends, the next one continues.
struct StandingStream {
    frames: Option<mpsc::Receiver<ReplayFrame>>,
    session: Arc<HttpReplaySession>,
}

impl Drop for StandingStream {
    fn drop(&mut self) {
        *self.session.standing.lock() = self.frames.take();
    }
}

fn event(text: &str) -> Frame<Bytes> {
    // Line breaks between tokens are only space, and would end the field.
    Frame::data(Bytes::from(format!("event: message\ndata: {}\n\n", text.replace(['\n', '\r'], " "))))
}

fn event_stream(body: FrontBody) -> Response<FrontBody> {
    let mut response = response(StatusCode::OK, "text/event-stream", body);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn refuse(status: StatusCode, error: &RpcError) -> Response<FrontBody> {
    response(status, "application/json", full_body(write_error_response(NO_ID, error)))
}
