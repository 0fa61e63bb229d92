//! The audit log as a table. Records that arrive during a commit share the next one, and a call is
//! answered after the commit of its record.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{CallStatus, ErrorKind, FinishedCall};
use toolyard_postgres::{LinkPurpose, PostgresError, PostgresLink, PostgresSettings};

use super::retention::{RetentionRule, keep_pruned};
use super::row::{RowId, storable};
use crate::audit::writer::{
    AuditBacklog, AuditQueue, AuditWriteStatus, CloseOnDrop, WriterState, WriterStep,
};
use crate::audit_line::truncate;

/// A record that was stored by an attempt whose answer was lost is not stored again.
const INSERT: &str = "
    INSERT INTO toolyard.audit
        (id, at, principal, kind, name, server, ended, error_kind, line, replica)
    SELECT batch.*, $10
    FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[]) AS batch
    ON CONFLICT (id) DO NOTHING";

/// How many rows are inserted at once, so that a statement fits its deadline.
const MOST_AT_ONCE: usize = 2_000;
/// How long records wait for a new connection before their callers are told that it failed.
const PATIENCE: Duration = Duration::from_secs(2);
/// Length limit of names, in characters, as in the line.
const LONGEST_NAME: usize = 256;

type AuditRowQueue = AuditQueue<AuditRow, Notify>;

/// The line of a call, and what it can be found by.
#[derive(Debug)]
struct AuditRow {
    id: RowId,
    at: SystemTime,
    principal: String,
    kind: &'static str,
    name: String,
    server: Option<String>,
    ended: &'static str,
    error_kind: Option<&'static str>,
    line: String,
}

impl AuditRow {
    fn new(finished: &FinishedCall<'_>, mut line: String) -> Self {
        let record = finished.call;
        line.truncate(line.trim_end_matches('\n').len());
        Self {
            id: RowId(record.id),
            at: record.accepted_at,
            principal: storable(&truncate(record.principal.id(), LONGEST_NAME)),
            kind: record.kind.as_str(),
            name: storable(&truncate(&record.subject, LONGEST_NAME)),
            server: record.source.as_ref().map(|source| storable(source.as_str())),
            ended: CallStatus::from(finished.ended).as_str(),
            error_kind: finished.error.map(|error| error.kind()).map(ErrorKind::as_str),
            line,
        }
    }

    /// The approximate size in memory.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.line.len() + self.principal.len() + self.name.len()
    }
}

/// An open audit log.
#[derive(Debug)]
pub(crate) struct PostgresAudit {
    queue: Arc<AuditRowQueue>,
    link: Arc<PostgresLink>,
    writer: Mutex<Option<JoinHandle<()>>>,
    pruner: Mutex<Option<JoinHandle<()>>>,
    stop: CancellationToken,
}

impl PostgresAudit {
    pub(crate) async fn open(
        settings: &PostgresSettings,
        tls: &ClientConfig,
        keep_for: Option<Duration>,
    ) -> Result<Self, PostgresError> {
        let link = Arc::new(PostgresLink::open(settings, tls, LinkPurpose::Audit, INSERT).await?);
        let (queue, stop) = (Arc::new(AuditRowQueue::default()), CancellationToken::new());
        let pruner = keep_pruned(link.connector().clone(), RetentionRule::audit(keep_for), stop.clone());
        let writer = run_writer(Arc::clone(&queue), Arc::clone(&link));
        let writer = Mutex::new(Some(tokio::spawn(writer)));
        Ok(Self { queue, link, writer, pruner: Mutex::new(Some(tokio::spawn(pruner))), stop })
    }

    /// Queues a record. The receiver completes when it is committed, or cannot be.
    pub(crate) fn push(
        &self,
        finished: &FinishedCall<'_>,
        line: String,
    ) -> oneshot::Receiver<AuditWriteStatus> {
        let row = AuditRow::new(finished, line);
        let bytes = row.bytes();
        self.queue.push(row, bytes)
    }

    /// Returns whether records cannot be written now. A broken connection is noticed without a
    /// record.
    pub(crate) fn is_failing(&self) -> bool {
        self.queue.is_failing() || !self.link.is_connected()
    }

    pub(crate) fn lost_records(&self) -> u64 {
        self.queue.lost_records()
    }

    /// Waits until all queued records are written or a last attempt has failed.
    pub(crate) async fn close(&self) {
        self.end();
        let tasks = [self.writer.lock().take(), self.pruner.lock().take()];
        for task in tasks.into_iter().flatten() {
            // The panic of a task has been logged.
            let _ = task.await;
        }
        self.link.close().await;
    }

    /// Makes the tasks end after the queued records, without waiting for them.
    pub(crate) fn end(&self) {
        self.queue.close();
        self.stop.cancel();
    }
}

/// Writes queued rows until the queue is closed and empty.
async fn run_writer(queue: Arc<AuditRowQueue>, link: Arc<PostgresLink>) {
    // A panic must not leave callers waiting forever.
    let _close = CloseOnDrop(&queue);
    let destination = link.connector().database().to_owned();
    let mut changes = link.changes();
    let mut backlog = AuditBacklog::default();
    loop {
        tokio::select! {
            () = queue.filled(backlog.pause()) => {}
            () = link.reconnected(&mut changes) => backlog.retry_now(),
        }
        let mut batch = queue.take();
        let result = match backlog.add(&mut batch) {
            WriterStep::Idle => Some(Ok(())),
            WriterStep::Wait => None,
            WriterStep::Write => {
                // A call does not wait for a server that was already away.
                let patience = if queue.is_failing() { Duration::ZERO } else { PATIENCE };
                Some(write(&link, backlog.records(), patience).await)
            }
        };
        if backlog.settle(&queue, batch, result, &destination) == WriterState::Done {
            return;
        }
    }
}

async fn write(link: &PostgresLink, rows: &[AuditRow], patience: Duration) -> Result<(), PostgresError> {
    let replica = link.connector().replica();
    for rows in rows.chunks(MOST_AT_ONCE) {
        let ids: Vec<RowId> = rows.iter().map(|row| row.id).collect();
        let times: Vec<SystemTime> = rows.iter().map(|row| row.at).collect();
        let principals: Vec<&str> = rows.iter().map(|row| row.principal.as_str()).collect();
        let kinds: Vec<&str> = rows.iter().map(|row| row.kind).collect();
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let servers: Vec<Option<&str>> = rows.iter().map(|row| row.server.as_deref()).collect();
        let ends: Vec<&str> = rows.iter().map(|row| row.ended).collect();
        let errors: Vec<Option<&str>> = rows.iter().map(|row| row.error_kind).collect();
        let lines: Vec<&str> = rows.iter().map(|row| row.line.as_str()).collect();
        let params = [
            &ids as _,
            &times as _,
            &principals as _,
            &kinds as _,
            &names as _,
            &servers as _,
            &ends as _,
            &errors as _,
            &lines as _,
            &replica as _,
        ];
        link.insert(&params, patience).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use toolyard_hub::{CallEndReason, ErrorKind, HubError, SourceName};

    use super::{AuditRow, INSERT};
    use crate::audit::AuditArguments;
    use crate::audit_line::format_line;
    use crate::audit_line::tests::{SampleCall, sample};

    #[test]
    fn a_row_has_the_line_of_the_file_and_what_it_is_found_by() {
        let call = SampleCall {
            ended: CallEndReason::Error(ErrorKind::TimedOut),
            error: Some(HubError::new(ErrorKind::TimedOut, "too slow")),
            ..sample("mcp__s__wo\0rk").with(|call| call.source = Some(SourceName::new("s")))
        };
        let line = format_line(&call.finished(), AuditArguments::Omit);
        let row = AuditRow::new(&call.finished(), line.clone());
        assert_eq!(format!("{}\n", row.line), line);
        assert!(!row.line.contains('\0') && row.bytes() > line.len());
        assert_eq!(
            (row.principal.as_str(), row.kind, row.name.as_str(), row.server.as_deref()),
            ("ada", "tool", "mcp__s__wo\u{fffd}rk", Some("s"))
        );
        assert_eq!((row.ended, row.error_kind), ("failed", Some("timed out")));
        assert_eq!((row.id.0, row.at), (call.call.id, call.call.accepted_at));
    }

    #[test]
    fn a_batch_that_is_sent_twice_is_stored_once() {
        assert!(INSERT.ends_with("ON CONFLICT (id) DO NOTHING"));
    }
}
