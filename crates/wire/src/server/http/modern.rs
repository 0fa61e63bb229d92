//! Modern requests: each one is self-contained, gets a response as JSON or as a stream of its own,
//! and is canceled by closing the connection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderMap, Response as HttpResponse, StatusCode};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::charged_response::charged_body;
use super::stream::{COMMENT, KEEP_ALIVE, event_chunks};
use super::{
    AcceptHeader, Endpoint, empty_response, error_response, event_stream_response, response_with_body,
};
use super::{RunningRequest, RunningRequestEvent};
use crate::header as mirrored;
use crate::message::{RequestId, RpcMessage, RpcRequest};
use crate::meta::{RoutingParams, modern_version};
use crate::rpc_error::RpcError;
use crate::server::client_channel::OutgoingFrame;
use crate::server::{RequestTransport, Service, build_modern_request};

impl<S: Service> Endpoint<S> {
    pub(super) async fn answer_modern(
        self: &Arc<Self>,
        caller: S::Caller,
        headers: HeaderMap,
        message: RpcMessage,
    ) -> HttpResponse<Body> {
        let request = match message {
            RpcMessage::Request(request) => request,
            // Clients cancel by closing the connection. No other notification is relevant here.
            RpcMessage::Notification(_) => return empty_response(StatusCode::ACCEPTED),
            RpcMessage::Response(response) => {
                let error = RpcError::invalid_request(
                    "this protocol version does not support responses from clients",
                );
                return error_response(StatusCode::BAD_REQUEST, Some(&response.id), &error);
            }
        };
        let id = request.id.clone();
        let accepts = AcceptHeader::read(&headers);
        if accepts.accepts_nothing() {
            let error =
                RpcError::invalid_request("`accept` must allow `application/json` or `text/event-stream`");
            return error_response(StatusCode::NOT_ACCEPTABLE, Some(&id), &error);
        }
        let running = match self.start_modern_request(caller.clone(), headers, request) {
            Ok(running) => running,
            Err(error) => return error_response(status(&error), Some(&id), &error),
        };
        self.answer_modern_request(running, caller, id, accepts).await
    }

    /// Checks the protocol's requirements for a modern request, in the order in which the protocol
    /// reports violations.
    fn start_modern_request(
        &self,
        caller: S::Caller,
        headers: HeaderMap,
        request: RpcRequest,
    ) -> Result<RunningRequest, RpcError> {
        let heading = RoutingParams::read(request.params.as_deref())?;
        let (version, client) = heading.meta.require_modern_fields()?;
        mirrored::check_version(&headers, &heading.meta)?;
        let declared = (modern_version(version)?, client);
        mirrored::check_method(&headers, &request.method)?;
        mirrored::check_name(&headers, &request.method, &heading)?;
        let (service, closing, meta) = (Arc::clone(&self.service), self.closing.clone(), heading.meta);
        let transport = RequestTransport::Http(Arc::new(headers));
        Ok(RunningRequest::start(None, |outlet| {
            Box::pin(
                service.handle(build_modern_request(
                    request, meta, declared, caller, outlet, transport, closing,
                )),
            )
        }))
    }

    async fn answer_modern_request(
        self: &Arc<Self>,
        mut running: RunningRequest,
        caller: S::Caller,
        id: RequestId,
        accepts: AcceptHeader,
    ) -> HttpResponse<Body> {
        let patience = if accepts.json { self.settings.stream_after } else { std::time::Duration::ZERO };
        let first = loop {
            match running.next_event(patience).await {
                RunningRequestEvent::Response(answer) if accepts.json => {
                    let status = answer.as_ref().err().map_or(StatusCode::OK, status);
                    let body = charged_body(self.charge_response(&caller, &id, &answer));
                    return response_with_body(status, Some("application/json"), body);
                }
                // A client that does not accept streams gets only the response.
                RunningRequestEvent::Outgoing(_) | RunningRequestEvent::Idle if !accepts.events => {}
                step => break step,
            }
        };
        let (endpoint, _token) = (Arc::clone(self), self.tasks.token());
        let (next, pieces) = (Some(first), VecDeque::new());
        let stream = ResponseStream { running, endpoint, caller, id, next, ended: false, pieces, _token };
        event_stream_response(Body::from_stream(unfold(stream, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((Ok::<_, Infallible>(bytes), stream))
        })))
    }
}

/// The rest of a running request as a stream. Dropping it drops the request.
struct ResponseStream<S: Service> {
    running: RunningRequest,
    endpoint: Arc<Endpoint<S>>,
    caller: S::Caller,
    id: RequestId,
    next: Option<RunningRequestEvent>,
    ended: bool,
    /// The rest of the response, which is sent in pieces.
    pieces: VecDeque<Bytes>,
    _token: TaskTrackerToken,
}

impl<S: Service> ResponseStream<S> {
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return self.pieces.pop_front();
        }
        let step = match self.next.take() {
            Some(step) => step,
            None => self.running.next_event(KEEP_ALIVE).await,
        };
        Some(match step {
            RunningRequestEvent::Outgoing(OutgoingFrame::Message(message)) => event(&message),
            RunningRequestEvent::Outgoing(OutgoingFrame::Pause { .. }) | RunningRequestEvent::Idle => {
                Bytes::from_static(COMMENT)
            }
            RunningRequestEvent::Response(answer) => {
                self.ended = true;
                let held = self.endpoint.charge_response(&self.caller, &self.id, &answer);
                self.pieces.extend(event_chunks("data: ", held.into()));
                return self.pieces.pop_front();
            }
        })
    }
}

fn event(message: &str) -> Bytes {
    Bytes::from(format!("data: {message}\n\n"))
}

fn status(error: &RpcError) -> StatusCode {
    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST)
}
