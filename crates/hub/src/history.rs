//! Queries over past calls. The front decides which calls a principal may see.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::BoxFuture;
use crate::call_status::CallStatus;
use crate::events::CallEndReason;
use crate::execution::ExecutionId;
use crate::request::EntryKind;

/// Past calls, stored beyond the lifetime of the process. Results of calls are not stored.
pub trait History: Send + Sync {
    /// Returns the matching calls, latest first.
    fn recent(&self, query: HistoryQuery) -> BoxFuture<'static, Result<Vec<PastCall>, HistoryError>>;

    fn find(&self, id: ExecutionId) -> BoxFuture<'static, Result<Option<PastCall>, HistoryError>>;
}

/// The history cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read the history: {0}")]
pub struct HistoryError(pub String);

/// A filter over past calls. A call must match every field that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    pub limit: usize,
    /// Only calls after this one in the result order, latest first.
    pub after: Option<HistoryCursor>,
    pub kind: Option<EntryKind>,
    pub principal: Option<String>,
    /// The full name or URI.
    pub subject: Option<String>,
    /// A history contains only calls that have ended.
    pub status: Option<CallStatus>,
    /// Only calls accepted at this time or later.
    pub since: Option<SystemTime>,
    /// Only calls accepted before this time.
    pub until: Option<SystemTime>,
    /// Part of a name, source, session, user or error message, ignoring case.
    pub text: Option<String>,
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    pub id: ExecutionId,
    pub kind: EntryKind,
    pub subject: String,
    pub source: Option<String>,
    pub principal: String,
    pub session_id: Option<String>,
    pub user_id: Option<String>,
    pub at: SystemTime,
    pub duration: Duration,
    pub ended: CallEndReason,
    /// The error message, if the call ended with an error.
    pub error: Option<String>,
    /// The name of the replica that made the call. A history does not store it.
    pub replica: Option<String>,
}

impl PastCall {
    pub fn cursor(&self) -> HistoryCursor {
        HistoryCursor::new(self.at, self.id)
    }
}

/// The position of a call in the history, ordered by time of acceptance and then by ID. Also used
/// as the cursor of the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HistoryCursor {
    /// Microseconds since 1970. Finer resolution is not stored.
    pub micros: i64,
    pub id: ExecutionId,
}

impl HistoryCursor {
    pub fn new(at: SystemTime, id: ExecutionId) -> Self {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { micros: i64::try_from(since.as_micros()).unwrap_or(i64::MAX), id }
    }
}

impl fmt::Display for HistoryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.micros, self.id)
    }
}

/// The text is not a valid cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: expected the cursor of the previous page")]
pub struct InvalidHistoryCursor;

impl FromStr for HistoryCursor {
    type Err = InvalidHistoryCursor;

    fn from_str(text: &str) -> Result<Self, InvalidHistoryCursor> {
        let (micros, id) = text.split_once('.').ok_or(InvalidHistoryCursor)?;
        let plain = micros.bytes().all(|byte| byte.is_ascii_digit());
        let micros = micros.parse().ok().filter(|_| plain).ok_or(InvalidHistoryCursor)?;
        Ok(Self { micros, id: id.parse().map_err(|_| InvalidHistoryCursor)? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{HistoryCursor, InvalidHistoryCursor};
    use crate::ExecutionId;

    #[test]
    fn a_mark_is_read_back_as_it_was_written() {
        let at = UNIX_EPOCH + Duration::from_nanos(1_705_314_600_000_007_999);
        let mark = HistoryCursor::new(at, ExecutionId::from_bytes([1; 16]));
        assert_eq!(mark.to_string(), format!("1705314600000007.{}", "01".repeat(16)));
        assert_eq!(mark.to_string().parse(), Ok(mark));
        for wrong in ["", ".", "1", "+1.01010101010101010101010101010101", "1.x", "99999999999999999999.01"] {
            assert_eq!(wrong.parse::<HistoryCursor>(), Err(InvalidHistoryCursor), "{wrong}");
        }
    }
}
