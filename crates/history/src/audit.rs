//! The audit log: one line of JSON per call, passed to the kernel before the call is answered, so
//! that it survives `kill -9`. Calls that end at the same time share one write. The file itself is
//! handled in `file`.

mod file;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use toolyard_hub::{ErrorKind, FinishedCall, HubError};

use self::file::AuditFile;
use self::writer::{AuditQueue, AuditWriteStatus, run_writer};
use crate::audit_line::format_line;

/// The settings of the audit log.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    pub file: PathBuf,
    pub arguments: AuditArguments,
    pub flush: AuditFlush,
    /// The size at which the file is rotated.
    pub rotate_bytes: u64,
    /// How many rotated files are kept.
    pub keep_files: usize,
    /// How long lines are kept. `None` keeps them forever.
    pub keep_for: Option<Duration>,
    pub on_failure: AuditFailurePolicy,
}

/// Whether lines include the arguments of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditArguments {
    Omit,
    /// Includes them with secrets redacted.
    Record,
}

/// When a line counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditFlush {
    /// After the write to the kernel. The line survives a crash of this process.
    Kernel,
    /// After the write to disk. The line also survives a power failure.
    Disk,
}

/// What happens to calls while the audit log cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuditFailurePolicy {
    /// Calls continue. The failure is logged, and lost lines are counted.
    #[default]
    Continue,
    /// The results of executed calls are withheld, and new calls are refused until the log can be
    /// written again.
    Refuse,
}

/// The audit log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the audit log {}: {source}", file.display())]
pub struct AuditError {
    pub file: PathBuf,
    pub source: io::Error,
}

/// An open audit log.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<AuditQueue>,
    arguments: AuditArguments,
    on_failure: AuditFailurePolicy,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl AuditLog {
    /// Opens or creates the file. A file that cannot be opened is an error, regardless of the
    /// failure policy.
    pub fn open(settings: &AuditSettings) -> Result<Self, AuditError> {
        let failed = |source| AuditError { file: settings.file.clone(), source };
        let file = AuditFile::open(settings).map_err(failed)?;
        let shared = Arc::new(AuditQueue::default());
        let queue = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || run_writer(&queue, file)).map_err(failed)?;
        let (arguments, on_failure) = (settings.arguments, settings.on_failure);
        Ok(Self { shared, arguments, on_failure, thread: Mutex::new(Some(thread)) })
    }

    pub fn wants_arguments(&self) -> bool {
        self.arguments == AuditArguments::Record
    }

    /// Returns an error if calls are currently refused.
    pub fn admit(&self) -> Result<(), HubError> {
        match self.on_failure {
            AuditFailurePolicy::Refuse if self.shared.is_failing() => {
                // Same kind as for an unreachable server: the call was not made and can be retried.
                Err(HubError::new(
                    ErrorKind::CannotConnect,
                    "calls are refused because the audit log cannot be written",
                )
                .with_suggestion("see the log of the yard for the reason"))
            }
            AuditFailurePolicy::Refuse | AuditFailurePolicy::Continue => Ok(()),
        }
    }

    /// Queues a record immediately. The future completes when it is written.
    pub fn record(
        &self,
        finished: &FinishedCall<'_>,
    ) -> impl Future<Output = Result<(), HubError>> + Send + use<> {
        let written = self.shared.push(&format_line(finished, self.arguments));
        let on_failure = self.on_failure;
        async move {
            let status = written.await.unwrap_or(AuditWriteStatus::Failed);
            match (status, on_failure) {
                (AuditWriteStatus::Written, _) | (AuditWriteStatus::Failed, AuditFailurePolicy::Continue) => {
                    Ok(())
                }
                (AuditWriteStatus::Failed, AuditFailurePolicy::Refuse) => {
                    // Same kind as for a lost connection: the call may have been executed.
                    Err(HubError::new(
                        ErrorKind::ConnectionLost,
                        "the call cannot be recorded in the audit log, so its result is withheld",
                    ))
                }
            }
        }
    }

    /// Returns the number of lost lines.
    pub fn lost_records(&self) -> u64 {
        self.shared.lost_records()
    }

    /// Waits until all queued records are written. Later records are lost.
    pub async fn close(&self) {
        self.shared.close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // The thread logs its own panic.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.shared.close();
    }
}

#[cfg(test)]
mod tests;
