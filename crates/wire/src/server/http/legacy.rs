//! Legacy requests: sessions, responses as JSON or as a resumable stream, the standing GET stream,
//! and DELETE.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::{HeaderMap, HeaderValue, Response as HttpResponse, StatusCode, header};
use tokio_util::sync::CancellationToken;

use super::charged_response::{ChargedBytes, ChargedResponse, charged_body};
use super::stream::{ForeignStream, KEEP_ALIVE, ResumableStream, ResumableStreams, StandingStreams};
use super::{
    AcceptHeader, Endpoint, empty_response, error_response, event_stream_response, json_response,
    method_not_allowed, response_with_body,
};
use super::{RunningRequest, RunningRequestEvent};
use crate::header as mirrored;
use crate::message::{InvalidMessage, Packet, RequestId, RpcMessage, RpcRequest, write_error, write_outcome};
use crate::meta::ClientProfile;
use crate::rpc_error::{RpcError, code};
use crate::server::client_channel::OutgoingFrame;
use crate::server::legacy::{
    SET_LEVEL, answer_in_transport, build_legacy_request, cancelled_request, initialize_result,
    read_initialize,
};
use crate::server::session::{InFlightRequest, RestoredSession, Session, SessionId, StandingChannel};
use crate::server::{RequestTransport, ResponseFuture, RpcResult, Service};
use crate::version::{Era, Version};

/// How long a disconnected client should wait before it comes back.
const RETRY: Duration = Duration::from_millis(1_000);
/// The maximum number of messages in a batch.
const MOST_IN_BATCH: usize = 1_000;
const ALL_SESSIONS_IN_USE: &str = "the server has reached its limit of sessions, and all are in use";

impl<S: Service> Endpoint<S> {
    pub(super) async fn answer_legacy(
        self: &Arc<Self>,
        caller: S::Caller,
        headers: HeaderMap,
        packet: Packet,
    ) -> HttpResponse<Body> {
        if let Packet::Single(RpcMessage::Request(request)) = &packet
            && request.method == "initialize"
            && !headers.contains_key(mirrored::SESSION)
        {
            return self.initialize(caller, request);
        }
        let session = match self.session(&caller, &headers) {
            Ok(session) => session,
            Err(refused) => return refused,
        };
        session.touch();
        let (messages, batch) = match packet {
            Packet::Single(message) => (vec![Ok(message)], false),
            Packet::Batch(messages) if messages.len() > MOST_IN_BATCH => {
                let message = format!("batch exceeds the limit of {MOST_IN_BATCH} messages");
                return error_response(StatusCode::BAD_REQUEST, None, &RpcError::invalid_request(message));
            }
            Packet::Batch(messages) if session.version().has_batches() => (messages, true),
            Packet::Batch(_) => {
                let message = format!("protocol version `{}` does not support batches", session.version());
                return error_response(StatusCode::BAD_REQUEST, None, &RpcError::invalid_request(message));
            }
        };
        let mut calls = Vec::new();
        let mut done = Vec::new();
        let mut changes_level = false;
        for message in messages {
            match message {
                Ok(RpcMessage::Notification(notification)) => {
                    if let Some(id) = cancelled_request(&notification) {
                        session.cancel(&id);
                    }
                }
                Ok(RpcMessage::Response(response)) => session.pending_requests.complete(response),
                Ok(RpcMessage::Request(request)) => {
                    changes_level |= request.method == SET_LEVEL;
                    match self.start_legacy_call(&session, &caller, &headers, request) {
                        CallStart::Running(call) => calls.push(call),
                        CallStart::Answered(text) => done.push(text.into()),
                    }
                }
                Err(InvalidMessage { id, error }) => done.push(write_error(id.as_ref(), &error).into()),
            }
        }
        if changes_level {
            self.service.session_changed(&session).await;
        }
        if calls.is_empty() && done.is_empty() {
            return empty_response(StatusCode::ACCEPTED);
        }
        self.answer_legacy_calls(&session, &caller, calls, done, batch, AcceptHeader::read(&headers)).await
    }

    fn initialize(&self, caller: S::Caller, request: &RpcRequest) -> HttpResponse<Body> {
        let (version, client) = match read_initialize(request.params.as_deref()) {
            Ok(read) => read,
            Err(error) => return json_response(StatusCode::OK, write_error(Some(&request.id), &error)),
        };
        let about = self.service.describe(&caller, version);
        let session_id = match self.service.create_session_id(&caller, version, &client) {
            Ok(id) => id,
            // A predictable session ID would let others use the session.
            Err(error) => return session_unavailable(&request.id, &error.to_string()),
        };
        let id = HeaderValue::from_str(&session_id.header);
        let log = self.service.stream_log(&session_id);
        let streams = ResumableStreams::new(self.settings.retention.clone()).with_log(log);
        let session = match self.new_session(&caller, session_id, version, client, streams) {
            Ok(session) => session,
            Err(error) => return session_unavailable(&request.id, &error.message),
        };
        if !self.registry.add(caller, Arc::new(session)) {
            return session_unavailable(&request.id, ALL_SESSIONS_IN_USE);
        }
        let answer = Ok(initialize_result(version, &about));
        let mut response = json_response(StatusCode::OK, write_outcome(&request.id, &answer));
        if let Ok(id) = id {
            response.headers_mut().insert(mirrored::SESSION, id);
        }
        response
    }

    /// Creates a session. A caller that may not have another one loses its idlest.
    fn new_session(
        &self,
        caller: &S::Caller,
        id: SessionId,
        version: Version,
        client: ClientProfile,
        streams: ResumableStreams,
    ) -> Result<Session, RpcError> {
        // A concurrent request of the same caller may take the slot that was freed for this one.
        let charge = loop {
            match self.service.charge_session(caller) {
                Err(_) if self.registry.close_idlest(caller) => {}
                charged => break charged?,
            }
        };
        let standing = StandingChannel::Streams(StandingStreams::new(&streams));
        Ok(Session::new(id, version, client, standing, streams).with_charge(charge))
    }

    /// Opens a session of another process, if it may continue here.
    fn restore_session(&self, caller: &S::Caller, id: &str) -> Option<Arc<Session>> {
        let RestoredSession { label, version, client, log_level, subscriptions } =
            self.service.restore_session(caller, id)?;
        let id = SessionId { header: id.to_owned(), label: Some(label) };
        let log = self.service.stream_log(&id);
        let streams = ResumableStreams::restored(self.settings.retention.clone()).ok()?.with_log(log);
        let session = self.new_session(caller, id, version, client, streams).ok()?;
        let session = session.with_state(log_level, subscriptions);
        self.registry.add_restored(caller.clone(), Arc::new(session))
    }

    /// Returns the session that the headers name, if it belongs to the caller.
    fn session(&self, caller: &S::Caller, headers: &HeaderMap) -> Result<Arc<Session>, HttpResponse<Body>> {
        let wrong = |status, message: &str| error_response(status, None, &RpcError::invalid_request(message));
        let Some(id) = headers.get(mirrored::SESSION) else {
            let message = "header `mcp-session-id` is missing; send `initialize` first";
            return Err(wrong(StatusCode::BAD_REQUEST, message));
        };
        let version =
            headers.get(mirrored::VERSION).map(|value| value.to_str().ok().and_then(Version::parse));
        if version.is_some_and(|version| version.is_none_or(|version| version.era() != Era::Legacy)) {
            return Err(wrong(StatusCode::BAD_REQUEST, "sessions do not support this protocol version"));
        }
        let open = |id| self.registry.get(id, caller).or_else(|| self.restore_session(caller, id));
        let session = id.to_str().ok().and_then(open);
        session.ok_or_else(|| wrong(StatusCode::NOT_FOUND, "session not found; send `initialize` again"))
    }

    fn start_legacy_call(
        &self,
        session: &Arc<Session>,
        caller: &S::Caller,
        headers: &HeaderMap,
        request: RpcRequest,
    ) -> CallStart {
        let id = request.id.clone();
        if let Some(answer) = answer_in_transport(session, &request) {
            return CallStart::Answered(write_outcome(&id, &answer));
        }
        let Some(in_flight) = session.begin_request(&id) else {
            let error = RpcError::invalid_request("a request with this ID is already in progress");
            return CallStart::Answered(write_error(Some(&id), &error));
        };
        let transport = RequestTransport::Http(Arc::new(headers.clone()));
        let (service, closing, caller) = (Arc::clone(&self.service), self.closing.clone(), caller.clone());
        let running = RunningRequest::start(Some(Arc::clone(&session.pending_requests)), |outlet| {
            match build_legacy_request(session, request, caller, outlet, transport, closing) {
                Ok(inbound) => Box::pin(service.handle(inbound)) as ResponseFuture,
                Err(error) => Box::pin(async move { Err(error) }),
            }
        });
        CallStart::Running(LegacyCall { running, in_flight, id })
    }

    /// Responds as JSON if no message precedes the responses, and as a stream otherwise.
    async fn answer_legacy_calls(
        self: &Arc<Self>,
        session: &Arc<Session>,
        caller: &S::Caller,
        mut calls: Vec<LegacyCall>,
        mut done: Vec<ChargedResponse>,
        batch: bool,
        accepts: AcceptHeader,
    ) -> HttpResponse<Body> {
        if accepts.accepts_nothing() {
            let error =
                RpcError::invalid_request("`accept` must allow `application/json` or `text/event-stream`");
            return error_response(StatusCode::NOT_ACCEPTABLE, None, &error);
        }
        if !accepts.events {
            for call in &mut calls {
                if let Some(answer) = call.wait_for_response().await {
                    done.push(self.charge_response(caller, &call.id, &answer));
                }
            }
            return legacy_json_response(done, batch);
        }
        if calls.is_empty() && accepts.json {
            return legacy_json_response(done, batch);
        }
        let mut frames = Vec::new();
        if accepts.json
            && !accepts.events_first
            && !batch
            && let [call] = calls.as_mut_slice()
        {
            match call.next_event(self.settings.stream_after).await {
                Some(RunningRequestEvent::Response(answer)) => {
                    return legacy_json_response(
                        vec![self.charge_response(caller, &call.id, &answer)],
                        batch,
                    );
                }
                Some(RunningRequestEvent::Outgoing(first)) => frames.push(first),
                Some(RunningRequestEvent::Idle) => {}
                None => return empty_response(StatusCode::ACCEPTED),
            }
        }
        let stream = session.streams.open_for(calls.iter().map(|call| call.id.clone()));
        let prime = session.version().primes_streams().then_some(RETRY);
        let body = stream.body(None, prime);
        let (endpoint, caller) = (Arc::clone(self), caller.clone());
        let come_back = self.settings.resume_timeout;
        let pumps =
            StreamPump { endpoint, caller, session: Arc::clone(session), stream, resume_timeout: come_back };
        self.tasks.spawn(pumps.run(calls, done, frames));
        event_stream_response(body)
    }

    /// Handles GET: opens the standing stream, or resumes a stream after the last received event.
    pub(super) async fn listen(&self, caller: &S::Caller, headers: &HeaderMap) -> HttpResponse<Body> {
        let modern =
            headers.get(mirrored::VERSION).and_then(|value| value.to_str().ok()).and_then(Version::parse);
        if modern.is_some_and(|version| version.era() == Era::Modern) {
            return method_not_allowed();
        }
        let session = match self.session(caller, headers) {
            Ok(session) => session,
            Err(refused) => return refused,
        };
        if !AcceptHeader::read(headers).events {
            let error = RpcError::invalid_request("`accept` must allow `text/event-stream`");
            return error_response(StatusCode::NOT_ACCEPTABLE, None, &error);
        }
        session.touch();
        let prime = session.version().primes_streams().then_some(RETRY);
        let Some(standing) = session.standing_streams() else { return method_not_allowed() };
        if self.closing.is_cancelled() {
            return empty_response(StatusCode::SERVICE_UNAVAILABLE);
        }
        let open_standing = || event_stream_response(standing.open(&session.streams).body(None, prime));
        let Some(last) = headers.get("last-event-id") else { return open_standing() };
        let last = last.to_str().unwrap_or_default();
        if let Some((stream, event)) = session.streams.find(last) {
            return event_stream_response(stream.body(Some(event), None));
        }
        match session.streams.find_elsewhere(last) {
            Some(ForeignStream::Standing) => return open_standing(),
            Some(ForeignStream::Call { number, event }) => {
                if let Some(stream) = self.service.logged_stream(&session, number).await {
                    return event_stream_response(Body::from(stream.replay(number, event)));
                }
            }
            None => {}
        }
        let error = RpcError::invalid_request("the stream of this `last-event-id` is no longer available");
        error_response(StatusCode::BAD_REQUEST, None, &error)
    }

    pub(super) fn delete(&self, caller: &S::Caller, headers: &HeaderMap) -> HttpResponse<Body> {
        match self.session(caller, headers) {
            Ok(session) => {
                self.registry.delete(session.id());
                empty_response(StatusCode::NO_CONTENT)
            }
            Err(refused) => refused,
        }
    }
}

/// Responds that no session could be opened and that a later retry may succeed.
fn session_unavailable(id: &RequestId, why: &str) -> HttpResponse<Body> {
    let error = RpcError::new(code::INTERNAL, why);
    let mut response = error_response(StatusCode::SERVICE_UNAVAILABLE, Some(id), &error);
    response.headers_mut().insert("retry-after", HeaderValue::from_static("5"));
    response
}

enum CallStart {
    Running(LegacyCall),
    Answered(String),
}

struct LegacyCall {
    running: RunningRequest,
    in_flight: InFlightRequest,
    id: RequestId,
}

impl LegacyCall {
    /// Returns the next step, or `None` once the client has canceled the call: a canceled request
    /// gets no response. A request of a session that was closed gets an error.
    async fn next_event(&mut self, patience: Duration) -> Option<RunningRequestEvent> {
        let cancel: &CancellationToken = &self.in_flight.cancel;
        match cancel.run_until_cancelled(self.running.next_event(patience)).await {
            None if self.in_flight.is_session_lost() => {
                let message = "the session was closed; the request may have been executed";
                Some(RunningRequestEvent::Response(Err(RpcError::new(code::INTERNAL, message))))
            }
            event => event,
        }
    }

    /// Returns the response alone, for a client that does not accept streams.
    async fn wait_for_response(&mut self) -> Option<RpcResult> {
        loop {
            if let RunningRequestEvent::Response(answer) = self.next_event(KEEP_ALIVE).await? {
                return Some(answer);
            }
        }
    }
}

/// Writes the messages and responses of calls to a stream, whether or not it is read.
struct StreamPump<S: Service> {
    endpoint: Arc<Endpoint<S>>,
    caller: S::Caller,
    session: Arc<Session>,
    stream: Arc<ResumableStream>,
    resume_timeout: Duration,
}

impl<S: Service> StreamPump<S> {
    async fn run(self, calls: Vec<LegacyCall>, done: Vec<ChargedResponse>, frames: Vec<OutgoingFrame>) {
        let all = async {
            for answer in done {
                self.stream.push(answer).await;
            }
            for frame in frames {
                self.send_frame(frame).await;
            }
            futures_util::future::join_all(calls.into_iter().map(|call| self.pump(call))).await;
        };
        tokio::select! {
            _ = all => {}
            // The client did not come back. Dropping the calls cancels them.
            () = self.stream.wait_until_abandoned(self.resume_timeout) => {}
        }
        self.stream.end();
        self.session.streams.evict_ended();
    }

    async fn pump(&self, mut call: LegacyCall) {
        while let Some(step) = call.next_event(KEEP_ALIVE).await {
            match step {
                RunningRequestEvent::Outgoing(frame) => self.send_frame(frame).await,
                RunningRequestEvent::Idle => {}
                RunningRequestEvent::Response(answer) => {
                    self.stream.push(self.endpoint.charge_response(&self.caller, &call.id, &answer)).await;
                    return;
                }
            }
        }
        for parting in call.running.cancel() {
            self.send_frame(parting).await;
        }
    }

    async fn send_frame(&self, frame: OutgoingFrame) {
        match frame {
            OutgoingFrame::Message(message) => self.stream.push(message).await,
            OutgoingFrame::Pause { retry, returned } if self.session.version().primes_streams() => {
                self.stream.disconnect_reader(retry, returned);
            }
            OutgoingFrame::Pause { .. } => {}
        }
    }
}

fn legacy_json_response(mut answers: Vec<ChargedResponse>, batch: bool) -> HttpResponse<Body> {
    let ok = |body| response_with_body(StatusCode::OK, Some("application/json"), body);
    if batch && !answers.is_empty() {
        // A bracket or comma before each response, and a bracket at the end.
        let size = answers.iter().map(|answer| answer.text.len() + 1).sum::<usize>() + 1;
        let mut response = ok(batch_body(answers));
        response.headers_mut().insert(header::CONTENT_LENGTH, size.into());
        return response;
    }
    match answers.pop() {
        Some(answer) => ok(charged_body(answer)),
        None => empty_response(StatusCode::ACCEPTED),
    }
}

/// Returns the responses of a batch as one list, each sent from where it is stored.
fn batch_body(answers: Vec<ChargedResponse>) -> Body {
    let between = std::iter::once("[").chain(std::iter::repeat(","));
    let pieces = between.zip(answers).flat_map(|(between, answer)| {
        [Bytes::from_static(between.as_bytes()), ChargedBytes::from(answer).into()]
    });
    let pieces = pieces.chain(std::iter::once(Bytes::from_static(b"]")));
    Body::from_stream(futures_util::stream::iter(pieces.map(Ok::<_, Infallible>)))
}
