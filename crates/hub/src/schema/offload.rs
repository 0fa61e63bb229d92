//! Threads for checks that take longer than a task may keep a runtime's thread. They are few, so that checks cannot
//! take all cores, and they are not of the runtime's blocking pool, so that checks cannot fill it.

use tokio::sync::{Semaphore, oneshot};

/// How many checks run at once; others wait for their turn, under the deadline of their call.
const MOST: usize = 2;
/// Checks recurse with the schema and the value; the depth is limited, and this is enough for it.
const STACK: usize = 16 * 1024 * 1024;

static TURNS: Semaphore = Semaphore::const_new(MOST);

/// Runs some work on a thread of its own. Dropping the future abandons it: the work, which is bounded, runs to its end
/// without anybody waiting, and keeps its turn until then. Nothing comes back if it crashes or cannot be started.
pub(super) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    run_in(&TURNS, work).await
}

async fn run_in<T: Send + 'static>(
    turns: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let turn = turns.acquire().await.ok()?;
    let (tell, told) = oneshot::channel();
    let thread = std::thread::Builder::new().name("schema-check".to_owned()).stack_size(STACK);
    let started = thread.spawn(move || {
        // A crash drops the sender, which is noticed on the other side.
        let done = work();
        drop(turn);
        let _ = tell.send(done);
    });
    if let Err(error) = started {
        tracing::warn!(%error, "a schema check could not be started");
        return None;
    }
    told.await.ok()
}

/// Takes every turn, so that a check that leaves its thread waits for as long as this is held.
#[cfg(test)]
pub(super) async fn acquire_all_permits() -> tokio::sync::SemaphorePermit<'static> {
    TURNS.acquire_many(MOST as u32).await.unwrap()
}

/// The same for a caller that may wait.
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
    async fn work_runs_beside_the_runtime_and_only_so_much_at_once() {
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
        // This very thread goes on while both turns are taken; the last one waits for a turn.
        drop(gates.pop());
        tokio::task::yield_now().await;
        let mut last = running.pop().unwrap();
        assert!(poll!(last.as_mut()).is_pending());
        // Work that is abandoned keeps its turn until it ends.
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
