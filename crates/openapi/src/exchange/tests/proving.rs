//! Credentials on the wire, and tokens that are fetched for them.

use std::time::Duration;

use toolyard_hub::{ErrorKind, Secret};

use super::Stage;
use crate::fake_server::{FakeReply, FakeServer, RecordedRequest, answer, json};
use crate::operation::{ArgumentLocation, Method, SecurityRequirement, SecurityScheme, SecuritySchemeKind};
use crate::settings::{ApiCredential, ClientAuthMethod, ClientCredentials};

fn scheme(name: &str, kind: SecuritySchemeKind) -> SecurityScheme {
    SecurityScheme { name: name.to_owned(), kind }
}

fn needs(stage: &mut Stage, schemes: &[(&str, &[&str])]) {
    let one = |(name, scopes): &(&str, &[&str])| SecurityRequirement {
        scheme: (*name).to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    };
    stage.operation.security = vec![schemes.iter().map(one).collect()];
}

fn client(sending: ClientAuthMethod) -> ApiCredential {
    ApiCredential::Client(ClientCredentials {
        id: Secret::new("my id"),
        secret: Secret::new("s3:cret"),
        token_url: None,
        scopes: Vec::new(),
        sending,
    })
}

/// A stage behind a server that issues the tokens `t0`, `t1`, … by the number of requests.
fn behind(fake: &FakeServer, sending: ClientAuthMethod) -> Stage {
    let mut stage = Stage::of(fake, Method::Get);
    let kind = SecuritySchemeKind::ClientCredentials { token_url: "/token".to_owned(), scopes: Vec::new() };
    stage.schemes = vec![scheme("oauth", kind)];
    stage.settings.auth.schemes.insert("oauth".to_owned(), client(sending));
    needs(&mut stage, &[("oauth", &["read", "write"])]);
    stage
}

fn granted(before: usize, life: &str) -> FakeReply {
    json(&format!(r#"{{"access_token":"t{before}","token_type":"bearer","expires_in":{life}}}"#))
}

fn lines_and_tokens(fake: &FakeServer) -> Vec<String> {
    let line_and_token =
        |seen: RecordedRequest| format!("{} {}", seen.line, seen.header("authorization").unwrap_or("-"));
    fake.requests().into_iter().map(line_and_token).collect()
}

#[tokio::test]
async fn every_credential_is_where_its_scheme_has_it() {
    let fake = FakeServer::start(|_, _| json("{}")).await;
    let mut stage = Stage::of(&fake, Method::Get);
    let key = |place, wire_name: &str| SecuritySchemeKind::ApiKey { place, wire_name: wire_name.to_owned() };
    stage.schemes = vec![
        scheme("header", key(ArgumentLocation::Header, "X-Key")),
        scheme("query", key(ArgumentLocation::Query, "api key")),
        scheme("cookie", key(ArgumentLocation::Cookie, "sid")),
        scheme("basic", SecuritySchemeKind::Basic),
    ];
    for name in ["header", "query", "cookie"] {
        stage
            .settings
            .auth
            .schemes
            .insert(name.to_owned(), ApiCredential::Token(Secret::new(format!("{name} k&y"))));
    }
    let basic = ApiCredential::Basic { username: Secret::new("ann"), password: Secret::new("p:ß") };
    stage.settings.auth.schemes.insert("basic".to_owned(), basic);
    needs(&mut stage, &[("header", &[]), ("query", &[]), ("cookie", &[]), ("basic", &[])]);
    stage.call("{}").await.unwrap();
    let seen = &fake.requests()[0];
    assert_eq!(seen.line, "GET /a?api%20key=query%20k%26y");
    assert_eq!(seen.header("x-key"), Some("header k&y"));
    assert_eq!(seen.header("cookie"), Some("sid=cookie k&y"));
    assert_eq!(seen.header("authorization"), Some("Basic YW5uOnA6w58="));
}

#[tokio::test]
async fn a_cookie_credential_is_sent_as_configured() {
    let fake = FakeServer::start(|_, _| json("{}")).await;
    let mut stage = Stage::of(&fake, Method::Get);
    let cookie = SecuritySchemeKind::ApiKey { place: ArgumentLocation::Cookie, wire_name: "sid".to_owned() };
    stage.schemes = vec![scheme("cookie", cookie)];
    needs(&mut stage, &[("cookie", &[])]);
    let key = ApiCredential::Token(Secret::new("a+b/c=="));
    stage.settings.auth.schemes.insert("cookie".to_owned(), key);
    stage.call("{}").await.unwrap();
    assert_eq!(fake.requests()[0].header("cookie"), Some("sid=a+b/c=="));
    let broken = ApiCredential::Token(Secret::new("a\r\nx-evil: 1"));
    stage.settings.auth.schemes.insert("cookie".to_owned(), broken);
    assert!(stage.call("{}").await.is_err());
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn a_call_that_lacks_its_credentials_is_not_sent() {
    let fake = FakeServer::start(|_, _| json("{}")).await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.schemes = vec![scheme("bearer", SecuritySchemeKind::Bearer)];
    needs(&mut stage, &[("bearer", &[])]);
    assert_eq!(stage.call("{}").await.unwrap_err().kind(), ErrorKind::CannotConnect);
    assert_eq!(fake.request_lines(), [""; 0]);
}

#[tokio::test]
async fn a_token_is_fetched_once_and_kept() {
    let fake = FakeServer::start(|before, seen| {
        if seen.line.starts_with("POST /token") { granted(before, "3600") } else { json("{}") }
    })
    .await;
    let stage = behind(&fake, ClientAuthMethod::Header);
    let mut all = tokio::task::JoinSet::new();
    let stage = std::sync::Arc::new(stage);
    for _ in 0..8 {
        let stage = std::sync::Arc::clone(&stage);
        all.spawn(async move { stage.call("{}").await.map(drop) });
    }
    while let Some(done) = all.join_next().await {
        done.unwrap().unwrap();
    }
    let seen = fake.requests();
    assert_eq!(seen.len(), 9);
    assert_eq!(seen[0].line, "POST /token");
    assert_eq!(seen[0].text(), "grant_type=client_credentials&scope=read%20write");
    assert_eq!(seen[0].header("authorization"), Some("Basic bXklMjBpZDpzMyUzQWNyZXQ="));
    assert!(seen[1..].iter().all(|seen| seen.header("authorization") == Some("Bearer t0")));
}

#[tokio::test]
async fn each_set_of_scopes_has_a_token_of_its_own() {
    let fake = FakeServer::start(|before, seen| {
        if seen.line.starts_with("POST /token") { granted(before, "\"3600\"") } else { json("{}") }
    })
    .await;
    let mut stage = behind(&fake, ClientAuthMethod::Body);
    stage.call("{}").await.unwrap();
    needs(&mut stage, &[("oauth", &["write", "read"])]);
    stage.call("{}").await.unwrap();
    needs(&mut stage, &[("oauth", &["admin"])]);
    stage.call("{}").await.unwrap();
    assert_eq!(
        lines_and_tokens(&fake),
        ["POST /token -", "GET /a Bearer t0", "GET /a Bearer t0", "POST /token -", "GET /a Bearer t3"]
    );
    let bodies: Vec<String> =
        fake.requests().iter().map(|seen| seen.text().to_owned()).filter(|body| !body.is_empty()).collect();
    assert_eq!(
        bodies,
        [
            "grant_type=client_credentials&scope=read%20write&client_id=my%20id&client_secret=s3%3Acret",
            "grant_type=client_credentials&scope=admin&client_id=my%20id&client_secret=s3%3Acret",
        ]
    );
}

#[tokio::test]
async fn a_rejected_token_is_fetched_again_and_the_call_repeated_once() {
    let fake = FakeServer::start(|before, seen| match seen.line.as_str() {
        "POST /token" => granted(before, "3600"),
        _ if seen.header("authorization") == Some("Bearer t0") => answer("401 Unauthorized", "", "stale"),
        _ => json("{}"),
    })
    .await;
    let mut stage = behind(&fake, ClientAuthMethod::Header);
    // A rejected request is also repeated if its method is not idempotent, because it had no
    // effect.
    stage.operation.method = Method::Post;
    assert!(!stage.call("{}").await.unwrap().failed);
    assert_eq!(
        lines_and_tokens(&fake)
            .iter()
            .map(|line| line.replace("Basic bXklMjBpZDpzMyUzQWNyZXQ=", "-"))
            .collect::<Vec<_>>(),
        ["POST /token -", "POST /a Bearer t0", "POST /token -", "POST /a Bearer t2"]
    );
    let never = FakeServer::start(|before, seen| match seen.line.as_str() {
        "POST /token" => granted(before, "3600"),
        _ => answer("401 Unauthorized", "", "no"),
    })
    .await;
    assert!(behind(&never, ClientAuthMethod::Header).call("{}").await.unwrap().failed);
    assert_eq!(never.request_lines().len(), 4);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_runs_out() {
    let fake = FakeServer::start(|before, seen| {
        if seen.line.starts_with("POST /token") { granted(before, "2") } else { json("{}") }
    })
    .await;
    let stage = behind(&fake, ClientAuthMethod::Body);
    stage.call("{}").await.unwrap();
    stage.call("{}").await.unwrap();
    // The token is renewed when a tenth of its lifetime is left. This is a real delay: a paused
    // clock would advance while the test waits for the network.
    tokio::time::sleep(Duration::from_millis(1_810)).await;
    stage.call("{}").await.unwrap();
    assert_eq!(
        lines_and_tokens(&fake),
        ["POST /token -", "GET /a Bearer t0", "GET /a Bearer t0", "POST /token -", "GET /a Bearer t3"]
    );
}

#[tokio::test]
async fn a_failed_token_request_is_reported_without_the_secret() {
    let cases: [(FakeReply, &str); 4] = [
        (
            answer(
                "401 Unauthorized",
                "",
                r#"{"error":"invalid_client","error_description":"s3:cret is wrong"}"#,
            ),
            "it returned HTTP 401 (invalid_client)",
        ),
        (answer("500 Oops", "", "s3:cret"), "it returned HTTP 500"),
        (json(r#"{"access_token":""}"#), "its response is not a valid token response"),
        (json("s3:cret"), "its response is not a valid token response"),
    ];
    for (reply, why) in cases {
        let fake = FakeServer::start(move |_, _| reply.clone()).await;
        let error = behind(&fake, ClientAuthMethod::Header).call("{}").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotConnect);
        assert_eq!(error.message_with_suggestion(), format!("{} did not issue a token: {why}", fake.url()));
        assert_eq!(fake.request_lines(), ["POST /token"]);
    }
}

#[tokio::test]
async fn a_document_cannot_have_the_secret_sent_inside() {
    let inside = FakeServer::start(|before, _| granted(before, "1")).await;
    let fake = FakeServer::start(|_, _| json("{}")).await;
    let mut stage = behind(&fake, ClientAuthMethod::Header);
    let token_url = format!("http://localhost:{}/token", inside.port);
    stage.schemes =
        vec![scheme("oauth", SecuritySchemeKind::ClientCredentials { token_url, scopes: Vec::new() })];
    let error = stage.call("{}").await.unwrap_err();
    assert!(error.message().contains("which is not a public address"), "{error}");
    assert_eq!(inside.request_lines(), [""; 0]);
}
