//! The running requests of one socket, with their cancellation tokens and open questions.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::Object;
use toolyard_hub::{ErrorKind, QuestionBatch};

use super::errors::ControlError;
use super::questions::CallQuestions;
use super::request::ControlRequestId;

/// Maximum number of concurrent requests.
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

/// Why a request cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestStartError {
    /// The ID is in use, so a response would be ambiguous.
    DuplicateId,
    TooMany,
}

impl SocketRequests {
    /// Adds a request and returns its cancellation token.
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

    /// Cancels a request. Returns whether it is running.
    pub(super) fn cancel(&self, id: &ControlRequestId) -> bool {
        let requests = self.lock();
        requests.get(id).inspect(|request| request.cancel.cancel()).is_some()
    }

    /// Adds the questions of a call.
    pub(super) fn add_questions(&self, id: &ControlRequestId, batch: QuestionBatch) {
        if let Some(request) = self.lock().get_mut(id) {
            request.questions.open(batch);
        }
    }

    pub(super) fn answer(&self, id: &ControlRequestId, answers: &Object) -> Result<(), ControlError> {
        let mut requests = self.lock();
        let request = requests.get_mut(id).ok_or_else(|| {
            ControlError::new(
                ErrorKind::UnknownPrompt,
                format!("no running request with the id {id} on this socket"),
            )
        })?;
        request.questions.answer(answers)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ControlRequestId, Request>> {
        self.requests.lock()
    }
}
