//! The channel from a running call back to its caller: progress, chunks, log messages and
//! questions, in one ordered, bounded queue. Each front decides how to encode them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::call_permits::CallPermits;
use crate::deadline::Deadline;
use crate::error::{ErrorKind, HubError};
use crate::events::{EventBus, YardEvent};
use crate::json::Raw;
use crate::record::CallRecord;

/// Capacity of the queue. When it is full, progress and log messages are dropped and chunks wait.
const QUEUE: usize = 256;

/// The channel back to the caller. Clones send to the same caller.
#[derive(Debug, Clone)]
pub struct CallerChannel {
    state: Arc<ChannelState>,
    scope: Option<Arc<CallScope>>,
}

/// The clock and permits that are paused while a question of one call is open. If a call is made on
/// behalf of another, both are paused.
#[derive(Debug)]
struct CallScope {
    deadline: Deadline,
    permits: CallPermits,
    outer: Option<Arc<CallScope>>,
    /// The call, and the event stream that publishes its progress.
    record: Arc<CallRecord>,
    events: Arc<EventBus>,
}

#[derive(Debug)]
struct ChannelState {
    updates: mpsc::Sender<CallerUpdate>,
    capabilities: ClientCapabilities,
    last_progress: Mutex<f64>,
}

/// The question types that the client of the caller supports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    pub elicit_form: bool,
    pub elicit_url: bool,
    pub sample: bool,
    pub roots: bool,
    /// The minimum level of log messages to send. With `None`, no log messages are sent.
    pub log_level: Option<LogLevel>,
}

/// A message to the caller.
#[derive(Debug)]
pub enum CallerUpdate {
    Progress(Progress),
    Chunk(Value),
    Log(LogLine),
    Ask(QuestionBatch),
    Pause(StreamPause),
}

/// The caller may disconnect and reconnect later for the result.
#[derive(Debug, Clone)]
pub struct StreamPause {
    /// How long the caller should wait before it reconnects.
    pub retry: Duration,
    /// Notified when the caller is back, possibly before `retry` has elapsed.
    pub returned: Arc<Notify>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    pub level: LogLevel,
    pub logger: Option<String>,
    pub data: Value,
}

/// The syslog severities, from least to most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// A set of questions that the caller must answer before the call continues.
#[derive(Debug)]
pub struct QuestionBatch {
    pub questions: Vec<Question>,
    pub reply: oneshot::Sender<Result<RawAnswers, HubError>>,
}

/// One question, identified by a key that the source chooses.
#[derive(Debug, Clone)]
pub struct Question {
    pub key: String,
    pub kind: QuestionKind,
    pub params: Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionKind {
    ElicitForm,
    ElicitUrl,
    Sample,
    Roots,
}

/// The raw answers by key.
pub type RawAnswers = Vec<(String, Raw)>;

impl CallerChannel {
    /// Creates a channel and the receiver that the front reads from.
    pub fn new(abilities: ClientCapabilities) -> (Self, mpsc::Receiver<CallerUpdate>) {
        let (updates, receiver) = mpsc::channel(QUEUE);
        let way =
            ChannelState { updates, capabilities: abilities, last_progress: Mutex::new(f64::NEG_INFINITY) };
        (Self { state: Arc::new(way), scope: None }, receiver)
    }

    /// Creates a channel for a caller that only reads the outcome.
    pub fn silent() -> Self {
        Self::new(ClientCapabilities::default()).0
    }

    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.state.capabilities
    }

    /// Returns whether both channels belong to the same request of the same caller.
    pub fn is_same_caller(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Reports progress. Values that do not increase are dropped, because the protocol requires
    /// increasing values. Progress is also dropped while the queue is full.
    pub fn report_progress(&self, mut progress: Progress) {
        progress.total = progress.total.filter(|total| total.is_finite());
        // Sent under the lock so that concurrent reports are queued in increasing order.
        let mut last = self.state.last_progress.lock();
        if progress.progress.is_finite() && progress.progress > *last {
            *last = progress.progress;
            if let Some(held) = &self.scope {
                held.events.publish_call(|| YardEvent::CallProgress {
                    call: Arc::clone(&held.record),
                    progress: progress.clone(),
                });
            }
            self.try_send(CallerUpdate::Progress(progress));
        }
    }

    /// Sends a log message if the caller requested messages of its level.
    pub fn log(&self, line: LogLine) {
        if self.state.capabilities.log_level.is_some_and(|minimum| line.level >= minimum) {
            self.try_send(CallerUpdate::Log(line));
        }
    }

    /// Sends a part of the result early. Waits while the queue is full: chunks are never dropped.
    pub async fn send_chunk(&self, chunk: Value) {
        // If the caller has disconnected, its call is being canceled and needs no chunks.
        let _ = self.state.updates.send(CallerUpdate::Chunk(chunk)).await;
    }

    /// Notifies the caller that it may disconnect and reconnect later.
    pub async fn send_pause(&self, retry: Duration) {
        let pause = StreamPause { retry, returned: Arc::default() };
        let _ = self.state.updates.send(CallerUpdate::Pause(pause)).await;
    }

    /// Like [`Self::send_pause`], but does not wait: the message is dropped if the queue is full.
    pub fn try_send_pause(&self, pause: StreamPause) {
        self.try_send(CallerUpdate::Pause(pause));
    }

    /// Asks the caller. Until the answer arrives, the deadline of the call is paused and its
    /// concurrency permits are released.
    pub async fn ask(&self, questions: Vec<Question>) -> Result<RawAnswers, HubError> {
        if let Some(question) = questions.iter().find(|q| !self.state.capabilities.supports(q.kind)) {
            return Err(missing_capability_error(question.kind));
        }
        let waiting: Vec<_> = CallScope::chain(self.scope.as_deref())
            .map(|held| (held.deadline.pause(), held.permits.release()))
            .collect();
        let answers = self.send_questions(questions).await;
        // The source continues in any case, so the call needs its permits and its clock again.
        let (paused, stepped_out): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        drop(paused);
        // Outermost call first, which is the order in which calls acquire permits. Any other order
        // could deadlock.
        for place in stepped_out.into_iter().rev() {
            place.reacquire().await;
        }
        answers
    }

    /// Returns this channel for one call: questions pause its deadline and release its permits, and
    /// watchers receive its progress.
    pub(crate) fn for_call(
        &self,
        record: &Arc<CallRecord>,
        deadline: Deadline,
        slot: CallPermits,
        events: Arc<EventBus>,
    ) -> Self {
        let record = Arc::clone(record);
        let held = CallScope { deadline, permits: slot, outer: self.scope.clone(), record, events };
        Self { state: Arc::clone(&self.state), scope: Some(Arc::new(held)) }
    }

    async fn send_questions(&self, questions: Vec<Question>) -> Result<RawAnswers, HubError> {
        let (reply, answer) = oneshot::channel();
        let gone = || HubError::new(ErrorKind::Cancelled, "the caller disconnected before it answered");
        self.state
            .updates
            .send(CallerUpdate::Ask(QuestionBatch { questions, reply }))
            .await
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    fn try_send(&self, update: CallerUpdate) {
        // The queue is full or closed. Either way the caller is not reading at the moment.
        let _ = self.state.updates.try_send(update);
    }
}

impl CallScope {
    /// This call, then the calls that it is made on behalf of.
    fn chain(innermost: Option<&Self>) -> impl Iterator<Item = &Self> {
        std::iter::successors(innermost, |held| held.outer.as_deref())
    }
}

impl ClientCapabilities {
    pub fn supports(&self, kind: QuestionKind) -> bool {
        match kind {
            QuestionKind::ElicitForm => self.elicit_form,
            QuestionKind::ElicitUrl => self.elicit_url,
            QuestionKind::Sample => self.sample,
            QuestionKind::Roots => self.roots,
        }
    }
}

/// Returns the error for a question that the client of the caller does not support. Its details
/// name the missing capability.
fn missing_capability_error(kind: QuestionKind) -> HubError {
    let (feature, needed) = match kind {
        QuestionKind::ElicitForm => ("form elicitation", serde_json::json!({"elicitation": {"form": {}}})),
        QuestionKind::ElicitUrl => ("URL elicitation", serde_json::json!({"elicitation": {"url": {}}})),
        QuestionKind::Sample => ("sampling", serde_json::json!({"sampling": {}})),
        QuestionKind::Roots => ("roots", serde_json::json!({"roots": {}})),
    };
    HubError::new(ErrorKind::ClientCannot, format!("this call requires a client that supports {feature}"))
        .with_suggestion("use a client that declares this capability")
        .with_details(needed)
}
