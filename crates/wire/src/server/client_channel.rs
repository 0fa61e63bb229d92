//! What a server may say while it works on a request: notifications, and in the legacy era requests of its
//! own. Everything said through one outlet arrives in order, before the answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::RawJson;
use crate::message::{RequestId, RpcResponse, write_notification, write_request};

/// How many messages wait for a slow client before whoever says more has to wait too.
pub(crate) const QUEUE: usize = 64;

/// Something on its way to the client.
#[derive(Debug)]
pub(crate) enum OutgoingFrame {
    Message(String),
    /// The client may hang up and come back for the rest after `retry`; `returned` is notified when it does.
    Pause {
        retry: Duration,
        returned: Arc<Notify>,
    },
}

/// The client is gone, or cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client is gone")]
pub struct ClientGone;

/// The way to the client while one request is worked on.
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

    /// Lets the client hang up and come back, where the transport can do that. `returned` is notified when it is back.
    pub async fn pause(&self, retry: Duration, returned: Arc<Notify>) -> Result<(), ClientGone> {
        self.send(OutgoingFrame::Pause { retry, returned }).await
    }

    /// Asks the client (legacy era). The error of the client's answer is the inner one. If the future is
    /// dropped before the answer came, the client is told that nobody waits for it any more.
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

/// The requests that we sent to a client and that it has not answered yet.
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

    /// Hands an answer to whoever waits for it. An answer to nothing is dropped.
    pub(crate) fn complete(&self, response: RpcResponse) {
        let waiting = self.waiting.lock().remove(&response.id);
        match waiting {
            Some(sender) => drop(sender.send(response.result)),
            None => tracing::debug!(id = ?response.id, "a response to nothing"),
        }
    }

    /// Whoever waits learns that no answer will come.
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
            let params = format!(r#"{{"requestId":{},"reason":"the call is over"}}"#, self.id.as_json());
            if let Ok(params) = RawValue::from_string(params) {
                let message = write_notification("notifications/cancelled", &params);
                let _ = self.channel.sender.try_send(OutgoingFrame::Message(message));
            }
        }
    }
}
