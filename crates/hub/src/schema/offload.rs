//! Threads for checks that would block a thread of the runtime for too long. Their number is small,
//! so that checks cannot use all cores, and they are not part of the runtime's blocking pool, so
//! that checks cannot exhaust it.

use tokio::sync::{Semaphore, oneshot};

/// Maximum number of concurrent checks. Others wait, limited by the deadline of their call.
const MOST: usize = 2;
/// Checks recurse with the schema and the value. Their depth is limited, and this stack is large
/// enough for it.
const STACK: usize = 16 * 1024 * 1024;

static TURNS: Semaphore = Semaphore::const_new(MOST);

/// Runs work on a separate thread. Dropping the future abandons the work: it is bounded, runs to
/// its end, and keeps its slot until then. Returns `None` if the work panics or cannot be started.
pub(super) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    run_in(&TURNS, work).await
}

async fn run_in<T: Send + 'static>(
    turns: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let turn = turns.acquire().await.ok()?;
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name("schema-check".to_owned()).stack_size(STACK);
    let started = thread.spawn(move || {
        // A panic drops the sender, which the receiver notices.
        let done = work();
        drop(turn);
        let _ = sender.send(done);
    });
    if let Err(error) = started {
        tracing::warn!(%error, "cannot start a schema check");
        return None;
    }
    receiver.await.ok()
}

/// Takes every slot, so that an offloaded check waits until this is dropped.
#[cfg(test)]
pub(super) async fn acquire_all_permits() -> tokio::sync::SemaphorePermit<'static> {
    TURNS.acquire_many(MOST as u32).await.unwrap()
}

/// Like [`run`], but blocks the current thread.
pub(super) fn run_blocking<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("schema-check".to_owned()).stack_size(STACK);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::poll;

    use tokio::sync::Semaphore;

    use super::{MOST, run_blocking, run_in};

    #[tokio::test]
    async fn work_runs_outside_the_runtime_with_limited_concurrency() {
        static TURNS: Semaphore = Semaphore::const_new(MOST);
        let mut gates = Vec::new();
        let mut running = Vec::new();
        for _ in 0..=MOST {
            let (open, gate) = mpsc::channel::<()>();
            gates.push(open);
            running.push(Box::pin(run_in(&TURNS, move || gate.recv().is_ok())));
        }
        for work in &mut running {
            assert!(poll!(work.as_mut()).is_pending());
        }
        // This thread continues while both slots are taken; the last check waits for a slot.
        drop(gates.pop());
        tokio::task::yield_now().await;
        let mut last = running.pop().unwrap();
        assert!(poll!(last.as_mut()).is_pending());
        // Abandoned work keeps its slot until it ends.
        let abandoned = running.pop().unwrap();
        drop(abandoned);
        assert!(poll!(last.as_mut()).is_pending());
        drop(gates.pop());
        assert_eq!(last.await, Some(false));
        gates.pop().unwrap().send(()).unwrap();
        assert_eq!(running.pop().unwrap().await, Some(true));
    }

    #[test]
    fn a_caller_that_may_wait_gets_the_same() {
        let text = "x".to_owned();
        assert_eq!(run_blocking(|| text.len()), Some(1));
    }
}
