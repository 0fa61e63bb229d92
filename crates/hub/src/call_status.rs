//! The status of a call as shown to users. REST, the control socket, the audit log, the history,
//! the metrics and the user interfaces all use these names.

use crate::error::ErrorKind;
use crate::events::CallEndReason;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    Running,
    Succeeded,
    /// The tool reported a failure, or the call ended with an error.
    Failed,
    /// The caller canceled the call or disconnected.
    Cancelled,
}

impl CallStatus {
    pub const ALL: [Self; 4] = [Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Parses a status. Accepts `completed`, which older control sockets send for `succeeded`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "completed" => Some(Self::Succeeded),
            word => Self::ALL.into_iter().find(|status| status.as_str() == word),
        }
    }
}

impl From<CallEndReason> for CallStatus {
    fn from(ended: CallEndReason) -> Self {
        match ended {
            CallEndReason::Succeeded => Self::Succeeded,
            CallEndReason::Error(ErrorKind::Cancelled) | CallEndReason::Abandoned => Self::Cancelled,
            CallEndReason::Failed | CallEndReason::Error(_) => Self::Failed,
        }
    }
}

impl CallEndReason {
    /// The kind of error that the call ended with. Together with the status, it identifies the
    /// [`CallEndReason`].
    pub fn error_kind(self) -> Option<ErrorKind> {
        match self {
            Self::Error(kind) => Some(kind),
            Self::Succeeded | Self::Failed | Self::Abandoned => None,
        }
    }

    /// Reconstructs the reason from a stored record. Returns `None` for a call that is still
    /// running.
    pub fn from_record(status: CallStatus, error: Option<ErrorKind>) -> Option<Self> {
        match (status, error) {
            (CallStatus::Running, _) => None,
            (CallStatus::Succeeded, _) => Some(Self::Succeeded),
            (CallStatus::Failed | CallStatus::Cancelled, Some(kind)) => Some(Self::Error(kind)),
            (CallStatus::Failed, None) => Some(Self::Failed),
            (CallStatus::Cancelled, None) => Some(Self::Abandoned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CallStatus;
    use crate::{CallEndReason, ErrorKind};

    #[test]
    fn every_end_has_a_word() {
        for (ended, word) in [
            (CallEndReason::Succeeded, "succeeded"),
            (CallEndReason::Failed, "failed"),
            (CallEndReason::Error(ErrorKind::Bug), "failed"),
            (CallEndReason::Error(ErrorKind::Cancelled), "cancelled"),
            (CallEndReason::Abandoned, "cancelled"),
        ] {
            let status = CallStatus::from(ended);
            assert_eq!(status.as_str(), word);
            assert_eq!(CallEndReason::from_record(status, ended.error_kind()), Some(ended));
        }
    }

    #[test]
    fn words_are_read_back_and_so_is_the_one_that_older_yards_say() {
        for status in CallStatus::ALL {
            assert_eq!(CallStatus::from_word(status.as_str()), Some(status));
        }
        assert_eq!(CallStatus::from_word("completed"), Some(CallStatus::Succeeded));
        assert_eq!(CallStatus::from_word("answered"), None);
    }
}
