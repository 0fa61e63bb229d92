//! Running executions by ID, and recently finished ones. Retention is limited in number, bytes and
//! age. The history that survives a restart is not kept here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::SetOnce;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_hub::{CallDetails, CallStatus, ErrorKind, ExecutionId, HubError, Outcome, Principal, Progress};

use super::response::{ExecutionMetadata, StartTime};

/// The description of an execution.
#[derive(Debug)]
pub(super) struct ExecutionInfo {
    /// ID in responses.
    pub(super) id: String,
    /// The same ID in the hub.
    pub(super) call: ExecutionId,
    /// Full name of the tool, or the requested name if it is unknown.
    pub(super) tool: String,
    pub(super) server: Option<String>,
    pub(super) principal: Principal,
    pub(super) session_id: Option<Arc<str>>,
    pub(super) user_id: Option<Arc<str>>,
    pub(super) began: StartTime,
}

/// One execution, shared by the task that runs it and the requests that wait for it.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) info: Arc<ExecutionInfo>,
    pub(super) cancel: CancellationToken,
    /// What the hub reports about the call in addition to the outcome.
    pub(super) details: Arc<CallDetails>,
    progress: Mutex<Option<Progress>>,
    done: SetOnce<Arc<ExecutionOutcome>>,
}

/// The outcome of a finished execution.
#[derive(Debug)]
pub(super) struct ExecutionOutcome {
    pub(super) answer: Result<Outcome, HubError>,
    /// Chunks that the tool sent before its result.
    pub(super) chunks: Chunks,
    pub(super) duration: Duration,
}

/// Chunks of a result, up to a size limit.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    pub(super) values: Vec<Value>,
    pub(super) dropped: usize,
    bytes: usize,
}

impl Chunks {
    /// Chunks that were stored, and the number of those that were dropped before.
    pub(super) fn restored(values: Vec<Value>, dropped: usize) -> Self {
        Self { values, dropped, bytes: 0 }
    }

    pub(super) fn add(&mut self, chunk: Value, most: usize) {
        let bytes = to_raw(&chunk).get().len();
        if self.dropped > 0 || self.bytes + bytes > most {
            self.dropped += 1;
        } else {
            self.bytes += bytes;
            self.values.push(chunk);
        }
    }
}

impl Execution {
    pub(super) fn new(about: ExecutionInfo) -> Self {
        let (cancel, details) = (CancellationToken::new(), Arc::default());
        Self { info: Arc::new(about), cancel, details, progress: Mutex::default(), done: SetOnce::new() }
    }

    /// An execution that has finished on another replica.
    pub(super) fn finished(about: ExecutionInfo, details: CallDetails, ending: ExecutionOutcome) -> Self {
        let (cancel, details) = (CancellationToken::new(), Arc::new(details));
        let done = SetOnce::new_with(Some(Arc::new(ending)));
        Self { info: Arc::new(about), cancel, details, progress: Mutex::default(), done }
    }

    pub(super) fn report(&self, progress: &Progress) {
        *self.progress.lock() = Some(progress.clone());
    }

    pub(super) fn progress(&self) -> Option<Progress> {
        self.progress.lock().clone()
    }

    pub(super) async fn wait(&self) -> &Arc<ExecutionOutcome> {
        self.done.wait().await
    }

    pub(super) fn outcome(&self) -> Option<&Arc<ExecutionOutcome>> {
        self.done.get()
    }

    /// Returns the metadata of a response about this execution.
    pub(super) fn metadata(&self, duration: Duration) -> ExecutionMetadata {
        let violations = self.details.result_violations().to_vec();
        ExecutionMetadata { id: self.info.id.clone(), began: self.info.began.at, duration, violations }
    }
}

impl ExecutionOutcome {
    pub(super) fn state(&self) -> CallStatus {
        match &self.answer {
            Ok(outcome) if outcome.failed => CallStatus::Failed,
            Ok(_) => CallStatus::Succeeded,
            Err(error) if error.kind() == ErrorKind::Cancelled => CallStatus::Cancelled,
            Err(_) => CallStatus::Failed,
        }
    }

    /// Returns whether the call certainly reached the tool.
    pub(super) fn reached_tool(&self) -> bool {
        self.answer.as_ref().map_or_else(|error| error.kind() == ErrorKind::ToolFailed, |_| true)
    }

    /// Returns the approximate memory use.
    pub(super) fn bytes(&self) -> usize {
        let answer_bytes = match &self.answer {
            Ok(outcome) => outcome.body.get().len(),
            Err(error) => {
                error.message().len() + error.details().map_or(0, |details| to_raw(details).get().len())
            }
        };
        answer_bytes + self.chunks.bytes
    }
}

/// Retention limits.
#[derive(Debug, Clone)]
pub(super) struct RetentionLimits {
    /// Maximum number of running executions.
    pub(super) running: usize,
    pub(super) most: usize,
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

#[derive(Debug)]
pub(super) struct Executions {
    limits: RetentionLimits,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    running: HashMap<String, Arc<Execution>>,
    /// Oldest first.
    finished: VecDeque<FinishedExecution>,
    bytes: usize,
}

#[derive(Debug)]
struct FinishedExecution {
    at: Instant,
    execution: Arc<Execution>,
    bytes: usize,
}

impl Executions {
    pub(super) fn new(limits: RetentionLimits) -> Self {
        Self { limits, inner: Mutex::default() }
    }

    /// Registers an execution. Returns false if too many are running.
    #[must_use]
    pub(super) fn begin(&self, execution: &Arc<Execution>) -> bool {
        let mut inner = self.lock();
        if inner.running.len() >= self.limits.running {
            return false;
        }
        inner.running.insert(execution.info.id.clone(), Arc::clone(execution));
        true
    }

    /// Sets the outcome and wakes all waiters. Only the first outcome counts.
    pub(super) fn end(&self, execution: &Arc<Execution>, answer: Result<Outcome, HubError>, chunks: Chunks) {
        let duration = execution.info.began.clock.elapsed();
        let ending = Arc::new(ExecutionOutcome { answer, chunks, duration });
        let bytes = ending.bytes();
        if execution.done.set(ending).is_err() {
            return;
        }
        let mut inner = self.lock();
        inner.running.remove(&execution.info.id);
        if bytes > self.limits.bytes / 4 {
            return;
        }
        inner.bytes += bytes;
        inner.finished.push_back(FinishedExecution {
            at: Instant::now(),
            execution: Arc::clone(execution),
            bytes,
        });
        self.sweep(&mut inner);
    }

    /// Returns the execution with this ID, if it is still stored.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Execution>> {
        let mut inner = self.lock();
        self.sweep(&mut inner);
        let running = inner.running.get(id);
        let over =
            || inner.finished.iter().map(|over| &over.execution).find(|execution| execution.info.id == id);
        running.or_else(over).cloned()
    }

    /// Returns all stored executions, newest first.
    pub(super) fn all(&self) -> Vec<Arc<Execution>> {
        let mut inner = self.lock();
        self.sweep(&mut inner);
        let over = inner.finished.iter().map(|over| &over.execution);
        let mut all: Vec<_> = over.chain(inner.running.values()).cloned().collect();
        drop(inner);
        all.sort_by_key(|execution| std::cmp::Reverse(execution.info.began.clock));
        all
    }

    /// Cancels all running executions.
    pub(super) fn cancel_all(&self) {
        self.lock().running.values().for_each(|execution| execution.cancel.cancel());
    }

    fn sweep(&self, inner: &mut Inner) {
        let now = Instant::now();
        while let Some(oldest) = inner.finished.front() {
            let old = now.saturating_duration_since(oldest.at) > self.limits.time;
            if !old && inner.finished.len() <= self.limits.most && inner.bytes <= self.limits.bytes {
                return;
            }
            inner.bytes -= oldest.bytes;
            inner.finished.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;
    use toolyard_hub::json::to_raw;
    use toolyard_hub::{CallStatus, ErrorKind, HubError, Outcome, Principal};

    use super::{Chunks, Execution, ExecutionInfo, Executions, RetentionLimits};
    use toolyard_hub::ExecutionId;

    use crate::rest::response::{StartTime, execution_name};

    /// An execution of the owner.
    pub(in crate::rest) fn execution() -> Arc<Execution> {
        let call = ExecutionId::generate().unwrap();
        Arc::new(Execution::new(ExecutionInfo {
            id: execution_name(call),
            call,
            tool: "t".to_owned(),
            server: None,
            principal: Principal::owner(),
            session_id: None,
            user_id: None,
            began: StartTime::now(),
        }))
    }

    fn executions() -> Executions {
        let time = Duration::from_secs(60);
        Executions::new(RetentionLimits { running: 2, most: 3, bytes: 1_000, time })
    }

    fn begin(executions: &Executions) -> Arc<Execution> {
        let execution = execution();
        assert!(executions.begin(&execution));
        execution
    }

    fn run(executions: &Executions, bytes: usize) -> Arc<Execution> {
        let execution = begin(executions);
        let body = to_raw(&"x".repeat(bytes - 2));
        executions.end(&execution, Ok(Outcome::success(body)), Chunks::default());
        execution
    }

    fn is_retained(executions: &Executions, execution: &Execution) -> bool {
        executions.find(&execution.info.id).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_are_evicted_when_there_are_too_many_too_large_or_too_old() {
        let executions = executions();
        let first = run(&executions, 100);
        let others = [run(&executions, 100), run(&executions, 100)];
        assert!(is_retained(&executions, &first));
        let fourth = run(&executions, 100);
        assert!(!is_retained(&executions, &first) && is_retained(&executions, &others[0]));
        // An outcome that is too large on its own is not stored and does not evict others.
        let large = run(&executions, 251);
        assert!(!is_retained(&executions, &large) && is_retained(&executions, &others[0]));
        tokio::time::advance(Duration::from_secs(30)).await;
        let late = run(&executions, 100);
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(!is_retained(&executions, &fourth) && is_retained(&executions, &late));
    }

    #[tokio::test(start_paused = true)]
    async fn the_byte_limit_applies_to_the_total() {
        let executions = Executions::new(RetentionLimits {
            running: 2,
            most: 100,
            bytes: 1_000,
            time: Duration::from_secs(60),
        });
        let all: Vec<_> = (0..6).map(|_| run(&executions, 200)).collect();
        let retained: Vec<bool> = all.iter().map(|execution| is_retained(&executions, execution)).collect();
        assert_eq!(retained, [false, true, true, true, true, true]);
    }

    #[tokio::test]
    async fn running_executions_are_limited_and_only_the_first_outcome_counts() {
        let executions = executions();
        let (one, _two) = (begin(&executions), begin(&executions));
        assert!(!executions.begin(&execution()));
        let cancelled = Err(HubError::new(ErrorKind::Cancelled, "enough"));
        executions.end(&one, cancelled, Chunks::default());
        executions.end(&one, Ok(Outcome::success(to_raw("late"))), Chunks::default());
        assert_eq!(one.wait().await.state(), CallStatus::Cancelled);
        begin(&executions);
    }

    #[test]
    fn chunks_beyond_the_limit_are_counted_and_dropped() {
        let mut chunks = Chunks::default();
        for text in ["123", "1234567890", "1"] {
            chunks.add(json!(text), 10);
        }
        assert_eq!((chunks.values, chunks.dropped), (vec![json!("123")], 2));
    }
}
