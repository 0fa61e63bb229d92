//! The queue of the audit log, and what its writers do in the same way wherever they write.
//! Records accumulate while a write is in progress, and the next write takes all of them.

use std::fmt::{Debug, Display};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use super::file::AuditFile;

/// Size limit of the queue, in bytes. Callers wait for their records, so only a disk or a database
/// that hangs can fill it.
const MOST_WAITING: usize = 64 << 20;
/// Size limit of the backlog while the log cannot be written, in bytes.
const MOST_HELD: usize = 8 << 20;
/// Retry interval while the log cannot be written.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How often expired files are removed while there are no calls.
const TIDY: Duration = Duration::from_secs(3600);

/// The result of writing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditWriteStatus {
    Written,
    /// Not written yet. The record may be written later.
    Failed,
}

/// Wakes the writer of a queue, which is a thread or a task.
pub(crate) trait WriterWaker: Debug + Default {
    fn wake(&self);
}

impl WriterWaker for Condvar {
    fn wake(&self) {
        self.notify_one();
    }
}

impl WriterWaker for Notify {
    fn wake(&self) {
        self.notify_one();
    }
}

/// The lines of a file.
pub(super) type AuditLineQueue = AuditQueue<String, Condvar>;

#[derive(Debug)]
pub(crate) struct AuditQueue<R, W> {
    waiting: Mutex<AuditBatch<R>>,
    filled: W,
    failing: AtomicBool,
    lost: AtomicU64,
}

/// Records that were queued since the last write, and who waits for them.
#[derive(Debug)]
pub(crate) struct AuditBatch<R> {
    records: Vec<R>,
    bytes: usize,
    callers: Vec<oneshot::Sender<AuditWriteStatus>>,
    closed: bool,
}

impl<R> Default for AuditBatch<R> {
    fn default() -> Self {
        Self { records: Vec::new(), bytes: 0, callers: Vec::new(), closed: false }
    }
}

impl<R, W: WriterWaker> Default for AuditQueue<R, W> {
    fn default() -> Self {
        let (failing, lost) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { waiting: Mutex::default(), filled: W::default(), failing, lost }
    }
}

impl<R, W: WriterWaker> AuditQueue<R, W> {
    /// Queues a record of about this size. The receiver completes when the write has succeeded or
    /// failed.
    pub(crate) fn push(&self, record: R, bytes: usize) -> oneshot::Receiver<AuditWriteStatus> {
        let (sender, status) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.closed || waiting.bytes + bytes > MOST_WAITING {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return status;
        }
        waiting.records.push(record);
        waiting.bytes += bytes;
        waiting.callers.push(sender);
        drop(waiting);
        self.filled.wake();
        status
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.wake();
    }

    /// Returns whether the last write failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    pub(crate) fn lost_records(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns all queued records.
    pub(crate) fn take(&self) -> AuditBatch<R> {
        take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, AuditBatch<R>> {
        self.waiting.lock()
    }

    fn is_idle(&self) -> bool {
        is_idle(&self.lock())
    }
}

impl<R> AuditQueue<R, Condvar> {
    /// Waits up to `limit` for records, and returns all queued ones.
    fn next(&self, limit: Duration) -> AuditBatch<R> {
        let mut waiting = self.lock();
        self.filled.wait_while_for(&mut waiting, |batch| is_idle(batch), limit);
        take(&mut waiting)
    }
}

impl<R> AuditQueue<R, Notify> {
    /// Waits up to `limit` for records.
    pub(crate) async fn filled(&self, limit: Duration) {
        let filled = async {
            while self.is_idle() {
                self.filled.notified().await;
            }
        };
        // On a timeout, the queue is simply empty.
        let _ = tokio::time::timeout(limit, filled).await;
    }
}

fn is_idle<R>(batch: &AuditBatch<R>) -> bool {
    batch.callers.is_empty() && !batch.closed
}

fn take<R>(waiting: &mut AuditBatch<R>) -> AuditBatch<R> {
    let closed = waiting.closed;
    std::mem::replace(waiting, AuditBatch { closed, ..AuditBatch::default() })
}

/// Writes queued lines until the queue is closed and empty.
pub(super) fn run_writer(queue: &AuditLineQueue, mut file: AuditFile) {
    // A panic must not leave callers waiting forever.
    let _close = CloseOnDrop(queue);
    let mut backlog = AuditBacklog::default();
    loop {
        let mut batch = queue.next(backlog.pause());
        let result = match backlog.add(&mut batch) {
            WriterStep::Wait => None,
            WriterStep::Idle => {
                file.rotate_and_prune();
                Some(Ok(()))
            }
            WriterStep::Write => Some(file.append(backlog.records().concat().as_bytes())),
        };
        if backlog.settle(queue, batch, result, &file.path().display()) == WriterState::Done {
            return;
        }
    }
}

/// What a writer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterStep {
    /// There is nothing to write.
    Idle,
    /// The last attempt failed too recently.
    Wait,
    /// Write all records of the backlog.
    Write,
}

/// Whether a writer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterState {
    Running,
    /// The queue is closed and empty.
    Done,
}

/// Records that are being written or could not be written yet, and the time of the last attempt.
#[derive(Debug)]
pub(crate) struct AuditBacklog<R> {
    records: Vec<R>,
    bytes: usize,
    /// The number and size of the records before the newest batch.
    earlier: (usize, usize),
    last_attempt: Option<Instant>,
}

impl<R> Default for AuditBacklog<R> {
    fn default() -> Self {
        Self { records: Vec::new(), bytes: 0, earlier: (0, 0), last_attempt: None }
    }
}

impl<R> AuditBacklog<R> {
    /// How long to wait for more records before the next step.
    pub(crate) fn pause(&self) -> Duration {
        if self.records.is_empty() { TIDY } else { TRY_AGAIN }
    }

    /// Allows the next attempt immediately, because its chances have changed.
    pub(crate) fn retry_now(&mut self) {
        self.last_attempt = None;
    }

    /// Adds the records of a batch.
    pub(crate) fn add(&mut self, batch: &mut AuditBatch<R>) -> WriterStep {
        self.earlier = (self.records.len(), self.bytes);
        if self.records.is_empty() {
            self.records = std::mem::take(&mut batch.records);
        } else {
            self.records.append(&mut batch.records);
        }
        self.bytes += batch.bytes;
        if self.records.is_empty() {
            return WriterStep::Idle;
        }
        let is_retry = self.earlier.0 > 0;
        let too_soon = self.last_attempt.is_some_and(|attempt| attempt.elapsed() < TRY_AGAIN);
        if is_retry && too_soon && !batch.closed {
            return WriterStep::Wait;
        }
        self.last_attempt = Some(Instant::now());
        WriterStep::Write
    }

    /// The records to write, oldest first.
    pub(crate) fn records(&self) -> &[R] {
        &self.records
    }

    /// Tells the callers of the newest batch how it ended. `result` is `None` if no write was
    /// attempted. Records that could not be written stay in the backlog if they fit.
    pub(crate) fn settle<W: WriterWaker, E: Display>(
        &mut self,
        queue: &AuditQueue<R, W>,
        batch: AuditBatch<R>,
        result: Option<Result<(), E>>,
        destination: &dyn Display,
    ) -> WriterState {
        let status = match result {
            None => AuditWriteStatus::Failed,
            Some(Ok(())) => {
                if queue.failing.swap(false, Ordering::Relaxed) {
                    tracing::warn!(%destination, lost = queue.lost_records(), "the audit log can be written again");
                }
                *self = Self::default();
                AuditWriteStatus::Written
            }
            Some(Err(error)) => {
                if !queue.failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(%destination, %error, "cannot write the audit log");
                }
                AuditWriteStatus::Failed
            }
        };
        if status == AuditWriteStatus::Failed && self.bytes > MOST_HELD {
            let (records, bytes) = self.earlier;
            queue.lost.fetch_add((self.records.len() - records) as u64, Ordering::Relaxed);
            self.records.truncate(records);
            self.bytes = bytes;
        }
        for caller in batch.callers {
            // The caller may be gone.
            let _ = caller.send(status);
        }
        if !batch.closed || !queue.lock().callers.is_empty() {
            return WriterState::Running;
        }
        queue.lost.fetch_add(self.records.len() as u64, Ordering::Relaxed);
        WriterState::Done
    }
}

/// Closes the queue when its writer ends for any reason.
pub(crate) struct CloseOnDrop<'a, R, W: WriterWaker>(pub(crate) &'a AuditQueue<R, W>);

impl<R, W: WriterWaker> Drop for CloseOnDrop<'_, R, W> {
    fn drop(&mut self) {
        self.0.close();
        let callers = std::mem::take(&mut self.0.lock().callers);
        if std::thread::panicking() {
            tracing::error!("the writer of the audit log panicked; no further records are written");
            self.0.failing.store(true, Ordering::Relaxed);
            self.0.lost.fetch_add(callers.len() as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Notify;

    use super::{AuditBacklog, AuditQueue, AuditWriteStatus, MOST_HELD, WriterState, WriterStep};

    type Numbers = AuditQueue<u32, Notify>;

    /// Runs one step of a writer whose write ends like this.
    fn step(
        queue: &Numbers,
        backlog: &mut AuditBacklog<u32>,
        result: Result<(), &str>,
    ) -> (WriterStep, Vec<u32>, WriterState) {
        let mut batch = queue.take();
        let step = backlog.add(&mut batch);
        let records = backlog.records().to_vec();
        let result = (step != WriterStep::Wait).then_some(result);
        (step, records, backlog.settle(queue, batch, result, &"test"))
    }

    #[tokio::test]
    async fn records_that_arrive_during_a_write_share_the_next_one() {
        let (queue, mut backlog) = (Numbers::default(), AuditBacklog::default());
        let first = queue.push(1, 10);
        queue.filled(Duration::from_secs(60)).await;
        let mut batch = queue.take();
        assert_eq!(backlog.add(&mut batch), WriterStep::Write);
        // The write of the first record is in progress.
        let later = [queue.push(2, 10), queue.push(3, 10)];
        assert_eq!(backlog.records(), [1]);
        assert_eq!(backlog.settle(&queue, batch, Some(Ok::<_, String>(())), &"test"), WriterState::Running);
        assert_eq!(first.await, Ok(AuditWriteStatus::Written));
        assert_eq!(step(&queue, &mut backlog, Ok(())), (WriterStep::Write, vec![2, 3], WriterState::Running));
        for record in later {
            assert_eq!(record.await, Ok(AuditWriteStatus::Written));
        }
        assert_eq!(step(&queue, &mut backlog, Ok(())).0, WriterStep::Idle);
    }

    #[tokio::test]
    async fn failed_records_are_kept_in_order_and_their_callers_do_not_wait() {
        let (queue, mut backlog) = (Numbers::default(), AuditBacklog::default());
        let first = queue.push(1, 10);
        assert_eq!(step(&queue, &mut backlog, Err("away")).0, WriterStep::Write);
        assert_eq!((first.await, queue.is_failing()), (Ok(AuditWriteStatus::Failed), true));
        // Too soon for another attempt, so the caller is told immediately.
        let second = queue.push(2, 10);
        assert_eq!(step(&queue, &mut backlog, Err("away")).0, WriterStep::Wait);
        assert_eq!(second.await, Ok(AuditWriteStatus::Failed));
        backlog.retry_now();
        assert_eq!(step(&queue, &mut backlog, Ok(())), (WriterStep::Write, vec![1, 2], WriterState::Running));
        assert_eq!((queue.is_failing(), queue.lost_records()), (false, 0));
    }

    #[tokio::test]
    async fn a_full_backlog_loses_the_newest_records_and_a_closed_one_the_rest() {
        let (queue, mut backlog) = (Numbers::default(), AuditBacklog::default());
        drop(queue.push(1, MOST_HELD));
        step(&queue, &mut backlog, Err("away"));
        drop(queue.push(2, 1));
        step(&queue, &mut backlog, Err("away"));
        assert_eq!((backlog.records(), queue.lost_records()), (&[1][..], 1));
        queue.close();
        assert_eq!(step(&queue, &mut backlog, Err("away")), (WriterStep::Write, vec![1], WriterState::Done));
        assert_eq!(queue.lost_records(), 2);
        drop(queue.push(3, 1));
        assert_eq!(queue.lost_records(), 3);
    }
}
