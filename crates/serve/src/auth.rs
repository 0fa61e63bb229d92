//! Authentication middleware. It checks Host and Origin first, because a web page can make a
//! browser send anything else, and then the token. Every request that passes carries a principal.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, Response, header};
use axum::middleware::Next;
use axum::response::IntoResponse;
use toolyard_hub::Principal;

pub(crate) use self::recheck::RECHECK;
use self::recheck::{RecheckedBody, StreamKind};
use self::rejection::AuthRejection;
use crate::connections::ConnectionState;
use crate::page::ASSETS;
use crate::quotas::is_stream;
use crate::replicas::FOLLOWER;
use crate::router::{CONTROL, FEED, HEALTH, PUBLIC};

mod algorithm;
mod cors;
mod credentials;
pub mod fuzzing;
mod jwks;
mod jwt;
mod recheck;
mod rejection;
mod resource_metadata;
mod tokens;

pub use self::algorithm::{Algorithm, UnknownAlgorithm};
pub(crate) use self::credentials::ConnectionCredentials;
pub use self::jwks::{FetchedKeys, Jwks, JwksClient, JwksFetcher, KeySource};
pub use self::jwt::{JwtIssuer, permissions};
pub(crate) use self::rejection::{ErrorFormat, RejectionReason};
pub use self::tokens::{BearerCredentials, BearerToken, BearerTokenStore};

/// Path prefix of the public metadata from which clients learn how to authenticate.
pub(crate) const WELL_KNOWN: &str = "/.well-known/";

/// Settings of the authentication middleware.
#[derive(Debug, Clone)]
pub struct ServeAuthSettings {
    pub auth: Auth,
    /// Accepted host names in addition to the loopback names.
    pub hosts: Vec<String>,
    /// Origins whose pages may use this server, in addition to its own origin and, with tokens, to
    /// loopback origins.
    pub origins: Vec<String>,
}

/// How callers authenticate.
#[derive(Debug, Clone)]
pub enum Auth {
    /// Every caller is this principal, without a token. Only allowed on loopback addresses.
    None(Principal),
    /// A fixed list of bearer tokens.
    Tokens(Vec<BearerToken>),
    /// A store of bearer tokens and JWT issuers that can be replaced while the server runs.
    TokenStore(BearerTokenStore),
}

#[derive(Debug)]
pub(crate) struct Authenticator {
    policy: AuthPolicy,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Whether the server listens on a loopback address. Other host names are then the result of
    /// DNS rebinding.
    loopback: bool,
}

#[derive(Debug, Clone)]
enum AuthPolicy {
    Open(Principal),
    TokenStore(BearerTokenStore),
}

/// The credential of a request that passed the Host and Origin checks.
enum RequestCredential<'a> {
    /// The path is public and needs no credential.
    Public,
    Known(Principal),
    /// A bearer token and the store to look it up in.
    Bearer(&'a str, &'a BearerTokenStore),
}

impl Authenticator {
    pub(crate) fn new(settings: ServeAuthSettings, loopback: bool) -> Arc<Self> {
        let ServeAuthSettings { auth, hosts, origins } = settings;
        let policy = match auth {
            Auth::None(principal) => AuthPolicy::Open(principal),
            Auth::Tokens(tokens) => AuthPolicy::TokenStore(BearerTokenStore::new(BearerCredentials {
                tokens,
                ..BearerCredentials::default()
            })),
            Auth::TokenStore(store) => AuthPolicy::TokenStore(store),
        };
        Arc::new(Self { policy, hosts, origins, loopback })
    }

    async fn authenticate(
        &self,
        headers: &HeaderMap,
        path: &str,
    ) -> Result<Option<Principal>, RejectionReason> {
        match self.extract_credential(headers, path)? {
            RequestCredential::Public => Ok(None),
            RequestCredential::Known(principal) => Ok(Some(principal)),
            RequestCredential::Bearer(token, store) => store.authenticate(token).await.map(Some),
        }
    }

    fn extract_credential<'a>(
        &'a self,
        headers: &'a HeaderMap,
        path: &str,
    ) -> Result<RequestCredential<'a>, RejectionReason> {
        if !self.allows_host(text(headers, header::HOST).unwrap_or_default()) {
            return Err(RejectionReason::Host);
        }
        let host = text(headers, header::HOST).unwrap_or_default();
        if text(headers, header::ORIGIN).is_some_and(|origin| !self.allows_origin(origin, host)) {
            return Err(RejectionReason::Origin);
        }
        if PUBLIC.contains(&path) || path.starts_with(ASSETS) || path.starts_with(WELL_KNOWN) {
            return Ok(RequestCredential::Public);
        }
        let store = match &self.policy {
            AuthPolicy::Open(principal) => return Ok(RequestCredential::Known(principal.clone())),
            AuthPolicy::TokenStore(store) => store,
        };
        match bearer(headers) {
            Some(token) => Ok(RequestCredential::Bearer(token, store)),
            // A browser cannot set this header on a WebSocket. The control socket accepts the token
            // in other ways and checks it itself.
            None if path == CONTROL => Ok(RequestCredential::Public),
            None => Err(RejectionReason::TokenMissing),
        }
    }

    /// Returns the credentials of a long-lived connection, which are checked repeatedly.
    fn connection_credentials(&self, headers: &HeaderMap) -> ConnectionCredentials {
        ConnectionCredentials::new(self.policy.clone(), bearer(headers).map(ToOwned::to_owned))
    }

    /// Makes an event stream end when the token that opened it is no longer valid.
    fn recheck(
        &self,
        response: Response<Body>,
        principal: Principal,
        token: Option<&HeaderValue>,
        kind: StreamKind,
    ) -> Response<Body> {
        if matches!(self.policy, AuthPolicy::Open(_)) || !is_stream(&response) {
            return response;
        }
        let token = token.and_then(parse_bearer).map(ToOwned::to_owned);
        let credentials = ConnectionCredentials::new(self.policy.clone(), token);
        response.map(|body| Body::new(RecheckedBody::new(body, credentials, principal, kind)))
    }

    /// Returns the authentication metadata at `path`, if there is any.
    fn metadata(&self, headers: &HeaderMap, path: &str) -> Option<Response<Body>> {
        let AuthPolicy::TokenStore(store) = &self.policy else { return None };
        resource_metadata::metadata(store.jwt().as_deref()?, text(headers, header::HOST)?, path)
    }

    fn reject(&self, reason: RejectionReason, headers: &HeaderMap, path: &str) -> AuthRejection {
        let metadata = match &self.policy {
            AuthPolicy::TokenStore(store)
                if !matches!(reason, RejectionReason::Host | RejectionReason::Origin) =>
            {
                store
                    .jwt()
                    .zip(text(headers, header::HOST))
                    .map(|(jwt, host)| resource_metadata::metadata_url(&jwt, host, path))
            }
            _ => None,
        };
        AuthRejection { reason, metadata, format: ErrorFormat::for_path(path) }
    }

    fn allows_host(&self, host: &str) -> bool {
        let name = strip_port(host);
        let configured = self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
        configured || is_loopback(name) || (!self.loopback && self.hosts.is_empty())
    }

    /// Returns the origin of a request if the configuration lists it.
    fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let named = text(headers, header::ORIGIN).is_some_and(|origin| self.is_configured_origin(origin));
        let host = self.allows_host(text(headers, header::HOST).unwrap_or_default());
        headers.get(header::ORIGIN).filter(|_| named && host).cloned()
    }

    fn is_configured_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }

    /// Returns whether pages of this origin may use this server. If the server requires tokens, any
    /// page on this machine may, because the token protects the server. Otherwise only the yard's
    /// own page and the configured origins may.
    fn allows_origin(&self, origin: &str, host: &str) -> bool {
        if self.is_configured_origin(origin) {
            return true;
        }
        match &self.policy {
            AuthPolicy::Open(_) => is_own_origin(origin, host),
            AuthPolicy::TokenStore(_) => {
                let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
                name.is_some_and(|name| is_loopback(strip_port(name)))
            }
        }
    }
}

/// Returns whether the origin is the address that the request was sent to. The scheme is always
/// `http`, because this server does not terminate TLS.
fn is_own_origin(origin: &str, host: &str) -> bool {
    let without_default_port = |authority: &str| authority.strip_suffix(":80").unwrap_or(authority).len();
    let Some(authority) = origin.strip_prefix("http://").filter(|authority| !authority.is_empty()) else {
        return false;
    };
    authority[..without_default_port(authority)].eq_ignore_ascii_case(&host[..without_default_port(host)])
}

/// Returns the bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION).and_then(parse_bearer)
}

fn parse_bearer(value: &HeaderValue) -> Option<&str> {
    let parts = value.to_str().ok().and_then(|value| value.split_once(' '));
    parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token)
}

/// Returns a header as text, or an empty string if the value is not text.
fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default())
}

/// Returns the name before the port. Returns an empty string if anything else follows, because
/// other parsers see a different name in `localhost:80@evil.example`.
fn strip_port(host: &str) -> &str {
    let (name, rest) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or(("", "")),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port) { name } else { "" }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Middleware that adds the principal to a request, or rejects it.
pub(crate) async fn guard(
    State(authenticator): State<Arc<Authenticator>>,
    mut request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let cors_origin = authenticator.allowed_origin(request.headers());
    let mut response = match cors_origin.is_some() && cors::is_preflight(request.method(), request.headers())
    {
        true => cors::preflight_response(request.headers()),
        false => authenticate_and_run(&authenticator, &mut request, next).await,
    };
    if let Some(origin) = cors_origin {
        cors::allow_origin(&mut response, origin);
    }
    response
}

async fn authenticate_and_run(
    authenticator: &Authenticator,
    request: &mut Request<Body>,
    next: Next,
) -> Response<Body> {
    let mut request = std::mem::take(request);
    if request.uri().path() == CONTROL {
        let credentials = authenticator.connection_credentials(request.headers());
        request.extensions_mut().insert(credentials);
    }
    let (headers, path) = (request.headers(), request.uri().path());
    let connection = request.extensions().get::<Arc<ConnectionState>>();
    if connection.is_some_and(|connection| connection.is_reserved()) && !HEALTH.contains(&path) {
        return authenticator.reject(RejectionReason::Connections, headers, path).into_response();
    }
    if path == FEED && headers.contains_key(FOLLOWER) {
        // Not a client: the endpoint checks which replica it is.
        return next.run(request).await;
    }
    let admitted = authenticator.authenticate(headers, path).await;
    if let Some(connection) = connection {
        match &admitted {
            Ok(Some(_)) => connection.mark_authenticated(),
            Ok(None) | Err(_) if !has_room_for_client(connection, headers) => {
                return authenticator.reject(RejectionReason::Connections, headers, path).into_response();
            }
            Ok(None) | Err(_) => {}
        }
    }
    match admitted {
        Ok(Some(principal)) => {
            let kind = StreamKind::from_request(request.method(), headers);
            let token = headers.get(header::AUTHORIZATION).cloned();
            request.extensions_mut().insert(principal.clone());
            let response = next.run(request).await;
            authenticator.recheck(response, principal, token.as_ref(), kind)
        }
        Ok(None) => match authenticator.metadata(headers, path) {
            Some(metadata) => metadata,
            None => next.run(request).await,
        },
        Err(reason) => authenticator.reject(reason, headers, path).into_response(),
    }
}

/// Returns whether the client that a trusted proxy names may open one more connection.
fn has_room_for_client(connection: &ConnectionState, headers: &HeaderMap) -> bool {
    let Some(proxies) = connection.trusted_proxies() else { return true };
    if !proxies.contains(connection.peer()) {
        return true;
    }
    proxies.client(headers).is_none_or(|client| connection.admit_forwarded(client))
}

#[cfg(test)]
mod tests;
