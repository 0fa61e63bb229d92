//! Exchanging a refresh token for a new token, without user interaction.

use reqwest::Url;
use rmcp::transport::auth::{
    AuthError as RmcpError, CredentialStore, InMemoryCredentialStore, OAuthClientConfig, StoredCredentials,
};

use super::AuthError;
use super::discovery::{discover_authorization_server, summarize_error};
use super::record::{CredentialRecord, OAuthToken};

/// The result of a refresh.
pub(crate) enum RefreshOutcome {
    Renewed(OAuthToken),
    /// The user must log in again.
    Refused,
}

pub(crate) async fn refresh(resource: &Url, record: &CredentialRecord) -> Result<RefreshOutcome, AuthError> {
    let (Some(client), Some(token)) = (&record.client, &record.token) else {
        return Ok(RefreshOutcome::Refused);
    };
    if !token.can_be_refreshed() {
        return Ok(RefreshOutcome::Refused);
    }
    let mut server = discover_authorization_server(resource, record.challenge.as_deref()).await?;
    if server.issuer() != client.issuer {
        // The resource has moved to another authorization server, which must not see this token.
        return Ok(RefreshOutcome::Refused);
    }
    let failed = |error: RmcpError| AuthError::Token(summarize_error(&error));
    let mut config = OAuthClientConfig::new(client.id.as_str(), client.redirect.as_str());
    config.client_secret.clone_from(&client.secret);
    server.manager.configure_client(config).map_err(failed)?;
    let store = InMemoryCredentialStore::new();
    let granted = token.granted_scopes(&record.requested);
    store
        .save(StoredCredentials::new(client.id.clone(), Some(token.to_rmcp()?), granted, None))
        .await
        .map_err(failed)?;
    server.manager.set_credential_store(store);
    match server.manager.refresh_token().await {
        Ok(response) => Ok(RefreshOutcome::Renewed(OAuthToken::from_rmcp(&response)?)),
        Err(RmcpError::AuthorizationRequired | RmcpError::TokenRefreshRejected(_)) => {
            Ok(RefreshOutcome::Refused)
        }
        Err(error) => Err(failed(error)),
    }
}
