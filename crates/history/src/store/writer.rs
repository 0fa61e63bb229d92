//! The writer thread of the history. It writes calls in batches and prunes old and excess ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, params};
use toolyard_hub::{CallStatus, ErrorKind, HistoryCursor, PastCall};

use super::HistoryStoreSettings;

/// How long calls are collected before they are written.
const GATHER: Duration = Duration::from_millis(50);
const MOST_AT_ONCE: usize = 1_000;
/// How often old calls are pruned while there is nothing to write.
const TIDY: Duration = Duration::from_secs(60);
/// How many calls are deleted per transaction, so that other processes do not wait long.
const GO_AT_ONCE: u64 = 2_000;

pub(super) enum HistoryCommand {
    Record(Box<PastCall>),
    /// Write immediately, and drop the sender when all earlier records are in the database.
    Flush(SyncSender<()>),
    Stop,
}

/// Processes commands until [`HistoryCommand::Stop`], or until all senders are gone.
pub(super) fn run_writer(
    mut database: Connection,
    commands: &Receiver<HistoryCommand>,
    settings: &HistoryStoreSettings,
    lost: &AtomicU64,
) {
    let mut written_since_prune = 0;
    let mut failing = false;
    let mut last_prune = Instant::now();
    prune(&mut database, settings);
    loop {
        let Gathered { batch, flush, keep_running } = collect_batch(commands);
        if !batch.is_empty() {
            let written = write(&mut database, &batch);
            match &written {
                Ok(()) => written_since_prune += batch.len() as u64,
                Err(_) => drop(lost.fetch_add(batch.len() as u64, Ordering::Relaxed)),
            }
            if let (Err(error), false) = (&written, failing) {
                tracing::error!(file = %settings.file.display(), %error, "cannot write the history");
            }
            failing = written.is_err();
        }
        drop(flush);
        if written_since_prune > settings.keep_rows / 20 || last_prune.elapsed() >= TIDY {
            prune(&mut database, settings);
            (written_since_prune, last_prune) = (0, Instant::now());
        }
        if !keep_running {
            return;
        }
    }
}

/// The records collected within a short time.
struct Gathered {
    batch: Vec<PastCall>,
    /// The reader that waits for the batch, if any.
    flush: Option<SyncSender<()>>,
    keep_running: bool,
}

fn collect_batch(commands: &Receiver<HistoryCommand>) -> Gathered {
    let mut batch = Vec::new();
    let mut until = None;
    while batch.len() < MOST_AT_ONCE {
        let timeout = until.map_or(TIDY, |until: Instant| until.saturating_duration_since(Instant::now()));
        match commands.recv_timeout(timeout) {
            Ok(HistoryCommand::Record(call)) => batch.push(*call),
            Ok(HistoryCommand::Flush(reader)) => {
                return Gathered { batch, flush: Some(reader), keep_running: true };
            }
            Err(RecvTimeoutError::Timeout) => break,
            Ok(HistoryCommand::Stop) | Err(RecvTimeoutError::Disconnected) => {
                return Gathered { batch, flush: None, keep_running: false };
            }
        }
        until = until.or_else(|| Some(Instant::now() + GATHER));
    }
    Gathered { batch, flush: None, keep_running: true }
}

fn write(database: &mut Connection, batch: &[PastCall]) -> rusqlite::Result<()> {
    let change = database.transaction()?;
    {
        let mut insert = change.prepare(
            "INSERT OR IGNORE INTO calls (id, at, duration, thing, subject, source, principal, session_id,
                 user_id, status, kind, error)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        for call in batch {
            insert.execute(params![
                call.id.to_string(),
                call.cursor().micros,
                i64::try_from(call.duration.as_micros()).unwrap_or(i64::MAX),
                call.kind.as_str(),
                call.subject,
                call.source,
                call.principal,
                call.session_id,
                call.user_id,
                CallStatus::from(call.ended).as_str(),
                call.ended.error_kind().map(ErrorKind::as_str),
                call.error,
            ])?;
        }
    }
    change.commit()
}

/// Deletes expired and excess calls, oldest first.
fn prune(database: &mut Connection, settings: &HistoryStoreSettings) {
    if let Err(error) = try_prune(database, settings) {
        tracing::warn!(file = %settings.file.display(), %error, "cannot delete old calls from the history");
    }
}

fn try_prune(database: &mut Connection, settings: &HistoryStoreSettings) -> rusqlite::Result<()> {
    let start = settings.keep_for.and_then(|time| SystemTime::now().checked_sub(time));
    let start = start
        .map_or(0, |start| HistoryCursor::new(start, toolyard_hub::ExecutionId::from_bytes([0; 16])).micros);
    loop {
        let count = |text: &str, values: &[i64]| {
            let values = rusqlite::params_from_iter(values);
            database
                .query_row(text, values, |row| row.get::<_, i64>(0))
                .map(|n| u64::try_from(n).unwrap_or(0))
        };
        let expired = count("SELECT count(*) FROM calls WHERE at < ?", &[start])?;
        let all = count("SELECT count(*) FROM calls", &[])?;
        let delete = expired.max(all.saturating_sub(settings.keep_rows)).min(GO_AT_ONCE);
        if delete == 0 {
            return Ok(());
        }
        database.execute(
            "DELETE FROM calls WHERE number IN (SELECT number FROM calls ORDER BY at, id LIMIT ?)",
            [i64::try_from(delete).unwrap_or(i64::MAX)],
        )?;
        // Returns the free space to the file system.
        let mut vacuum = database.prepare("PRAGMA incremental_vacuum")?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
    }
}
