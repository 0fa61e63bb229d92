//! Entry points of the fuzz targets in `fuzz/` and of the test that replays their corpus. Nothing
//! else calls them. Each takes arbitrary bytes and panics if an invariant does not hold.
#![allow(clippy::expect_used, reason = "a broken invariant is what the fuzzer looks for")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use toolyard_hub::printable::is_deceptive;
use toolyard_hub::{AllowList, Permissions, Principal, ScopedLimits};

use super::algorithm::Algorithm;
use super::jwks::{Jwks, KeySource};
use super::jwt::JwtIssuer;
use super::tokens::{BearerCredentials, BearerToken, BearerTokenStore};
use super::{Auth, Authenticator, RejectionReason, ServeAuthSettings, cors};
use crate::proxy::{ProxyNetwork, TrustedProxies};

const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "yard";
const HOST: &str = "yard.example";
const ORIGIN: &str = "https://app.example";
const TOKEN: &str = "the token of the fuzz target";

static KEY: LazyLock<Ed25519KeyPair> =
    LazyLock::new(|| Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("32 bytes are a seed"));

static JWT: LazyLock<Arc<JwtIssuer>> = LazyLock::new(|| {
    let x = URL_SAFE_NO_PAD.encode(KEY.public_key().as_ref());
    let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x}]});
    Arc::new(JwtIssuer {
        issuer: ISSUER.to_owned(),
        audience: vec![AUDIENCE.to_owned()],
        algorithms: Algorithm::ALL.to_vec(),
        keys: KeySource::fixed(Jwks::parse(&keys.to_string()).expect("a set of one key")),
        claims: BTreeMap::from([(
            "scope".to_owned(),
            BTreeMap::from([("r".to_owned(), vec!["read".to_owned()])]),
        )]),
        allowed: AllowList::default(),
        bounds: ScopedLimits::default(),
        resource: None,
    })
});

/// One authenticator for a loopback address and one for an address that other machines can reach.
static AUTHENTICATORS: LazyLock<[Arc<Authenticator>; 2]> = LazyLock::new(|| {
    [true, false].map(|loopback| {
        let principal = Principal::new("holder", Permissions::Only(Default::default()));
        let keys = BearerCredentials {
            tokens: vec![BearerToken::new(TOKEN, principal)],
            jwt: Some(Arc::clone(&JWT)),
            ..BearerCredentials::default()
        };
        let settings = ServeAuthSettings {
            auth: Auth::TokenStore(BearerTokenStore::new(keys)),
            hosts: vec![HOST.to_owned()],
            origins: vec![ORIGIN.to_owned()],
        };
        Authenticator::new(settings, loopback)
    })
});

/// Checks the head of a request: a path, then `Name: value` lines. If a host or origin passes, a
/// second parser must also see a loopback or configured name, and no request passes without the
/// token.
pub fn head(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let path = lines.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim_matches([' ', '\t', '\r']);
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        {
            headers.append(name, value);
        }
    }
    check_proxies(&headers);
    for authenticator in AUTHENTICATORS.iter() {
        let rejection = authenticator.extract_credential(&headers, path).err();
        if rejection != Some(RejectionReason::Host) {
            check_host(&headers);
            if rejection != Some(RejectionReason::Origin) {
                check_origin(&headers);
            }
        }
        let admitted = authenticator.authenticate(&headers, path).now_or_never();
        match admitted.expect("completes without waiting") {
            Ok(Some(principal)) => {
                let value = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
                let parts = value.and_then(|value| value.split_at_checked("bearer ".len()));
                assert_eq!(
                    parts.map(|(_, token)| token),
                    Some(TOKEN.as_bytes()),
                    "{} was admitted",
                    principal.id()
                );
            }
            Ok(None) => drop(authenticator.metadata(&headers, path)),
            Err(reason) => drop(authenticator.reject(reason, &headers, path).into_response()),
        }
        let _ = authenticator.allowed_origin(&headers);
        if cors::is_preflight(&Method::OPTIONS, &headers) {
            drop(cors::preflight_response(&headers));
        }
    }
}

/// Checks that the client comes from a header of the request and is not a trusted proxy.
fn check_proxies(headers: &HeaderMap) {
    let proxies: TrustedProxies = ["127.0.0.0/8", "10.0.0.0/8", "2001:db8::/32"]
        .into_iter()
        .map(|network| network.parse::<ProxyNetwork>().expect("a network"))
        .collect();
    let Some(client) = proxies.client(headers) else { return };
    assert!(!proxies.contains(client), "{client} is a trusted proxy");
    assert_eq!(client, client.to_canonical());
    let is_present = |name: &str| {
        headers.get_all(name).iter().any(|value| value.to_str().is_ok_and(|text| !text.is_empty()))
    };
    assert!(is_present("x-forwarded-for") || is_present("forwarded"), "{client} is not in any header");
}

fn check_host(headers: &HeaderMap) {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if let Ok(authority) = host.parse::<Authority>() {
        let is_own = is_own_host(authority.host(), HOST);
        assert!(is_own, "Host: {host} passes, but names {}", authority.host());
    }
}

fn check_origin(headers: &HeaderMap) {
    let Some(origin) = headers.get(header::ORIGIN) else { return };
    let origin = origin.to_str().unwrap_or_default();
    if let Some((_, rest)) = origin.split_once("://")
        && let Ok(authority) = rest.parse::<Authority>()
    {
        let is_own = is_own_host(authority.host(), "app.example");
        assert!(is_own, "Origin: {origin} passes, but names {}", authority.host());
    }
}

fn is_own_host(host: &str, configured: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case(configured)
        || bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Checks JWTs. The first byte selects what the rest is: a token as a client sends it, claims, a
/// header and claims separated by a line break (both signed with the issuer's key), or a key set.
pub fn jwt(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    match kind % 4 {
        // The fuzzer does not have the key, so only tokens that were signed here may pass.
        0 => drop(verify_token(&text).map(|principal| check_principal(&principal))),
        1 => check_signed(r#"{"alg":"EdDSA","kid":"k"}"#, &text),
        2 => {
            let (head, claims) = text.split_once('\n').unwrap_or((&text, "{}"));
            check_signed(head, claims);
        }
        _ => check_keys(&text),
    }
}

fn verify_token(token: &str) -> Option<Principal> {
    JWT.verify(token).now_or_never().expect("completes without waiting").ok()
}

fn sign(head: &str, claims: &str) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims));
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(KEY.sign(signed.as_bytes())))
}

fn check_signed(head: &str, claims: &str) {
    let token = sign(head, claims);
    let Some(principal) = verify_token(&token) else { return };
    check_principal(&principal);
    let claims: Value = serde_json::from_str(claims).expect("claims that pass are JSON");
    let head: Value = serde_json::from_str(head).expect("a header that passes is JSON");
    assert_eq!((&head["alg"], &head["crit"]), (&json!("EdDSA"), &Value::Null));
    assert_eq!(claims["iss"], ISSUER);
    let audience = &claims["aud"];
    let named = audience == AUDIENCE || audience.as_array().is_some_and(|all| all.contains(&json!(AUDIENCE)));
    assert!(named, "{audience} passes");
    assert!(claims["exp"].is_number(), "{} passes", claims["exp"]);
    assert_eq!(claims["sub"].as_str().map(|sub| format!("jwt:{sub}")).as_deref(), Some(principal.id()));
    // The same token with a different signature must be rejected.
    let mut other = token.into_bytes();
    let last = other.len() - 10;
    other[last] = if other[last] == b'A' { b'B' } else { b'A' };
    assert!(verify_token(&String::from_utf8_lossy(&other)).is_none(), "a wrong signature passes");
}

fn check_principal(principal: &Principal) {
    let id = principal.id();
    assert!(id.starts_with("jwt:") && id.len() <= 300 && !id.contains(is_deceptive), "{id:?}");
    // The configuration maps claims to `read` only.
    match principal.permissions() {
        Permissions::All => assert!(id.is_empty(), "{id:?} has all permissions"),
        Permissions::Only(held) => assert!(held.iter().all(|one| one == "read"), "{held:?}"),
    }
}

/// Checks that any key set is parsed or rejected, and that it never accepts a signature of another
/// key.
fn check_keys(text: &str) {
    let Ok(keys) = Jwks::parse(text) else { return };
    let own = URL_SAFE_NO_PAD.encode(KEY.public_key().as_ref());
    for algorithm in Algorithm::ALL {
        for kid in [None, Some("k")] {
            let is_valid = keys.verify(kid, algorithm, b"signed", KEY.sign(b"signed").as_ref()).is_ok();
            assert!(!is_valid || text.contains(&own), "a signature of another key passes");
        }
    }
}
