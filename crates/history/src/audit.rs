//! The audit log: one line of JSON per call, written before the call is answered, so that it
//! survives `kill -9`. It is in a file (`file`) or in PostgreSQL (`crate::postgres`). Calls that end
//! at the same time share one write.

mod file;
pub(crate) mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::ClientConfig;
use toolyard_hub::{ErrorKind, FinishedCall, HubError};
use toolyard_postgres::{PostgresError, PostgresSettings};

use self::file::AuditFile;
use self::writer::{AuditLineQueue, AuditWriteStatus, run_writer};
use crate::audit_line::format_line;
use crate::postgres::PostgresAudit;

/// Where the audit log is.
#[derive(Debug, Clone)]
pub enum AuditDestination {
    File(AuditSettings),
    Postgres(PostgresAuditSettings),
}

/// The settings of an audit log in PostgreSQL.
#[derive(Debug, Clone)]
pub struct PostgresAuditSettings {
    pub database: PostgresSettings,
    pub arguments: AuditArguments,
    /// How long rows are kept. `None` keeps them forever.
    pub keep_for: Option<Duration>,
    pub on_failure: AuditFailurePolicy,
}

/// The settings of an audit log in a file.
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
    writer: AuditWriter,
    arguments: AuditArguments,
    on_failure: AuditFailurePolicy,
}

#[derive(Debug)]
enum AuditWriter {
    File { queue: Arc<AuditLineQueue>, thread: Mutex<Option<JoinHandle<()>>> },
    Postgres(PostgresAudit),
}

impl AuditLog {
    /// Opens or creates the file. A file that cannot be opened is an error, regardless of the
    /// failure policy.
    pub fn open(settings: &AuditSettings) -> Result<Self, AuditError> {
        let failed = |source| AuditError { file: settings.file.clone(), source };
        let file = AuditFile::open(settings).map_err(failed)?;
        let queue = Arc::new(AuditLineQueue::default());
        let shared = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || run_writer(&shared, file)).map_err(failed)?;
        let writer = AuditWriter::File { queue, thread: Mutex::new(Some(thread)) };
        Ok(Self { writer, arguments: settings.arguments, on_failure: settings.on_failure })
    }

    /// Connects to the database, and migrates it if necessary. Waits for a server that is starting;
    /// one that cannot be used is an error, regardless of the failure policy.
    pub async fn open_postgres(
        settings: &PostgresAuditSettings,
        tls: &ClientConfig,
    ) -> Result<Self, PostgresError> {
        let audit = PostgresAudit::open(&settings.database, tls, settings.keep_for).await?;
        let (arguments, on_failure) = (settings.arguments, settings.on_failure);
        Ok(Self { writer: AuditWriter::Postgres(audit), arguments, on_failure })
    }

    pub fn wants_arguments(&self) -> bool {
        self.arguments == AuditArguments::Record
    }

    /// Returns an error if calls are currently refused.
    pub fn admit(&self) -> Result<(), HubError> {
        match self.on_failure {
            AuditFailurePolicy::Refuse if self.writer.is_failing() => {
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
        let line = format_line(finished, self.arguments);
        let written = match &self.writer {
            AuditWriter::File { queue, .. } => {
                let bytes = line.len();
                queue.push(line, bytes)
            }
            AuditWriter::Postgres(audit) => audit.push(finished, line),
        };
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
        match &self.writer {
            AuditWriter::File { queue, .. } => queue.lost_records(),
            AuditWriter::Postgres(audit) => audit.lost_records(),
        }
    }

    /// Waits until all queued records are written. Later records are lost.
    pub async fn close(&self) {
        match &self.writer {
            AuditWriter::File { queue, thread } => {
                queue.close();
                let thread = thread.lock().take();
                if let Some(thread) = thread {
                    // The thread logs its own panic.
                    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
                }
            }
            AuditWriter::Postgres(audit) => audit.close().await,
        }
    }
}

impl AuditWriter {
    /// Returns whether records cannot be written now.
    fn is_failing(&self) -> bool {
        match self {
            Self::File { queue, .. } => queue.is_failing(),
            Self::Postgres(audit) => audit.is_failing(),
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        match &self.writer {
            AuditWriter::File { queue, .. } => queue.close(),
            AuditWriter::Postgres(audit) => audit.end(),
        }
    }
}

#[cfg(test)]
mod tests;
