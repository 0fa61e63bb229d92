//! Servers that send more than the limits allow: each fails at its limit, reports it, and does not
//! affect the others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use toolyard_hub::json::to_raw;
use toolyard_hub::{CallTarget, ClientCapabilities, DefinitionLimits, Source, SourceName, SourceState, Yard};
use toolyard_sdk::testing::{TestCaller, TestReport};
use toolyard_testkit::harness::within_timeout;
use toolyard_testkit::odd::{self, start_in_process};
use toolyard_upstream::{
    CredentialPolicy, DirectConnection, ServerListKind, ServerSettings, TransportSettings, Upstream,
    UpstreamContext, UrlKind, UrlSettings,
};

use super::ODD;
use super::raw_http::over_old_sse;
use super::tree::{command, keeper};

const MEGABYTE: usize = 1_000_000;

struct House {
    yard: Arc<Yard>,
    common: UpstreamContext,
    running: Vec<Arc<Upstream>>,
}

impl House {
    fn new(per_source: usize, total: usize) -> Self {
        let me = to_raw(&json!({"name": "test", "version": "1"}));
        let common = UpstreamContext::new(keeper(), me).unwrap();
        common.definitions.set_limits(DefinitionLimits { per_source, total });
        Self { yard: Yard::with_sources([]), common, running: Vec::new() }
    }

    fn start(&mut self, name: &str, kind: &str) -> Arc<Upstream> {
        let transport = TransportSettings::Command(command(ODD, &[kind, "stdio"]));
        let settings = ServerSettings::new(SourceName::new(name), transport);
        let upstream = Upstream::start(settings, self.common.clone());
        self.yard.add(Arc::clone(&upstream) as _);
        self.running.push(Arc::clone(&upstream));
        upstream
    }

    async fn call(&self, tool: &str, arguments: &str) -> TestReport {
        let arguments = serde_json::value::RawValue::from_string(arguments.to_owned()).unwrap();
        let what = CallTarget::Tool { name: tool.to_owned(), arguments: Some(arguments) };
        TestCaller::new().capabilities(ClientCapabilities::default()).request(&self.yard, what).await
    }

    /// Calls until there is a result. Reconnecting takes a moment.
    async fn call_until_it_works(&self, tool: &str) {
        let calling = async {
            while self.call(tool, "{}").await.outcome.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within_timeout("a call that works", calling).await;
    }

    async fn stop(self) {
        for upstream in &self.running {
            upstream.stop().await;
        }
        drop(self.running);
        drop(self.yard);
        assert_eq!(self.common.definitions.used(), 0);
    }
}

async fn until(upstream: &Upstream, what: &str, fits: impl Fn(&Upstream) -> bool) {
    let waiting = async {
        while !fits(upstream) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within_timeout(what, waiting).await;
}

async fn settled(upstream: &Upstream) {
    until(upstream, "the server to settle", |upstream| upstream.status().startup_complete).await;
}

#[tokio::test]
async fn a_list_without_an_end_fails_at_the_limit_of_one_source_and_hurts_no_other() {
    let mut house = House::new(5 * MEGABYTE, 50 * MEGABYTE);
    let (endless, sound) = (house.start("endless", "endless-pages"), house.start("sound", "legacy-only"));
    settled(&endless).await;
    settled(&sound).await;
    let status = endless.status();
    assert_eq!(status.state, SourceState::Retrying);
    let expected = "exceeds the limit of 5000000 bytes of definitions for one source \
                    (limits.definition_bytes_per_source)";
    assert_eq!(status.reason.as_deref(), Some(expected));
    assert!(status.suggestion.as_deref().unwrap().contains("[limits]"), "{status:?}");
    assert_eq!(sound.status().state, SourceState::Ready);
    let report = house.call("mcp__sound__echo", "{}").await;
    assert!(report.outcome.is_ok_and(|outcome| !outcome.failed));
    // The memory of the discarded list is free again.
    endless.stop().await;
    assert!(house.common.definitions.used() < MEGABYTE, "{}", house.common.definitions.used());
    drop((endless, sound));
    house.stop().await;
}

/// Read concurrently, each would get only a quarter of the space.
#[tokio::test]
async fn several_lists_without_an_end_take_up_the_room_of_one() {
    let mut house = House::new(12 * MEGABYTE, 30 * MEGABYTE);
    let all = ["one", "two", "three", "four"].map(|name| house.start(name, "endless-pages"));
    for endless in &all {
        until(endless, "the list to be given up", |endless| endless.status().reason.is_some()).await;
        let reason = endless.status().reason.unwrap_or_default();
        assert!(reason.contains("limits.definition_bytes_per_source"), "{reason}");
    }
    drop(all);
    house.stop().await;
}

#[tokio::test]
async fn above_the_total_the_newcomer_fails_and_has_room_once_another_is_gone() {
    // Each lists two tools in less than 200 bytes.
    let mut house = House::new(300, 300);
    let first = house.start("first", "legacy-only");
    settled(&first).await;
    assert_eq!(first.status().state, SourceState::Ready, "{:?}", first.status());
    let second = house.start("second", "legacy-only");
    settled(&second).await;
    let reason = second.status().reason.unwrap();
    assert_eq!(
        reason,
        "exceeds the limit of 300 bytes of definitions for all sources (limits.definition_bytes)"
    );
    assert_eq!((first.status().state, first.offer().tools.len()), (SourceState::Ready, 2));
    house.yard.remove(&SourceName::new("first"));
    house.running.remove(0);
    first.stop().await;
    drop(first);
    second.reconnect();
    until(&second, "the second server", |second| second.status().state == SourceState::Ready).await;
    drop(second);
    house.stop().await;
}

#[tokio::test]
async fn a_list_that_outgrows_the_limit_later_stays_as_it_was_and_the_status_says_why() {
    let mut house = House::new(3 * MEGABYTE, 50 * MEGABYTE);
    let grows = house.start("grows", "endless-later");
    until(&grows, "the warning", |grows| !grows.status().warnings.is_empty()).await;
    let status = grows.status();
    assert_eq!((status.state, grows.offer().tools.len()), (SourceState::Ready, 2));
    assert!(status.warnings[0].contains("limits.definition_bytes_per_source"), "{:?}", status.warnings);
    assert!(house.call("mcp__grows__echo", "{}").await.outcome.is_ok());
    drop(grows);
    house.stop().await;
}

#[tokio::test]
async fn a_message_above_the_limit_is_refused_and_the_next_call_works() {
    let mut house = House::new(5 * MEGABYTE, 50 * MEGABYTE);
    house.common.message_bytes.store(MEGABYTE, Ordering::Relaxed);
    let over_stdio = house.start("huge", "huge");
    settled(&over_stdio).await;
    let server = start_in_process(odd::Kind::Huge).await.unwrap();
    let url = UrlSettings { url: server.url.clone(), headers: [].into(), kind: UrlKind::Any };
    let settings = ServerSettings::new(SourceName::new("web"), TransportSettings::Url(url));
    let over_http = Upstream::start(settings, house.common.clone());
    house.yard.add(Arc::clone(&over_http) as _);
    house.running.push(Arc::clone(&over_http));
    settled(&over_http).await;
    for name in ["huge", "web"] {
        let report = house.call(&format!("mcp__{name}__huge"), r#"{"megabytes":2}"#).await;
        let error = report.outcome.unwrap_err().message().to_owned();
        assert!(error.contains("sent a message that exceeds the limit of 1000000 bytes"), "{name}: {error}");
    }
    let report = house.call("mcp__web__echo", "{}").await;
    assert!(report.outcome.is_ok(), "{:?}", report.outcome);
    house.call_until_it_works("mcp__huge__echo").await;
    drop((over_stdio, over_http));
    house.stop().await;
}

#[tokio::test]
async fn a_message_above_the_limit_over_the_old_transport_is_refused_and_the_next_call_works() {
    let mut house = House::new(5 * MEGABYTE, 50 * MEGABYTE);
    house.common.message_bytes.store(MEGABYTE, Ordering::Relaxed);
    let server = over_old_sse(2 * MEGABYTE).await;
    let url = UrlSettings { url: server.url.clone(), headers: [].into(), kind: UrlKind::LegacySse };
    let settings = ServerSettings::new(SourceName::new("old"), TransportSettings::Url(url));
    let upstream = Upstream::start(settings, house.common.clone());
    house.yard.add(Arc::clone(&upstream) as _);
    house.running.push(Arc::clone(&upstream));
    until(&upstream, "the server", |upstream| upstream.status().state == SourceState::Ready).await;
    let report = house.call("mcp__old__large", "{}").await;
    let error = report.outcome.unwrap_err().message().to_owned();
    assert!(
        error.contains("was lost: the server sent a message that exceeds the limit of 1000000 bytes"),
        "{error}"
    );
    house.call_until_it_works("mcp__old__small").await;
    drop(upstream);
    house.stop().await;
}

#[tokio::test]
async fn a_connection_for_testing_obeys_the_same_limits() {
    let house = House::new(5 * MEGABYTE, 50 * MEGABYTE);
    let server = start_in_process(odd::Kind::EndlessPages).await.unwrap();
    let url = UrlSettings { url: server.url.clone(), headers: [].into(), kind: UrlKind::Any };
    let settings = ServerSettings::new(SourceName::new("tested"), TransportSettings::Url(url));
    let abilities = ClientCapabilities::default();
    let link = DirectConnection::open(settings, &house.common, &abilities, CredentialPolicy::ConfiguredOnly)
        .await
        .unwrap();
    let error = link.list(ServerListKind::Tools).await.unwrap_err();
    assert!(error.message().contains("limits.definition_bytes_per_source"), "{}", error.message());
    assert_eq!(house.common.definitions.used(), 0);
    link.close().await;
    house.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_while_it_is_listed_again_does_not_delay_the_end() {
    let mut house = House::new(5 * MEGABYTE, 50 * MEGABYTE);
    let hangs = house.start("hangs", "hangs-later");
    settled(&hangs).await;
    // The server has received two list requests and answered one.
    let hung = async {
        loop {
            let report = house.call("mcp__hangs__requests", "{}").await;
            if report.outcome.unwrap().body.get().contains(r#""tools/list":2"#) {
                break;
            }
        }
    };
    within_timeout("the second list", hung).await;
    let stopping = tokio::time::timeout(Duration::from_secs(10), hangs.stop()).await;
    stopping.expect("the end waits for a list");
    drop(hangs);
    house.stop().await;
}
