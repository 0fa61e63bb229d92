//! The history: past calls in an SQLite database, for whoever asks what happened. It is written in the background, many
//! calls at a time, and never makes a call wait: what there is no room for is lost, and counted. What must not be lost is
//! the audit's business.

mod damage;
mod open;
mod query;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use toolyard_hub::{BoxFuture, ExecutionId, FinishedCall, History, HistoryError, HistoryQuery, PastCall};

pub use self::damage::HistoryDamagePolicy;
pub use self::open::HistoryStoreError;
use self::writer::{HistoryCommand, run_writer};
use crate::audit_line::{error_message, truncate};

/// How many records wait to be written.
const WAITING: usize = 8_192;
/// How long a reader waits for what is being written.
const LONGEST_FLUSH: Duration = Duration::from_secs(2);
/// The longest texts that are kept, in characters.
const LONGEST_NAME: usize = 256;
const LONGEST_MESSAGE: usize = 500;

/// How the history is kept.
#[derive(Debug, Clone)]
pub struct HistoryStoreSettings {
    pub file: PathBuf,
    /// About how many calls are kept.
    pub keep_rows: u64,
    /// For how long calls are kept; for ever if nothing is said.
    pub keep_for: Option<Duration>,
    pub on_damage: HistoryDamagePolicy,
}

/// The history while it is kept.
#[derive(Debug)]
pub struct HistoryStore {
    commands: SyncSender<HistoryCommand>,
    reader: Arc<Mutex<Connection>>,
    lost: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl HistoryStore {
    /// Opens the database, or makes it. A file that is none of ours is an error and stays as it is; so is a damaged one,
    /// unless the settings say to move it aside.
    pub fn open(settings: HistoryStoreSettings) -> Result<Self, HistoryStoreError> {
        let both = || Ok((open::open_writer(&settings.file)?, open::open_reader(&settings.file)?));
        let (writer, reader) = match settings.on_damage {
            HistoryDamagePolicy::Fail => both()?,
            HistoryDamagePolicy::MoveAside => damage::open_or_move_aside(&settings.file, both)?,
        };
        let (orders, taken) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&lost);
        let file = settings.file.clone();
        let thread = std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || run_writer(writer, &taken, &settings, &counting))
            .map_err(|source| HistoryStoreError::File { file, source })?;
        let (reader, thread) = (Arc::new(Mutex::new(reader)), Mutex::new(Some(thread)));
        Ok(Self { commands: orders, reader, lost, thread })
    }

    /// Takes a record in, if there is room.
    pub fn record(&self, finished: &FinishedCall<'_>) {
        let name = |text: &str| truncate(text, LONGEST_NAME).into_owned();
        let record = finished.call;
        let call = PastCall {
            id: record.id,
            kind: record.kind,
            subject: name(&record.subject),
            source: record.source.as_ref().map(ToString::to_string),
            principal: name(record.principal.id()),
            session_id: record.context.session_id.as_deref().map(name),
            user_id: record.context.user_id.as_deref().map(name),
            at: record.accepted_at,
            duration: finished.duration,
            ended: finished.ended,
            error: finished.error.map(|error| error_message(finished, error, LONGEST_MESSAGE).into_owned()),
        };
        if self.commands.try_send(HistoryCommand::Record(Box::new(call))).is_err()
            && self.lost.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::warn!("the history cannot keep up, and loses calls");
        }
    }

    /// How many records were lost.
    pub fn lost_records(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until everything that was taken in is written. What comes later is lost.
    pub async fn close(&self) {
        let thread = self.thread.lock().take();
        let orders = self.commands.clone();
        if let Some(thread) = thread {
            let waiting = tokio::task::spawn_blocking(move || {
                // If it has ended already there is nothing to wait for.
                let _ = orders.send(HistoryCommand::Stop);
                thread.join()
            });
            let _ = waiting.await;
        }
    }

    /// Reads on a thread for blocking work, and finds every call that was recorded before.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, HistoryError>> {
        let reader = Arc::clone(&self.reader);
        let orders = self.commands.clone();
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || {
                flush(&orders);
                read(&reader.lock())
            });
            let read = reading.await.map_err(|crash| HistoryError(crash.to_string()))?;
            read.map_err(|error| HistoryError(error.to_string()))
        })
    }
}

/// Waits until the calls recorded so far are in the database, but not for a disk that hangs.
fn flush(orders: &SyncSender<HistoryCommand>) {
    let (done, written) = sync_channel(0);
    // A full queue loses calls anyway, and after the end of the writer there is nothing to wait for.
    if orders.try_send(HistoryCommand::Flush(done)).is_ok() {
        let _ = written.recv_timeout(LONGEST_FLUSH);
    }
}

impl History for HistoryStore {
    fn recent(&self, asked: HistoryQuery) -> BoxFuture<'static, Result<Vec<PastCall>, HistoryError>> {
        self.read(move |database| query::recent(database, &asked))
    }

    fn find(&self, id: ExecutionId) -> BoxFuture<'static, Result<Option<PastCall>, HistoryError>> {
        self.read(move |database| query::find(database, id))
    }
}

impl Drop for HistoryStore {
    fn drop(&mut self) {
        // The thread also ends when nobody can give it orders any more.
        let _ = self.commands.try_send(HistoryCommand::Stop);
    }
}

#[cfg(test)]
mod tests;
