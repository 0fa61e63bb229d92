//! Which alternative is selected, and the error when none can be satisfied.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use toolyard_hub::{ErrorKind, Secret};

use super::{AuthPlan, AuthStep, plan_auth};
use crate::operation::{
    ArgumentLocation, Method, Operation, SecurityRequirement, SecurityScheme, SecuritySchemeKind,
};
use crate::request::fixtures::operation;
use crate::settings::{ApiAuthSettings, ApiCredential, ClientAuthMethod, ClientCredentials, MissingAuth};

fn scheme(name: &str, kind: SecuritySchemeKind) -> SecurityScheme {
    SecurityScheme { name: name.to_owned(), kind }
}

fn schemes() -> Vec<SecurityScheme> {
    let key = |place| SecuritySchemeKind::ApiKey { place, wire_name: "X-Key".to_owned() };
    let client = SecuritySchemeKind::ClientCredentials { token_url: "/token".to_owned(), scopes: Vec::new() };
    vec![
        scheme("key", key(ArgumentLocation::Header)),
        scheme("query", key(ArgumentLocation::Query)),
        scheme("basic", SecuritySchemeKind::Basic),
        scheme("bearer", SecuritySchemeKind::Bearer),
        scheme("digest", SecuritySchemeKind::Http { scheme: "Digest".to_owned() }),
        scheme("oauth", client),
        scheme("oidc", SecuritySchemeKind::Token),
        scheme("tls", SecuritySchemeKind::Other { kind: "mutualTLS".to_owned() }),
    ]
}

/// An operation with these alternatives, each a list of scheme names. `oauth` needs the scope
/// `read`.
fn needing(alternatives: &[&[&str]]) -> Operation {
    let one = |name: &&str| SecurityRequirement {
        scheme: (*name).to_owned(),
        scopes: if *name == "oauth" { vec!["read".to_owned()] } else { Vec::new() },
    };
    let security = alternatives.iter().map(|all| all.iter().map(one).collect()).collect();
    Operation { security, ..operation(Method::Get, "/pets") }
}

fn with(credentials: &[(&str, ApiCredential)]) -> ApiAuthSettings {
    let schemes: BTreeMap<String, ApiCredential> =
        credentials.iter().map(|(name, credential)| ((*name).to_owned(), credential.clone())).collect();
    ApiAuthSettings { schemes, ..ApiAuthSettings::default() }
}

fn token(text: &str) -> ApiCredential {
    ApiCredential::Token(Secret::new(text))
}

fn basic() -> ApiCredential {
    ApiCredential::Basic { username: Secret::new("u"), password: Secret::new("p") }
}

fn client(token_url: Option<&str>) -> ApiCredential {
    ApiCredential::Client(ClientCredentials {
        id: Secret::new("id"),
        secret: Secret::new("s3cret"),
        token_url: token_url.map(str::to_owned),
        scopes: vec!["extra".to_owned(), "read".to_owned()],
        sending: ClientAuthMethod::Header,
    })
}

/// The planned steps, or the error.
fn planned(alternatives: &[&[&str]], settings: &ApiAuthSettings, present: &HeaderMap) -> String {
    let (operation, schemes) = (needing(alternatives), schemes());
    match plan_auth(&operation, &schemes, settings, present) {
        Ok(AuthPlan { steps }) => steps.iter().map(shown).collect::<Vec<_>>().join(" + "),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::CannotConnect);
            error.message_with_suggestion()
        }
    }
}

fn shown(step: &AuthStep<'_>) -> String {
    match step {
        AuthStep::Key { place, wire_name, value } => format!("{place:?} {wire_name}={value}"),
        AuthStep::Basic { username, password } => format!("Basic {username}:{password}"),
        AuthStep::Authorize { scheme, value } => format!("{scheme} {value}"),
        AuthStep::Fetched { token_url, scopes, .. } => format!("fetched {token_url} {}", scopes.join(",")),
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
    // With an optional alternative, credentials are still sent if they are configured.
    assert_eq!(planned(&[&[], &["key"]], &both, &none), "Header X-Key=k");
    assert_eq!(planned(&[&[], &["bearer"]], &both, &none), "");
    assert_eq!(planned(&[], &both, &none), "");
}

#[test]
fn every_kind_of_scheme_is_met_with_what_fits_it() {
    let none = HeaderMap::new();
    let met =
        |name: &str, credential: ApiCredential| planned(&[&[name]], &with(&[(name, credential)]), &none);
    assert_eq!(met("query", token("k")), "Query X-Key=k");
    assert_eq!(met("bearer", token("t")), "Bearer t");
    assert_eq!(met("digest", token("t")), "Digest t");
    assert_eq!(met("oidc", token("t")), "Bearer t");
    assert_eq!(met("oauth", token("t")), "Bearer t");
    assert_eq!(met("oauth", client(None)), "fetched /token extra,read");
    assert_eq!(met("oauth", client(Some("https://a/t"))), "fetched https://a/t extra,read");
    assert_eq!(met("oidc", client(Some("https://a/t"))), "fetched https://a/t extra,read");
    let bearer = ApiAuthSettings { bearer: Some(Secret::new("b")), ..ApiAuthSettings::default() };
    for name in ["bearer", "oidc", "oauth"] {
        assert_eq!(planned(&[&[name]], &bearer, &none), "Bearer b");
    }
}

#[test]
fn what_is_missing_is_said_before_anything_is_sent() {
    let none = HeaderMap::new();
    let refused = |name: &str, settings: &ApiAuthSettings| planned(&[&[name]], settings, &none);
    insta::assert_snapshot!(
        [
            refused("key", &ApiAuthSettings::default()),
            refused("basic", &with(&[("basic", token("k"))])),
            refused("oidc", &with(&[("oidc", client(None))])),
            refused("tls", &with(&[("tls", token("k"))])),
            refused("unknown", &ApiAuthSettings::default()),
            refused(
                "digest",
                &ApiAuthSettings { bearer: Some(Secret::new("b")), ..ApiAuthSettings::default() }
            ),
        ]
        .join("\n")
    );
    let send = ApiAuthSettings { missing: MissingAuth::Send, ..ApiAuthSettings::default() };
    assert_eq!(refused("key", &send), "");
}

#[test]
fn a_header_that_is_sent_anyway_is_enough() {
    let present = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer x"))]);
    let nothing = ApiAuthSettings::default();
    for name in ["bearer", "basic", "oauth", "oidc", "digest"] {
        assert_eq!(planned(&[&[name]], &nothing, &present), "", "{name}");
    }
    assert!(planned(&[&["key"]], &nothing, &present).contains("security scheme `key`"));
    let key = HeaderMap::from_iter([(http::HeaderName::from_static("x-key"), HeaderValue::from_static("k"))]);
    assert_eq!(planned(&[&["key"]], &nothing, &key), "");
}

#[test]
fn nothing_secret_is_shown_by_debug() {
    let settings = with(&[("a", token("s3cret-token")), ("b", basic()), ("c", client(None))]);
    let shown = format!("{settings:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("\"p\"") && !shown.contains("\"id\""), "{shown}");
}
