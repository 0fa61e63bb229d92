//! Responses that are slow, large or unusual, or that ask for a retry.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::time::Instant;
use toolyard_hub::ErrorKind;

use super::{Stage, text};
use crate::fake_server::{FakeReply, FakeServer, answer, json};
use crate::operation::Method;

#[tokio::test]
async fn a_server_that_asks_for_patience_is_asked_again_where_that_does_no_harm() {
    let busy = |before: usize| match before {
        0 => answer("429 Too Many Requests", "retry-after: 0\r\n", "slow down"),
        1 => answer("503 Service Unavailable", "retry-after: 1\r\n", ""),
        _ => json(r#"{"ok":true}"#),
    };
    let fake = FakeServer::start(move |before, _| busy(before)).await;
    let began = Instant::now();
    let outcome = Stage::of(&fake, Method::Put).call("{}").await.unwrap();
    assert_eq!(text(&outcome), r#"{"ok":true}"#);
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(fake.request_lines(), ["PUT /a", "PUT /a", "PUT /a"]);

    let fake = FakeServer::start(move |before, _| busy(before)).await;
    let outcome = Stage::of(&fake, Method::Post).call("{}").await.unwrap();
    assert!(outcome.failed);
    assert_eq!(text(&outcome), "HTTP 429 Too Many Requests\nretry-after: 0\n\nslow down");
    assert_eq!(fake.request_lines(), ["POST /a"]);
}

#[tokio::test]
async fn patience_ends_with_the_tries_and_with_the_time() {
    let fake = FakeServer::start(|_, _| answer("503 Service Unavailable", "retry-after: 0\r\n", "")).await;
    assert!(Stage::of(&fake, Method::Get).call("{}").await.unwrap().failed);
    assert_eq!(fake.request_lines().len(), 4);
    // The delay exceeds the time limit, so the response is returned immediately.
    let fake = FakeServer::start(|_, _| {
        answer("503 Service Unavailable", "retry-after: 18446744073709551615\r\n", "")
    })
    .await;
    assert!(Stage::of(&fake, Method::Get).call("{}").await.unwrap().failed);
    assert_eq!(fake.request_lines().len(), 1);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let fake = FakeServer::start(|_, _| FakeReply::Silence).await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.settings.call_time = Duration::from_millis(200);
    let error = stage.call("{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.message(), "`made` did not answer within 0.2 s");
    // A response that stops halfway.
    let fake =
        FakeServer::start(|_, _| FakeReply::Endless(b"200 OK\r\ncontent-length: 10\r\n\r\nabc".to_vec()))
            .await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.settings.call_time = Duration::from_millis(200);
    assert_eq!(stage.call("{}").await.unwrap_err().kind(), ErrorKind::TimedOut);
}

#[tokio::test]
async fn dropping_a_call_hangs_up() {
    let fake = FakeServer::start(|_, _| FakeReply::Silence).await;
    let stage = Stage::of(&fake, Method::Get);
    let call = stage.call("{}");
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    assert_eq!(fake.request_lines(), ["GET /a"]);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_and_text_is_cut() {
    let fake = FakeServer::start(|_, _| json(&format!("[{}1]", "1,".repeat(10_000)))).await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.settings.largest_answer = 1_000;
    let error = stage.call("{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolFailed);
    assert_eq!(error.message(), format!("the response of {} exceeds the limit of 1000 bytes", fake.url()));
    let fake =
        FakeServer::start(|_, _| answer("200 OK", "content-type: text/plain\r\n", "x".repeat(10_000))).await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.settings.largest_answer = 1_000;
    let outcome = stage.call("{}").await.unwrap();
    assert_eq!(text(&outcome), "x".repeat(1_000));
    assert!(outcome.body.get().contains("[truncated: only the first 1000 bytes were read]"));
}

#[tokio::test]
async fn a_stream_without_an_end_is_told_as_far_as_it_came() {
    let stream = b"200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\ndata: 2\n\n".to_vec();
    let fake = FakeServer::start(move |_, _| FakeReply::Endless(stream.clone())).await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.settings.call_time = Duration::from_millis(800);
    let outcome = stage.call("{}").await.unwrap();
    assert_eq!(text(&outcome), "data: 1\n\ndata: 2\n\n");
    assert!(outcome.body.get().contains("[truncated: 18 bytes were received before the timeout]"));
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn an_answer_that_is_gzip_encoded_unasked_is_read() {
    let packed = gzipped(br#"{"ok":true}"#);
    let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    let fake = FakeServer::start(move |_, _| answer("200 OK", headers, &packed)).await;
    let outcome = Stage::of(&fake, Method::Get).call("{}").await.unwrap();
    assert!(outcome.body.get().contains(r#""structuredContent":{"ok":true}"#), "{}", outcome.body.get());
    assert_eq!(fake.requests()[0].header("accept-encoding"), None);
}

#[tokio::test]
async fn a_small_answer_that_unpacks_to_a_large_one_is_refused() {
    let packed = gzipped(&vec![b'0'; 1_000_000]);
    assert!(packed.len() < 10_000);
    let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    let fake = FakeServer::start(move |_, _| answer("200 OK", headers, &packed)).await;
    let mut stage = Stage::of(&fake, Method::Get);
    stage.settings.largest_answer = 10_000;
    let error = stage.call("{}").await.unwrap_err();
    assert_eq!(error.message(), format!("the response of {} exceeds the limit of 10000 bytes", fake.url()));
}

#[tokio::test]
async fn an_encoding_that_cannot_be_read_is_told_by_its_name() {
    let fake = FakeServer::start(|_, _| answer("200 OK", "content-encoding: br\r\n", [0x1f, 0x8b])).await;
    let error = Stage::of(&fake, Method::Get).call("{}").await.unwrap_err();
    assert_eq!(error.message(), format!("{} responded with the unsupported content encoding br", fake.url()));
    let fake = FakeServer::start(|_, _| answer("200 OK", "content-encoding: gzip\r\n", [0x1f, 0x8b])).await;
    let error = Stage::of(&fake, Method::Get).call("{}").await.unwrap_err();
    assert!(error.message().contains("cannot decompress the response"), "{}", error.message());
}

#[tokio::test]
async fn garbage_and_a_server_that_is_not_there_are_told_apart() {
    let fake = FakeServer::start(|_, _| FakeReply::Whole(b"garbage\0\r\n\r\n".to_vec())).await;
    assert_eq!(Stage::of(&fake, Method::Get).call("{}").await.unwrap_err().kind(), ErrorKind::ConnectionLost);
    let fake =
        FakeServer::start(|_, _| FakeReply::Whole(b"200 OK\r\ncontent-length: 10\r\n\r\nabc".to_vec())).await;
    assert_eq!(Stage::of(&fake, Method::Get).call("{}").await.unwrap_err().kind(), ErrorKind::ConnectionLost);
    let gone = fake.url();
    drop(fake);
    let error = Stage::at(&gone, crate::request::fixtures::operation(Method::Get, "/a"))
        .call("{}")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotConnect);
}
