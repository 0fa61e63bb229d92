//! The door: who may come in. Host and Origin first, because a browser can be made to send anything else;
//! then the token. Behind it every request carries a principal.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, Response, header};
use axum::middleware::Next;
use axum::response::IntoResponse;
use toolyard_hub::Principal;

use self::recheck::{RecheckedBody, StreamKind};
use self::rejection::AuthRejection;
use crate::connections::ConnectionState;
use crate::page::ASSETS;
use crate::quotas::is_stream;
use crate::router::{CONTROL, HEALTH, PUBLIC};

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

/// Metadata for clients that look for a way in; public.
pub(crate) const WELL_KNOWN: &str = "/.well-known/";

/// What the door obeys.
#[derive(Debug, Clone)]
pub struct ServeAuthSettings {
    pub auth: Auth,
    /// Host names, beside the loopback ones, under which this server is reached.
    pub hosts: Vec<String>,
    /// Origins whose pages may use this server, beside its own; with tokens, also beside loopback ones.
    pub origins: Vec<String>,
}

#[derive(Debug, Clone)]
pub enum Auth {
    /// Everybody who can reach the address is this principal. Only for loopback addresses.
    None(Principal),
    /// Whoever has one of these.
    Tokens(Vec<BearerToken>),
    /// Whoever has a key of this ring, which may change.
    TokenStore(BearerTokenStore),
}

#[derive(Debug)]
pub(crate) struct Authenticator {
    policy: AuthPolicy,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// On a loopback address only loopback names lead here; anything else is a rebound name.
    loopback: bool,
}

#[derive(Debug, Clone)]
enum AuthPolicy {
    Open(Principal),
    TokenStore(BearerTokenStore),
}

/// Somebody whom Host and Origin say nothing against.
enum RequestCredential<'a> {
    /// Where they go everybody may go.
    Public,
    Known(Principal),
    /// With this token.
    Bearer(&'a str, &'a BearerTokenStore),
}

impl Authenticator {
    pub(crate) fn new(settings: ServeAuthSettings, loopback: bool) -> Arc<Self> {
        let ServeAuthSettings { auth, hosts, origins } = settings;
        let lock = match auth {
            Auth::None(principal) => AuthPolicy::Open(principal),
            Auth::Tokens(tokens) => {
                AuthPolicy::TokenStore(BearerTokenStore::new(BearerCredentials { tokens, jwt: None }))
            }
            Auth::TokenStore(keyring) => AuthPolicy::TokenStore(keyring),
        };
        Arc::new(Self { policy: lock, hosts, origins, loopback })
    }

    async fn authenticate(
        &self,
        headers: &HeaderMap,
        path: &str,
    ) -> Result<Option<Principal>, RejectionReason> {
        match self.extract_credential(headers, path)? {
            RequestCredential::Public => Ok(None),
            RequestCredential::Known(principal) => Ok(Some(principal)),
            RequestCredential::Bearer(token, keyring) => keyring.authenticate(token).await.map(Some),
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
        let keyring = match &self.policy {
            AuthPolicy::Open(principal) => return Ok(RequestCredential::Known(principal.clone())),
            AuthPolicy::TokenStore(keyring) => keyring,
        };
        match bearer(headers) {
            Some(token) => Ok(RequestCredential::Bearer(token, keyring)),
            // A browser cannot set the header there: the token comes in another way, and is looked at behind.
            None if path == CONTROL => Ok(RequestCredential::Public),
            None => Err(RejectionReason::TokenMissing),
        }
    }

    /// Somebody who stays for long, and has to prove who they are again and again.
    fn connection_credentials(&self, headers: &HeaderMap) -> ConnectionCredentials {
        ConnectionCredentials::new(self.policy.clone(), bearer(headers).map(ToOwned::to_owned))
    }

    /// A stream of events stays open only for as long as the token that opened it is good.
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
        let visitor = ConnectionCredentials::new(self.policy.clone(), token);
        response.map(|body| Body::new(RecheckedBody::new(body, visitor, principal, kind)))
    }

    /// What is said to those who look for a way in, if it is theirs to know.
    fn metadata(&self, headers: &HeaderMap, path: &str) -> Option<Response<Body>> {
        let AuthPolicy::TokenStore(keyring) = &self.policy else { return None };
        resource_metadata::metadata(keyring.jwt().as_deref()?, text(headers, header::HOST)?, path)
    }

    fn reject(&self, reason: RejectionReason, headers: &HeaderMap, path: &str) -> AuthRejection {
        let metadata = match &self.policy {
            AuthPolicy::TokenStore(keyring)
                if !matches!(reason, RejectionReason::Host | RejectionReason::Origin) =>
            {
                keyring
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

    /// The origin of the page that a request comes from, if it is one that the configuration names.
    fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let named = text(headers, header::ORIGIN).is_some_and(|origin| self.is_configured_origin(origin));
        let host = self.allows_host(text(headers, header::HOST).unwrap_or_default());
        headers.get(header::ORIGIN).filter(|_| named && host).cloned()
    }

    fn is_configured_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }

    /// Whether pages of this origin may use this server. With a token, any page of this machine may: the token is
    /// what protects. Without one, only the yard's own page and those that the configuration names.
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

/// Whether a page of this origin came from the very address that the request was sent to. This server speaks plain HTTP.
fn is_own_origin(origin: &str, host: &str) -> bool {
    let without_default_port = |authority: &str| authority.strip_suffix(":80").unwrap_or(authority).len();
    let Some(authority) = origin.strip_prefix("http://").filter(|authority| !authority.is_empty()) else {
        return false;
    };
    authority[..without_default_port(authority)].eq_ignore_ascii_case(&host[..without_default_port(host)])
}

/// The token that a request bears.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION).and_then(parse_bearer)
}

fn parse_bearer(value: &HeaderValue) -> Option<&str> {
    let given = value.to_str().ok().and_then(|value| value.split_once(' '));
    given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token)
}

/// A header as text; one that is no text counts as empty.
fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default())
}

/// The name in front of a port. Nothing for what is more than that: other readers of addresses would see another name in
/// `localhost:80@evil.example`.
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

/// Lets a request through with its principal, or turns it away.
pub(crate) async fn guard(
    State(door): State<Arc<Authenticator>>,
    mut request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let page = door.allowed_origin(request.headers());
    let mut response = match page.is_some() && cors::is_preflight(request.method(), request.headers()) {
        true => cors::preflight_response(request.headers()),
        false => authenticate_and_run(&door, &mut request, next).await,
    };
    if let Some(origin) = page {
        cors::allow_origin(&mut response, origin);
    }
    response
}

async fn authenticate_and_run(
    door: &Authenticator,
    request: &mut Request<Body>,
    next: Next,
) -> Response<Body> {
    let mut request = std::mem::take(request);
    if request.uri().path() == CONTROL {
        let visitor = door.connection_credentials(request.headers());
        request.extensions_mut().insert(visitor);
    }
    let (headers, path) = (request.headers(), request.uri().path());
    let connection = request.extensions().get::<Arc<ConnectionState>>();
    if connection.is_some_and(|connection| connection.is_reserved()) && !HEALTH.contains(&path) {
        return door.reject(RejectionReason::Connections, headers, path).into_response();
    }
    let admitted = door.authenticate(headers, path).await;
    if let Some(connection) = connection {
        match &admitted {
            Ok(Some(_)) => connection.mark_authenticated(),
            Ok(None) | Err(_) if !has_room_for_client(connection, headers) => {
                return door.reject(RejectionReason::Connections, headers, path).into_response();
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
            door.recheck(response, principal, token.as_ref(), kind)
        }
        Ok(None) => match door.metadata(headers, path) {
            Some(metadata) => metadata,
            None => next.run(request).await,
        },
        Err(reason) => door.reject(reason, headers, path).into_response(),
    }
}

/// Whether there is room for one more connection of the client that a trusted proxy names.
fn has_room_for_client(connection: &ConnectionState, headers: &HeaderMap) -> bool {
    let Some(proxies) = connection.trusted_proxies() else { return true };
    if !proxies.contains(connection.peer()) {
        return true;
    }
    proxies.client(headers).is_none_or(|client| connection.admit_forwarded(client))
}

#[cfg(test)]
mod tests;
