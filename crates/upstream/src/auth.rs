//! Who we are to servers over HTTP: static tokens, and OAuth 2.1 with rmcp's help. Nothing is asked of anybody
//! unless the server asks first.

mod assertion;
mod authorizer;
mod callback;
mod client_credentials;
mod discovery;
mod login;
mod method;
mod record;
mod refresh;
mod store;

use std::fmt;

use reqwest::Url;
use rmcp::transport::auth::WWWAuthenticateParams;
use toolyard_hub::{AuthStatus, ClientCapabilities};
use toolyard_wire::WireError;

use crate::connect::{ConnectError, UpstreamContext, connect};
use crate::list;
use crate::settings::{ServerSettings, TransportSettings};
pub(crate) use authorizer::Authorizer;
pub use login::{LoginPrompt, LoginPrompter};
pub use store::CredentialStore;

/// What authorisation needs beside the settings of one server.
#[derive(Clone)]
pub struct AuthContext {
    pub store: CredentialStore,
    /// Where a description of this client is published (a client-id metadata document), if it is.
    pub client_metadata_url: Option<String>,
    /// Who is asked when a server wants a person to log in. Without one, the server waits until somebody does.
    pub login_prompter: Option<LoginPrompter>,
}

impl Default for AuthContext {
    fn default() -> Self {
        Self { store: CredentialStore::memory(), client_metadata_url: None, login_prompter: None }
    }
}

impl fmt::Debug for AuthContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthContext").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Why we are not authorised.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("it wants somebody to log in")]
    LoginNeeded,
    #[error("it wants somebody to log in again, for {0}")]
    ScopeNeeded(String),
    #[error("it does not accept the token that is configured")]
    TokenRefused,
    #[error("it does not accept any token that we get")]
    TokensRejected,
    #[error("it demands {0}, although that was granted")]
    ScopeRejected(String),
    #[error("it forbids this")]
    Forbidden,
    #[error("there is nothing to log in to: {0}")]
    NothingToDo(&'static str),
    #[error("its authorization server cannot be used: {0}")]
    Discovery(String),
    #[error("there is no client to be: {0}")]
    Client(String),
    #[error("the private key cannot be used: {0}")]
    Key(String),
    #[error("the browser's answer cannot be listened for: {0}")]
    Callback(String),
    #[error("it was refused: {0}")]
    Refused(String),
    #[error("that is not the address that the browser was sent to")]
    InvalidRedirect,
    #[error("nobody logged in within 5 minutes")]
    LoginTimedOut,
    #[error("no token was given: {0}")]
    Token(String),
    #[error("credentials cannot be kept: {0}")]
    Store(String),
    #[error("it cannot be connected to: {0}")]
    Unreachable(String),
}

impl AuthError {
    /// Trying again changes nothing until a person does something.
    pub(crate) fn requires_user_action(&self) -> bool {
        match self {
            Self::LoginNeeded
            | Self::ScopeNeeded(_)
            | Self::TokenRefused
            | Self::TokensRejected
            | Self::ScopeRejected(_)
            | Self::Forbidden
            | Self::NothingToDo(_)
            | Self::Client(_)
            | Self::Key(_)
            | Self::Refused(_)
            | Self::InvalidRedirect
            | Self::LoginTimedOut => true,
            Self::Discovery(_)
            | Self::Callback(_)
            | Self::Token(_)
            | Self::Store(_)
            | Self::Unreachable(_) => false,
        }
    }

    /// What the person can do, if there is something.
    pub fn suggestion(&self, server: &str) -> Option<String> {
        match self {
            Self::LoginNeeded
            | Self::ScopeNeeded(_)
            | Self::LoginTimedOut
            | Self::InvalidRedirect
            | Self::Refused(_) => Some(format!("run: toolyard login {server}")),
            Self::TokenRefused => Some("look at the token and the headers in the configuration".to_owned()),
            Self::Discovery(_) => Some(
                "if it wants a token that does not come of a login, name it with bearer_token_env_var or headers \
                 in the configuration"
                    .to_owned(),
            ),
            Self::Client(_) => Some("set oauth.client_id in the configuration".to_owned()),
            Self::Callback(_) => Some("set oauth.callback_port to a free port".to_owned()),
            _ => None,
        }
    }
}

/// What a server said when it wanted to know who we are.
#[derive(Debug, Clone)]
pub(crate) struct Challenge {
    pub(crate) status: u16,
    pub(crate) text: Option<String>,
}

impl Challenge {
    pub(crate) fn from_error(failure: &WireError) -> Option<Self> {
        match failure {
            WireError::Unauthorized { challenge, status } => {
                Some(Self { status: *status, text: challenge.clone() })
            }
            _ => None,
        }
    }

    fn params(&self, resource: &Url) -> WWWAuthenticateParams {
        self.text.as_deref().map(|text| WWWAuthenticateParams::parse(text, resource)).unwrap_or_default()
    }

    /// Our token is fine, but does not go far enough.
    fn wants_scope(&self, resource: &Url) -> bool {
        self.status == 403 && self.params(resource).is_insufficient_scope()
    }

    fn scopes(&self, resource: &Url) -> Vec<String> {
        let scope = self.params(resource).scope.unwrap_or_default();
        scope.split_whitespace().map(str::to_owned).collect()
    }
}

/// Logs in to a server: finds out what it wants, shows the person where to go, waits for the answer, and keeps what
/// comes of it. Nobody is asked if the server does not ask.
pub async fn login(
    settings: &ServerSettings,
    common: &UpstreamContext,
    person: &LoginPrompter,
) -> Result<(), AuthError> {
    let TransportSettings::Url(url) = &settings.transport else {
        return Err(AuthError::NothingToDo("it is a process of our own"));
    };
    let kept = Authorizer::new(settings, &common.auth);
    // What the server says to somebody whom it does not know.
    let stranger = UpstreamContext { auth: AuthContext::default(), ..common.clone() };
    let unknown = Authorizer::new(settings, &stranger.auth);
    let asked = async {
        let (live, _heard) = connect(
            &stranger,
            settings,
            &unknown,
            &ClientCapabilities::default(),
            settings.era,
            &std::sync::Arc::default(),
        )
        .await?;
        list::fetch_offer(&live, settings, &list::ServerListKind::ALL).await.map_err(ConnectError::from)
    };
    let asked = tokio::time::timeout(settings.start_timeout, asked).await;
    let challenge = match asked {
        Err(_) => return Err(AuthError::Unreachable("it did not answer in time".to_owned())),
        Ok(Ok(_)) => None,
        Ok(Err(refused)) => match refused.challenge {
            Some(challenge) => Some(challenge),
            None => return Err(AuthError::Unreachable(refused.reason)),
        },
    };
    tracing::debug!(server = %settings.name, url = url.url, asks = challenge.is_some(), "logging in");
    kept.log_in(challenge.as_ref(), person).await
}

/// Forgets what was kept for a server; false if there was nothing.
pub async fn logout(settings: &ServerSettings, common: &UpstreamContext) -> Result<bool, AuthError> {
    Authorizer::new(settings, &common.auth).log_out().await
}

/// How we stand with a server, as far as can be said without asking it.
pub async fn auth_status(
    settings: &ServerSettings,
    common: &UpstreamContext,
) -> Result<AuthStatus, AuthError> {
    Authorizer::new(settings, &common.auth).status().await
}
