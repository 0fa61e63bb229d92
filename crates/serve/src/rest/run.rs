//! An execution on its way: the call, what it says meanwhile, and its end. It runs on whatever becomes of the connection
//! that asked for it; whether that cancels it is decided by whoever waits.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use toolyard_hub::{CallerUpdate, ErrorKind, HubError, LogLine, Outcome, Progress};

use super::RestFront;
use super::executions::{Chunks, Execution};
use super::idempotency::IdempotencyKey;
use super::result::validate_result;

/// How long a reader may take over what was said before the end, once the end is known.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Something on its way to a reader of events.
#[derive(Debug)]
pub(super) enum ExecutionEvent {
    Progress(Progress),
    Chunk(Value),
    Log(LogLine),
}

pub(super) type RestCallFuture = Pin<Box<dyn Future<Output = Result<Outcome, HubError>> + Send>>;

/// A call that was made, and everything that has to be done about it.
pub(super) struct Job {
    rest: Arc<RestFront>,
    execution: Arc<Execution>,
    key: Option<Arc<IdempotencyKey>>,
    updates: mpsc::Receiver<CallerUpdate>,
    chunks: Chunks,
    over: bool,
}

/// How far a call gets without waiting for anything.
pub(super) enum FirstPoll {
    /// It goes on.
    Pending(Job, RestCallFuture),
    /// It has ended, and said this before.
    Ready(Vec<ExecutionEvent>),
}

impl Job {
    pub(super) fn new(
        rest: Arc<RestFront>,
        execution: Arc<Execution>,
        key: Option<Arc<IdempotencyKey>>,
        updates: mpsc::Receiver<CallerUpdate>,
    ) -> Self {
        Self { rest, execution, key, updates, chunks: Chunks::default(), over: false }
    }

    /// Takes the first step. A call that is refused, or is done at once, needs no task of its own.
    pub(super) async fn poll_once(mut self, mut call: RestCallFuture) -> FirstPoll {
        match std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            Poll::Pending => FirstPoll::Pending(self, call),
            Poll::Ready(answer) => {
                // No more than the queue of the call holds: a tool that says more has to wait for room.
                let mut said = Vec::new();
                while let Ok(update) = self.updates.try_recv() {
                    said.extend(self.note(update));
                }
                self.end(answer);
                FirstPoll::Ready(said)
            }
        }
    }

    /// Stays with the call until it is over.
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
            // Side by side: a reader that does not read holds up what is said, never the call's own clock.
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

    /// Hands on what the call says, until it says no more. Nothing is taken that there is no room for.
    async fn forward_updates(&mut self, reader: Option<&mpsc::Sender<ExecutionEvent>>) {
        loop {
            let room = match reader {
                Some(reader) => reader.reserve().await.ok(),
                None => None,
            };
            let Some(update) = self.updates.recv().await else { return };
            if let (Some(said), Some(room)) = (self.note(update), room) {
                room.send(said);
            }
        }
    }

    /// Remembers what was said.
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
            // Over plain HTTP nobody can be asked, as the call was told; and whoever waits may always hang up.
            CallerUpdate::Ask(_) | CallerUpdate::Pause(_) => None,
        }
    }

    fn end(mut self, answer: Result<Outcome, HubError>) {
        self.over = true;
        let chunks = std::mem::take(&mut self.chunks);
        let answer = answer.and_then(|outcome| validate_result(&self.execution.info.tool, outcome));
        let nothing_ran = answer.as_ref().is_err_and(|error| is_safe_to_retry(error.kind()));
        // The key first: a second caller with it must not find an execution that is about to be forgotten.
        if let (Some(key), true) = (&self.key, nothing_ran) {
            self.rest.keys.release(key);
        }
        self.rest.executions.end(&self.execution, answer, chunks);
        if let (Some(key), false, Some(ending)) = (&self.key, nothing_ran, self.execution.outcome()) {
            self.rest.keys.retain_outcome(key, ending.bytes());
        }
    }
}

/// A task that is dropped or crashes still ends its execution: somebody may be waiting for it.
impl Drop for Job {
    fn drop(&mut self) {
        if !self.over {
            let lost = Err(HubError::new(ErrorKind::Bug, "the execution was lost"));
            self.rest.executions.end(&self.execution, lost, std::mem::take(&mut self.chunks));
        }
    }
}

/// Whether an error of this kind says that the call never reached a tool, so that making it again is safe.
fn is_safe_to_retry(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::UnknownTool
        | ErrorKind::Unauthenticated
        | ErrorKind::RateLimited
        | ErrorKind::TooLarge
        | ErrorKind::NotConnected
        | ErrorKind::CannotConnect => true,
        // A tool may refuse its arguments or its caller itself, after it has begun.
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
