//! Reading past calls back.

use std::time::{Duration, UNIX_EPOCH};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use toolyard_hub::{
    CallEndReason, CallStatus, EntryKind, ErrorKind, ExecutionId, HistoryCursor, HistoryQuery, PastCall,
};

const COLUMNS: &str =
    "id, at, duration, thing, subject, source, principal, session_id, user_id, status, kind, error";

/// Those that fit, the latest first.
pub(super) fn recent(database: &Connection, asked: &HistoryQuery) -> rusqlite::Result<Vec<PastCall>> {
    let mut asking = SqlFilter::default();
    let micros = |at| HistoryCursor::new(at, ExecutionId::from_bytes([0; 16])).micros;
    if let Some(HistoryCursor { micros, id }) = asked.after {
        asking.add("(at, id) < (?, ?)", [Value::from(micros), id.to_string().into()]);
    }
    if let Some(since) = asked.since {
        asking.add("at >= ?", [Value::from(micros(since))]);
    }
    if let Some(until) = asked.until {
        asking.add("at < ?", [Value::from(micros(until))]);
    }
    if let Some(thing) = asked.kind {
        asking.add("thing = ?", [Value::from(thing.as_str().to_owned())]);
    }
    if let Some(principal) = &asked.principal {
        asking.add("principal = ?", [Value::from(principal.clone())]);
    }
    if let Some(subject) = &asked.subject {
        asking.add("subject = ?", [Value::from(subject.clone())]);
    }
    if let Some(status) = asked.status {
        asking.add("status = ?", [Value::from(status.as_str().to_owned())]);
    }
    if let Some(text) = &asked.text {
        let places = ["subject", "source", "session_id", "user_id", "error"];
        let found = places.map(|place| format!("instr(lower({place}), ?) > 0")).join(" OR ");
        asking.add(&format!("({found})"), places.map(|_| Value::from(text.to_ascii_lowercase())));
    }
    let filter = if asking.filters.is_empty() { "1".to_owned() } else { asking.filters.join(" AND ") };
    let text = format!("SELECT {COLUMNS} FROM calls WHERE {filter} ORDER BY at DESC, id DESC LIMIT ?");
    asking.values.push(i64::try_from(asked.limit).unwrap_or(i64::MAX).into());
    let mut statement = database.prepare(&text)?;
    let rows = statement.query_map(params_from_iter(asking.values), parse_row)?;
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

/// What was written is known; words of a later version are taken for the nearest that there is today.
fn parse_row(row: &Row<'_>) -> rusqlite::Result<PastCall> {
    let micros =
        |index| row.get::<_, i64>(index).map(|n| Duration::from_micros(u64::try_from(n).unwrap_or(0)));
    let kind = row.get::<_, Option<String>>(10)?;
    let kind = kind.map(|words| ErrorKind::from_words(&words).unwrap_or(ErrorKind::Bug));
    let status = CallStatus::from_word(&row.get::<_, String>(9)?).unwrap_or(CallStatus::Failed);
    let ended = CallEndReason::from_record(status, kind).unwrap_or(CallEndReason::Failed);
    let id: String = row.get(0)?;
    let no_id =
        |error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error));
    Ok(PastCall {
        id: id.parse().map_err(|error: toolyard_hub::InvalidExecutionId| no_id(error))?,
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
    })
}
