//! Which alternative is chosen, and what is said when none can be met.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use toolyard_hub::{Kind, Secret};

use super::{Plan, Step, plan};
use crate::operation::{Method, Operation, Place, Requirement, Scheme, SchemeKind};
use crate::request::made::operation;
use crate::settings::{AuthSettings, ClientSending, ClientSettings, Credential, MissingAuth};

fn scheme(name: &str, kind: SchemeKind) -> Scheme {
    Scheme { name: name.to_owned(), kind }
}

fn schemes() -> Vec<Scheme> {
    let key = |place| SchemeKind::ApiKey { place, wire_name: "X-Key".to_owned() };
    let client = SchemeKind::ClientCredentials { token_url: "/token".to_owned(), scopes: Vec::new() };
    vec![
        scheme("key", key(Place::Header)),
        scheme("query", key(Place::Query)),
        scheme("basic", SchemeKind::Basic),
        scheme("bearer", SchemeKind::Bearer),
        scheme("digest", SchemeKind::Http { scheme: "Digest".to_owned() }),
        scheme("oauth", client),
        scheme("oidc", SchemeKind::Token),
        scheme("tls", SchemeKind::Other { kind: "mutualTLS".to_owned() }),
    ]
}

/// An operation whose alternatives are these, each of them all of its names; `oauth` needs the scope `read`.
fn needing(alternatives: &[&[&str]]) -> Operation {
    let one = |name: &&str| Requirement {
        scheme: (*name).to_owned(),
        scopes: if *name == "oauth" { vec!["read".to_owned()] } else { Vec::new() },
    };
    let security = alternatives.iter().map(|all| all.iter().map(one).collect()).collect();
    Operation { security, ..operation(Method::Get, "/pets") }
}

fn with(credentials: &[(&str, Credential)]) -> AuthSettings {
    let schemes: BTreeMap<String, Credential> =
        credentials.iter().map(|(name, credential)| ((*name).to_owned(), credential.clone())).collect();
    AuthSettings { schemes, ..AuthSettings::default() }
}

fn token(text: &str) -> Credential {
    Credential::Token(Secret::new(text))
}

fn basic() -> Credential {
    Credential::Basic { username: Secret::new("u"), password: Secret::new("p") }
}

fn client(token_url: Option<&str>) -> Credential {
    Credential::Client(ClientSettings {
        id: Secret::new("id"),
        secret: Secret::new("s3cret"),
        token_url: token_url.map(str::to_owned),
        scopes: vec!["extra".to_owned(), "read".to_owned()],
        sending: ClientSending::Header,
    })
}

/// What is done, or what is said.
fn planned(alternatives: &[&[&str]], settings: &AuthSettings, present: &HeaderMap) -> String {
    let (operation, schemes) = (needing(alternatives), schemes());
    match plan(&operation, &schemes, settings, present) {
        Ok(Plan { steps }) => steps.iter().map(shown).collect::<Vec<_>>().join(" + "),
        Err(error) => {
            assert_eq!(error.kind(), Kind::CannotConnect);
            error.sentence()
        }
    }
}

fn shown(step: &Step<'_>) -> String {
    match step {
        Step::Key { place, wire_name, value } => format!("{place:?} {wire_name}={value}"),
        Step::Basic { username, password } => format!("Basic {username}:{password}"),
        Step::Authorize { scheme, value } => format!("{scheme} {value}"),
        Step::Fetched { token_url, scopes, .. } => format!("fetched {token_url} {}", scopes.join(",")),
    }
}

#[test]
fn the_first_alternative_that_can_be_met_is_taken() {
    let none = HeaderMap::new();
    let both = with(&[("key", token("k")), ("basic", basic())]);
    assert_eq!(
        planned(&[&["bearer"], &["key", "basic"], &["key"]], &both, &none),
        "Header X-Key=k + Basic u:p"
    );
    assert_eq!(planned(&[&["bearer", "key"], &["key"]], &both, &none), "Header X-Key=k");
    // Who may say nothing says what there is to say.
    assert_eq!(planned(&[&[], &["key"]], &both, &none), "Header X-Key=k");
    assert_eq!(planned(&[&[], &["bearer"]], &both, &none), "");
    assert_eq!(planned(&[], &both, &none), "");
}

#[test]
fn every_kind_of_scheme_is_met_with_what_fits_it() {
    let none = HeaderMap::new();
    let met = |name: &str, credential: Credential| planned(&[&[name]], &with(&[(name, credential)]), &none);
    assert_eq!(met("query", token("k")), "Query X-Key=k");
    assert_eq!(met("bearer", token("t")), "Bearer t");
    assert_eq!(met("digest", token("t")), "Digest t");
    assert_eq!(met("oidc", token("t")), "Bearer t");
    assert_eq!(met("oauth", token("t")), "Bearer t");
    assert_eq!(met("oauth", client(None)), "fetched /token extra,read");
    assert_eq!(met("oauth", client(Some("https://a/t"))), "fetched https://a/t extra,read");
    assert_eq!(met("oidc", client(Some("https://a/t"))), "fetched https://a/t extra,read");
    let bearer = AuthSettings { bearer: Some(Secret::new("b")), ..AuthSettings::default() };
    for name in ["bearer", "oidc", "oauth"] {
        assert_eq!(planned(&[&[name]], &bearer, &none), "Bearer b");
    }
}

#[test]
fn what_is_missing_is_said_before_anything_is_sent() {
    let none = HeaderMap::new();
    let refused = |name: &str, settings: &AuthSettings| planned(&[&[name]], settings, &none);
    insta::assert_snapshot!(
        [
            refused("key", &AuthSettings::default()),
            refused("basic", &with(&[("basic", token("k"))])),
            refused("oidc", &with(&[("oidc", client(None))])),
            refused("tls", &with(&[("tls", token("k"))])),
            refused("nobody", &AuthSettings::default()),
            refused("digest", &AuthSettings { bearer: Some(Secret::new("b")), ..AuthSettings::default() }),
        ]
        .join("\n")
    );
    let send = AuthSettings { missing: MissingAuth::Send, ..AuthSettings::default() };
    assert_eq!(refused("key", &send), "");
}

#[test]
fn a_header_that_is_sent_anyway_is_enough() {
    let present = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer x"))]);
    let nothing = AuthSettings::default();
    for name in ["bearer", "basic", "oauth", "oidc", "digest"] {
        assert_eq!(planned(&[&[name]], &nothing, &present), "", "{name}");
    }
    assert!(planned(&[&["key"]], &nothing, &present).contains("needs key"));
    let key = HeaderMap::from_iter([(http::HeaderName::from_static("x-key"), HeaderValue::from_static("k"))]);
    assert_eq!(planned(&[&["key"]], &nothing, &key), "");
}

#[test]
fn nothing_secret_is_shown_by_debug() {
    let settings = with(&[("a", token("s3cret-token")), ("b", basic()), ("c", client(None))]);
    let shown = format!("{settings:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("\"p\"") && !shown.contains("\"id\""), "{shown}");
}
