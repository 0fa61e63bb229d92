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
    BackingOff,
}

impl SourceState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::NeedsAuthorization => "needs authorization",
            Self::Failed => "failed",
            Self::BackingOff => "backing off",
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
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::NotLoggedIn => "not logged in",
            Self::BearerToken => "bearer token",
            Self::OAuth => "OAuth",
        }
    }

    /// The same where there is anything to say.
    pub fn word(self) -> Option<&'static str> {
        (self != Self::Unsupported).then(|| self.as_str())
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
    pub settled: bool,
}

impl SourceStatus {
    /// For sources that are always there.
    pub fn ready() -> Self {
        Self::new(SourceState::Ready, true)
    }

    pub fn new(state: SourceState, settled: bool) -> Self {
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
            settled,
        }
    }
}
