//! The requests of one socket that are under way: how they are cancelled, and what they have asked.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::Object;
use toolyard_hub::{ErrorKind, QuestionBatch};

use super::errors::ControlError;
use super::questions::CallQuestions;
use super::request::ControlRequestId;

/// How many there may be at once.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct SocketRequests {
    requests: Mutex<HashMap<ControlRequestId, Request>>,
}

#[derive(Debug, Default)]
struct Request {
    cancel: CancellationToken,
    questions: CallQuestions,
}

/// Why a request does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestStartError {
    /// Its id is in use: an answer could be to either.
    DuplicateId,
    TooMany,
}

impl SocketRequests {
    /// Takes a request in; what is given back tells when it is cancelled.
    pub(super) fn begin(&self, id: &ControlRequestId) -> Result<CancellationToken, RequestStartError> {
        let mut requests = self.lock();
        if requests.contains_key(id) {
            return Err(RequestStartError::DuplicateId);
        }
        if requests.len() >= MOST {
            return Err(RequestStartError::TooMany);
        }
        let request = requests.entry(id.clone()).or_default();
        Ok(request.cancel.clone())
    }

    pub(super) fn has(&self, id: &ControlRequestId) -> bool {
        self.lock().contains_key(id)
    }

    pub(super) fn end(&self, id: &ControlRequestId) {
        self.lock().remove(id);
    }

    /// Cancels a request; false if it is not under way.
    pub(super) fn cancel(&self, id: &ControlRequestId) -> bool {
        let requests = self.lock();
        requests.get(id).inspect(|request| request.cancel.cancel()).is_some()
    }

    /// A call asks; what is given back is to be told to the client.
    pub(super) fn add_questions(&self, id: &ControlRequestId, ask: QuestionBatch) {
        if let Some(request) = self.lock().get_mut(id) {
            request.questions.open(ask);
        }
    }

    pub(super) fn answer(&self, id: &ControlRequestId, answers: &Object) -> Result<(), ControlError> {
        let mut requests = self.lock();
        let request = requests.get_mut(id).ok_or_else(|| {
            ControlError::new(
                ErrorKind::UnknownPrompt,
                format!("no request {id} of this socket is under way"),
            )
        })?;
        request.questions.answer(answers)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ControlRequestId, Request>> {
        self.requests.lock()
    }
}
