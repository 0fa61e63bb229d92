//! A running call: forwards its updates and questions to the client until there is an outcome.

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

/// How long a call without updates runs inline before it gets a task of its own.
const INLINE_TIME: std::time::Duration = std::time::Duration::from_secs(1);
/// How long to wait for more questions after the first one, so that the client gets all of them in
/// one response.
const QUESTION_WAIT: std::time::Duration = std::time::Duration::from_millis(10);

/// How questions reach the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionMode {
    /// With a request to the client while the call continues.
    Legacy,
    /// With an `input_required` result. The client repeats its request with the answers.
    Modern,
}

/// A running call. Dropping this cancels the call.
#[derive(Debug)]
pub(super) struct McpCall {
    /// Declared before `work`, so that it is dropped first and the work notices the cancellation.
    _cancel: DropGuard,
    work: McpCallTask,
    updates: mpsc::Receiver<CallerUpdate>,
    /// The chunks streamed so far.
    pub(super) chunks: Vec<Value>,
    /// Questions that have been or will be sent to a modern client.
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

    /// Adds answers of a modern client and resolves the open questions that they complete.
    pub(super) fn answer(&mut self, answers: HashMap<String, RawJson>) {
        self.answers.extend(answers);
        for batch in std::mem::take(&mut self.open_questions) {
            self.resolve_questions(batch);
        }
    }

    /// Resolves the questions if all answers are available. Otherwise the questions stay open.
    fn resolve_questions(&mut self, batch: QuestionBatch) {
        if !batch.questions.iter().all(|question| self.has_answer(question)) {
            return self.open_questions.push(batch);
        }
        let answer = |question: Question| Some((question.key.clone(), self.answers.remove(&question.key)?));
        let answers = batch.questions.into_iter().filter_map(answer).collect();
        // The receiver may be gone.
        let _ = batch.reply.send(Ok(answers));
    }

    fn has_answer(&self, question: &Question) -> bool {
        self.answers.get(&question.key).is_some_and(|answer| is_valid_answer(question.kind, answer))
    }

    /// Returns the unanswered questions for a modern client.
    pub(super) fn unanswered(&self) -> Vec<&Question> {
        let all = self.open_questions.iter().flat_map(|batch| &batch.questions);
        all.filter(|question| !self.has_answer(question)).collect()
    }

    /// Runs the call to its end. Returns `None` if a modern client must answer questions first.
    pub(super) async fn drive(
        &mut self,
        channel: &ClientChannel,
        token: Option<&RawValue>,
        mode: QuestionMode,
    ) -> Option<Result<Outcome, HubError>> {
        if !self.open_questions.is_empty() {
            return None;
        }
        let mut asking: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        let inline_time = tokio::time::sleep(INLINE_TIME);
        tokio::pin!(inline_time);
        let outcome = loop {
            let update = tokio::select! {
                biased;
                Some(update) = self.updates.recv() => update,
                Some(()) = asking.next(), if !asking.is_empty() => continue,
                outcome = self.work.outcome() => break outcome,
                () = &mut inline_time, if self.work.is_inline() => {
                    self.work.spawn();
                    continue;
                }
            };
            // From here on the client may read slowly, so the call needs a task of its own.
            self.work.spawn();
            match (update, mode) {
                (CallerUpdate::Ask(batch), QuestionMode::Legacy) => {
                    asking.push(ask_legacy_client(channel, batch).boxed())
                }
                (CallerUpdate::Ask(batch), QuestionMode::Modern) => {
                    self.resolve_questions(batch);
                    // Questions in quick succession are sent together.
                    let until = tokio::time::Instant::now() + QUESTION_WAIT;
                    while let Ok(Some(update)) = tokio::time::timeout_at(until, self.updates.recv()).await {
                        match update {
                            CallerUpdate::Ask(batch) => self.resolve_questions(batch),
                            other => forward_update(channel, token, &mut self.chunks, other).await,
                        }
                    }
                    if !self.open_questions.is_empty() {
                        return None;
                    }
                }
                (other, _) => forward_update(channel, token, &mut self.chunks, other).await,
            }
        };
        // Forwards the remaining updates before the result.
        while let Ok(update) = self.updates.try_recv() {
            forward_update(channel, token, &mut self.chunks, update).await;
        }
        Some(outcome)
    }
}

/// Sends progress and log lines, and collects chunks for the result.
async fn forward_update(
    channel: &ClientChannel,
    token: Option<&RawValue>,
    chunks: &mut Vec<Value>,
    update: CallerUpdate,
) {
    // If the client is gone, the transport drops the call.
    let _ = match update {
        CallerUpdate::Progress(progress) => match token {
            Some(token) => channel.notify("notifications/progress", &progress_params(token, &progress)).await,
            None => Ok(()),
        },
        CallerUpdate::Log(line) => channel.notify("notifications/message", &log_params(&line)).await,
        CallerUpdate::Pause(pause) => channel.pause(pause.retry, pause.returned).await,
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

/// Renders integers without a fraction: 50, not 50.0.
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

/// Sends questions to a legacy client, all at the same time.
async fn ask_legacy_client(channel: &ClientChannel, batch: QuestionBatch) {
    let send = |question: Question| async move {
        let answer = channel.request(method(question.kind), &legacy_params(&question)?).await;
        let failed = |message: String| Err(HubError::new(ErrorKind::ToolFailed, message));
        match answer {
            Ok(Ok(answer)) if is_valid_answer(question.kind, &answer) => Ok((question.key, answer)),
            Ok(Ok(_)) => failed(format!("the client's answer to {} is invalid", method(question.kind))),
            Ok(Err(error)) => {
                failed(format!("the client rejected {}: {}", method(question.kind), error_message(&error)))
            }
            Err(gone) => Err(HubError::new(ErrorKind::Cancelled, gone.to_string())),
        }
    };
    let QuestionBatch { questions, mut reply } = batch;
    let answers = async { join_all(questions.into_iter().map(send)).await.into_iter().collect() };
    tokio::select! {
        answers = answers => drop(reply.send(answers)),
        // The answers are no longer needed. Dropping the requests cancels them at the client.
        () = reply.closed() => {}
    }
}

/// Returns the params of a question for a legacy client. URL elicitations need an ID in the legacy
/// era; the modern era has none.
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

/// Returns whether an answer has the structure that its question requires.
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

/// The work on one call. It starts inline in the waiting future: most calls end soon without
/// updates, and a task for each of them would cost more than the call. A call that sends an update,
/// takes long or is dropped continues in a task, so that its deadline holds even while its client
/// does not read.
#[derive(Debug)]
pub(super) struct McpCallTask(TaskState);

enum TaskState {
    /// Runs while the outcome is awaited.
    Inline(BoxFuture<'static, CallResult>),
    /// Runs in a task, whether the outcome is awaited or not.
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

    /// Moves the work to a task.
    pub(super) fn spawn(&mut self) {
        self.0 = match std::mem::replace(&mut self.0, TaskState::Done) {
            TaskState::Inline(call) => TaskState::Spawned(tokio::spawn(call)),
            other => other,
        };
    }

    /// Completes once, when the call has ended.
    pub(super) async fn outcome(&mut self) -> CallResult {
        let result = poll_fn(|cx| match &mut self.0 {
            TaskState::Inline(call) => call.as_mut().poll(cx),
            TaskState::Spawned(task) => {
                Pin::new(task).poll(cx).map(|joined| joined.unwrap_or_else(|_| lost_call()))
            }
            TaskState::Done => Poll::Pending,
        })
        .await;
        self.0 = TaskState::Done;
        result
    }
}

fn lost_call() -> CallResult {
    Err(HubError::new(ErrorKind::Bug, "the call ended without a result"))
}

/// A dropped call is canceled. It continues in a task, so that it can notice the cancellation and
/// clean up.
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
            Self::Inline(_) => "Inline",
            Self::Spawned(_) => "Spawned",
            Self::Done => "Done",
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
    async fn a_call_that_panics_ends_with_an_error() {
        for spawned in [false, true] {
            let mut work = McpCallTask::new(async { std::panic::resume_unwind(Box::new("a bug")) });
            if spawned {
                work.spawn();
            }
            let error = work.outcome().await.unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Bug, "the call ended without a result"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn spawned_work_continues_while_its_outcome_is_not_awaited() {
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
    async fn dropped_work_still_runs_to_its_end() {
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
