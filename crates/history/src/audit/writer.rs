//! Many callers, one writer: lines gather while a write is under way, and the next write takes all of them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::file::AuditFile;

/// The most that waits for a write, in bytes. Callers wait for their lines, so it takes a disk that hangs to get there.
const MOST_WAITING: usize = 64 << 20;
/// The most that is held to be written later while the file cannot be written, in bytes.
const MOST_HELD: usize = 8 << 20;
/// How often a file that cannot be written is tried again when nobody calls.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How often old files are looked for when nobody calls.
const TIDY: Duration = Duration::from_secs(3600);

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuditWriteStatus {
    Written,
    /// Not now; perhaps later.
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
    /// Takes a line to be written. The answer comes when it is, or when it is known that it is not.
    pub(super) fn push(&self, line: &str) -> oneshot::Receiver<AuditWriteStatus> {
        let (tell, told) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.closed || waiting.text.len() + line.len() > MOST_WAITING {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return told;
        }
        waiting.text.extend_from_slice(line.as_bytes());
        waiting.callers.push(tell);
        drop(waiting);
        self.filled.notify_one();
        told
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

    /// All that has gathered, once there is something or this much time has passed.
    fn next(&self, time: Duration) -> Batch {
        let mut waiting = self.lock();
        let idle = |batch: &mut Batch| batch.callers.is_empty() && !batch.closed;
        self.filled.wait_while_for(&mut waiting, idle, time);
        let closed = waiting.closed;
        std::mem::replace(&mut *waiting, Batch { closed, ..Batch::default() })
    }
}

/// Writes what is taken in, until it is closed and nothing is left.
pub(super) fn run_writer(shared: &AuditQueue, mut file: AuditFile) {
    // A crash must not leave callers waiting for ever for lines that nobody writes.
    let _close = CloseOnDrop(shared);
    let mut held = AuditBacklog::default();
    loop {
        let Batch { text, callers, closed } = shared.next(if held.is_empty() { TIDY } else { TRY_AGAIN });
        let fate = match held.try_write(&text, &mut file, closed) {
            None => AuditWriteStatus::Failed,
            Some(Ok(())) => {
                if shared.failing.swap(false, Ordering::Relaxed) {
                    let (file, lost) = (file.path().display(), shared.lost_records());
                    tracing::warn!(%file, lost, "the audit can be written again");
                }
                held = AuditBacklog::default();
                AuditWriteStatus::Written
            }
            Some(Err(error)) => {
                if !shared.failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(file = %file.path().display(), %error, "cannot write the audit");
                }
                AuditWriteStatus::Failed
            }
        };
        if fate == AuditWriteStatus::Failed && !held.add(&text, callers.len()) {
            shared.lost.fetch_add(callers.len() as u64, Ordering::Relaxed);
        }
        for caller in callers {
            // Who has hung up does not need to know.
            let _ = caller.send(fate);
        }
        if closed {
            let nothing_left = shared.lock().callers.is_empty();
            if nothing_left {
                shared.lost.fetch_add(held.lines as u64, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// Lines that could not be written yet, and when that was tried last.
#[derive(Debug, Default)]
struct AuditBacklog {
    text: Vec<u8>,
    lines: usize,
    tried: Option<Instant>,
}

impl AuditBacklog {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Writes what is held and what has come, unless that was tried in vain just now.
    fn try_write(&mut self, text: &[u8], file: &mut AuditFile, closed: bool) -> Option<io::Result<()>> {
        if self.is_empty() {
            if text.is_empty() {
                file.rotate_and_prune();
                return Some(Ok(()));
            }
            self.tried = Some(Instant::now());
            return Some(file.append(text));
        }
        if !closed && self.tried.is_some_and(|tried| tried.elapsed() < TRY_AGAIN) {
            return None;
        }
        self.tried = Some(Instant::now());
        Some(file.append(&[&self.text, text].concat()))
    }

    /// False if there is no room.
    fn add(&mut self, text: &[u8], lines: usize) -> bool {
        let room = self.text.len() + text.len() <= MOST_HELD;
        if room {
            self.text.extend_from_slice(text);
            self.lines += lines;
        }
        room
    }
}

struct CloseOnDrop<'a>(&'a AuditQueue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
        let left = std::mem::take(&mut self.0.lock().callers);
        if std::thread::panicking() {
            tracing::error!("the audit crashed and is not written any more");
            self.0.failing.store(true, Ordering::Relaxed);
            self.0.lost.fetch_add(left.len() as u64, Ordering::Relaxed);
        }
    }
}
