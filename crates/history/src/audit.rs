//! The audit: one line of JSON for every call, handed to the kernel before the call is answered, so that killing this
//! process loses none of them. Calls that end at the same time share one write. How the file is kept is in `file`.

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

/// How the audit is kept.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    pub file: PathBuf,
    pub arguments: AuditArguments,
    pub flush: AuditFlush,
    /// A file that would be larger is put aside and a new one begun.
    pub rotate_bytes: u64,
    /// How many files that were put aside are kept.
    pub keep_files: usize,
    /// For how long lines are kept; for ever if nothing is said.
    pub keep_for: Option<Duration>,
    pub on_failure: AuditFailurePolicy,
}

/// Whether lines carry the arguments of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditArguments {
    Omit,
    /// With the secrets hidden.
    Record,
}

/// When a line counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditFlush {
    /// When the kernel has it: it survives the end of this process, however sudden.
    Kernel,
    /// When the disk has it: it survives a power cut too.
    Disk,
}

/// What becomes of calls while lines cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuditFailurePolicy {
    /// They go on. The failure is logged, and lines that are lost are counted.
    #[default]
    Continue,
    /// A call that was carried out is not answered, and further ones are refused until lines can be written again.
    Refuse,
}

/// The audit cannot be begun.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the audit {}: {source}", file.display())]
pub struct AuditError {
    pub file: PathBuf,
    pub source: io::Error,
}

/// The audit while it is kept.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<AuditQueue>,
    arguments: AuditArguments,
    on_failure: AuditFailurePolicy,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl AuditLog {
    /// Opens the file, or makes it. One that cannot be opened is an error, whatever is to be done about failures later.
    pub fn open(settings: &AuditSettings) -> Result<Self, AuditError> {
        let cannot = |source| AuditError { file: settings.file.clone(), source };
        let file = AuditFile::open(settings).map_err(cannot)?;
        let shared = Arc::new(AuditQueue::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || run_writer(&theirs, file)).map_err(cannot)?;
        let (arguments, on_failure) = (settings.arguments, settings.on_failure);
        Ok(Self { shared, arguments, on_failure, thread: Mutex::new(Some(thread)) })
    }

    pub fn wants_arguments(&self) -> bool {
        self.arguments == AuditArguments::Record
    }

    /// Whether a call may be made now.
    pub fn admit(&self) -> Result<(), HubError> {
        match self.on_failure {
            AuditFailurePolicy::Refuse if self.shared.is_failing() => {
                // As if a server could not be reached: the call was not made, and may be made again later.
                Err(HubError::new(
                    ErrorKind::CannotConnect,
                    "calls are refused, because they cannot be put on record",
                )
                .with_suggestion("the log of this yard has the reason"))
            }
            AuditFailurePolicy::Refuse | AuditFailurePolicy::Continue => Ok(()),
        }
    }

    /// Takes a record in at once; the future completes when it is written.
    pub fn record(
        &self,
        finished: &FinishedCall<'_>,
    ) -> impl Future<Output = Result<(), HubError>> + Send + use<> {
        let written = self.shared.push(&format_line(finished, self.arguments));
        let on_failure = self.on_failure;
        async move {
            let fate = written.await.unwrap_or(AuditWriteStatus::Failed);
            match (fate, on_failure) {
                (AuditWriteStatus::Written, _) | (AuditWriteStatus::Failed, AuditFailurePolicy::Continue) => {
                    Ok(())
                }
                (AuditWriteStatus::Failed, AuditFailurePolicy::Refuse) => {
                    // As if the connection had been lost: the call may have been carried out.
                    Err(HubError::new(
                        ErrorKind::ConnectionLost,
                        "the call cannot be put on record, so what became of it is withheld",
                    ))
                }
            }
        }
    }

    /// How many lines were lost.
    pub fn lost_records(&self) -> u64 {
        self.shared.lost_records()
    }

    /// Waits until everything that was taken in is written. What comes later is lost.
    pub async fn close(&self) {
        self.shared.close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // That it crashed was told when it did.
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
