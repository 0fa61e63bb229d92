//! The history as a table. It is written in the background, in batches, and never delays a call.
//! While the database is away, records wait in a bounded queue; those that exceed it are lost and
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use toolyard_hub::{
    BoxFuture, CallStatus, ErrorKind, ExecutionId, FinishedCall, History, HistoryError, HistoryQuery,
    PastCall,
};
use toolyard_postgres::{LinkPurpose, PostgresError, PostgresLink, PostgresSettings};

use super::query;
use super::retention::{RetentionRule, keep_pruned};
use super::row::{RowId, storable};
use crate::past_call;
use crate::store::{LONGEST_FLUSH, WAITING};

/// A record that was stored by an attempt whose answer was lost is not stored again.
const INSERT: &str = "
    INSERT INTO toolyard.calls
        (id, at, duration_us, kind, subject, source, principal, session_id, user_id, status, error_kind, error, replica)
    SELECT batch.*, $13
    FROM unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::text[]) AS batch
    ON CONFLICT (id) DO NOTHING";

/// How long calls are collected before they are written.
const GATHER: Duration = Duration::from_millis(50);
const MOST_AT_ONCE: usize = 1_000;
/// Records wait for a new connection as long as the process runs.
const PATIENCE: Duration = Duration::from_secs(86_400);
/// How long they wait when the process ends.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// The pause after a write without an answer.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The settings of a history in PostgreSQL.
#[derive(Debug, Clone)]
pub struct PostgresHistorySettings {
    pub database: PostgresSettings,
    /// The approximate number of calls to keep.
    pub keep_rows: u64,
    /// How long calls are kept. `None` keeps them forever.
    pub keep_for: Option<Duration>,
}

enum HistoryCommand {
    Record(Box<PastCall>),
    /// Write immediately, and drop the sender when all earlier records are in the database.
    Flush(oneshot::Sender<()>),
}

/// An open history.
#[derive(Debug)]
pub struct PostgresHistory {
    commands: mpsc::Sender<HistoryCommand>,
    link: Arc<PostgresLink>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
    pruner: Mutex<Option<JoinHandle<()>>>,
    stop: CancellationToken,
}

impl PostgresHistory {
    /// Connects to the database, and migrates it if necessary. Waits for a server that is starting.
    pub async fn open(settings: &PostgresHistorySettings, tls: &ClientConfig) -> Result<Self, PostgresError> {
        let link = PostgresLink::open(&settings.database, tls, LinkPurpose::History, INSERT).await?;
        let (link, stop) = (Arc::new(link), CancellationToken::new());
        let (commands, receiver) = mpsc::channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let retention = RetentionRule::calls(settings.keep_rows, settings.keep_for);
        let pruner = keep_pruned(link.connector().clone(), retention, stop.clone());
        let (writer_link, writer_lost) = (Arc::clone(&link), Arc::clone(&lost));
        let writer = HistoryWriter {
            commands: receiver,
            link: writer_link,
            lost: writer_lost,
            stop: stop.clone(),
            failing: false,
        };
        let writer = Mutex::new(Some(tokio::spawn(writer.run())));
        Ok(Self { commands, link, lost, writer, pruner: Mutex::new(Some(tokio::spawn(pruner))), stop })
    }

    /// Queues a record. It is lost if the queue is full.
    pub(crate) fn record(&self, finished: &FinishedCall<'_>) {
        let call = past_call::from_finished(finished);
        if self.commands.try_send(HistoryCommand::Record(Box::new(call))).is_err()
            && self.lost.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::warn!("the history cannot keep up; calls are lost");
        }
    }

    pub(crate) fn lost_records(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all queued records are written or a last attempt has failed.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        let tasks = [self.writer.lock().take(), self.pruner.lock().take()];
        for task in tasks.into_iter().flatten() {
            // The panic of a task has been logged.
            let _ = task.await;
        }
        self.link.close().await;
    }

    /// Runs a query that sees every call that was recorded before.
    fn read<T: Send + 'static>(
        &self,
        text: String,
        values: Vec<query::SqlValue>,
        parse: impl FnOnce(&[tokio_postgres::Row]) -> Result<T, tokio_postgres::Error> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, HistoryError>> {
        let (link, commands) = (Arc::clone(&self.link), self.commands.clone());
        Box::pin(async move {
            let params: Vec<_> = values.iter().map(|value| &**value as _).collect();
            let found = async {
                if link.is_connected() {
                    flush(&commands).await;
                }
                let rows = link.query(&text, &params).await?;
                parse(&rows).map_err(|error| PostgresError::statement(link.connector().database(), &error))
            };
            found.await.map_err(|error: PostgresError| HistoryError(error.to_string()))
        })
    }
}

/// Waits until the calls recorded so far are in the database, up to [`LONGEST_FLUSH`].
async fn flush(commands: &mpsc::Sender<HistoryCommand>) {
    let (done, written) = oneshot::channel();
    // A full queue loses calls anyway, and a writer that has ended has nothing left to write.
    if commands.try_send(HistoryCommand::Flush(done)).is_ok() {
        // The sender is dropped, not used.
        let _ = timeout(LONGEST_FLUSH, written).await;
    }
}

impl History for PostgresHistory {
    fn recent(&self, query: HistoryQuery) -> BoxFuture<'static, Result<Vec<PastCall>, HistoryError>> {
        let (text, values) = query::recent(&query);
        self.read(text, values, |rows| rows.iter().map(query::parse_row).collect())
    }

    fn find(&self, id: ExecutionId) -> BoxFuture<'static, Result<Option<PastCall>, HistoryError>> {
        let (text, values) = query::find(id);
        self.read(text, values, |rows| rows.first().map(query::parse_row).transpose())
    }
}

impl Drop for PostgresHistory {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The records collected within a short time.
#[derive(Default)]
struct Gathered {
    batch: Vec<PastCall>,
    /// The reader that waits for the batch, if any.
    flush: Option<oneshot::Sender<()>>,
}

struct HistoryWriter {
    commands: mpsc::Receiver<HistoryCommand>,
    link: Arc<PostgresLink>,
    lost: Arc<AtomicU64>,
    stop: CancellationToken,
    failing: bool,
}

impl HistoryWriter {
    /// Writes records until it is stopped, and then those that are queued.
    async fn run(mut self) {
        loop {
            let Gathered { batch, flush } = self.collect().await;
            if batch.is_empty() && flush.is_none() && self.stop.is_cancelled() {
                return;
            }
            if !batch.is_empty() {
                self.write(&batch).await;
            }
            drop(flush);
        }
    }

    /// Collects records for a short time, starting with the first one. Returns without any once the
    /// writer is stopped and the queue is empty.
    async fn collect(&mut self) -> Gathered {
        let mut gathered = Gathered::default();
        let mut until = None;
        while gathered.batch.len() < MOST_AT_ONCE {
            let command = tokio::select! {
                biased;
                command = self.commands.recv() => command,
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => None,
                () = self.stop.cancelled() => self.commands.try_recv().ok(),
            };
            match command {
                Some(HistoryCommand::Record(call)) => gathered.batch.push(*call),
                Some(HistoryCommand::Flush(reader)) => {
                    gathered.flush = Some(reader);
                    break;
                }
                None => break,
            }
            until = until.or_else(|| Some(Instant::now() + GATHER));
        }
        gathered
    }

    /// Writes a batch, however long the database is away.
    async fn write(&mut self, batch: &[PastCall]) {
        let rows = HistoryRows::new(batch);
        let stop = self.stop.clone();
        let error = loop {
            let result = tokio::select! {
                result = rows.insert(&self.link, PATIENCE) => result,
                // What was interrupted may be stored already, and is then not stored again.
                () = stop.cancelled() => rows.insert(&self.link, LAST_PATIENCE).await,
            };
            match result {
                Ok(()) => {
                    self.failing = false;
                    return;
                }
                Err(error) if error.is_temporary() && !stop.is_cancelled() => {}
                Err(error) => break error,
            }
            tokio::select! {
                () = tokio::time::sleep(TRY_AGAIN) => {}
                () = stop.cancelled() => {}
            }
        };
        self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
        if !self.failing {
            tracing::error!(%error, "cannot write the history");
        }
        self.failing = true;
    }
}

/// The columns of a batch.
struct HistoryRows {
    ids: Vec<RowId>,
    times: Vec<SystemTime>,
    durations: Vec<i64>,
    kinds: Vec<&'static str>,
    subjects: Vec<String>,
    sources: Vec<Option<String>>,
    principals: Vec<String>,
    sessions: Vec<Option<String>>,
    users: Vec<Option<String>>,
    statuses: Vec<&'static str>,
    error_kinds: Vec<Option<&'static str>>,
    errors: Vec<Option<String>>,
}

impl HistoryRows {
    fn new(batch: &[PastCall]) -> Self {
        let optional = |text: &Option<String>| text.as_deref().map(storable);
        Self {
            ids: batch.iter().map(|call| RowId(call.id)).collect(),
            times: batch.iter().map(|call| call.at).collect(),
            durations: batch
                .iter()
                .map(|call| i64::try_from(call.duration.as_micros()).unwrap_or(i64::MAX))
                .collect(),
            kinds: batch.iter().map(|call| call.kind.as_str()).collect(),
            subjects: batch.iter().map(|call| storable(&call.subject)).collect(),
            sources: batch.iter().map(|call| optional(&call.source)).collect(),
            principals: batch.iter().map(|call| storable(&call.principal)).collect(),
            sessions: batch.iter().map(|call| optional(&call.session_id)).collect(),
            users: batch.iter().map(|call| optional(&call.user_id)).collect(),
            statuses: batch.iter().map(|call| CallStatus::from(call.ended).as_str()).collect(),
            error_kinds: batch.iter().map(|call| call.ended.error_kind().map(ErrorKind::as_str)).collect(),
            errors: batch.iter().map(|call| optional(&call.error)).collect(),
        }
    }

    async fn insert(&self, link: &PostgresLink, patience: Duration) -> Result<(), PostgresError> {
        let params = [
            &self.ids as _,
            &self.times as _,
            &self.durations as _,
            &self.kinds as _,
            &self.subjects as _,
            &self.sources as _,
            &self.principals as _,
            &self.sessions as _,
            &self.users as _,
            &self.statuses as _,
            &self.error_kinds as _,
            &self.errors as _,
            &link.connector().replica() as _,
        ];
        link.insert(&params, patience).await
    }
}
