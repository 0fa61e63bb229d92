//! Fetching the keys of an issuer over HTTP.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::redirect::Policy;

use super::JwksFetcher;

/// Time limit for connecting to an issuer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for fetching a key set.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a key set.
const LARGEST_KEY_SET: usize = 1024 * 1024;

/// Fetches key sets over HTTP.
#[derive(Debug, Clone)]
pub struct JwksClient {
    tls: rustls::ClientConfig,
    /// Built for the first request, because most yards do not use JWTs.
    http: Arc<OnceLock<reqwest::Client>>,
}

impl JwksClient {
    pub fn new(tls: rustls::ClientConfig) -> Self {
        Self { tls, http: Arc::default() }
    }

    /// Returns a function that fetches the key set at `url`.
    pub fn fetcher(&self, url: &str) -> JwksFetcher {
        let (client, url) = (self.clone(), url.to_owned());
        Arc::new(move || {
            let (client, url) = (client.clone(), url.clone());
            Box::pin(async move {
                let request = client.http()?.get(&url).header("accept", "application/json");
                let response = request.timeout(FETCH_TIMEOUT).send().await.map_err(redact_url)?;
                if !response.status().is_success() {
                    return Err(format!("HTTP status {}", response.status()));
                }
                read_key_set(response).await
            })
        })
    }

    /// Returns the HTTP client. It does not follow redirects: keys come only from the configured
    /// URL.
    fn http(&self) -> Result<&reqwest::Client, String> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        let http = reqwest::Client::builder().tls_backend_preconfigured(self.tls.clone());
        let http = http.redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT).build();
        let http = http.map_err(|error| format!("cannot create the HTTP client: {error}"))?;
        Ok(self.http.get_or_init(|| http))
    }
}

/// Removes the URL from the error, because it may contain a secret.
fn redact_url(error: reqwest::Error) -> String {
    error.without_url().to_string()
}

async fn read_key_set(mut response: reqwest::Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(redact_url)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LARGEST_KEY_SET {
            return Err(format!("the key set exceeds the limit of {LARGEST_KEY_SET} bytes"));
        }
    }
    String::from_utf8(bytes).map_err(|_| "the key set is not UTF-8 text".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::http::{StatusCode, header};
    use axum::routing::get;
    use rustls::RootCertStore;

    use super::JwksClient;

    /// Starts an issuer with its keys at `/keys`. `/302`, `/307` and `/308` redirect there.
    async fn start_issuer() -> String {
        let redirect = |status: StatusCode| get(async move || (status, [(header::LOCATION, "/keys")]));
        let issuer = Router::new()
            .route("/keys", get(async || r#"{"keys":[]}"#))
            .route("/302", redirect(StatusCode::FOUND))
            .route("/307", redirect(StatusCode::TEMPORARY_REDIRECT))
            .route("/308", redirect(StatusCode::PERMANENT_REDIRECT));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, issuer).await });
        format!("http://{address}")
    }

    fn client() -> JwksClient {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        JwksClient::new(tls.unwrap().with_root_certificates(RootCertStore::empty()).with_no_client_auth())
    }

    #[tokio::test]
    async fn keys_are_not_fetched_from_where_their_address_redirects_to() {
        let (issuer, client) = (start_issuer().await, client());
        for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
            let url = format!("{issuer}/{}", &status[..3]);
            assert_eq!(client.fetcher(&url)().await, Err(format!("HTTP status {status}")));
        }
        // The redirect target itself is a valid key set.
        let url = format!("{issuer}/keys");
        assert_eq!(client.fetcher(&url)().await, Ok(r#"{"keys":[]}"#.to_owned()));
    }
}
