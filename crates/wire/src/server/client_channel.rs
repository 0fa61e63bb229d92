//! The messages that a server sends while it processes a request: notifications and, in the legacy
//! era, requests. Messages on one channel arrive in order and before the response.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::RawJson;
use crate::message::{RequestId, RpcResponse, write_notification, write_request};

/// How many messages may wait for a slow client before senders have to wait.
pub(crate) const QUEUE: usize = 64;

/// A frame to the client.
#[derive(Debug)]
pub(crate) enum OutgoingFrame {
    Message(String),
    /// The client may disconnect and come back for the rest after `retry`. `returned` is notified
    /// when it does.
    Pause {
        retry: Duration,
        returned: Arc<Notify>,
    },
}

/// The client is gone, or does not accept requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client is gone")]
pub struct ClientGone;

/// The channel to the client while a request is processed.
#[derive(Debug, Clone)]
pub struct ClientChannel {
    sender: mpsc::Sender<OutgoingFrame>,
    pending: Option<Arc<PendingClientRequests>>,
}

impl ClientChannel {
    pub(crate) fn new(
        sender: mpsc::Sender<OutgoingFrame>,
        pending: Option<Arc<PendingClientRequests>>,
    ) -> Self {
        Self { sender, pending }
    }

    pub async fn notify(&self, method: &str, params: &RawValue) -> Result<(), ClientGone> {
        self.send(OutgoingFrame::Message(write_notification(method, params))).await
    }

    /// Lets the client disconnect and come back, if the transport supports it. `returned` is
    /// notified when the client is back.
    pub async fn pause(&self, retry: Duration, returned: Arc<Notify>) -> Result<(), ClientGone> {
        self.send(OutgoingFrame::Pause { retry, returned }).await
    }

    /// Sends a request to the client (legacy era). The inner error is the client's. If the future
    /// is dropped before the response arrives, the client is notified that the request is canceled.
    pub async fn request(
        &self,
        method: &str,
        params: &RawValue,
    ) -> Result<Result<RawJson, RawJson>, ClientGone> {
        let asks = self.pending.as_ref().ok_or(ClientGone)?;
        let (id, answer) = asks.register();
        let mut open = PendingClientRequest { channel: self, pending: asks, id: id.clone(), answered: false };
        self.send(OutgoingFrame::Message(write_request(&id, method, params))).await?;
        let answer = answer.await;
        open.answered = true;
        answer.map_err(|_| ClientGone)
    }

    async fn send(&self, outgoing: OutgoingFrame) -> Result<(), ClientGone> {
        self.sender.send(outgoing).await.map_err(|_| ClientGone)
    }
}

/// The requests to a client that have no response yet.
#[derive(Debug, Default)]
pub(crate) struct PendingClientRequests {
    next: AtomicI64,
    waiting: Mutex<HashMap<RequestId, oneshot::Sender<Result<RawJson, RawJson>>>>,
}

impl PendingClientRequests {
    fn register(&self) -> (RequestId, oneshot::Receiver<Result<RawJson, RawJson>>) {
        let id = RequestId::from_number(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().insert(id.clone(), sender);
        (id, receiver)
    }

    /// Delivers a response to the waiting request. Drops it if no request waits.
    pub(crate) fn complete(&self, response: RpcResponse) {
        let waiting = self.waiting.lock().remove(&response.id);
        match waiting {
            Some(sender) => drop(sender.send(response.result)),
            None => tracing::debug!(id = ?response.id, "unexpected response"),
        }
    }

    /// Fails all waiting requests.
    pub(crate) fn cancel_all(&self) {
        self.waiting.lock().clear();
    }
}

struct PendingClientRequest<'a> {
    channel: &'a ClientChannel,
    pending: &'a PendingClientRequests,
    id: RequestId,
    answered: bool,
}

impl Drop for PendingClientRequest<'_> {
    fn drop(&mut self) {
        self.pending.waiting.lock().remove(&self.id);
        if !self.answered {
            let params = format!(r#"{{"requestId":{},"reason":"the call has ended"}}"#, self.id.as_json());
            if let Ok(params) = RawValue::from_string(params) {
                let message = write_notification("notifications/cancelled", &params);
                let _ = self.channel.sender.try_send(OutgoingFrame::Message(message));
            }
        }
    }
}
