//! The status of a source, in terms that every front can show.

use tokio::time::Instant;

use crate::json::Raw;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceState {
    Disabled,
    Starting,
    Ready,
    /// The source requires authentication first.
    NeedsAuthorization,
    /// The source failed and will not be retried automatically.
    Failed,
    /// The source failed and will be retried.
    Retrying,
}

impl SourceState {
    pub const ALL: [Self; 6] =
        [Self::Disabled, Self::Starting, Self::Ready, Self::NeedsAuthorization, Self::Failed, Self::Retrying];

    /// The machine-readable name, used by REST, the control socket, metrics and JSON output of the
    /// command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::NeedsAuthorization => "needs_authorization",
            Self::Failed => "failed",
            Self::Retrying => "retrying",
        }
    }

    /// The human-readable name.
    pub fn label(self) -> &'static str {
        match self {
            Self::NeedsAuthorization => "needs authorization",
            state => state.as_str(),
        }
    }

    /// Parses a name. Accepts `backing_off`, which older yards send for `retrying`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "backing_off" => Some(Self::Retrying),
            word => Self::ALL.into_iter().find(|state| state.as_str() == word),
        }
    }
}

/// How the yard is authenticated with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthStatus {
    /// Login is not applicable: the source is not an HTTP server, or does not require
    /// authentication.
    Unsupported,
    NotLoggedIn,
    BearerToken,
    OAuth,
}

impl AuthStatus {
    pub const ALL: [Self; 4] = [Self::Unsupported, Self::NotLoggedIn, Self::BearerToken, Self::OAuth];

    /// The machine-readable name. The values are those of `auth_statuses` in the lists of
    /// command-line assistants.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::NotLoggedIn => "not_logged_in",
            Self::BearerToken => "bearer_token",
            Self::OAuth => "o_auth",
        }
    }

    /// The human-readable name, if there is one.
    pub fn label(self) -> Option<&'static str> {
        match self {
            Self::Unsupported => None,
            Self::NotLoggedIn => Some("not logged in"),
            Self::BearerToken => Some("bearer token"),
            Self::OAuth => Some("OAuth"),
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// The status of a source at one point in time.
#[derive(Debug, Clone)]
pub struct SourceStatus {
    pub state: SourceState,
    /// Why the source is not ready.
    pub reason: Option<String>,
    /// What a user can do about it, if the reason does not say so.
    pub suggestion: Option<String>,
    /// The last lines that the process wrote to standard error.
    pub stderr: Vec<String>,
    /// Problems with the offer, such as entries that were skipped or that another source offers as
    /// well.
    pub warnings: Vec<String>,
    pub transport: Option<&'static str>,
    /// The negotiated protocol version.
    pub version: Option<&'static str>,
    /// The era of that version: `legacy` or `modern`.
    pub era: Option<&'static str>,
    pub authorization: AuthStatus,
    /// The name and version that the server reports.
    pub server_info: Option<Raw>,
    /// The name of the replica that runs the source, if only one of several replicas does.
    pub replica: Option<String>,
    /// When the source entered this state.
    pub since: Instant,
    /// When the next attempt is made.
    pub retry_at: Option<Instant>,
    /// Whether the source has ever been ready or failed. If so, lists no longer wait for it.
    pub startup_complete: bool,
}

impl SourceStatus {
    /// For sources that are always available.
    pub fn ready() -> Self {
        Self::new(SourceState::Ready, true)
    }

    pub fn new(state: SourceState, startup_complete: bool) -> Self {
        Self {
            state,
            reason: None,
            suggestion: None,
            stderr: Vec::new(),
            warnings: Vec::new(),
            transport: None,
            version: None,
            era: None,
            authorization: AuthStatus::Unsupported,
            server_info: None,
            replica: None,
            since: Instant::now(),
            retry_at: None,
            startup_complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AuthStatus, SourceState};

    #[test]
    fn every_state_has_one_word_for_programs_and_one_for_people() {
        let words = SourceState::ALL.map(|state| (state.as_str(), state.label()));
        let expected = [
            ("disabled", "disabled"),
            ("starting", "starting"),
            ("ready", "ready"),
            ("needs_authorization", "needs authorization"),
            ("failed", "failed"),
            ("retrying", "retrying"),
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn how_we_stand_with_a_server_has_the_words_of_the_list() {
        let words = AuthStatus::ALL.map(AuthStatus::as_str);
        assert_eq!(words, ["unsupported", "not_logged_in", "bearer_token", "o_auth"]);
    }

    #[test]
    fn words_are_read_back_and_so_is_the_one_that_older_yards_say() {
        for state in SourceState::ALL {
            assert_eq!(SourceState::from_word(state.as_str()), Some(state));
        }
        for status in AuthStatus::ALL {
            assert_eq!(AuthStatus::from_word(status.as_str()), Some(status));
        }
        assert_eq!(SourceState::from_word("backing_off"), Some(SourceState::Retrying));
        assert_eq!(SourceState::from_word("backing off"), None);
    }
}
