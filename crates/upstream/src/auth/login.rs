//! Logging in: a person says yes in a browser, and the answer comes back to a port of ours or is pasted.

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

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// What we are called where we register.
const NAME: &str = "Toolyard";

/// Shows a person where to go. Must not wait: it is called while the answer is listened for.
pub type LoginPrompter = Arc<dyn Fn(LoginPrompt) + Send + Sync>;

/// Where a person has to go to log in.
pub struct LoginPrompt {
    pub server: SourceName,
    /// To be opened in a browser.
    pub address: String,
    /// Takes the address that the browser was sent to in the end, where that browser is on another machine.
    pub pasted: mpsc::Sender<String>,
}

impl fmt::Debug for LoginPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginPrompt").field("server", &self.server).finish_non_exhaustive()
    }
}

/// What a login is made with.
pub(crate) struct LoginFlow<'a> {
    pub(crate) server: &'a SourceName,
    pub(crate) resource: &'a Url,
    pub(crate) oauth: &'a OAuthSettings,
    /// Where a description of us is published, for authorization servers that read such.
    pub(crate) client_metadata_url: Option<&'a str>,
    pub(crate) previous: &'a CredentialRecord,
}

impl LoginFlow<'_> {
    /// Asks the person; gives back what is to be kept.
    pub(crate) async fn run(&self, person: &LoginPrompter) -> Result<CredentialRecord, AuthError> {
        let mut found =
            discover_authorization_server(self.resource, self.previous.challenge.as_deref()).await?;
        let known = self.previous.client.as_ref().filter(|client| client.issuer == found.issuer());
        let callback =
            self.bind_callback(known).await.map_err(|error| AuthError::Callback(error.to_string()))?;
        let requested = self.scopes(&found, known.is_some()).await;
        let scopes: Vec<&str> = requested.iter().map(String::as_str).collect();
        let client = self.resolve_client(&mut found, known, &callback.redirect_uri(), &scopes).await?;
        let failed = |error: RmcpError| AuthError::Discovery(summarize_error(&error));
        let address = found.manager.get_authorization_url(&scopes).await.map_err(failed)?;
        let state = Url::parse(&address).ok().and_then(|url| {
            url.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
        });
        let state = state.unwrap_or_default();
        let (pasted, pastes) = mpsc::channel(1);
        person(LoginPrompt { server: self.server.clone(), address, pasted });
        let answer = tokio::time::timeout(PATIENCE, wait_for_response(&callback, pastes, &state)).await;
        let answer = answer.map_err(|_| AuthError::LoginTimedOut)??;
        let exchange =
            found.manager.exchange_code_for_token_with_issuer(&answer.code, &state, answer.issuer.as_deref());
        // The library writes the code into its log, which is no place for it.
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

    /// The port that is configured, or the one that we are registered with, or any.
    async fn bind_callback(&self, known: Option<&KnownClient>) -> io::Result<CallbackListener> {
        if let Some(port) = self.oauth.callback_port {
            return CallbackListener::bind(port).await;
        }
        let before = known.and_then(|client| redirect_port(&client.redirect));
        match before {
            Some(port) => match CallbackListener::bind(port).await {
                Ok(callback) => Ok(callback),
                Err(_) => CallbackListener::bind(0).await,
            },
            None => CallbackListener::bind(0).await,
        }
    }

    /// What the server asks for, and everything that it was given before, so that nothing is lost on the way.
    async fn scopes(&self, found: &AuthorizationServer, same_issuer: bool) -> Vec<String> {
        let said = match self.oauth.scopes.is_empty() {
            true => found.manager.select_initial_scopes(&[]).await,
            false => self.oauth.scopes.clone(),
        };
        let before: &[String] = if same_issuer { &self.previous.requested } else { &[] };
        let mut scopes = merge_scopes(&[before, &said, &self.previous.missing]);
        if !scopes.is_empty() && found.offers_offline_access() {
            scopes = merge_scopes(&[&scopes, &["offline_access".to_owned()]]);
        }
        scopes
    }

    /// Who we are to this authorization server: as configured, as published, as we were before, or as of now.
    async fn resolve_client(
        &self,
        found: &mut AuthorizationServer,
        known: Option<&KnownClient>,
        redirect: &str,
        scopes: &[&str],
    ) -> Result<KnownClient, AuthError> {
        let (issuer, redirect) = (found.issuer(), redirect.to_owned());
        let secret = self.oauth.client_secret.as_ref().map(|secret| secret.reveal().to_owned());
        let client = if let Some(id) = &self.oauth.client_id {
            KnownClient { issuer, id: id.clone(), secret, redirect }
        } else if let Some(document) =
            self.client_metadata_url.filter(|_| found.supports_client_metadata_documents())
        {
            KnownClient { issuer, id: document.to_owned(), secret: None, redirect }
        } else if let Some(known) = known.filter(|known| known.redirect == redirect) {
            known.clone()
        } else if found.metadata.registration_endpoint.is_none() {
            return Err(AuthError::Client(
                "its authorization server registers no clients by itself".to_owned(),
            ));
        } else {
            let registered = found.manager.register_client(NAME, &redirect, scopes).await;
            let registered = registered.map_err(|error| match found.source {
                DiscoverySource::Announced => AuthError::Client(summarize_error(&error)),
                DiscoverySource::Guessed => {
                    AuthError::Discovery("there is none, as far as one can see".to_owned())
                }
            })?;
            KnownClient { issuer, id: registered.client_id, secret: registered.client_secret, redirect }
        };
        let mut config = OAuthClientConfig::new(client.id.as_str(), client.redirect.as_str());
        config.client_secret.clone_from(&client.secret);
        found.manager.configure_client(config).map_err(|error| AuthError::Client(summarize_error(&error)))?;
        Ok(client)
    }
}

/// The first answer, whichever way it comes.
async fn wait_for_response(
    callback: &CallbackListener,
    mut pastes: mpsc::Receiver<String>,
    state: &str,
) -> Result<AuthorizationResponse, AuthError> {
    let pasted = async {
        match pastes.recv().await {
            Some(address) => parse_redirect(&address, state).unwrap_or(Err(AuthError::InvalidRedirect)),
            // Nobody will paste anything.
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        answer = callback.wait_for_response(state) => answer,
        answer = pasted => answer,
    }
}
