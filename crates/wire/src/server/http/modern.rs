//! Modern requests: each stands alone, is answered as JSON or as a stream of its own, and is cancelled by
//! hanging up.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderMap, Response as HttpResponse, StatusCode};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::held::hold_body;
use super::running::{Running, Step};
use super::stream::{COMMENT, KEEP_ALIVE, pieces};
use super::{Accepts, Endpoint, bare, events, refuse, with};
use crate::header as mirrored;
use crate::message::{Id, Message, Request};
use crate::meta::{Heading, modern_version};
use crate::rpc_error::RpcError;
use crate::server::outlet::Outgoing;
use crate::server::{Service, Transport, modern};

impl<S: Service> Endpoint<S> {
    pub(super) async fn modern(
        self: &Arc<Self>,
        caller: S::Caller,
        headers: HeaderMap,
        message: Message,
    ) -> HttpResponse<Body> {
        let request = match message {
            Message::Request(request) => request,
            // Hanging up is how a client cancels here; there is nothing else it could want to tell us.
            Message::Notification(_) => return bare(StatusCode::ACCEPTED),
            Message::Response(response) => {
                let error =
                    RpcError::invalid_request("this version of the protocol has no responses from clients");
                return refuse(StatusCode::BAD_REQUEST, Some(&response.id), &error);
            }
        };
        let id = request.id.clone();
        let accepts = Accepts::read(&headers);
        if accepts.nothing() {
            let error = RpcError::invalid_request("answers are application/json or text/event-stream");
            return refuse(StatusCode::NOT_ACCEPTABLE, Some(&id), &error);
        }
        let running = match self.begin(caller.clone(), headers, request) {
            Ok(running) => running,
            Err(error) => return refuse(status(&error), Some(&id), &error),
        };
        self.answer(running, caller, id, accepts).await
    }

    /// Checks what the protocol asks of every modern request, in the order in which it wants it reported.
    fn begin(&self, caller: S::Caller, headers: HeaderMap, request: Request) -> Result<Running, RpcError> {
        let heading = Heading::read(request.params.as_deref())?;
        let (version, client) = heading.meta.modern()?;
        mirrored::check_version(&headers, &heading.meta)?;
        let said = (modern_version(version)?, client);
        mirrored::check_method(&headers, &request.method)?;
        mirrored::check_name(&headers, &request.method, &heading)?;
        let (service, closing, meta) = (Arc::clone(&self.service), self.closing.clone(), heading.meta);
        let transport = Transport::Http(Arc::new(headers));
        Ok(Running::start(None, |outlet| {
            Box::pin(service.handle(modern(request, meta, said, caller, outlet, transport, closing)))
        }))
    }

    async fn answer(
        self: &Arc<Self>,
        mut running: Running,
        caller: S::Caller,
        id: Id,
        accepts: Accepts,
    ) -> HttpResponse<Body> {
        let patience = if accepts.json { self.settings.patience } else { std::time::Duration::ZERO };
        let first = loop {
            match running.step(patience).await {
                Step::Answers(answer) if accepts.json => {
                    let status = answer.as_ref().err().map_or(StatusCode::OK, status);
                    let body = hold_body(self.hold(&caller, &id, &answer));
                    return with(status, Some("application/json"), body);
                }
                // A client that reads no streams gets the answer and nothing else.
                Step::Says(_) | Step::Silent if !accepts.events => {}
                step => break step,
            }
        };
        let (endpoint, _token) = (Arc::clone(self), self.tasks.token());
        let (next, pieces) = (Some(first), VecDeque::new());
        let said = Said { running, endpoint, caller, id, next, over: false, pieces, _token };
        events(Body::from_stream(unfold(said, |mut said| async move {
            let bytes = said.next().await?;
            Some((Ok::<_, Infallible>(bytes), said))
        })))
    }
}

/// The rest of a running request as a stream; dropping it drops the request.
struct Said<S: Service> {
    running: Running,
    endpoint: Arc<Endpoint<S>>,
    caller: S::Caller,
    id: Id,
    next: Option<Step>,
    over: bool,
    /// The rest of the answer, which is sent in pieces.
    pieces: VecDeque<Bytes>,
    _token: TaskTrackerToken,
}

impl<S: Service> Said<S> {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return self.pieces.pop_front();
        }
        let step = match self.next.take() {
            Some(step) => step,
            None => self.running.step(KEEP_ALIVE).await,
        };
        Some(match step {
            Step::Says(Outgoing::Message(message)) => event(&message),
            Step::Says(Outgoing::Pause { .. }) | Step::Silent => Bytes::from_static(COMMENT),
            Step::Answers(answer) => {
                self.over = true;
                let held = self.endpoint.hold(&self.caller, &self.id, &answer);
                self.pieces.extend(pieces("data: ", held.into()));
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
