//! How long a call waits for a server, and what happens to calls whose session the server dropped.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{CallTarget, ClientCapabilities, ErrorKind, SourceName, SourceState, Yard};
use toolyard_sdk::testing::{TestCaller, TestReport};
use toolyard_testkit::harness::{Server, within_timeout};
use toolyard_upstream::{ServerSettings, TransportSettings, Upstream, UpstreamContext, UrlKind, UrlSettings};

use super::ODD;
use super::tree::{command, keeper};

async fn yard(transport: TransportSettings, silence: Duration) -> (Arc<Yard>, Arc<Upstream>) {
    let settings =
        ServerSettings { call_timeout: silence, ..ServerSettings::new(SourceName::new("server"), transport) };
    let common = UpstreamContext::new(keeper(), to_raw(&json!({"name": "test", "version": "1"}))).unwrap();
    let upstream = Upstream::start(settings, common);
    let yard = Yard::with_sources([Arc::clone(&upstream) as _]);
    let ready = async {
        while yard.statuses()[0].1.state != SourceState::Ready {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_timeout("the server", ready).await;
    (yard, upstream)
}

async fn call(yard: &Arc<Yard>, tool: &str, arguments: Value) -> TestReport {
    let what = CallTarget::Tool { name: tool.to_owned(), arguments: Some(to_raw(&arguments)) };
    within_timeout(
        "the call",
        TestCaller::new().capabilities(ClientCapabilities::default()).request(yard, what),
    )
    .await
}

#[tokio::test]
async fn progress_keeps_a_long_call_alive_and_silence_ends_it() {
    let transport = TransportSettings::Command(command(ODD, &["progress-then-silence", "stdio"]));
    let (yard, upstream) = yard(transport, Duration::from_millis(500)).await;
    // The call takes twice the idle timeout, but reports progress in between.
    let steady = call(&yard, "steady", json!({"steps": 10, "every_ms": 100})).await;
    assert!(steady.outcome.is_ok(), "{:?}", steady.outcome);
    let seen: Vec<f64> = steady.progress.iter().map(|progress| progress.progress).collect();
    assert_eq!(seen, (1..=10).map(f64::from).collect::<Vec<_>>());
    let silent = call(&yard, "silence", json!({"steps": 2, "every_ms": 10})).await;
    assert_eq!(silent.error_kind(), Some(ErrorKind::TimedOut), "{:?}", silent.outcome);
    assert_eq!(silent.progress.len(), 2);
    upstream.stop().await;
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_opened_again_and_no_call_is_lost() {
    let server = Server::start(ODD, &["forgets-session", "http"]).await;
    let url = format!("http://{}/mcp", server.address);
    let settings = UrlSettings { url, headers: std::collections::BTreeMap::default(), kind: UrlKind::Any };
    let (yard, upstream) = yard(TransportSettings::Url(settings), Duration::from_secs(10)).await;
    for at in 0..35 {
        let report = call(&yard, "echo", json!({"text": format!("call {at}")})).await;
        assert!(report.outcome.is_ok(), "call {at}: {:?}", report.outcome);
    }
    upstream.stop().await;
}
