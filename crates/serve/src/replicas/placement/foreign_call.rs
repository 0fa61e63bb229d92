//! A call of a client of another replica. It lasts as long as that replica reads the response.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use futures_util::stream::unfold;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolyard_hub::{
    BoxFuture, CallRecord, CallerChannel, CallerUpdate, ClientCapabilities, ClientEra, ExecutionId, HubError,
    Outcome, Permissions, Principal, Replicas, SourceCall, SourceTarget,
};

use super::PlacedState;
use super::frames::{KEEPALIVE, encode_frame};
use super::local_run::LocalRun;
use super::message::{CallFrame, CallMessage, QuestionMessage};
use super::peer::PeerRequest;

/// A call in flight, and what has been asked in it.
struct ForeignCall {
    run: Arc<LocalRun>,
    replicas: Arc<dyn Replicas>,
    peer: PeerRequest,
    updates: mpsc::Receiver<CallerUpdate>,
    /// `None` once the call has ended.
    calling: Option<BoxFuture<'static, Result<Outcome, HubError>>>,
    /// The result, while the last updates are sent.
    result: Option<CallFrame>,
    asked: BTreeSet<u64>,
    _cancel: DropGuard,
}

/// Executes a call and returns the response, a stream of [`CallFrame`].
pub(super) fn respond(
    server: &Arc<PlacedState>,
    run: &Arc<LocalRun>,
    peer: &PeerRequest,
    message: CallMessage,
    in_flight: TaskTrackerToken,
) -> Response<Body> {
    let Ok(id) = message.id.parse::<ExecutionId>() else { return StatusCode::BAD_REQUEST.into_response() };
    let target = SourceTarget::from(message.target);
    // Its permissions have been checked by the other replica.
    let principal = Principal::new(message.principal.as_str(), Permissions::Only(BTreeSet::new()));
    let mut record = CallRecord::new(id, target.kind(), target.subject(), principal);
    record.source = Some(peer.server.clone());
    record.context.client_session = message.session.map(|session| {
        run.foreign_session(&peer.from, &message.principal, &session.id, session.capabilities.into())
    });
    record.context.era = if message.is_legacy { ClientEra::Legacy } else { ClientEra::Newest };
    record.context.version = message.version;
    record.context.version_asked = message.version_asked;
    let (client, updates) = CallerChannel::new(ClientCapabilities::from(message.capabilities));
    let cancel = CancellationToken::new();
    let call = SourceCall {
        headers: message.headers,
        meta: message.meta,
        client,
        cancel: cancel.clone(),
        ..SourceCall::new(id, target, Principal::owner())
    };
    let call = SourceCall { record: Arc::new(record), ..call };
    let calling = {
        let run = Arc::clone(run);
        async move { run.call(call, in_flight).await }
    };
    let state = ForeignCall {
        run: Arc::clone(run),
        replicas: Arc::clone(&server.peers.replicas),
        peer: peer.clone(),
        updates,
        calling: Some(Box::pin(calling)),
        result: None,
        asked: BTreeSet::new(),
        _cancel: cancel.drop_guard(),
    };
    let frames = unfold(state, |mut state| async move {
        let frame = state.next().await?;
        Some((encode_frame(&frame), state))
    });
    Body::from_stream(frames).into_response()
}

impl ForeignCall {
    /// Returns the next message, or `None` after the last one.
    async fn next(&mut self) -> Option<CallFrame> {
        loop {
            let Some(calling) = &mut self.calling else {
                return match self.updates.try_recv() {
                    Ok(update) => match self.describe(update) {
                        Some(frame) => Some(frame),
                        None => continue,
                    },
                    Err(_) => self.result.take(),
                };
            };
            let update = tokio::select! {
                biased;
                Some(update) = self.updates.recv() => update,
                result = calling => {
                    self.result = Some(CallFrame::from_result(result));
                    self.calling = None;
                    continue;
                }
                () = tokio::time::sleep(KEEPALIVE) => return Some(CallFrame::Alive),
                () = self.peer.wait_until_gone(&*self.replicas) => return None,
            };
            if let Some(frame) = self.describe(update) {
                return Some(frame);
            }
        }
    }

    fn describe(&mut self, update: CallerUpdate) -> Option<CallFrame> {
        let asked = match update {
            CallerUpdate::Ask(asked) => asked,
            update => return CallFrame::from_update(update),
        };
        let batch = self.run.add_question(&self.peer.from, asked.reply);
        self.asked.insert(batch);
        let questions = asked.questions.into_iter().map(QuestionMessage::from).collect();
        Some(CallFrame::Ask { batch, questions })
    }
}

impl Drop for ForeignCall {
    fn drop(&mut self) {
        self.run.remove_questions(&self.asked);
    }
}
