//! Runs one execution: the call, its updates and its end. The task is independent of the client's
//! connection; the request handler decides whether a disconnect cancels the call.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use toolyard_hub::{CallerUpdate, ErrorKind, HubError, LogLine, Outcome, Progress};

use super::RestFront;
use super::executions::{Chunks, Execution};
use super::key_hold::KeyHold;
use super::result::validate_result;

/// How long a slow client may take to receive pending events after the call has ended.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// An event for the client.
#[derive(Debug)]
pub(super) enum ExecutionEvent {
    Progress(Progress),
    Chunk(Value),
    Log(LogLine),
}

pub(super) type RestCallFuture = Pin<Box<dyn Future<Output = Result<Outcome, HubError>> + Send>>;

/// A started call and everything needed to finish it.
pub(super) struct Job {
    rest: Arc<RestFront>,
    execution: Arc<Execution>,
    key: Option<KeyHold>,
    updates: mpsc::Receiver<CallerUpdate>,
    chunks: Chunks,
    over: bool,
}

/// The state of a call after its first poll.
pub(super) enum FirstPoll {
    /// The call is still running.
    Pending(Job, RestCallFuture),
    /// The call has ended and sent these events.
    Ready(Vec<ExecutionEvent>),
}

impl Job {
    pub(super) fn new(
        rest: Arc<RestFront>,
        execution: Arc<Execution>,
        key: Option<KeyHold>,
        updates: mpsc::Receiver<CallerUpdate>,
    ) -> Self {
        Self { rest, execution, key, updates, chunks: Chunks::default(), over: false }
    }

    /// Polls the call once. A call that is refused or completes immediately does not need its own
    /// task.
    pub(super) async fn poll_once(mut self, mut call: RestCallFuture) -> FirstPoll {
        match std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            Poll::Pending => FirstPoll::Pending(self, call),
            Poll::Ready(answer) => {
                // Bounded by the update channel: a tool that sends more than its capacity has to
                // wait.
                let mut events = Vec::new();
                while let Ok(update) = self.updates.try_recv() {
                    events.extend(self.note(update));
                }
                self.end(answer);
                FirstPoll::Ready(events)
            }
        }
    }

    /// Runs the call to its end.
    pub(super) async fn run(
        mut self,
        mut call: RestCallFuture,
        reader: Option<mpsc::Sender<ExecutionEvent>>,
    ) {
        let answer = {
            let passing = async {
                self.forward_updates(reader.as_ref()).await;
                std::future::pending::<()>().await;
            };
            // Concurrently: a slow client delays events, but not the timeout of the call.
            tokio::select! {
                biased;
                answer = &mut call => answer,
                () = passing => return,
            }
        };
        drop(call);
        self.updates.close();
        if tokio::time::timeout(LAST_WORDS, self.forward_updates(reader.as_ref())).await.is_err() {
            while let Ok(update) = self.updates.try_recv() {
                self.note(update);
            }
        }
        self.end(answer);
    }

    /// Forwards updates until the channel closes. Takes an update only when the client has capacity
    /// for it.
    async fn forward_updates(&mut self, reader: Option<&mpsc::Sender<ExecutionEvent>>) {
        loop {
            let room = match reader {
                Some(reader) => reader.reserve().await.ok(),
                None => None,
            };
            let Some(update) = self.updates.recv().await else { return };
            if let (Some(event), Some(room)) = (self.note(update), room) {
                room.send(event);
            }
        }
    }

    /// Records an update.
    fn note(&mut self, update: CallerUpdate) -> Option<ExecutionEvent> {
        match update {
            CallerUpdate::Progress(progress) => {
                self.execution.report(&progress);
                Some(ExecutionEvent::Progress(progress))
            }
            CallerUpdate::Chunk(chunk) => {
                self.chunks.add(chunk.clone(), self.rest.settings.body);
                Some(ExecutionEvent::Chunk(chunk))
            }
            CallerUpdate::Log(line) => Some(ExecutionEvent::Log(line)),
            // The call knows that REST cannot answer questions, and a client may disconnect at any
            // time.
            CallerUpdate::Ask(_) | CallerUpdate::Pause(_) => None,
        }
    }

    fn end(mut self, answer: Result<Outcome, HubError>) {
        self.over = true;
        let chunks = std::mem::take(&mut self.chunks);
        let answer = answer.and_then(|outcome| validate_result(&self.execution.info.tool, outcome));
        let nothing_ran = answer.as_ref().is_err_and(|error| is_safe_to_retry(error.kind()));
        let mut key = self.key.take();
        // Release the key first: another request with this key must not find an execution that is
        // about to be removed.
        if nothing_ran && let Some(key) = key.take() {
            key.release(&self.rest.keys);
        }
        self.rest.executions.end(&self.execution, answer, chunks);
        if let Some(key) = key {
            key.retain_outcome(&self.rest.keys, &self.execution);
        }
    }
}

/// Ends the execution if its task is dropped or panics, because requests may be waiting for the
/// outcome.
impl Drop for Job {
    fn drop(&mut self) {
        if !self.over {
            let lost = Err(HubError::new(ErrorKind::Bug, "the execution was lost"));
            self.rest.executions.end(&self.execution, lost, std::mem::take(&mut self.chunks));
        }
    }
}

/// Returns whether an error of this kind guarantees that the call never reached the tool, so that a
/// retry is safe.
fn is_safe_to_retry(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::UnknownTool
        | ErrorKind::Unauthenticated
        | ErrorKind::RateLimited
        | ErrorKind::TooLarge
        | ErrorKind::NotConnected
        | ErrorKind::CannotConnect => true,
        // A tool can reject arguments or the caller itself after it has started.
        ErrorKind::InvalidArguments
        | ErrorKind::Forbidden
        | ErrorKind::UnknownResource
        | ErrorKind::UnknownPrompt
        | ErrorKind::TimedOut
        | ErrorKind::Cancelled
        | ErrorKind::ConnectionLost
        | ErrorKind::ToolFailed
        | ErrorKind::ClientCannot
        | ErrorKind::Bug => false,
    }
}
