//! The work on one call. Whoever waits for a call begins by doing it: most are over soon and say nothing on the way, and a
//! task of its own for each of those costs more than the call. One that speaks, takes its time or is given up goes on in a
//! task, so that its deadline holds even while its client does not read.

use std::fmt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use toolyard_hub::{ErrorKind, HubError, Outcome};

type CallResult = Result<Outcome, HubError>;

#[derive(Debug)]
pub(super) struct McpCallTask(TaskState);

enum TaskState {
    /// Done by whoever asks for the outcome.
    Inline(BoxFuture<'static, CallResult>),
    /// Done in a task, whether anybody asks or not.
    Spawned(JoinHandle<CallResult>),
    Over,
}

impl McpCallTask {
    pub(super) fn new(call: impl Future<Output = CallResult> + Send + 'static) -> Self {
        let call = AssertUnwindSafe(call).catch_unwind();
        Self(TaskState::Inline(Box::pin(async move { call.await.unwrap_or_else(|_| lost()) })))
    }

    pub(super) fn is_inline(&self) -> bool {
        matches!(self.0, TaskState::Inline(_))
    }

    /// From now on it is done in a task.
    pub(super) fn spawn(&mut self) {
        self.0 = match std::mem::replace(&mut self.0, TaskState::Over) {
            TaskState::Inline(call) => TaskState::Spawned(tokio::spawn(call)),
            other => other,
        };
    }

    /// Completes once, when the call has ended.
    pub(super) async fn outcome(&mut self) -> CallResult {
        let ended = poll_fn(|cx| match &mut self.0 {
            TaskState::Inline(call) => call.as_mut().poll(cx),
            TaskState::Spawned(task) => {
                Pin::new(task).poll(cx).map(|joined| joined.unwrap_or_else(|_| lost()))
            }
            TaskState::Over => Poll::Pending,
        })
        .await;
        self.0 = TaskState::Over;
        ended
    }
}

fn lost() -> CallResult {
    Err(HubError::new(ErrorKind::Bug, "the call was lost"))
}

/// Whoever gives a call up has cancelled it; what runs in it must learn that, and put things away.
impl Drop for McpCallTask {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.0, TaskState::Over);
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
            Self::Over => "Over",
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
