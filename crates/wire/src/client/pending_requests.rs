//! Requests that wait for their response on a shared channel.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use super::WireError;
use super::message_log::MessageLog;
use crate::RawJson;
use crate::message::{InvalidMessage, RequestId, RpcResponse};
use crate::rpc_error::{RpcError, code};

/// How many abandoned requests are remembered.
const FORGOTTEN: usize = 1_000;
/// The maximum number of characters of an invalid message in a violation.
const NOISE: usize = 200;

#[derive(Debug)]
pub(crate) struct PendingRequests {
    next: AtomicI64,
    waiting: Mutex<HashMap<RequestId, oneshot::Sender<Result<RawJson, WireError>>>>,
    /// Abandoned requests, whose responses may still arrive.
    forgotten: Mutex<VecDeque<RequestId>>,
    close_reason: watch::Sender<Option<String>>,
    /// The messages of the connection, for debugging.
    pub(crate) message_log: Arc<MessageLog>,
}

impl PendingRequests {
    pub(crate) fn new(message_log: Arc<MessageLog>) -> Self {
        Self {
            next: AtomicI64::new(1),
            waiting: Mutex::default(),
            forgotten: Mutex::default(),
            close_reason: watch::Sender::new(None),
            message_log,
        }
    }

    pub(crate) fn next_id(&self) -> RequestId {
        RequestId::from_number(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Registers a request. Fails immediately if the connection is already broken.
    pub(crate) fn register(
        &self,
        id: &RequestId,
    ) -> Result<oneshot::Receiver<Result<RawJson, WireError>>, WireError> {
        let mut waiting = self.lock();
        if let Some(why) = self.close_reason.borrow().clone() {
            return Err(WireError::Lost(why));
        }
        let (sender, receiver) = oneshot::channel();
        waiting.insert(id.clone(), sender);
        Ok(receiver)
    }

    /// Delivers a response to the waiting request. Returns false if no request waits for it.
    pub(crate) fn complete(&self, response: RpcResponse) -> bool {
        let Some(sender) = self.lock().remove(&response.id) else { return false };
        let _ = sender.send(response.result.map_err(|error| WireError::Rpc(self.parse_error(&error))));
        true
    }

    /// Abandons a request. Returns true if its response has not arrived yet.
    pub(crate) fn forget(&self, id: &RequestId) -> bool {
        let waited = self.lock().remove(id).is_some();
        if waited {
            let mut forgotten = self.forgotten.lock();
            forgotten.push_back(id.clone());
            if forgotten.len() > FORGOTTEN {
                forgotten.pop_front();
            }
        }
        waited
    }

    /// Records a response that no request waits for, unless its request was abandoned.
    pub(crate) fn record_stray_response(&self, id: &RequestId) {
        tracing::debug!(?id, "unexpected response");
        let next = self.next.load(Ordering::Relaxed);
        let ours = id.as_json().parse::<i64>().is_ok_and(|number| (1..next).contains(&number));
        let given_up = || self.forgotten.lock().contains(id);
        match ours {
            true if given_up() => {}
            true => self
                .message_log
                .violations()
                .add(&format!("request {id:?} was answered twice, or on the stream of another request")),
            false => self
                .message_log
                .violations()
                .add_stray_response(&format!("the response ID {id:?} matches no request")),
        }
    }

    /// Records an invalid message as a violation.
    pub(crate) fn record_invalid_message(&self, place: &str, refusal: &InvalidMessage, text: &str) {
        let start: String = text.chars().take(NOISE).collect();
        let rule = match refusal.error.code {
            code::PARSE => format!("{place} must contain only JSON-RPC messages, but contains {start:?}"),
            _ => format!("{place} contains an invalid JSON-RPC message: {}: {start}", refusal.error.message),
        };
        self.message_log.violations().add(&rule);
    }

    /// Parses the `error` member of a response and records a violation if it is invalid.
    pub(crate) fn parse_error(&self, raw: &RawValue) -> RpcError {
        read_error(raw).unwrap_or_else(|| {
            let rule = "an error must have an integer `code` and a string `message`";
            self.message_log.violations().add(&format!("{rule}, but the server sent {raw}"));
            unreadable_error(raw)
        })
    }

    /// Marks the connection as broken and fails all waiting requests.
    pub(crate) fn fail_all(&self, why: &str) {
        let waiting = {
            let mut waiting = self.lock();
            self.close_reason.send_if_modified(|broken| {
                let first = broken.is_none();
                broken.get_or_insert_with(|| why.to_owned());
                first
            });
            std::mem::take(&mut *waiting)
        };
        for (_, sender) in waiting {
            let _ = sender.send(Err(WireError::Lost(why.to_owned())));
        }
    }

    pub(crate) async fn closed(&self) -> String {
        let mut broken = self.close_reason.subscribe();
        match broken.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Result<RawJson, WireError>>>> {
        self.waiting.lock()
    }
}

/// Parses the `error` member of a response. Returns `None` if it is invalid.
pub(crate) fn read_error(raw: &RawValue) -> Option<RpcError> {
    #[derive(serde::Deserialize)]
    struct ErrorObject {
        code: i64,
        message: String,
        data: Option<serde_json::Value>,
    }
    let ErrorObject { code, message, data } = serde_json::from_str(raw.get()).ok()?;
    let error = RpcError::new(code, message);
    Some(data.into_iter().fold(error, RpcError::with_data))
}

/// Wraps an invalid `error` member unmodified.
pub(crate) fn unreadable_error(raw: &RawValue) -> RpcError {
    RpcError::new(code::INTERNAL, format!("the server sent an error that is not valid JSON-RPC: {raw}"))
}
