//! Authentication with HTTP servers: static tokens, and OAuth 2.1 with rmcp. No user is prompted
//! unless the server sends a challenge first.

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

/// What authorization needs besides the settings of one server.
#[derive(Clone)]
pub struct AuthContext {
    pub store: CredentialStore,
    /// URL of the client ID metadata document of this client, if one is published.
    pub client_metadata_url: Option<String>,
    /// Shows the login address to a user. Without it, the server stays in
    /// `needs_authorization` until a login arrives by other means.
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

/// Why a server cannot be used with the current credentials, or why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("login required")]
    LoginNeeded,
    #[error("login with additional scopes required: {0}")]
    ScopeNeeded(String),
    #[error("the server rejected the configured token")]
    TokenRefused,
    #[error("the server rejected every access token that Toolyard obtained for it")]
    TokensRejected,
    #[error("the server requires the scopes `{0}`, which were already requested")]
    ScopeRejected(String),
    #[error("the server denied access")]
    Forbidden,
    #[error("login is not available: {0}")]
    NothingToDo(&'static str),
    #[error("cannot use the authorization server: {0}")]
    Discovery(String),
    #[error("no usable OAuth client: {0}")]
    Client(String),
    #[error("cannot use the private key: {0}")]
    Key(String),
    #[error("cannot listen for the redirect of the browser: {0}")]
    Callback(String),
    #[error("authorization denied: {0}")]
    Refused(String),
    #[error("the pasted address is not the one to which this login redirected the browser")]
    InvalidRedirect,
    #[error("no login within 5 minutes")]
    LoginTimedOut,
    #[error("cannot obtain a token: {0}")]
    Token(String),
    #[error("cannot access the stored credentials: {0}")]
    Store(String),
    #[error("cannot read the stored login: {0}")]
    UnreadableLogin(String),
    #[error("cannot connect: {0}")]
    Unreachable(String),
}

impl AuthError {
    /// Returns whether a retry is pointless until a user does something.
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
            | Self::LoginTimedOut
            | Self::UnreadableLogin(_) => true,
            Self::Discovery(_)
            | Self::Callback(_)
            | Self::Token(_)
            | Self::Store(_)
            | Self::Unreachable(_) => false,
        }
    }

    /// Returns what the user can do about it, if anything.
    pub fn suggestion(&self, server: &str) -> Option<String> {
        match self {
            Self::LoginNeeded
            | Self::ScopeNeeded(_)
            | Self::LoginTimedOut
            | Self::InvalidRedirect
            | Self::UnreadableLogin(_)
            | Self::Refused(_) => Some(format!("run `toolyard login {server}`")),
            Self::TokenRefused => Some("check the token and the headers in the configuration".to_owned()),
            Self::Discovery(_) => Some(
                "if the server requires a token that a login cannot provide, set `bearer_token_env_var` or \
                 `headers` in the configuration"
                    .to_owned(),
            ),
            Self::Client(_) => Some("set `oauth.client_id` in the configuration".to_owned()),
            Self::Callback(_) => Some("set `oauth.callback_port` to a free port".to_owned()),
            _ => None,
        }
    }
}

/// The challenge of a server that rejected a request with 401 or 403.
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

    /// Returns whether the token is valid but lacks a scope.
    fn wants_scope(&self, resource: &Url) -> bool {
        self.status == 403 && self.params(resource).is_insufficient_scope()
    }

    fn scopes(&self, resource: &Url) -> Vec<String> {
        let scope = self.params(resource).scope.unwrap_or_default();
        scope.split_whitespace().map(str::to_owned).collect()
    }
}

/// Logs in to a server: obtains its challenge, prompts the user, waits for the response and stores
/// the credentials. The user is not prompted if the server does not require authentication.
pub async fn login(
    settings: &ServerSettings,
    common: &UpstreamContext,
    prompter: &LoginPrompter,
) -> Result<(), AuthError> {
    let TransportSettings::Url(url) = &settings.transport else {
        return Err(AuthError::NothingToDo("the server is a local process"));
    };
    let authorizer = Authorizer::new(settings, &common.auth);
    // Connects without credentials to obtain the challenge.
    let anonymous = UpstreamContext { auth: AuthContext::default(), ..common.clone() };
    let anonymous_authorizer = Authorizer::new(settings, &anonymous.auth);
    let probe = async {
        let (live, _notifications) = connect(
            &anonymous,
            settings,
            &anonymous_authorizer,
            &ClientCapabilities::default(),
            settings.era,
            &std::sync::Arc::default(),
        )
        .await?;
        list::fetch_offer(&live, settings, &list::ServerListKind::ALL).await.map_err(ConnectError::from)
    };
    let challenge = match tokio::time::timeout(settings.start_timeout, probe).await {
        Err(_) => {
            let seconds = settings.start_timeout.as_secs_f64();
            return Err(AuthError::Unreachable(format!("no response within {seconds} s")));
        }
        Ok(Ok(_)) => None,
        Ok(Err(error)) => match error.challenge {
            Some(challenge) => Some(challenge),
            None => return Err(AuthError::Unreachable(error.reason)),
        },
    };
    tracing::debug!(server = %settings.name, url = url.url, challenged = challenge.is_some(), "logging in");
    authorizer.log_in(challenge.as_ref(), prompter).await
}

/// Deletes the stored credentials of a server. Returns whether there were any.
pub async fn logout(settings: &ServerSettings, common: &UpstreamContext) -> Result<bool, AuthError> {
    Authorizer::new(settings, &common.auth).log_out().await
}

/// Returns how the yard is authenticated with a server, without contacting the server.
pub async fn auth_status(
    settings: &ServerSettings,
    common: &UpstreamContext,
) -> Result<AuthStatus, AuthError> {
    Authorizer::new(settings, &common.auth).status().await
}
