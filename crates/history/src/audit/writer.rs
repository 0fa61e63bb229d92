//! The writer thread. Lines accumulate while a write is in progress, and the next write takes all
//! of them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::file::AuditFile;

/// Size limit of the queue, in bytes. Callers wait for their lines, so only a disk that hangs can
/// fill it.
const MOST_WAITING: usize = 64 << 20;
/// Size limit of the backlog while the file cannot be written, in bytes.
const MOST_HELD: usize = 8 << 20;
/// Retry interval while the file cannot be written.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How often expired files are removed while there are no calls.
const TIDY: Duration = Duration::from_secs(3600);

/// The result of writing a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuditWriteStatus {
    Written,
    /// Not written yet. The line may be written later.
    Failed,
}

#[derive(Debug, Default)]
pub(super) struct AuditQueue {
    waiting: Mutex<Batch>,
    filled: Condvar,
    failing: AtomicBool,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Batch {
    text: Vec<u8>,
    callers: Vec<oneshot::Sender<AuditWriteStatus>>,
    closed: bool,
}

impl AuditQueue {
    /// Queues a line. The receiver completes when the write has succeeded or failed.
    pub(super) fn push(&self, line: &str) -> oneshot::Receiver<AuditWriteStatus> {
        let (sender, status) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.closed || waiting.text.len() + line.len() > MOST_WAITING {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return status;
        }
        waiting.text.extend_from_slice(line.as_bytes());
        waiting.callers.push(sender);
        drop(waiting);
        self.filled.notify_one();
        status
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    pub(super) fn lost_records(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.waiting.lock()
    }

    /// Waits up to `limit` for lines, and returns all queued ones.
    fn next(&self, limit: Duration) -> Batch {
        let mut waiting = self.lock();
        let idle = |batch: &mut Batch| batch.callers.is_empty() && !batch.closed;
        self.filled.wait_while_for(&mut waiting, idle, limit);
        let closed = waiting.closed;
        std::mem::replace(&mut *waiting, Batch { closed, ..Batch::default() })
    }
}

/// Writes queued lines until the queue is closed and empty.
pub(super) fn run_writer(shared: &AuditQueue, mut file: AuditFile) {
    // A panic must not leave callers waiting forever.
    let _close = CloseOnDrop(shared);
    let mut backlog = AuditBacklog::default();
    loop {
        let Batch { text, callers, closed } = shared.next(if backlog.is_empty() { TIDY } else { TRY_AGAIN });
        let status = match backlog.try_write(&text, &mut file, closed) {
            None => AuditWriteStatus::Failed,
            Some(Ok(())) => {
                if shared.failing.swap(false, Ordering::Relaxed) {
                    let (file, lost) = (file.path().display(), shared.lost_records());
                    tracing::warn!(%file, lost, "the audit log can be written again");
                }
                backlog = AuditBacklog::default();
                AuditWriteStatus::Written
            }
            Some(Err(error)) => {
                if !shared.failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(file = %file.path().display(), %error, "cannot write the audit log");
                }
                AuditWriteStatus::Failed
            }
        };
        if status == AuditWriteStatus::Failed && !backlog.add(&text, callers.len()) {
            shared.lost.fetch_add(callers.len() as u64, Ordering::Relaxed);
        }
        for caller in callers {
            // The caller may be gone.
            let _ = caller.send(status);
        }
        if closed {
            let is_empty = shared.lock().callers.is_empty();
            if is_empty {
                shared.lost.fetch_add(backlog.lines as u64, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// Lines that could not be written yet, and the time of the last attempt.
#[derive(Debug, Default)]
struct AuditBacklog {
    text: Vec<u8>,
    lines: usize,
    last_attempt: Option<Instant>,
}

impl AuditBacklog {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Writes the backlog and the new lines. Returns `None` if the last attempt failed too
    /// recently.
    fn try_write(&mut self, text: &[u8], file: &mut AuditFile, closed: bool) -> Option<io::Result<()>> {
        if self.is_empty() {
            if text.is_empty() {
                file.rotate_and_prune();
                return Some(Ok(()));
            }
            self.last_attempt = Some(Instant::now());
            return Some(file.append(text));
        }
        if !closed && self.last_attempt.is_some_and(|attempt| attempt.elapsed() < TRY_AGAIN) {
            return None;
        }
        self.last_attempt = Some(Instant::now());
        Some(file.append(&[&self.text, text].concat()))
    }

    /// Adds lines. Returns whether they fit.
    fn add(&mut self, text: &[u8], lines: usize) -> bool {
        let fits = self.text.len() + text.len() <= MOST_HELD;
        if fits {
            self.text.extend_from_slice(text);
            self.lines += lines;
        }
        fits
    }
}

struct CloseOnDrop<'a>(&'a AuditQueue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
        let callers = std::mem::take(&mut self.0.lock().callers);
        if std::thread::panicking() {
            tracing::error!("the writer of the audit log panicked; no further lines are written");
            self.0.failing.store(true, Ordering::Relaxed);
            self.0.lost.fetch_add(callers.len() as u64, Ordering::Relaxed);
        }
    }
}
