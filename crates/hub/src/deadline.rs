//! The deadline of a call. The clock is paused while the caller is asked a question, because the
//! time a person takes to answer must not count against the tool.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Longer than any process runs. Durations are capped to this value so that sums do not overflow.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The deadline of a call. Clones share one clock.
#[derive(Debug, Clone)]
pub struct Deadline {
    shared: Arc<DeadlineState>,
}

#[derive(Debug)]
struct DeadlineState {
    clock: Mutex<PausableClock>,
    moved: Notify,
}

#[derive(Debug)]
struct PausableClock {
    at: Instant,
    /// When the clock was paused, and the number of pause guards that are still held.
    paused: Option<(Instant, usize)>,
}

impl PausableClock {
    /// The time on this clock: the current time, or the time of the pause.
    fn now(&self) -> Instant {
        self.paused.map_or_else(Instant::now, |(since, _)| since)
    }

    fn remaining(&self) -> Duration {
        self.at.saturating_duration_since(self.now())
    }
}

impl Deadline {
    pub fn after(time: Duration) -> Self {
        let clock = Mutex::new(PausableClock { at: saturating_add(Instant::now(), time), paused: None });
        Self { shared: Arc::new(DeadlineState { clock, moved: Notify::new() }) }
    }

    /// Moves the deadline forward to at most `time` from now.
    pub fn shorten_to(&self, time: Duration) {
        let mut clock = self.lock();
        let limit = saturating_add(clock.now(), time);
        if limit < clock.at {
            clock.at = limit;
            drop(clock);
            self.shared.moved.notify_waiters();
        }
    }

    pub fn remaining(&self) -> Duration {
        self.lock().remaining()
    }

    /// Completes when the time is used up, not counting pauses.
    pub async fn passed(&self) {
        loop {
            // Register for notifications before reading the clock, so that no change is missed.
            let moved = self.shared.moved.notified();
            let (remaining, paused) = {
                let clock = self.lock();
                (clock.remaining(), clock.paused.is_some())
            };
            if paused {
                moved.await;
            } else if remaining.is_zero() {
                return;
            } else {
                tokio::select! {
                    () = tokio::time::sleep(remaining) => {}
                    () = moved => {}
                }
            }
        }
    }

    /// Pauses the clock until the guard is dropped. With several guards, until the last one is
    /// dropped.
    pub(crate) fn pause(&self) -> DeadlinePause {
        let mut clock = self.lock();
        let (since, holders) = clock.paused.unwrap_or_else(|| (Instant::now(), 0));
        clock.paused = Some((since, holders + 1));
        DeadlinePause { deadline: self.clone() }
    }

    fn resume(&self) {
        let mut clock = self.lock();
        let Some((since, holders)) = clock.paused else { return };
        if holders > 1 {
            clock.paused = Some((since, holders - 1));
            return;
        }
        clock.paused = None;
        clock.at = saturating_add(clock.at, since.elapsed());
        drop(clock);
        self.shared.moved.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, PausableClock> {
        self.shared.clock.lock()
    }
}

fn saturating_add(at: Instant, time: Duration) -> Instant {
    at.checked_add(time.min(FOREVER)).unwrap_or(at)
}

#[derive(Debug)]
pub(crate) struct DeadlinePause {
    deadline: Deadline,
}

impl Drop for DeadlinePause {
    fn drop(&mut self) {
        self.deadline.resume();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::Deadline;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn time_spent_waiting_for_a_person_does_not_count() {
        let deadline = Deadline::after(10 * SECOND);
        let pause = deadline.pause();
        sleep(60 * SECOND).await;
        assert_eq!(deadline.remaining(), 10 * SECOND);
        drop(pause);
        let before = Instant::now();
        deadline.passed().await;
        assert_eq!(before.elapsed(), 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn overlapping_pauses_last_until_the_last_one_ends() {
        let deadline = Deadline::after(10 * SECOND);
        let first = deadline.pause();
        sleep(5 * SECOND).await;
        let second = deadline.pause();
        sleep(5 * SECOND).await;
        drop(first);
        sleep(5 * SECOND).await;
        assert_eq!(deadline.remaining(), 10 * SECOND);
        drop(second);
        sleep(4 * SECOND).await;
        assert_eq!(deadline.remaining(), 6 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_task_notices_a_pause_and_a_shorter_deadline() {
        let deadline = Deadline::after(10 * SECOND);
        let waiting = tokio::spawn({
            let deadline = deadline.clone();
            async move { deadline.passed().await }
        });
        sleep(SECOND).await;
        let pause = deadline.pause();
        sleep(60 * SECOND).await;
        assert!(!waiting.is_finished());
        deadline.shorten_to(3 * SECOND);
        drop(pause);
        let before = Instant::now();
        waiting.await.unwrap();
        assert_eq!(before.elapsed(), 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_duration_does_not_overflow() {
        let deadline = Deadline::after(Duration::MAX);
        deadline.shorten_to(Duration::MAX);
        assert!(deadline.remaining() > Duration::from_secs(1_000_000_000 / 2));
        deadline.shorten_to(Duration::ZERO);
        deadline.passed().await;
    }
}
