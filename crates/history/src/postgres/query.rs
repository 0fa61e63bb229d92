//! Queries for past calls.

use std::time::{Duration, SystemTime};

use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use toolyard_hub::{
    CallEndReason, CallStatus, EntryKind, ErrorKind, ExecutionId, HistoryCursor, HistoryQuery, PastCall,
};

use super::row::{RowId, storable, time_from_micros};

const COLUMNS: &str = "id, at, duration_us, kind, subject, source, principal, session_id, user_id, status, error_kind, \
                       error";

pub(super) type SqlValue = Box<dyn ToSql + Sync + Send>;

/// Returns the query for the calls that match, latest first.
pub(super) fn recent(query: &HistoryQuery) -> (String, Vec<SqlValue>) {
    let mut filter = SqlFilter::default();
    if let Some(HistoryCursor { micros, id }) = query.after {
        let values: [SqlValue; 2] = [Box::new(time_from_micros(micros)), Box::new(RowId(id))];
        filter.add("(at, id) < ($, $)", values);
    }
    if let Some(since) = query.since {
        filter.add("at >= $", [Box::new(stored_time(since)) as _]);
    }
    if let Some(until) = query.until {
        filter.add("at < $", [Box::new(stored_time(until)) as _]);
    }
    if let Some(kind) = query.kind {
        filter.add("kind = $", [Box::new(kind.as_str()) as _]);
    }
    if let Some(principal) = &query.principal {
        filter.add("principal = $", [Box::new(storable(principal)) as _]);
    }
    if let Some(subject) = &query.subject {
        filter.add("subject = $", [Box::new(storable(subject)) as _]);
    }
    if let Some(status) = query.status {
        filter.add("status = $", [Box::new(status.as_str()) as _]);
    }
    if let Some(text) = &query.text {
        let columns = ["subject", "source", "session_id", "user_id", "error"];
        // With this collation, only ASCII letters have a lower case, like in the text.
        let matches = columns.map(|column| format!("strpos(lower({column} COLLATE \"C\"), $) > 0"));
        let text = storable(&text.to_ascii_lowercase());
        filter
            .add(&format!("({})", matches.join(" OR ")), columns.map(|_| Box::new(text.clone()) as SqlValue));
    }
    let condition = if filter.filters.is_empty() { "true".to_owned() } else { filter.filters.join(" AND ") };
    let mut values = filter.values;
    values.push(Box::new(i64::try_from(query.limit).unwrap_or(i64::MAX)));
    let last = values.len();
    let text = format!(
        "SELECT {COLUMNS} FROM toolyard.calls WHERE {condition} ORDER BY at DESC, id DESC LIMIT ${last}"
    );
    (text, values)
}

pub(super) fn find(id: ExecutionId) -> (String, Vec<SqlValue>) {
    let text = format!("SELECT {COLUMNS} FROM toolyard.calls WHERE id = $1");
    (text, vec![Box::new(RowId(id))])
}

/// Returns a time with the resolution of the table.
fn stored_time(at: SystemTime) -> SystemTime {
    time_from_micros(HistoryCursor::new(at, ExecutionId::from_bytes([0; 16])).micros)
}

#[derive(Default)]
struct SqlFilter {
    filters: Vec<String>,
    values: Vec<SqlValue>,
}

impl SqlFilter {
    /// Adds a condition in which every `$` stands for the next value.
    fn add<const N: usize>(&mut self, filter: &str, values: [SqlValue; N]) {
        let mut parts = filter.split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (at, part) in parts.enumerate() {
            text = format!("{text}${}{part}", self.values.len() + at + 1);
        }
        self.filters.push(text);
        self.values.extend(values);
    }
}

/// Parses a row. Values of a later version become the nearest known ones.
pub(super) fn parse_row(row: &Row) -> Result<PastCall, Error> {
    let RowId(id) = row.try_get(0)?;
    let kind = row.try_get::<_, Option<&str>>(10)?;
    let kind = kind.map(|words| ErrorKind::from_words(words).unwrap_or(ErrorKind::Bug));
    let status = CallStatus::from_word(row.try_get(9)?).unwrap_or(CallStatus::Failed);
    Ok(PastCall {
        id,
        at: row.try_get(1)?,
        duration: Duration::from_micros(u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0)),
        kind: EntryKind::from_word(row.try_get(3)?).unwrap_or(EntryKind::Tool),
        subject: row.try_get(4)?,
        source: row.try_get(5)?,
        principal: row.try_get(6)?,
        session_id: row.try_get(7)?,
        user_id: row.try_get(8)?,
        ended: CallEndReason::from_record(status, kind).unwrap_or(CallEndReason::Failed),
        error: row.try_get(11)?,
        replica: None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use toolyard_hub::{CallStatus, EntryKind, ExecutionId, HistoryCursor, HistoryQuery};

    use super::{COLUMNS, find, recent};

    #[test]
    fn every_filter_is_a_numbered_parameter() {
        let id = ExecutionId::from_bytes([1; 16]);
        let query = HistoryQuery {
            limit: 5,
            after: Some(HistoryCursor { micros: 7, id }),
            kind: Some(EntryKind::Tool),
            principal: Some("ada".to_owned()),
            subject: Some("'; DROP TABLE toolyard.calls --".to_owned()),
            status: Some(CallStatus::Failed),
            since: Some(UNIX_EPOCH),
            until: Some(UNIX_EPOCH),
            text: Some("x".to_owned()),
        };
        let (text, values) = recent(&query);
        let matches = [("subject", 9), ("source", 10), ("session_id", 11), ("user_id", 12), ("error", 13)];
        let matches =
            matches.map(|(column, number)| format!("strpos(lower({column} COLLATE \"C\"), ${number}) > 0"));
        let expected = format!(
            "SELECT {COLUMNS} FROM toolyard.calls WHERE (at, id) < ($1, $2) AND at >= $3 AND at < $4 AND kind = $5 \
             AND principal = $6 AND subject = $7 AND status = $8 AND ({}) ORDER BY at DESC, id DESC LIMIT $14",
            matches.join(" OR ")
        );
        assert_eq!((text, values.len()), (expected, 14));
    }

    #[test]
    fn without_filters_the_latest_calls_are_returned() {
        let (text, values) = recent(&HistoryQuery { limit: 3, ..HistoryQuery::default() });
        let expected =
            format!("SELECT {COLUMNS} FROM toolyard.calls WHERE true ORDER BY at DESC, id DESC LIMIT $1");
        assert_eq!((text, values.len()), (expected, 1));
        let (text, values) = find(ExecutionId::from_bytes([1; 16]));
        assert_eq!(text, format!("SELECT {COLUMNS} FROM toolyard.calls WHERE id = $1"));
        assert_eq!(values.len(), 1);
    }
}
