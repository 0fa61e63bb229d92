//! The door: who may come in. Host and Origin first, because a browser can be made to send anything else;
//! then the token. Behind it every request carries a principal.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use axum::middleware::Next;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolyard_hub::Principal;

use crate::rest::refusal;
use crate::router::PUBLIC;

/// What the door obeys.
#[derive(Debug, Clone)]
pub struct DoorSettings {
    pub auth: Auth,
    /// Host names, beside the loopback ones, under which this server is reached.
    pub hosts: Vec<String>,
    /// Origins, beside loopback ones, whose pages may use this server.
    pub origins: Vec<String>,
}

#[derive(Debug, Clone)]
pub enum Auth {
    /// Everybody who can reach the address is this principal. Only for loopback addresses.
    None(Principal),
    Tokens(Vec<Token>),
}

/// A token that opens the door. Only its digest is kept.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
    principal: Principal,
}

impl Token {
    pub fn new(secret: &str, principal: Principal) -> Self {
        Self { digest: Sha256::digest(secret.as_bytes()).into(), principal }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("principal", &self.principal.id()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Door {
    settings: DoorSettings,
    /// On a loopback address only loopback names lead here; anything else is a rebound name.
    loopback: bool,
}

impl Door {
    pub(crate) fn new(settings: DoorSettings, loopback: bool) -> Arc<Self> {
        Arc::new(Self { settings, loopback })
    }

    fn admit(&self, headers: &HeaderMap, path: &str) -> Result<Option<Principal>, Turned> {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
        let host = text(header::HOST).unwrap_or_default();
        if !self.knows_host(host) {
            return Err(Turned::Away("this host name is not one of this server's"));
        }
        if text(header::ORIGIN).is_some_and(|origin| !self.knows_origin(origin)) {
            return Err(Turned::Away("pages of this origin may not use this server"));
        }
        if PUBLIC.contains(&path) || path.starts_with("/.well-known/") {
            return Ok(None);
        }
        let tokens = match &self.settings.auth {
            Auth::None(principal) => return Ok(Some(principal.clone())),
            Auth::Tokens(tokens) => tokens,
        };
        let given = text(header::AUTHORIZATION).and_then(|value| value.split_once(' '));
        let given =
            given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).ok_or(Turned::NoToken)?.1;
        let digest: [u8; 32] = Sha256::digest(given.trim().as_bytes()).into();
        // Every token is compared, each in constant time: how long it takes tells nothing.
        let found = tokens.iter().fold(None, |found, token| {
            if bool::from(token.digest.ct_eq(&digest)) { Some(&token.principal) } else { found }
        });
        found.cloned().map(Some).ok_or(Turned::WrongToken)
    }

    fn knows_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let configured = self.settings.hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
        configured || is_loopback(name) || (!self.loopback && self.settings.hosts.is_empty())
    }

    fn knows_origin(&self, origin: &str) -> bool {
        let configured = self.settings.origins.iter().any(|known| known.eq_ignore_ascii_case(origin));
        let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        configured || name.is_some_and(|name| is_loopback(without_port(name)))
    }
}

fn without_port(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => name,
        None => host.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[derive(Debug, PartialEq)]
enum Turned {
    Away(&'static str),
    NoToken,
    WrongToken,
}

impl Turned {
    fn answer(self, path: &str) -> Response<Body> {
        let (status, challenge, text) = match self {
            Self::Away(why) => (StatusCode::FORBIDDEN, None, why),
            Self::NoToken => (StatusCode::UNAUTHORIZED, Some("Bearer"), "a bearer token is needed"),
            Self::WrongToken => {
                let challenge = "Bearer error=\"invalid_token\"";
                (StatusCode::UNAUTHORIZED, Some(challenge), "this bearer token is not known")
            }
        };
        let mut response = refusal(path, status, text);
        if let Some(challenge) = challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

/// Lets a request through with its principal, or turns it away.
pub(crate) async fn guard(
    State(door): State<Arc<Door>>,
    mut request: Request<Body>,
    next: Next,
) -> Response<Body> {
    match door.admit(request.headers(), request.uri().path()) {
        Ok(principal) => {
            if let Some(principal) = principal {
                request.extensions_mut().insert(principal);
            }
            next.run(request).await
        }
        Err(turned) => turned.answer(request.uri().path()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};
    use toolyard_hub::{Permissions, Principal};

    use super::{Auth, Door, DoorSettings, Token, Turned};

    fn admit(headers: &[(&'static str, &str)], path: &str) -> Result<Option<String>, Turned> {
        let token = Token::new("secret", Principal::new("ada", Permissions::All));
        let settings = DoorSettings {
            auth: Auth::Tokens(vec![token]),
            hosts: vec!["yard.example".to_owned()],
            origins: vec!["https://app.example".to_owned()],
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let admitted = Door::new(settings, true).admit(&map, path)?;
        Ok(admitted.map(|principal| principal.id().to_owned()))
    }

    #[test]
    fn only_the_right_token_opens() {
        let host = ("host", "127.0.0.1:8080");
        assert_eq!(admit(&[host], "/mcp"), Err(Turned::NoToken));
        assert_eq!(admit(&[host, ("authorization", "Basic secret")], "/mcp"), Err(Turned::NoToken));
        assert_eq!(admit(&[host, ("authorization", "Bearer Secret")], "/mcp"), Err(Turned::WrongToken));
        assert_eq!(admit(&[host, ("authorization", "bearer secret")], "/mcp"), Ok(Some("ada".to_owned())));
        assert_eq!(admit(&[host], "/health"), Ok(None));
        assert_eq!(admit(&[host], "/health/x"), Err(Turned::NoToken));
    }

    #[test]
    fn rebound_names_and_foreign_pages_are_turned_away() {
        let turned = |headers| matches!(admit(headers, "/health"), Err(Turned::Away(_)));
        assert!(turned(&[("host", "evil.example")]));
        assert!(turned(&[("host", "127.0.0.1.evil.example")]));
        assert!(turned(&[]));
        assert!(turned(&[("host", "localhost"), ("origin", "http://evil.example")]));
        assert!(turned(&[("host", "localhost"), ("origin", "http://localhost.evil.example")]));
        assert!(turned(&[("host", "localhost"), ("origin", "null")]));
        assert!(!turned(&[("host", "[::1]:8080"), ("origin", "http://localhost:5173")]));
        assert!(!turned(&[("host", "yard.example:443"), ("origin", "https://app.example")]));
    }
}
