//! A call under way: carries what it says to the client, and its questions, until there is an outcome.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{
    CallerUpdate, ErrorKind, HubError, LogLine, Outcome, Progress, Question, QuestionBatch, QuestionKind,
};
use toolyard_wire::{ClientChannel, RawJson};

/// How long a call may be silent before it gets a task of its own.
const SOON: std::time::Duration = std::time::Duration::from_secs(1);
/// How long questions that follow a first one are waited for, so that the client is asked once for all of them.
const BREATH: std::time::Duration = std::time::Duration::from_millis(10);

/// How the client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionMode {
    /// With a request of our own, while the call goes on.
    Legacy,
    /// By an answer that says what is missing; the client repeats its request with it.
    Modern,
}

/// A call under way. Dropping this cancels the call.
#[derive(Debug)]
pub(super) struct McpCall {
    /// Before the work, which learns of it when it is dropped.
    _cancel: DropGuard,
    work: McpCallTask,
    updates: mpsc::Receiver<CallerUpdate>,
    /// What was streamed so far.
    pub(super) chunks: Vec<Value>,
    /// Questions that a modern client has been asked, or is about to be.
    open_questions: Vec<QuestionBatch>,
    answers: HashMap<String, RawJson>,
}

impl McpCall {
    pub(super) fn new(
        work: McpCallTask,
        updates: mpsc::Receiver<CallerUpdate>,
        cancel: CancellationToken,
    ) -> Self {
        let (chunks, open_questions, answers) = (Vec::new(), Vec::new(), HashMap::new());
        Self { _cancel: cancel.drop_guard(), work, updates, chunks, open_questions, answers }
    }

    /// Takes what a modern client answered; open questions that are answered now go on.
    pub(super) fn answer(&mut self, answers: HashMap<String, RawJson>) {
        self.answers.extend(answers);
        for ask in std::mem::take(&mut self.open_questions) {
            self.resolve_questions(ask);
        }
    }

    /// Answers the questions if every answer is there, else keeps them open.
    fn resolve_questions(&mut self, ask: QuestionBatch) {
        if !ask.questions.iter().all(|question| self.has_answer(question)) {
            return self.open_questions.push(ask);
        }
        let answer = |question: Question| Some((question.key.clone(), self.answers.remove(&question.key)?));
        let answers = ask.questions.into_iter().filter_map(answer).collect();
        // Whoever asked may have given up meanwhile.
        let _ = ask.reply.send(Ok(answers));
    }

    fn has_answer(&self, question: &Question) -> bool {
        self.answers.get(&question.key).is_some_and(|answer| is_valid_answer(question.kind, answer))
    }

    /// The questions that still have no answer, as a modern client is told of them.
    pub(super) fn unanswered(&self) -> Vec<&Question> {
        let all = self.open_questions.iter().flat_map(|ask| &ask.questions);
        all.filter(|question| !self.has_answer(question)).collect()
    }

    /// Stays with the call. `None` means that a modern client has to be asked first.
    pub(super) async fn drive(
        &mut self,
        outlet: &ClientChannel,
        token: Option<&RawValue>,
        pace: QuestionMode,
    ) -> Option<Result<Outcome, HubError>> {
        if !self.open_questions.is_empty() {
            return None;
        }
        let mut asking: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        let soon = tokio::time::sleep(SOON);
        tokio::pin!(soon);
        let outcome = loop {
            let update = tokio::select! {
                biased;
                Some(update) = self.updates.recv() => update,
                Some(()) = asking.next(), if !asking.is_empty() => continue,
                outcome = self.work.outcome() => break outcome,
                () = &mut soon, if self.work.is_inline() => {
                    self.work.spawn();
                    continue;
                }
            };
            // The client may read what is said as slowly as it likes.
            self.work.spawn();
            match (update, pace) {
                (CallerUpdate::Ask(ask), QuestionMode::Legacy) => {
                    asking.push(ask_legacy_client(outlet, ask).boxed())
                }
                (CallerUpdate::Ask(ask), QuestionMode::Modern) => {
                    self.resolve_questions(ask);
                    // Questions asked in the same breath go out together.
                    let breath = tokio::time::Instant::now() + BREATH;
                    while let Ok(Some(update)) = tokio::time::timeout_at(breath, self.updates.recv()).await {
                        match update {
                            CallerUpdate::Ask(ask) => self.resolve_questions(ask),
                            other => forward_update(outlet, token, &mut self.chunks, other).await,
                        }
                    }
                    if !self.open_questions.is_empty() {
                        return None;
                    }
                }
                (other, _) => forward_update(outlet, token, &mut self.chunks, other).await,
            }
        };
        // What was said before the end comes before the end.
        while let Ok(update) = self.updates.try_recv() {
            forward_update(outlet, token, &mut self.chunks, update).await;
        }
        Some(outcome)
    }
}

/// Progress and log lines go out; chunks are kept for the result.
async fn forward_update(
    outlet: &ClientChannel,
    token: Option<&RawValue>,
    chunks: &mut Vec<Value>,
    update: CallerUpdate,
) {
    // A client that is gone hears nothing; its call ends when the transport drops it.
    let _ = match update {
        CallerUpdate::Progress(progress) => match token {
            Some(token) => outlet.notify("notifications/progress", &progress_params(token, &progress)).await,
            None => Ok(()),
        },
        CallerUpdate::Log(line) => outlet.notify("notifications/message", &log_params(&line)).await,
        CallerUpdate::Pause(pause) => outlet.pause(pause.retry, pause.returned).await,
        CallerUpdate::Chunk(chunk) => {
            chunks.push(chunk);
            Ok(())
        }
        CallerUpdate::Ask(_) => Ok(()),
    };
}

fn progress_params(token: &RawValue, progress: &Progress) -> RawJson {
    let mut params = json!({"progressToken": token, "progress": number(progress.progress)});
    if let Some(total) = progress.total {
        params["total"] = number(total);
    }
    if let Some(message) = &progress.message {
        params["message"] = message.clone().into();
    }
    to_raw(&params)
}

/// Whole numbers as whole numbers: 50, not 50.0.
pub(crate) fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}

fn log_params(line: &LogLine) -> RawJson {
    let mut params = json!({"level": line.level});
    if let Some(logger) = &line.logger {
        params["logger"] = logger.clone().into();
    }
    params["data"] = line.data.clone();
    to_raw(&params)
}

pub(super) fn method(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::ElicitForm | QuestionKind::ElicitUrl => "elicitation/create",
        QuestionKind::Sample => "sampling/createMessage",
        QuestionKind::Roots => "roots/list",
    }
}

/// Puts questions to a legacy client, all at once.
async fn ask_legacy_client(outlet: &ClientChannel, ask: QuestionBatch) {
    let put = |question: Question| async move {
        let answer = outlet.request(method(question.kind), &legacy_params(&question)?).await;
        let failed = |message: String| Err(HubError::new(ErrorKind::ToolFailed, message));
        match answer {
            Ok(Ok(answer)) if is_valid_answer(question.kind, &answer) => Ok((question.key, answer)),
            Ok(Ok(_)) => failed(format!("the client's answer to {} makes no sense", method(question.kind))),
            Ok(Err(error)) => {
                failed(format!("the client refused {}: {}", method(question.kind), error_message(&error)))
            }
            Err(gone) => Err(HubError::new(ErrorKind::Cancelled, gone.to_string())),
        }
    };
    let QuestionBatch { questions, mut reply } = ask;
    let answers = async { join_all(questions.into_iter().map(put)).await.into_iter().collect() };
    tokio::select! {
        answers = answers => drop(reply.send(answers)),
        // Nobody waits for the answer any more; dropping the requests tells the client.
        () = reply.closed() => {}
    }
}

/// The legacy era wants an id on questions that send a person to an address; the modern one has none.
fn legacy_params(question: &Question) -> Result<RawJson, HubError> {
    let Ok(mut params) = Object::parse(&question.params) else { return Ok(question.params.clone()) };
    if question.kind == QuestionKind::ElicitUrl && !params.contains("elicitationId") {
        params.set("elicitationId", to_raw(&toolyard_random::hex_id()?));
        return Ok(params.to_raw());
    }
    Ok(question.params.clone())
}

fn error_message(error: &RawValue) -> String {
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    error.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_owned()
}

/// Whether an answer has the shape that its question asks for.
pub(crate) fn is_valid_answer(kind: QuestionKind, answer: &RawValue) -> bool {
    let Ok(answer) = serde_json::from_str::<Value>(answer.get()) else { return false };
    match kind {
        QuestionKind::ElicitForm | QuestionKind::ElicitUrl => match answer["action"].as_str() {
            Some("accept") => kind == QuestionKind::ElicitUrl || answer["content"].is_object(),
            Some("decline" | "cancel") => true,
            _ => false,
        },
        QuestionKind::Sample => answer["role"].is_string() && !answer["content"].is_null(),
        QuestionKind::Roots => answer["roots"].is_array(),
    }
}

type CallResult = Result<Outcome, HubError>;

/// The work on one call. Whoever waits for a call starts by doing it: most are over soon and say nothing on the way, and a
/// task for each of those would cost more than the call. A call that speaks, takes its time or is given up goes on in a task,
/// so that its deadline holds even while its client does not read.
#[derive(Debug)]
pub(super) struct McpCallTask(TaskState);

enum TaskState {
    /// Done by whoever asks for the outcome.
    Inline(BoxFuture<'static, CallResult>),
    /// Done in a task, whether anybody asks or not.
    Spawned(JoinHandle<CallResult>),
    Done,
}

impl McpCallTask {
    pub(super) fn new(call: impl Future<Output = CallResult> + Send + 'static) -> Self {
        let call = AssertUnwindSafe(call).catch_unwind();
        Self(TaskState::Inline(Box::pin(async move { call.await.unwrap_or_else(|_| lost_call()) })))
    }

    pub(super) fn is_inline(&self) -> bool {
        matches!(self.0, TaskState::Inline(_))
    }

    /// From now on it is done in a task.
    pub(super) fn spawn(&mut self) {
        self.0 = match std::mem::replace(&mut self.0, TaskState::Done) {
            TaskState::Inline(call) => TaskState::Spawned(tokio::spawn(call)),
            other => other,
        };
    }

    /// Completes once, when the call has ended.
    pub(super) async fn outcome(&mut self) -> CallResult {
        let ended = poll_fn(|cx| match &mut self.0 {
            TaskState::Inline(call) => call.as_mut().poll(cx),
            TaskState::Spawned(task) => {
                Pin::new(task).poll(cx).map(|joined| joined.unwrap_or_else(|_| lost_call()))
            }
            TaskState::Done => Poll::Pending,
        })
        .await;
        self.0 = TaskState::Done;
        ended
    }
}

fn lost_call() -> CallResult {
    Err(HubError::new(ErrorKind::Bug, "the call was lost"))
}

/// Whoever gives a call up has cancelled it; what runs in it must learn that, and put things away.
impl Drop for McpCallTask {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.0, TaskState::Done);
        if let (TaskState::Inline(call), Ok(runtime)) = (state, Handle::try_current()) {
            runtime.spawn(call);
        }
    }
}

impl fmt::Debug for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inline(_) => "Here",
            Self::Spawned(_) => "Apart",
            Self::Done => "Over",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use toolyard_hub::json::empty_object;
    use toolyard_hub::{ErrorKind, HubError, Outcome};

    use super::{CallResult, McpCallTask};

    fn fine() -> CallResult {
        Ok(Outcome { failed: false, body: empty_object(), modern: true })
    }

    #[tokio::test]
    async fn a_call_that_crashes_is_lost_and_nothing_else_is() {
        for apart in [false, true] {
            let mut work = McpCallTask::new(async { std::panic::resume_unwind(Box::new("a bug")) });
            if apart {
                work.spawn();
            }
            let ended = work.outcome().await.unwrap_err();
            assert_eq!((ended.kind(), ended.message()), (ErrorKind::Bug, "the call was lost"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_apart_goes_on_though_nobody_asks() {
        let (done, is_done) = oneshot::channel();
        let mut work = McpCallTask::new(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let _ = done.send(());
            fine()
        });
        work.spawn();
        assert!(!work.is_inline());
        is_done.await.unwrap();
        assert!(work.outcome().await.is_ok());
    }

    #[tokio::test]
    async fn what_is_given_up_half_way_is_still_carried_to_its_end() {
        let (go, going) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let mut work = McpCallTask::new(async {
            let _ = going.await;
            let _ = done.send(());
            Err(HubError::new(ErrorKind::Cancelled, "given up"))
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), work.outcome()).await.is_err());
        assert!(work.is_inline());
        drop(work);
        go.send(()).unwrap();
        is_done.await.unwrap();
    }
}
