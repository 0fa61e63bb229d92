//! Which hosts requests are sent to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use toolyard_hub::{ErrorKind, Secret};

use super::{Stage, text};
use crate::clients::HttpClients;
use crate::fake_server::{self, FakeServer, StaticResolver, answer, json};
use crate::host_policy::AllowedHosts;
use crate::operation::{Argument, ArgumentLocation, BodyEncoding, Method};
use crate::request::fixtures::{argument, body};

#[tokio::test]
async fn what_only_a_document_names_is_not_called_where_it_is_private() {
    let fake = FakeServer::start(|_, _| json("{}")).await;
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let error =
            Stage::as_documented(&format!("http://{host}:{}", fake.port)).call("{}").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotConnect);
        assert!(
            error.message().starts_with("`made` cannot be called: the document points to http://"),
            "{error}"
        );
        assert!(error.suggestion().unwrap().contains("allow_hosts"));
    }
    assert_eq!(fake.request_lines(), [""; 0]);
    let mut stage = Stage::as_documented(&fake.url());
    stage.named = AllowedHosts::new([], &[format!("127.0.0.1:{}", fake.port)]);
    stage.call("{}").await.unwrap();
    assert_eq!(fake.request_lines(), ["GET /a"]);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_found_out_when_it_is_looked_up() {
    let fake = FakeServer::start(|_, _| json("{}")).await;
    let mut stage = Stage::as_documented(&format!("http://api.example.com:{}", fake.port));
    stage.http = HttpClients::with_resolver(
        StaticResolver(vec![[127, 0, 0, 1].into(), [10, 0, 0, 1].into()]),
        &fake_server::tls_config(),
    )
    .unwrap();
    let error = stage.call("{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotConnect);
    let host = format!("http://api.example.com:{}", fake.port);
    let inside = "which is not a public address";
    assert_eq!(error.message(), format!("`made` cannot be called: the document points to {host}, {inside}"));
    assert_eq!(fake.request_lines(), [""; 0]);
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_and_keep_the_method_and_the_body() {
    let fake = FakeServer::start(|before, _| match before {
        0 => answer("308 Permanent Redirect", "location: /b\r\n", ""),
        1 => answer("307 Temporary Redirect", "location: c?x=1\r\n", ""),
        _ => json("{}"),
    })
    .await;
    let mut stage = Stage::of(&fake, Method::Post);
    stage.operation.body = Some(body(BodyEncoding::Json, "application/json"));
    stage.operation.arguments = vec![argument(ArgumentLocation::Body, "body")];
    stage.call(r#"{"body":[1e3]}"#).await.unwrap();
    assert_eq!(fake.request_lines(), ["POST /a", "POST /b", "POST /c?x=1"]);
    assert!(fake.requests().iter().all(|seen| seen.text() == "[1e3]"));

    let fake = FakeServer::start(|before, _| match before {
        0 => answer("303 See Other", "location: /done\r\n", ""),
        _ => json("{}"),
    })
    .await;
    let mut stage = Stage::of(&fake, Method::Post);
    stage.operation.body = Some(body(BodyEncoding::Text, "text/plain"));
    stage.operation.arguments = vec![argument(ArgumentLocation::Body, "body")];
    stage.call(r#"{"body":"x"}"#).await.unwrap();
    assert_eq!(fake.request_lines(), ["POST /a", "GET /done"]);
    assert_eq!((fake.requests()[1].header("content-type"), fake.requests()[1].text()), (None, ""));
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_told_and_nothing_is_sent_there() {
    let other = FakeServer::start(|_, _| json("{}")).await;
    let location = format!("location: http://127.0.0.1:{}/steal\r\n", other.port);
    let fake = FakeServer::start(move |_, _| answer("302 Found", &location, "")).await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.settings.headers.insert("Authorization".to_owned(), Secret::new("Bearer s3cret"));
    let outcome = stage.call("{}").await.unwrap();
    assert!(outcome.failed);
    assert!(text(&outcome).starts_with("HTTP 302 Found\nlocation: http://127.0.0.1:"));
    assert!(
        outcome.body.get().contains("[redirects to another origin are not followed; if you trust http://")
    );
    assert!(!outcome.body.get().contains("s3cret"));
    assert_eq!(other.request_lines(), [""; 0]);
}

#[tokio::test]
async fn going_round_in_circles_ends() {
    let fake = FakeServer::start(|_, _| answer("302 Found", "location: /a\r\n", "")).await;
    let error = Stage::of(&fake, Method::Get).call("{}").await.unwrap_err();
    assert_eq!(error.message(), format!("{} redirected the request more than 5 times", fake.url()));
    assert_eq!(fake.request_lines().len(), 6);
}

#[tokio::test]
async fn of_the_callers_headers_only_those_named_go_on() {
    let fake = FakeServer::start(|_, _| json("{}")).await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.settings.forward_headers = vec!["X-Tenant".to_owned()];
    stage.settings.headers.insert("X-Fixed".to_owned(), Secret::new("configured"));
    stage.operation.arguments =
        vec![Argument { required: true, ..argument(ArgumentLocation::Header, "X-Fixed") }];
    let callers = [("x-tenant", "t1"), ("authorization", "Bearer callers"), ("cookie", "c=1")];
    stage.call_with(r#"{"X-Fixed":"argument"}"#, &callers).await.unwrap();
    let seen = &fake.requests()[0];
    let of = |name| seen.header(name);
    assert_eq!(of("x-tenant"), Some("t1"));
    // An argument cannot override a configured header.
    assert_eq!(of("x-fixed"), Some("configured"));
    assert_eq!((of("authorization"), of("cookie")), (None, None));
}

#[tokio::test]
async fn connections_are_used_again() {
    let ports: Arc<AtomicU16> = Arc::default();
    let counted = Arc::clone(&ports);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while matches!(stream.read(&mut bytes).await, Ok(1..)) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
                }
            });
        }
    });
    let stage = Stage::at(&url, crate::request::fixtures::operation(Method::Get, "/a"));
    for _ in 0..5 {
        stage.call("{}").await.unwrap();
    }
    assert_eq!(ports.load(Ordering::Relaxed), 1);
    server.abort();
}
