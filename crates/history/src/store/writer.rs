//! The one who writes the history: many calls in one transaction, and what is too much or too old goes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, params};
use toolyard_hub::{CallStatus, ErrorKind, HistoryCursor, PastCall};

use super::HistoryStoreSettings;

/// How long calls gather before they are written.
const GATHER: Duration = Duration::from_millis(50);
const MOST_AT_ONCE: usize = 1_000;
/// How often a look is taken at what is too old, when nothing else is to do.
const TIDY: Duration = Duration::from_secs(60);
/// How many go in one transaction, so that nobody waits long for it.
const GO_AT_ONCE: u64 = 2_000;

pub(super) enum HistoryCommand {
    Record(Box<PastCall>),
    /// Write at once, and drop the sender when everything before this command is in the database.
    Flush(SyncSender<()>),
    Stop,
}

/// Obeys until it is told to stop, or nobody is left to give orders.
pub(super) fn run_writer(
    mut database: Connection,
    orders: &Receiver<HistoryCommand>,
    settings: &HistoryStoreSettings,
    lost: &AtomicU64,
) {
    let mut since_tidy = 0;
    let mut failing = false;
    let mut tidied = Instant::now();
    prune(&mut database, settings);
    loop {
        let Gathered { batch, flush, keep_running: go_on } = collect_batch(orders);
        if !batch.is_empty() {
            let written = write(&mut database, &batch);
            match &written {
                Ok(()) => since_tidy += batch.len() as u64,
                Err(_) => drop(lost.fetch_add(batch.len() as u64, Ordering::Relaxed)),
            }
            if let (Err(error), false) = (&written, failing) {
                tracing::error!(file = %settings.file.display(), %error, "cannot write the history");
            }
            failing = written.is_err();
        }
        drop(flush);
        if since_tidy > settings.keep_rows / 20 || tidied.elapsed() >= TIDY {
            prune(&mut database, settings);
            (since_tidy, tidied) = (0, Instant::now());
        }
        if !go_on {
            return;
        }
    }
}

/// What came in within a short time.
struct Gathered {
    batch: Vec<PastCall>,
    /// The reader that waits for the batch, if one does.
    flush: Option<SyncSender<()>>,
    keep_running: bool,
}

fn collect_batch(orders: &Receiver<HistoryCommand>) -> Gathered {
    let mut batch = Vec::new();
    let mut until = None;
    while batch.len() < MOST_AT_ONCE {
        let time = until.map_or(TIDY, |until: Instant| until.saturating_duration_since(Instant::now()));
        match orders.recv_timeout(time) {
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

/// Takes away what is too old and what is too much, the oldest first.
fn prune(database: &mut Connection, settings: &HistoryStoreSettings) {
    if let Err(error) = try_prune(database, settings) {
        tracing::warn!(file = %settings.file.display(), %error, "cannot take old calls out of the history");
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
        let old = count("SELECT count(*) FROM calls WHERE at < ?", &[start])?;
        let all = count("SELECT count(*) FROM calls", &[])?;
        let go = old.max(all.saturating_sub(settings.keep_rows)).min(GO_AT_ONCE);
        if go == 0 {
            return Ok(());
        }
        database.execute(
            "DELETE FROM calls WHERE number IN (SELECT number FROM calls ORDER BY at, id LIMIT ?)",
            [i64::try_from(go).unwrap_or(i64::MAX)],
        )?;
        // The room that became free goes back to the disk.
        let mut vacuum = database.prepare("PRAGMA incremental_vacuum")?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
    }
}
