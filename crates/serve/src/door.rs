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
use self::turned::Turned;
use crate::connections::ConnectionState;
use crate::page::ASSETS;
use crate::quotas::is_stream;
use crate::router::{CONTROL, HEALTH, PUBLIC};

mod algorithm;
pub mod fuzzing;
mod jwks;
mod jwt;
mod keyring;
mod pages;
mod recheck;
mod resource;
mod turned;
mod visitor;

pub use self::algorithm::{Algorithm, UnknownAlgorithm};
pub use self::jwks::{FetchKeys, FetchedKeys, Jwks, KeySource};
pub use self::jwt::{Jwt, permissions};
pub use self::keyring::{Keyring, Keys, Token};
pub(crate) use self::turned::{Reason, Speaks};
pub(crate) use self::visitor::Visitor;

/// Metadata for clients that look for a way in; public.
pub(crate) const WELL_KNOWN: &str = "/.well-known/";

/// What the door obeys.
#[derive(Debug, Clone)]
pub struct DoorSettings {
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
    Tokens(Vec<Token>),
    /// Whoever has a key of this ring, which may change.
    Keyring(Keyring),
}

#[derive(Debug)]
pub(crate) struct Door {
    lock: Lock,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// On a loopback address only loopback names lead here; anything else is a rebound name.
    loopback: bool,
}

#[derive(Debug, Clone)]
enum Lock {
    Open(Principal),
    Keyring(Keyring),
}

/// Somebody whom Host and Origin say nothing against.
enum AtTheDoor<'a> {
    /// Where they go everybody may go.
    Passing,
    Known(Principal),
    /// With this token.
    Bearing(&'a str, &'a Keyring),
}

impl Door {
    pub(crate) fn new(settings: DoorSettings, loopback: bool) -> Arc<Self> {
        let DoorSettings { auth, hosts, origins } = settings;
        let lock = match auth {
            Auth::None(principal) => Lock::Open(principal),
            Auth::Tokens(tokens) => Lock::Keyring(Keyring::new(Keys { tokens, jwt: None })),
            Auth::Keyring(keyring) => Lock::Keyring(keyring),
        };
        Arc::new(Self { lock, hosts, origins, loopback })
    }

    async fn admit(&self, headers: &HeaderMap, path: &str) -> Result<Option<Principal>, Reason> {
        match self.look(headers, path)? {
            AtTheDoor::Passing => Ok(None),
            AtTheDoor::Known(principal) => Ok(Some(principal)),
            AtTheDoor::Bearing(token, keyring) => keyring.open(token).await.map(Some),
        }
    }

    fn look<'a>(&'a self, headers: &'a HeaderMap, path: &str) -> Result<AtTheDoor<'a>, Reason> {
        if !self.knows_host(text(headers, header::HOST).unwrap_or_default()) {
            return Err(Reason::Host);
        }
        let host = text(headers, header::HOST).unwrap_or_default();
        if text(headers, header::ORIGIN).is_some_and(|origin| !self.knows_origin(origin, host)) {
            return Err(Reason::Origin);
        }
        if PUBLIC.contains(&path) || path.starts_with(ASSETS) || path.starts_with(WELL_KNOWN) {
            return Ok(AtTheDoor::Passing);
        }
        let keyring = match &self.lock {
            Lock::Open(principal) => return Ok(AtTheDoor::Known(principal.clone())),
            Lock::Keyring(keyring) => keyring,
        };
        match bearer(headers) {
            Some(token) => Ok(AtTheDoor::Bearing(token, keyring)),
            // A browser cannot set the header there: the token comes in another way, and is looked at behind.
            None if path == CONTROL => Ok(AtTheDoor::Passing),
            None => Err(Reason::TokenMissing),
        }
    }

    /// Somebody who stays for long, and has to prove who they are again and again.
    fn visitor(&self, headers: &HeaderMap) -> Visitor {
        Visitor::new(self.lock.clone(), bearer(headers).map(ToOwned::to_owned))
    }

    /// A stream of events stays open only for as long as the token that opened it is good.
    fn recheck(
        &self,
        response: Response<Body>,
        principal: Principal,
        token: Option<&HeaderValue>,
        kind: StreamKind,
    ) -> Response<Body> {
        if matches!(self.lock, Lock::Open(_)) || !is_stream(&response) {
            return response;
        }
        let token = token.and_then(bearer_of).map(ToOwned::to_owned);
        let visitor = Visitor::new(self.lock.clone(), token);
        response.map(|body| Body::new(RecheckedBody::new(body, visitor, principal, kind)))
    }

    /// What is said to those who look for a way in, if it is theirs to know.
    fn metadata(&self, headers: &HeaderMap, path: &str) -> Option<Response<Body>> {
        let Lock::Keyring(keyring) = &self.lock else { return None };
        resource::metadata(keyring.jwt().as_deref()?, text(headers, header::HOST)?, path)
    }

    fn turn(&self, reason: Reason, headers: &HeaderMap, path: &str) -> Turned {
        let metadata = match &self.lock {
            Lock::Keyring(keyring) if !matches!(reason, Reason::Host | Reason::Origin) => keyring
                .jwt()
                .zip(text(headers, header::HOST))
                .map(|(jwt, host)| resource::address(&jwt, host, path)),
            _ => None,
        };
        Turned { reason, metadata, speaks: Speaks::at(path) }
    }

    fn knows_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let configured = self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
        configured || is_loopback(name) || (!self.loopback && self.hosts.is_empty())
    }

    /// The origin of the page that a request comes from, if it is one that the configuration names.
    fn page(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let named = text(headers, header::ORIGIN).is_some_and(|origin| self.names_origin(origin));
        let host = self.knows_host(text(headers, header::HOST).unwrap_or_default());
        headers.get(header::ORIGIN).filter(|_| named && host).cloned()
    }

    fn names_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }

    /// Whether pages of this origin may use this server. With a token, any page of this machine may: the token is
    /// what protects. Without one, only the yard's own page and those that the configuration names.
    fn knows_origin(&self, origin: &str, host: &str) -> bool {
        if self.names_origin(origin) {
            return true;
        }
        match &self.lock {
            Lock::Open(_) => is_own_origin(origin, host),
            Lock::Keyring(_) => {
                let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
                name.is_some_and(|name| is_loopback(without_port(name)))
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
    headers.get(header::AUTHORIZATION).and_then(bearer_of)
}

fn bearer_of(value: &HeaderValue) -> Option<&str> {
    let given = value.to_str().ok().and_then(|value| value.split_once(' '));
    given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token)
}

/// A header as text; one that is no text counts as empty.
fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default())
}

/// The name in front of a port. Nothing for what is more than that: other readers of addresses would see another name in
/// `localhost:80@evil.example`.
fn without_port(host: &str) -> &str {
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
    State(door): State<Arc<Door>>,
    mut request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let page = door.page(request.headers());
    let mut response = match page.is_some() && pages::is_question(request.method(), request.headers()) {
        true => pages::answer(request.headers()),
        false => pass(&door, &mut request, next).await,
    };
    if let Some(origin) = page {
        pages::open_to(&mut response, origin);
    }
    response
}

async fn pass(door: &Door, request: &mut Request<Body>, next: Next) -> Response<Body> {
    let mut request = std::mem::take(request);
    if request.uri().path() == CONTROL {
        let visitor = door.visitor(request.headers());
        request.extensions_mut().insert(visitor);
    }
    let (headers, path) = (request.headers(), request.uri().path());
    let connection = request.extensions().get::<Arc<ConnectionState>>();
    if connection.is_some_and(|connection| connection.is_reserved()) && !HEALTH.contains(&path) {
        return door.turn(Reason::Connections, headers, path).into_response();
    }
    let admitted = door.admit(headers, path).await;
    if let Some(connection) = connection {
        match &admitted {
            Ok(Some(_)) => connection.authenticated(),
            Ok(None) | Err(_) if !fits_address(connection, headers) => {
                return door.turn(Reason::Connections, headers, path).into_response();
            }
            Ok(None) | Err(_) => {}
        }
    }
    match admitted {
        Ok(Some(principal)) => {
            let kind = StreamKind::of(request.method(), headers);
            let token = headers.get(header::AUTHORIZATION).cloned();
            request.extensions_mut().insert(principal.clone());
            let response = next.run(request).await;
            door.recheck(response, principal, token.as_ref(), kind)
        }
        Ok(None) => match door.metadata(headers, path) {
            Some(metadata) => metadata,
            None => next.run(request).await,
        },
        Err(reason) => door.turn(reason, headers, path).into_response(),
    }
}

/// Whether there is room for one more connection of the client that a trusted proxy names.
fn fits_address(connection: &ConnectionState, headers: &HeaderMap) -> bool {
    let Some(proxies) = connection.trusted_proxies() else { return true };
    if !proxies.contains(connection.peer()) {
        return true;
    }
    proxies.client(headers).is_none_or(|client| connection.forwarded_for(client))
}

#[cfg(test)]
mod tests;
