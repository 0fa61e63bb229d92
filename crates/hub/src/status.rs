//! How a source is doing, in words that every front can show.

use tokio::time::Instant;

use crate::json::Raw;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceState {
    Disabled,
    Starting,
    Ready,
    /// It wants to know who we are first.
    NeedsAuthorization,
    /// It will not be tried again by itself.
    Failed,
    /// It failed and will be tried again.
    Retrying,
}

impl SourceState {
    pub const ALL: [Self; 6] =
        [Self::Disabled, Self::Starting, Self::Ready, Self::NeedsAuthorization, Self::Failed, Self::Retrying];

    /// For programs: REST, the control socket, metrics and JSON on the command line.
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

    /// The same for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::NeedsAuthorization => "needs authorization",
            state => state.as_str(),
        }
    }

    /// Also understands `backing_off`, which older yards say for `retrying`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "backing_off" => Some(Self::Retrying),
            word => Self::ALL.into_iter().find(|state| state.as_str() == word),
        }
    }
}

/// How we stand with a source that may want to know who we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthStatus {
    /// There is nothing to log in to: it is no server over HTTP, or one that does not ask.
    Unsupported,
    NotLoggedIn,
    BearerToken,
    OAuth,
}

impl AuthStatus {
    pub const ALL: [Self; 4] = [Self::Unsupported, Self::NotLoggedIn, Self::BearerToken, Self::OAuth];

    /// For programs. The words are those of `auth_statuses` in the list that command-line assistants have.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::NotLoggedIn => "not_logged_in",
            Self::BearerToken => "bearer_token",
            Self::OAuth => "o_auth",
        }
    }

    /// The same for people, where there is anything to say.
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

/// One source at one moment.
#[derive(Debug, Clone)]
pub struct SourceStatus {
    pub state: SourceState,
    /// Why it is not ready, if it is not.
    pub reason: Option<String>,
    /// What a person can do about that, where the reason does not say it.
    pub suggestion: Option<String>,
    /// The last lines that its process wrote to standard error.
    pub stderr: Vec<String>,
    /// What is odd about what it offers: things that were left out, or that somebody else offers too.
    pub warnings: Vec<String>,
    pub transport: Option<&'static str>,
    /// The version of the protocol that is spoken with it.
    pub version: Option<&'static str>,
    /// The era of that version: `legacy` or `modern`.
    pub era: Option<&'static str>,
    pub authorization: AuthStatus,
    /// Who it says it is.
    pub server_info: Option<Raw>,
    /// Since when it is in this state.
    pub since: Instant,
    /// When it is tried again.
    pub retry_at: Option<Instant>,
    /// Whether it has ever been ready, or failed: nobody waits for it any more.
    pub startup_complete: bool,
}

impl SourceStatus {
    /// For sources that are always there.
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
