//! The login flow: the user authorizes the client in a browser, and the response arrives at a
//! loopback port or is pasted.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rmcp::transport::auth::{AuthError as RmcpError, OAuthClientConfig};
use tokio::sync::mpsc;
use toolyard_hub::SourceName;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::AuthError;
use super::callback::{AuthorizationResponse, CallbackListener, parse_redirect, redirect_port};
use super::discovery::{
    AuthorizationServer, DiscoverySource, discover_authorization_server, summarize_error,
};
use super::record::{CredentialRecord, KnownClient, OAuthToken, merge_scopes};
use crate::settings::OAuthSettings;

/// How long the user may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// The client name used for registration.
const NAME: &str = "Toolyard";

/// Shows the login address to the user. It must not block, because the response is awaited only
/// after it returns.
pub type LoginPrompter = Arc<dyn Fn(LoginPrompt) + Send + Sync>;

/// A login for the user to complete.
pub struct LoginPrompt {
    pub server: SourceName,
    /// The address to open in a browser.
    pub address: String,
    /// Accepts the address that the browser was redirected to, for a browser on another machine.
    pub pasted: mpsc::Sender<String>,
}

impl fmt::Debug for LoginPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginPrompt").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The parameters of a login.
pub(crate) struct LoginFlow<'a> {
    pub(crate) server: &'a SourceName,
    pub(crate) resource: &'a Url,
    pub(crate) oauth: &'a OAuthSettings,
    /// URL of the client ID metadata document, for authorization servers that support it.
    pub(crate) client_metadata_url: Option<&'a str>,
    pub(crate) previous: &'a CredentialRecord,
}

impl LoginFlow<'_> {
    /// Prompts the user and returns the credentials to store.
    pub(crate) async fn run(&self, prompter: &LoginPrompter) -> Result<CredentialRecord, AuthError> {
        let mut server =
            discover_authorization_server(self.resource, self.previous.challenge.as_deref()).await?;
        let known = self.previous.client.as_ref().filter(|client| client.issuer == server.issuer());
        let callback =
            self.bind_callback(known).await.map_err(|error| AuthError::Callback(error.to_string()))?;
        let requested = self.scopes(&server, known.is_some()).await;
        let scopes: Vec<&str> = requested.iter().map(String::as_str).collect();
        let client = self.resolve_client(&mut server, known, &callback.redirect_uri(), &scopes).await?;
        let failed = |error: RmcpError| AuthError::Discovery(summarize_error(&error));
        let address = server.manager.get_authorization_url(&scopes).await.map_err(failed)?;
        let state = Url::parse(&address).ok().and_then(|url| {
            url.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
        });
        let state = state.unwrap_or_default();
        let (pasted, pastes) = mpsc::channel(1);
        prompter(LoginPrompt { server: self.server.clone(), address, pasted });
        let redirect = tokio::time::timeout(PATIENCE, wait_for_response(&callback, pastes, &state)).await;
        let redirect = redirect.map_err(|_| AuthError::LoginTimedOut)??;
        let exchange = server.manager.exchange_code_for_token_with_issuer(
            &redirect.code,
            &state,
            redirect.issuer.as_deref(),
        );
        // rmcp logs the authorization code, which must not appear in logs.
        let response = exchange.with_subscriber(NoSubscriber::default()).await;
        let response = response.map_err(|error| AuthError::Token(summarize_error(&error)))?;
        Ok(CredentialRecord {
            challenge: self.previous.challenge.clone(),
            client: Some(client),
            token: Some(OAuthToken::from_rmcp(&response)?),
            requested,
            missing: Vec::new(),
        })
    }

    /// Binds the configured port, the port that the client is registered with, or any free port.
    async fn bind_callback(&self, known: Option<&KnownClient>) -> io::Result<CallbackListener> {
        if let Some(port) = self.oauth.callback_port {
            return CallbackListener::bind(port).await;
        }
        match known.and_then(|client| redirect_port(&client.redirect)) {
            Some(port) => match CallbackListener::bind(port).await {
                Ok(callback) => Ok(callback),
                Err(_) => CallbackListener::bind(0).await,
            },
            None => CallbackListener::bind(0).await,
        }
    }

    /// Returns the scopes to request: those that the server requires, and all that were requested
    /// before, so that a login never loses a scope.
    async fn scopes(&self, server: &AuthorizationServer, same_issuer: bool) -> Vec<String> {
        let initial = match self.oauth.scopes.is_empty() {
            true => server.manager.select_initial_scopes(&[]).await,
            false => self.oauth.scopes.clone(),
        };
        let previous: &[String] = if same_issuer { &self.previous.requested } else { &[] };
        let mut scopes = merge_scopes(&[previous, &initial, &self.previous.missing]);
        if !scopes.is_empty() && server.offers_offline_access() {
            scopes = merge_scopes(&[&scopes, &["offline_access".to_owned()]]);
        }
        scopes
    }

    /// Selects the client for this authorization server: the configured one, the published metadata
    /// document, the client of the previous login, or a new registration.
    async fn resolve_client(
        &self,
        server: &mut AuthorizationServer,
        known: Option<&KnownClient>,
        redirect: &str,
        scopes: &[&str],
    ) -> Result<KnownClient, AuthError> {
        let (issuer, redirect) = (server.issuer(), redirect.to_owned());
        let secret = self.oauth.client_secret.as_ref().map(|secret| secret.reveal().to_owned());
        let client = if let Some(id) = &self.oauth.client_id {
            KnownClient { issuer, id: id.clone(), secret, redirect }
        } else if let Some(document) =
            self.client_metadata_url.filter(|_| server.supports_client_metadata_documents())
        {
            KnownClient { issuer, id: document.to_owned(), secret: None, redirect }
        } else if let Some(known) = known.filter(|known| known.redirect == redirect) {
            known.clone()
        } else if server.metadata.registration_endpoint.is_none() {
            return Err(AuthError::Client(
                "the authorization server does not support dynamic client registration".to_owned(),
            ));
        } else {
            let registered = server.manager.register_client(NAME, &redirect, scopes).await;
            let registered = registered.map_err(|error| match server.source {
                DiscoverySource::Announced => AuthError::Client(summarize_error(&error)),
                DiscoverySource::Guessed => AuthError::Discovery("the MCP server announces none".to_owned()),
            })?;
            KnownClient { issuer, id: registered.client_id, secret: registered.client_secret, redirect }
        };
        let mut config = OAuthClientConfig::new(client.id.as_str(), client.redirect.as_str());
        config.client_secret.clone_from(&client.secret);
        server
            .manager
            .configure_client(config)
            .map_err(|error| AuthError::Client(summarize_error(&error)))?;
        Ok(client)
    }
}

/// Waits for the first response, redirected or pasted.
async fn wait_for_response(
    callback: &CallbackListener,
    mut pastes: mpsc::Receiver<String>,
    state: &str,
) -> Result<AuthorizationResponse, AuthError> {
    let pasted = async {
        match pastes.recv().await {
            Some(address) => parse_redirect(&address, state).unwrap_or(Err(AuthError::InvalidRedirect)),
            // The sender is gone, so no address can be pasted.
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        response = callback.wait_for_response(state) => response,
        response = pasted => response,
    }
}
