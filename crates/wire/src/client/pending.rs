//! Requests that wait for their answer on a shared channel.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use super::Failure;
use super::tape::Tape;
use crate::Raw;
use crate::message::{Id, Response};
use crate::rpc_error::RpcError;

#[derive(Debug)]
pub(crate) struct Pending {
    next: AtomicI64,
    waiting: Mutex<HashMap<Id, oneshot::Sender<Result<Raw, Failure>>>>,
    broken: watch::Sender<Option<String>>,
    /// What was said, for whoever looks.
    pub(crate) tape: Arc<Tape>,
}

impl Pending {
    pub(crate) fn new(tape: Arc<Tape>) -> Self {
        Self { next: AtomicI64::new(1), waiting: Mutex::default(), broken: watch::Sender::new(None), tape }
    }

    pub(crate) fn next_id(&self) -> Id {
        Id::from_number(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Enters a request; fails at once if the connection is broken already.
    pub(crate) fn wait(&self, id: &Id) -> Result<oneshot::Receiver<Result<Raw, Failure>>, Failure> {
        let mut waiting = self.lock();
        if let Some(why) = self.broken.borrow().clone() {
            return Err(Failure::Lost(why));
        }
        let (sender, receiver) = oneshot::channel();
        waiting.insert(id.clone(), sender);
        Ok(receiver)
    }

    /// Hands an answer to whoever waits for it; false if nobody does.
    pub(crate) fn answer(&self, response: Response) -> bool {
        let Some(sender) = self.lock().remove(&response.id) else { return false };
        let _ = sender.send(response.result.map_err(|error| Failure::Rpc(read_error(&error))));
        true
    }

    /// Nobody waits for this answer any more; true if it had not come.
    pub(crate) fn forget(&self, id: &Id) -> bool {
        self.lock().remove(id).is_some()
    }

    /// The connection is broken: whoever waits learns it now.
    pub(crate) fn break_off(&self, why: &str) {
        let waiting = {
            let mut waiting = self.lock();
            self.broken.send_if_modified(|broken| {
                let first = broken.is_none();
                broken.get_or_insert_with(|| why.to_owned());
                first
            });
            std::mem::take(&mut *waiting)
        };
        for (_, sender) in waiting {
            let _ = sender.send(Err(Failure::Lost(why.to_owned())));
        }
    }

    pub(crate) async fn broken(&self) -> String {
        let mut broken = self.broken.subscribe();
        match broken.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, oneshot::Sender<Result<Raw, Failure>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error member of a response. One that makes no sense is told as it is.
pub(crate) fn read_error(raw: &RawValue) -> RpcError {
    #[derive(serde::Deserialize)]
    struct Member {
        code: i64,
        message: String,
        data: Option<serde_json::Value>,
    }
    match serde_json::from_str::<Member>(raw.get()) {
        Ok(Member { code, message, data }) => {
            let error = RpcError::new(code, message);
            data.into_iter().fold(error, RpcError::with_data)
        }
        Err(_) => RpcError::new(crate::rpc_error::code::INTERNAL, format!("an unreadable error: {raw}")),
    }
}
