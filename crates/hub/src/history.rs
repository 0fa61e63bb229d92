//! Reading past calls, wherever they are kept. Who may see whose is decided by the front that asks.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::BoxFuture;
use crate::call_status::CallStatus;
use crate::events::CallEndReason;
use crate::execution::ExecutionId;
use crate::request::EntryKind;

/// Past calls, kept longer than the process lives. What a call came back with is not among what is kept.
pub trait History: Send + Sync {
    /// Those that fit, the latest first.
    fn recent(&self, query: HistoryQuery) -> BoxFuture<'static, Result<Vec<PastCall>, HistoryError>>;

    fn find(&self, id: ExecutionId) -> BoxFuture<'static, Result<Option<PastCall>, HistoryError>>;
}

/// The history cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read the history: {0}")]
pub struct HistoryError(pub String);

/// Which calls are meant: those that fit everything that is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    pub limit: usize,
    /// Only what comes after this one, the latest being first.
    pub after: Option<HistoryCursor>,
    pub kind: Option<EntryKind>,
    pub principal: Option<String>,
    /// The full name or address.
    pub subject: Option<String>,
    /// Nothing that is still running is in a history.
    pub status: Option<CallStatus>,
    /// Only those that came in at this time or later.
    pub since: Option<SystemTime>,
    /// Only those that came in before.
    pub until: Option<SystemTime>,
    /// Part of a name, of a source, a session, a user or an error, in capitals or not.
    pub text: Option<String>,
}

/// One call that is over.
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
    /// The message of the error, if it ended with one.
    pub error: Option<String>,
}

impl PastCall {
    pub fn cursor(&self) -> HistoryCursor {
        HistoryCursor::new(self.at, self.id)
    }
}

/// The place of a call among all others: by when it came in, then by its name. Also where the next page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HistoryCursor {
    /// Microseconds since 1970: finer clocks are not kept.
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

/// The text is no mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is the one that came with the page before")]
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
