//! The client credentials grant, which needs no user. rmcp handles client secrets; this module
//! handles private keys.

use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::Policy;
use rmcp::transport::auth::ClientCredentialsConfig;

use super::AuthError;
use super::assertion::{is_private_key, sign_client_assertion};
use super::discovery::{AuthorizationServer, discover_authorization_server, summarize_error};
use super::record::OAuthToken;
use crate::settings::OAuthSettings;

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const PATIENCE: Duration = Duration::from_secs(30);
/// Size limit of a token response.
const LONGEST: usize = 1024 * 1024;

pub(crate) async fn request_client_token(
    resource: &Url,
    oauth: &OAuthSettings,
    challenge: Option<&str>,
    scopes: &[String],
) -> Result<OAuthToken, AuthError> {
    let (Some(id), Some(secret)) = (&oauth.client_id, &oauth.client_secret) else {
        return Err(AuthError::Client(
            "client credentials require `client_id` and `client_secret`".to_owned(),
        ));
    };
    let mut server = discover_authorization_server(resource, challenge).await?;
    let resource = server.resource_identifier(resource).await;
    let scopes = match scopes.is_empty() {
        true => server.manager.select_initial_scopes(&[]).await,
        false => scopes.to_vec(),
    };
    // A refresh token is not needed, because the credentials themselves are available.
    let scopes: Vec<String> = scopes.into_iter().filter(|scope| scope != "offline_access").collect();
    if is_private_key(secret.reveal()) {
        return request_with_assertion(&resource, &server, (id, secret.reveal()), &scopes).await;
    }
    let config = ClientCredentialsConfig::ClientSecret {
        client_id: id.clone(),
        client_secret: secret.reveal().to_owned(),
        scopes,
        resource: Some(resource),
    };
    let failed = |error: rmcp::transport::auth::AuthError| AuthError::Token(summarize_error(&error));
    server.manager.validate_client_credentials_metadata(&config).map_err(failed)?;
    server.manager.configure_client_credentials(&config).map_err(failed)?;
    OAuthToken::from_rmcp(&server.manager.exchange_client_credentials(&config).await.map_err(failed)?)
}

async fn request_with_assertion(
    resource: &str,
    server: &AuthorizationServer,
    (id, key): (&str, &str),
    scopes: &[String],
) -> Result<OAuthToken, AuthError> {
    if server.metadata.additional_fields.contains_key("token_endpoint_auth_methods_supported")
        && !server.metadata_lists("token_endpoint_auth_methods_supported", "private_key_jwt")
    {
        return Err(AuthError::Client(
            "the authorization server does not support `private_key_jwt`".to_owned(),
        ));
    }
    let signed = sign_client_assertion(key, id, &server.issuer())?;
    let failed = |error: &reqwest::Error| AuthError::Token(error.to_string());
    // An assertion is bound to this endpoint and must not follow a redirect.
    let http = reqwest::Client::builder().redirect(Policy::none()).timeout(PATIENCE).build();
    let request = http.map_err(|error| failed(&error))?.post(&server.metadata.token_endpoint);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let request = request.header("accept", "application/json").body(form(&signed, resource, scopes));
    let mut response = request.send().await.map_err(|error| failed(&error))?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST {
            return Err(AuthError::Token(format!("the response exceeds the limit of {LONGEST} bytes")));
        }
    }
    if !status.is_success() {
        return Err(AuthError::Token(format!(
            "the authorization server returned HTTP status {status}{}",
            token_error(&body)
        )));
    }
    OAuthToken::read(&body)
}

fn form(signed: &str, resource: &str, scopes: &[String]) -> String {
    let scopes = scopes.join(" ");
    let mut pairs = vec![
        ("grant_type", "client_credentials"),
        ("client_assertion_type", ASSERTION),
        ("client_assertion", signed),
        ("resource", resource),
    ];
    if !scopes.is_empty() {
        pairs.push(("scope", &scopes));
    }
    // Queries and forms have the same encoding.
    let url = Url::parse_with_params("http://form/", pairs).ok();
    url.and_then(|url| url.query().map(str::to_owned)).unwrap_or_default()
}

/// Returns the error code in the response of a token endpoint.
fn token_error(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let error = body.get("error").and_then(serde_json::Value::as_str);
    error.map_or_else(String::new, |error| format!(": {}", error.chars().take(100).collect::<String>()))
}
