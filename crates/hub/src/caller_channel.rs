//! The way back from a call to whoever made it: progress, chunks, log lines and questions, in one ordered
//! bounded queue. How they are written down is the front's business.

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

/// How many updates wait for a slow reader before progress and log lines are dropped and chunks wait.
const QUEUE: usize = 256;

/// The way back to the caller. Clones lead to the same place.
#[derive(Debug, Clone)]
pub struct CallerChannel {
    state: Arc<ChannelState>,
    scope: Option<Arc<CallScope>>,
}

/// What stands still while a question of one call is open. A call made on behalf of another holds up both.
#[derive(Debug)]
struct CallScope {
    deadline: Deadline,
    permits: CallPermits,
    outer: Option<Arc<CallScope>>,
    /// Which call it is, and where watchers hear of its progress.
    record: Arc<CallRecord>,
    events: Arc<EventBus>,
}

#[derive(Debug)]
struct ChannelState {
    updates: mpsc::Sender<CallerUpdate>,
    capabilities: ClientCapabilities,
    last_progress: Mutex<f64>,
}

/// What the caller's side can do when asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    pub elicit_form: bool,
    pub elicit_url: bool,
    pub sample: bool,
    pub roots: bool,
    /// Log lines below this level are not wanted; none at all without one.
    pub log_level: Option<LogLevel>,
}

/// Something on its way to the caller.
#[derive(Debug)]
pub enum CallerUpdate {
    Progress(Progress),
    Chunk(Value),
    Log(LogLine),
    Ask(QuestionBatch),
    Pause(StreamPause),
}

/// The caller may hang up and come back for the answer.
#[derive(Debug, Clone)]
pub struct StreamPause {
    /// How long it is asked to stay away.
    pub retry: Duration,
    /// Notified when it is back, which may be earlier.
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

/// The severities of syslog, mildest first.
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

/// Questions that the caller's side must answer before the call goes on.
#[derive(Debug)]
pub struct QuestionBatch {
    pub questions: Vec<Question>,
    pub reply: oneshot::Sender<Result<RawAnswers, HubError>>,
}

/// One question, under a key of the asker's choice.
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

/// The answers, by key, as they came.
pub type RawAnswers = Vec<(String, Raw)>;

impl CallerChannel {
    /// A way back, and the end of it at which the front reads.
    pub fn new(abilities: ClientCapabilities) -> (Self, mpsc::Receiver<CallerUpdate>) {
        let (updates, receiver) = mpsc::channel(QUEUE);
        let way =
            ChannelState { updates, capabilities: abilities, last_progress: Mutex::new(f64::NEG_INFINITY) };
        (Self { state: Arc::new(way), scope: None }, receiver)
    }

    /// A caller that wants nothing but the outcome.
    pub fn silent() -> Self {
        Self::new(ClientCapabilities::default()).0
    }

    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.state.capabilities
    }

    /// Whether both lead to the same caller of the same request.
    pub fn is_same_caller(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Reports progress. A value that does not grow is not sent, because the protocol wants each one to grow;
    /// neither is one that a slow reader has no room for.
    pub fn report_progress(&self, mut progress: Progress) {
        progress.total = progress.total.filter(|total| total.is_finite());
        // Sent under the lock: of two threads that report at once, the smaller value must not come second.
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

    /// Writes a log line, if the caller asked for lines of its level.
    pub fn log(&self, line: LogLine) {
        if self.state.capabilities.log_level.is_some_and(|wanted| line.level >= wanted) {
            self.try_send(CallerUpdate::Log(line));
        }
    }

    /// Sends a piece of the result ahead. Waits for a slow reader: a piece of a result is never dropped.
    pub async fn send_chunk(&self, chunk: Value) {
        // A caller that is gone needs no chunks; its call is being cancelled.
        let _ = self.state.updates.send(CallerUpdate::Chunk(chunk)).await;
    }

    /// Tells the caller that it may hang up and come back.
    pub async fn send_pause(&self, retry: Duration) {
        let pause = StreamPause { retry, returned: Arc::default() };
        let _ = self.state.updates.send(CallerUpdate::Pause(pause)).await;
    }

    /// The same for whoever must not wait; a caller that reads slowly is not told.
    pub fn try_send_pause(&self, pause: StreamPause) {
        self.try_send(CallerUpdate::Pause(pause));
    }

    /// Asks the caller's side. While it thinks, the call's clock stands still and its place among the
    /// source's concurrent calls is free for others.
    pub async fn ask(&self, questions: Vec<Question>) -> Result<RawAnswers, HubError> {
        if let Some(question) = questions.iter().find(|q| !self.state.capabilities.supports(q.kind)) {
            return Err(missing_capability_error(question.kind));
        }
        let waiting: Vec<_> = CallScope::chain(self.scope.as_deref())
            .map(|held| (held.deadline.pause(), held.permits.release()))
            .collect();
        let answers = self.send_questions(questions).await;
        // Whatever came back, the source goes on working, so it needs its place and its clock again.
        let (paused, stepped_out): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        drop(paused);
        // Outermost first, the order in which calls take their places: two that cross would wait for each other.
        for place in stepped_out.into_iter().rev() {
            place.reacquire().await;
        }
        answers
    }

    /// The same way back for one call, whose clock and place are handed back while a question of it is open, and of whose
    /// progress watchers hear.
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
        let gone = || HubError::new(ErrorKind::Cancelled, "the caller went away while it was asked");
        self.state
            .updates
            .send(CallerUpdate::Ask(QuestionBatch { questions, reply }))
            .await
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    fn try_send(&self, update: CallerUpdate) {
        // Full or closed: both mean that nobody is reading just now.
        let _ = self.state.updates.try_send(update);
    }
}

impl CallScope {
    /// This call's, then those of the calls that it was made for.
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

/// The error for a question that this caller cannot answer; its details name the missing ability.
fn missing_capability_error(kind: QuestionKind) -> HubError {
    let (what, needed) = match kind {
        QuestionKind::ElicitForm => ("fill in a form", serde_json::json!({"elicitation": {"form": {}}})),
        QuestionKind::ElicitUrl => ("open an address", serde_json::json!({"elicitation": {"url": {}}})),
        QuestionKind::Sample => ("ask its model", serde_json::json!({"sampling": {}})),
        QuestionKind::Roots => ("list its roots", serde_json::json!({"roots": {}})),
    };
    HubError::new(ErrorKind::ClientCannot, format!("this call needs a client that can {what}"))
        .with_suggestion("use a client that declares the capability")
        .with_details(needed)
}
