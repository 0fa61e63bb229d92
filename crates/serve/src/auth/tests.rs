//! Which requests are admitted, which are rejected, and how.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response};
use axum::response::IntoResponse;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use toolyard_hub::{Permissions, Principal, Timestamp};

use super::{
    Auth, AuthRejection, Authenticator, BearerCredentials, BearerToken, BearerTokenStore, ErrorFormat,
    RejectionReason, ServeAuthSettings,
};

fn ada() -> Principal {
    Principal::new("ada", Permissions::All)
}

fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
    list.iter()
        .map(|(name, value)| ((*name).parse().unwrap(), HeaderValue::from_str(value).unwrap()))
        .collect()
}

async fn admit(list: &[(&'static str, &str)], path: &str) -> Result<Option<String>, RejectionReason> {
    let settings = ServeAuthSettings {
        auth: Auth::Tokens(vec![
            BearerToken::new("secret", ada()),
            BearerToken::new("old", ada()).with_expiry("2001-01-01T00:00:00Z".parse().unwrap()),
            BearerToken::new("young", ada()).with_expiry("9999-01-01T00:00:00Z".parse().unwrap()),
        ]),
        hosts: vec!["yard.example".to_owned()],
        origins: vec!["https://app.example".to_owned()],
    };
    let admitted = Authenticator::new(settings, true).authenticate(&headers(list), path).await?;
    Ok(admitted.map(|principal| principal.id().to_owned()))
}

async fn with_token(token: &str) -> Result<Option<String>, RejectionReason> {
    admit(&[("host", "127.0.0.1:8080"), ("authorization", token)], "/mcp").await
}

#[tokio::test]
async fn only_the_right_token_opens() {
    let host = ("host", "127.0.0.1:8080");
    let known = Ok(Some("ada".to_owned()));
    assert_eq!(admit(&[host], "/mcp").await, Err(RejectionReason::TokenMissing));
    for (authorization, expect) in [
        ("Basic secret", Err(RejectionReason::TokenMissing)),
        ("Bearer", Err(RejectionReason::TokenMissing)),
        ("", Err(RejectionReason::TokenMissing)),
        ("Bearer Secret", Err(RejectionReason::TokenUnknown)),
        ("Bearer ", Err(RejectionReason::TokenUnknown)),
        ("bearer secret", known.clone()),
        ("Bearer secret", known.clone()),
        ("Bearer  secret", Err(RejectionReason::TokenUnknown)),
        ("Bearer secret ", Err(RejectionReason::TokenUnknown)),
        ("Bearer secret\t", Err(RejectionReason::TokenUnknown)),
        ("Bearer old", Err(RejectionReason::TokenExpired)),
        ("Bearer young", known),
        // Without an issuer, a token with dots is an ordinary token.
        ("Bearer a.b.c", Err(RejectionReason::TokenUnknown)),
    ] {
        assert_eq!(with_token(authorization).await, expect, "{authorization:?}");
    }
    assert_eq!(admit(&[host], "/health").await, Ok(None));
    assert_eq!(admit(&[host], "/health/x").await, Err(RejectionReason::TokenMissing));
}

#[tokio::test]
async fn rebound_names_and_foreign_pages_are_turned_away() {
    let is_rejected = async |list: &[(&'static str, &str)]| {
        matches!(admit(list, "/health").await, Err(RejectionReason::Host | RejectionReason::Origin))
    };
    assert!(is_rejected(&[("host", "evil.example")]).await);
    assert!(is_rejected(&[("host", "127.0.0.1.evil.example")]).await);
    assert!(is_rejected(&[]).await);
    assert!(is_rejected(&[("host", "localhost"), ("origin", "http://evil.example")]).await);
    assert!(is_rejected(&[("host", "localhost"), ("origin", "http://localhost.evil.example")]).await);
    assert!(is_rejected(&[("host", "localhost"), ("origin", "null")]).await);
    assert!(!is_rejected(&[("host", "[::1]:8080"), ("origin", "http://localhost:5173")]).await);
    assert!(!is_rejected(&[("host", "yard.example:443"), ("origin", "https://app.example")]).await);
}

/// Returns whether a page of this origin is admitted if no token is required.
async fn without_auth(host: &str, origin: &str, path: &str) -> bool {
    let settings = ServeAuthSettings {
        auth: Auth::None(ada()),
        hosts: vec!["yard.example".to_owned()],
        origins: vec!["http://localhost:6274".to_owned()],
    };
    let authenticator = Authenticator::new(settings, true);
    match authenticator.authenticate(&headers(&[("host", host), ("origin", origin)]), path).await {
        Ok(Some(_)) => true,
        Err(RejectionReason::Origin) => false,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_auth_only_pages_of_the_own_origin_and_of_configured_ones_get_in() {
    for path in ["/control", "/mcp", "/mcp/tools/add/execute"] {
        for (host, origin, expected) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080", true),
            ("localhost:8080", "http://LOCALHOST:8080", true),
            ("[::1]:8080", "http://[::1]:8080", true),
            ("yard.example:8080", "http://yard.example:8080", true),
            ("localhost", "http://localhost", true),
            ("localhost:80", "http://localhost", true),
            ("localhost", "http://localhost:80", true),
            // Listed in the configuration.
            ("127.0.0.1:8080", "http://localhost:6274", true),
            // Pages of other servers on this machine.
            ("127.0.0.1:8080", "http://127.0.0.1:3000", false),
            ("localhost:8080", "http://localhost", false),
            ("127.0.0.1:8080", "http://localhost:8080", false),
            ("localhost:8080", "https://localhost:8080", false),
            ("localhost:8080", "http://localhost:8080.evil.example", false),
            ("localhost:8080", "null", false),
            ("localhost:8080", "", false),
        ] {
            assert_eq!(without_auth(host, origin, path).await, expected, "{host} {origin} {path}");
        }
    }
}

#[tokio::test]
async fn a_host_that_other_readers_would_take_for_another_is_turned_away() {
    for host in [
        "localhost:80@evil.example",
        "localhost:x",
        "[::1]evil.example",
        "[::1",
        "[::1]:80@evil.example",
        "127.0.0.1:80/x",
    ] {
        assert_eq!(admit(&[("host", host)], "/health").await, Err(RejectionReason::Host), "{host}");
        let origin = format!("http://{host}");
        let refused = admit(&[("host", "localhost"), ("origin", &origin)], "/health").await;
        assert_eq!(refused, Err(RejectionReason::Origin), "{origin}");
    }
    for host in ["localhost", "localhost:", "LOCALHOST:80", "[::1]", "[::1]:80", "yard.example:443"] {
        assert_eq!(admit(&[("host", host)], "/health").await, Ok(None), "{host}");
    }
}

#[tokio::test]
async fn tokens_removed_from_the_store_are_rejected() {
    let store = BearerTokenStore::new(BearerCredentials {
        tokens: vec![BearerToken::new("first", ada())],
        ..BearerCredentials::default()
    });
    assert_eq!(store.authenticate("first").await, Ok(ada()));
    store.clone().replace(BearerCredentials {
        tokens: vec![BearerToken::new("second", ada())],
        ..BearerCredentials::default()
    });
    assert_eq!(store.authenticate("first").await, Err(RejectionReason::TokenUnknown));
    assert_eq!(store.authenticate("second").await, Ok(ada()));
    let expired = BearerToken::new("third", ada()).with_expiry(Timestamp::now());
    store.replace(BearerCredentials { tokens: vec![expired], ..BearerCredentials::default() });
    assert_eq!(store.authenticate("third").await, Err(RejectionReason::TokenExpired));
}

#[tokio::test]
async fn a_revoked_token_is_rejected_although_it_is_listed() {
    let revoked = Sha256::digest(b"first").into();
    let store = BearerTokenStore::new(BearerCredentials {
        tokens: ["first", "second"].map(|secret| BearerToken::new(secret, ada())).into(),
        revoked: [revoked].into(),
        ..BearerCredentials::default()
    });
    assert_eq!(store.authenticate("first").await, Err(RejectionReason::TokenRevoked));
    assert_eq!(store.authenticate("second").await, Ok(ada()));
    assert_eq!(store.authenticate("third").await, Err(RejectionReason::TokenUnknown));
}

async fn body(response: Response<Body>) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn every_reason_has_its_answer() {
    let mut table = String::new();
    for reason in RejectionReason::ALL {
        let rejection =
            AuthRejection { reason, metadata: Some("http://y/m".to_owned()), format: ErrorFormat::Mcp };
        let response = rejection.into_response();
        let header = |name| response.headers().get(name).map_or("-", |value| value.to_str().unwrap());
        writeln!(table, "{} {} {}", reason.code(), response.status().as_u16(), header("www-authenticate"))
            .unwrap();
        writeln!(table, "  {}", body(response).await).unwrap();
    }
    insta::assert_snapshot!(table);
    let rest = AuthRejection {
        reason: RejectionReason::TokenExpired,
        metadata: None,
        format: ErrorFormat::for_path("/mcp/tools"),
    };
    let response = rest.into_response();
    let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert_eq!(
        challenge,
        r#"Bearer error="invalid_token", error_description="the bearer token has expired""#
    );
    let body: serde_json::Value = serde_json::from_str(&body(response).await).unwrap();
    assert_eq!(body["success"], false);
    assert_eq!(
        body["error"],
        serde_json::json!({
            "code": "AUTHENTICATION_ERROR",
            "message": "the bearer token has expired",
            "details": {"reason": "token_expired"},
        })
    );
    assert!(body["metadata"]["timestamp"].as_str().unwrap().parse::<Timestamp>().is_ok());
}

#[test]
fn the_reasons_in_the_documentation_are_those_of_the_code() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/concepts/access.md"))
        .unwrap();
    let documented: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| reason `")?.split_once('`'))
        .map(|(code, _)| code)
        .collect();
    assert_eq!(documented, RejectionReason::ALL.map(RejectionReason::code));
}
