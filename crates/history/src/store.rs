//! The history: past calls in an SQLite database. It is written in the background, in batches, and
//! never delays a call: records that exceed the queue are lost and counted. Records that must not
//! be lost belong to the audit log.

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
use crate::past_call;

/// The capacity of the queue, in records.
pub(crate) const WAITING: usize = 8_192;
/// How long a reader waits for pending writes.
pub(crate) const LONGEST_FLUSH: Duration = Duration::from_secs(2);

/// The settings of the history.
#[derive(Debug, Clone)]
pub struct HistoryStoreSettings {
    pub file: PathBuf,
    /// The approximate number of calls to keep.
    pub keep_rows: u64,
    /// How long calls are kept. `None` keeps them forever.
    pub keep_for: Option<Duration>,
    pub on_damage: HistoryDamagePolicy,
}

/// An open history.
#[derive(Debug)]
pub struct HistoryStore {
    commands: SyncSender<HistoryCommand>,
    reader: Arc<Mutex<Connection>>,
    lost: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl HistoryStore {
    /// Opens or creates the database. A file that is not a Toolyard history is an error and stays
    /// unchanged. So is a damaged one, unless [`HistoryDamagePolicy::MoveAside`] is set.
    pub fn open(settings: HistoryStoreSettings) -> Result<Self, HistoryStoreError> {
        // Processes that start at the same time take turns: a file is only checked once it is complete.
        let _turn = damage::lock_directory(&settings.file)
            .map_err(|source| HistoryStoreError::File { file: settings.file.clone(), source })?;
        let open_both = || Ok((open::open_writer(&settings.file)?, open::open_reader(&settings.file)?));
        let (writer, reader) = match settings.on_damage {
            HistoryDamagePolicy::Fail => open_both()?,
            HistoryDamagePolicy::MoveAside => damage::open_or_move_aside(&settings.file, open_both)?,
        };
        let (commands, receiver) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let lost_by_writer = Arc::clone(&lost);
        let file = settings.file.clone();
        let thread = std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || run_writer(writer, &receiver, &settings, &lost_by_writer))
            .map_err(|source| HistoryStoreError::File { file, source })?;
        let (reader, thread) = (Arc::new(Mutex::new(reader)), Mutex::new(Some(thread)));
        Ok(Self { commands, reader, lost, thread })
    }

    /// Queues a record. It is lost if the queue is full.
    pub fn record(&self, finished: &FinishedCall<'_>) {
        let call = past_call::from_finished(finished);
        if self.commands.try_send(HistoryCommand::Record(Box::new(call))).is_err()
            && self.lost.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::warn!("the history cannot keep up; calls are lost");
        }
    }

    /// Returns the number of lost records.
    pub fn lost_records(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all queued records are written. Later records are lost.
    pub async fn close(&self) {
        let thread = self.thread.lock().take();
        let commands = self.commands.clone();
        if let Some(thread) = thread {
            let waiting = tokio::task::spawn_blocking(move || {
                // Fails if the thread has already ended.
                let _ = commands.send(HistoryCommand::Stop);
                thread.join()
            });
            let _ = waiting.await;
        }
    }

    /// Runs a query on a blocking thread. It sees every call that was recorded before.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, HistoryError>> {
        let reader = Arc::clone(&self.reader);
        let commands = self.commands.clone();
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || {
                flush(&commands);
                read(&reader.lock())
            });
            let result = reading.await.map_err(|panic| HistoryError(panic.to_string()))?;
            result.map_err(|error| HistoryError(error.to_string()))
        })
    }
}

/// Waits until the calls recorded so far are in the database, up to [`LONGEST_FLUSH`].
fn flush(commands: &SyncSender<HistoryCommand>) {
    let (done, written) = sync_channel(0);
    // A full queue loses calls anyway, and a writer that has ended has nothing left to write.
    if commands.try_send(HistoryCommand::Flush(done)).is_ok() {
        let _ = written.recv_timeout(LONGEST_FLUSH);
    }
}

impl History for HistoryStore {
    fn recent(&self, query: HistoryQuery) -> BoxFuture<'static, Result<Vec<PastCall>, HistoryError>> {
        self.read(move |database| query::recent(database, &query))
    }

    fn find(&self, id: ExecutionId) -> BoxFuture<'static, Result<Option<PastCall>, HistoryError>> {
        self.read(move |database| query::find(database, id))
    }
}

impl Drop for HistoryStore {
    fn drop(&mut self) {
        // If the queue is full, the thread ends once all senders are dropped.
        let _ = self.commands.try_send(HistoryCommand::Stop);
    }
}

#[cfg(test)]
mod tests;
