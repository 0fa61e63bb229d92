//! A token for the client itself: no person is asked. With a secret this is rmcp's work; with a key it is ours.

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
/// No token is larger.
const LONGEST: usize = 1024 * 1024;

pub(crate) async fn request_client_token(
    resource: &Url,
    oauth: &OAuthSettings,
    challenge: Option<&str>,
    scopes: &[String],
) -> Result<OAuthToken, AuthError> {
    let (Some(id), Some(secret)) = (&oauth.client_id, &oauth.client_secret) else {
        return Err(AuthError::Client("client credentials need a client_id and a client_secret".to_owned()));
    };
    let mut found = discover_authorization_server(resource, challenge).await?;
    let resource = found.resource_identifier(resource).await;
    let scopes = match scopes.is_empty() {
        true => found.manager.select_initial_scopes(&[]).await,
        false => scopes.to_vec(),
    };
    // A refresh token would be for nothing: the credentials themselves are at hand.
    let scopes: Vec<String> = scopes.into_iter().filter(|scope| scope != "offline_access").collect();
    if is_private_key(secret.reveal()) {
        return request_with_assertion(&resource, &found, (id, secret.reveal()), &scopes).await;
    }
    let config = ClientCredentialsConfig::ClientSecret {
        client_id: id.clone(),
        client_secret: secret.reveal().to_owned(),
        scopes,
        resource: Some(resource),
    };
    let failed = |error: rmcp::transport::auth::AuthError| AuthError::Token(summarize_error(&error));
    found.manager.validate_client_credentials_metadata(&config).map_err(failed)?;
    found.manager.configure_client_credentials(&config).map_err(failed)?;
    OAuthToken::from_rmcp(&found.manager.exchange_client_credentials(&config).await.map_err(failed)?)
}

async fn request_with_assertion(
    resource: &str,
    found: &AuthorizationServer,
    (id, key): (&str, &str),
    scopes: &[String],
) -> Result<OAuthToken, AuthError> {
    if found.metadata.additional_fields.contains_key("token_endpoint_auth_methods_supported")
        && !found.metadata_lists("token_endpoint_auth_methods_supported", "private_key_jwt")
    {
        return Err(AuthError::Client("its authorization server takes no signed assertions".to_owned()));
    }
    let signed = sign_client_assertion(key, id, &found.issuer())?;
    let failed = |error: &reqwest::Error| AuthError::Token(error.to_string());
    // An assertion is for this address and must not follow a redirect to another.
    let http = reqwest::Client::builder().redirect(Policy::none()).timeout(PATIENCE).build();
    let request = http.map_err(|error| failed(&error))?.post(&found.metadata.token_endpoint);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let request = request.header("accept", "application/json").body(form(&signed, resource, scopes));
    let mut response = request.send().await.map_err(|error| failed(&error))?;
    let status = response.status();
    let mut answer = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| failed(&error))? {
        answer.extend_from_slice(&piece);
        if answer.len() > LONGEST {
            return Err(AuthError::Token("its answer has no end".to_owned()));
        }
    }
    if !status.is_success() {
        return Err(AuthError::Token(format!(
            "its authorization server answered {status}{}",
            token_error(&answer)
        )));
    }
    OAuthToken::read(&answer)
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
    // A query is written just as a form is.
    let url = Url::parse_with_params("http://form/", pairs).ok();
    url.and_then(|url| url.query().map(str::to_owned)).unwrap_or_default()
}

/// The error that a token endpoint names.
fn token_error(answer: &[u8]) -> String {
    let answer: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
    let error = answer.get("error").and_then(serde_json::Value::as_str);
    error.map_or_else(String::new, |error| format!(": {}", error.chars().take(100).collect::<String>()))
}
