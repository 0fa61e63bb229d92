//! Access tokens of the client credentials flow. A token is fetched once however many calls wait
//! for it, cached until shortly before it expires, and fetched again when a server rejects it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use reqwest::Url;
use serde::Deserialize;
use tokio::time::Instant;
use toolyard_hub::{ErrorKind, HubError, Secret};

use super::TokenVersion;
use crate::clients::{HttpClients, root_cause};
use crate::host_policy::{AllowedHosts, redact_url};
use crate::request::{EncodeSet, percent_encode};
use crate::settings::{ClientAuthMethod, ClientCredentials};

/// How long before its expiry a token is renewed. Capped at a tenth of the token's lifetime.
const EARLY: Duration = Duration::from_secs(60);
/// Time limit of a token request.
const PATIENCE: Duration = Duration::from_secs(30);
/// The size limit of a token response, in bytes.
const LARGEST: usize = 1024 * 1024;
/// The maximum number of cached tokens, which is more than the sets of scopes in any real document.
/// Further tokens are fetched for each call and not cached.
const MOST: usize = 1024;

/// The cache key of a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TokenCacheKey {
    url: String,
    client: String,
    scopes: String,
}

#[derive(Debug, Default)]
pub(crate) struct TokenCache {
    slots: Mutex<HashMap<TokenCacheKey, Arc<TokenSlot>>>,
    fetched: AtomicU64,
}

/// One cached token. The task that fetches it holds the lock, so that the others wait for its
/// result.
#[derive(Debug, Default)]
struct TokenSlot(tokio::sync::Mutex<Option<CachedToken>>);

#[derive(Debug)]
struct CachedToken {
    text: Secret,
    serial: u64,
    stale_at: Option<Instant>,
}

/// What a token request needs.
#[derive(Debug)]
pub(crate) struct TokenFetchContext<'a> {
    pub(crate) http: &'a HttpClients,
    pub(crate) named: &'a AllowedHosts,
    /// The base URL of the operation: the token URL may be relative to it.
    pub(crate) base: &'a Url,
}

impl TokenCache {
    pub(crate) async fn get(
        &self,
        client: &ClientCredentials,
        token_url: &str,
        scopes: &[String],
        ask: &TokenFetchContext<'_>,
    ) -> Result<(Secret, TokenVersion), HubError> {
        let url = ask.base.join(token_url).map_err(|_| {
            HubError::new(ErrorKind::CannotConnect, "the token URL is invalid")
                .with_suggestion("set `token_url` in the configuration")
        })?;
        let scopes = scopes.join(" ");
        let key = TokenCacheKey { url: url.to_string(), client: client.id.reveal().to_owned(), scopes };
        let place = self.slot(&key);
        let mut token = place.0.lock().await;
        let fresh = |token: &CachedToken| token.stale_at.is_none_or(|at| Instant::now() < at);
        if let Some(token) = token.as_ref().filter(|token| fresh(token)) {
            return Ok((token.text.clone(), TokenVersion { key, serial: token.serial }));
        }
        let serial = self.fetched.fetch_add(1, Ordering::Relaxed);
        // The cached token has expired, even if fetching a new one fails.
        *token = None;
        let fetched = tokio::time::timeout(PATIENCE, fetch_token(client, &url, &key.scopes, ask)).await;
        let granted = fetched.unwrap_or_else(|_| Err(format!("it did not answer within {PATIENCE:?}")));
        let granted = granted.map_err(|why| {
            HubError::new(
                ErrorKind::CannotConnect,
                format!("{} did not issue a token: {why}", redact_url(&url)),
            )
        })?;
        let stale_at = granted.expires_in.map(|seconds| {
            let life = Duration::from_secs(seconds.min(365 * 24 * 3600));
            Instant::now() + life.saturating_sub(EARLY.min(life / 10))
        });
        let text = Secret::new(granted.access_token);
        *token = Some(CachedToken { text: text.clone(), serial, stale_at });
        Ok((text, TokenVersion { key, serial }))
    }

    /// Marks a token as stale after a server rejected it. A newer token that another call has
    /// fetched in the meantime stays valid.
    pub(crate) async fn drop_stale(&self, used: &TokenVersion) {
        let place = self.slot(&used.key);
        let mut token = place.0.lock().await;
        if let Some(current) = token.as_mut().filter(|current| current.serial == used.serial) {
            current.stale_at = Some(Instant::now());
        }
    }

    fn slot(&self, key: &TokenCacheKey) -> Arc<TokenSlot> {
        let mut slots = self.slots.lock();
        if let Some(place) = slots.get(key) {
            return Arc::clone(place);
        }
        let place = Arc::new(TokenSlot::default());
        if slots.len() < MOST {
            slots.insert(key.clone(), Arc::clone(&place));
        }
        place
    }
}

#[derive(Deserialize)]
struct TokenGrant {
    access_token: String,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
}

/// Some servers send the number as a string.
fn seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value
        .as_u64()
        .or_else(|| value.as_f64().map(|seconds| seconds.max(0.0) as u64))
        .or_else(|| value.as_str()?.parse().ok()))
}

async fn fetch_token(
    client: &ClientCredentials,
    url: &Url,
    scopes: &str,
    ask: &TokenFetchContext<'_>,
) -> Result<TokenGrant, String> {
    let reach = ask.named.check_access(url).map_err(|error| error.to_string())?;
    let field = |text: &str| percent_encode(text, EncodeSet::Unreserved);
    let mut form = "grant_type=client_credentials".to_owned();
    if !scopes.is_empty() {
        form.push_str(&format!("&scope={}", field(scopes)));
    }
    let (id, secret) = (field(client.id.reveal()), field(client.secret.reveal()));
    let mut request = ask.http.client(reach).post(url.clone()).header("accept", "application/json");
    match client.sending {
        ClientAuthMethod::Header => {
            let pair = BASE64_STANDARD.encode(format!("{id}:{secret}"));
            request = request.header("authorization", format!("Basic {pair}"));
        }
        ClientAuthMethod::Body => form.push_str(&format!("&client_id={id}&client_secret={secret}")),
    }
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
    let mut answer = request.send().await.map_err(|error| root_cause(&error))?;
    let status = answer.status();
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| root_cause(&error))? {
        if bytes.len() + piece.len() > LARGEST {
            return Err(format!("its response exceeds the limit of {LARGEST} bytes"));
        }
        bytes.extend_from_slice(&piece);
    }
    if !status.is_success() {
        return Err(match error_code(&bytes) {
            Some(code) => format!("it returned HTTP {} ({code})", status.as_u16()),
            None => format!("it returned HTTP {}", status.as_u16()),
        });
    }
    // The parser's error is not included because it may quote a token.
    let granted: TokenGrant = serde_json::from_slice(&bytes)
        .map_err(|_| "its response is not a valid token response".to_owned())?;
    if granted.access_token.is_empty() {
        return Err("its response is not a valid token response".to_owned());
    }
    Ok(granted)
}

/// Returns the OAuth error code of a response if it looks like one.
fn error_code(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct TokenErrorBody {
        error: String,
    }
    let refused: TokenErrorBody = serde_json::from_slice(bytes).ok()?;
    let word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (refused.error.len() < 40 && refused.error.bytes().all(word)).then_some(refused.error)
}
