//! Queries for past calls.

use std::time::{Duration, UNIX_EPOCH};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use toolyard_hub::{
    CallEndReason, CallStatus, EntryKind, ErrorKind, ExecutionId, HistoryCursor, HistoryQuery, PastCall,
};

const COLUMNS: &str =
    "id, at, duration, thing, subject, source, principal, session_id, user_id, status, kind, error";

/// Returns the calls that match a query, latest first.
pub(super) fn recent(database: &Connection, query: &HistoryQuery) -> rusqlite::Result<Vec<PastCall>> {
    let mut filter = SqlFilter::default();
    let micros = |at| HistoryCursor::new(at, ExecutionId::from_bytes([0; 16])).micros;
    if let Some(HistoryCursor { micros, id }) = query.after {
        filter.add("(at, id) < (?, ?)", [Value::from(micros), id.to_string().into()]);
    }
    if let Some(since) = query.since {
        filter.add("at >= ?", [Value::from(micros(since))]);
    }
    if let Some(until) = query.until {
        filter.add("at < ?", [Value::from(micros(until))]);
    }
    if let Some(kind) = query.kind {
        filter.add("thing = ?", [Value::from(kind.as_str().to_owned())]);
    }
    if let Some(principal) = &query.principal {
        filter.add("principal = ?", [Value::from(principal.clone())]);
    }
    if let Some(subject) = &query.subject {
        filter.add("subject = ?", [Value::from(subject.clone())]);
    }
    if let Some(status) = query.status {
        filter.add("status = ?", [Value::from(status.as_str().to_owned())]);
    }
    if let Some(text) = &query.text {
        let columns = ["subject", "source", "session_id", "user_id", "error"];
        let matches = columns.map(|column| format!("instr(lower({column}), ?) > 0")).join(" OR ");
        filter.add(&format!("({matches})"), columns.map(|_| Value::from(text.to_ascii_lowercase())));
    }
    let condition = if filter.filters.is_empty() { "1".to_owned() } else { filter.filters.join(" AND ") };
    let text = format!("SELECT {COLUMNS} FROM calls WHERE {condition} ORDER BY at DESC, id DESC LIMIT ?");
    filter.values.push(i64::try_from(query.limit).unwrap_or(i64::MAX).into());
    let mut statement = database.prepare(&text)?;
    let rows = statement.query_map(params_from_iter(filter.values), parse_row)?;
    rows.collect()
}

pub(super) fn find(database: &Connection, id: ExecutionId) -> rusqlite::Result<Option<PastCall>> {
    let text = format!("SELECT {COLUMNS} FROM calls WHERE id = ?");
    database.query_row(&text, [id.to_string()], parse_row).optional()
}

#[derive(Default)]
struct SqlFilter {
    filters: Vec<String>,
    values: Vec<Value>,
}

impl SqlFilter {
    fn add<const N: usize>(&mut self, filter: &str, values: [Value; N]) {
        self.filters.push(filter.to_owned());
        self.values.extend(values);
    }
}

/// Parses a row. Values of a later version become the nearest known ones.
fn parse_row(row: &Row<'_>) -> rusqlite::Result<PastCall> {
    let micros =
        |index| row.get::<_, i64>(index).map(|n| Duration::from_micros(u64::try_from(n).unwrap_or(0)));
    let kind = row.get::<_, Option<String>>(10)?;
    let kind = kind.map(|words| ErrorKind::from_words(&words).unwrap_or(ErrorKind::Bug));
    let status = CallStatus::from_word(&row.get::<_, String>(9)?).unwrap_or(CallStatus::Failed);
    let ended = CallEndReason::from_record(status, kind).unwrap_or(CallEndReason::Failed);
    let id: String = row.get(0)?;
    let invalid_id =
        |error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error));
    Ok(PastCall {
        id: id.parse().map_err(|error: toolyard_hub::InvalidExecutionId| invalid_id(error))?,
        at: UNIX_EPOCH + micros(1)?,
        duration: micros(2)?,
        kind: EntryKind::from_word(&row.get::<_, String>(3)?).unwrap_or(EntryKind::Tool),
        subject: row.get(4)?,
        source: row.get(5)?,
        principal: row.get(6)?,
        session_id: row.get(7)?,
        user_id: row.get(8)?,
        ended,
        error: row.get(11)?,
        replica: None,
    })
}
