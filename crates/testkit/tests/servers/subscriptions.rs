//! Resource subscriptions at a real server: the yard is subscribed to a resource only while a
//! client is.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallTarget, ClientCapabilities, Principal, ResourceSubscription, SourceName, SourceState, Yard, YardScope,
};
use toolyard_sdk::testing::TestCaller;
use toolyard_testkit::harness::within_timeout;
use toolyard_upstream::{Era, ServerSettings, TransportSettings, Upstream, UpstreamContext};

use super::ODD;
use super::tree::{command, keeper};

struct Server {
    yard: Arc<Yard>,
    upstream: Arc<Upstream>,
}

impl Server {
    async fn start(era: Era) -> Self {
        let transport = TransportSettings::Command(command(ODD, &["subscribable", "stdio"]));
        let settings =
            ServerSettings { era: Some(era), ..ServerSettings::new(SourceName::new("odd"), transport) };
        let me = to_raw(&json!({"name": "test", "version": "1"}));
        let upstream = Upstream::start(settings, UpstreamContext::new(keeper(), me).unwrap());
        let server = Self { yard: Yard::with_sources([Arc::clone(&upstream) as _]), upstream };
        server.until_ready().await;
        server
    }

    async fn until_ready(&self) {
        within_timeout("the server", async {
            while self.yard.status(&SourceName::new("odd")).unwrap().state != SourceState::Ready {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    fn subscribe(&self, uri: &str) -> ResourceSubscription {
        self.yard.subscribe(&Principal::owner(), &YardScope::All, uri).unwrap()
    }

    async fn call(&self, tool: &str) -> Value {
        let what = CallTarget::Tool { name: tool.to_owned(), arguments: None };
        let report =
            TestCaller::new().capabilities(ClientCapabilities::default()).request(&self.yard, what).await;
        report.outcome.map_or(Value::Null, |outcome| serde_json::from_str(outcome.body.get()).unwrap())
    }

    /// Waits until the server has exactly these subscriptions.
    async fn until_subscribed(&self, expected: &[&str]) {
        within_timeout(&format!("subscriptions to {expected:?}"), async {
            while self.call("subscriptions").await["structuredContent"]["uris"] != json!(expected) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_is_subscribed_only_while_a_client_is() {
    for era in [Era::Legacy, Era::Modern] {
        let server = Server::start(era).await;
        let first = server.subscribe("odd://1");
        let second = server.subscribe("odd://1");
        let other = server.subscribe("odd://2/x");
        server.until_subscribed(&["odd://1", "odd://2/x"]).await;
        drop((first, other));
        server.until_subscribed(&["odd://1"]).await;
        drop(second);
        server.until_subscribed(&[]).await;
        server.upstream.stop().await;
    }
}

#[tokio::test]
async fn thousands_that_come_and_go_leave_nothing_at_the_server() {
    for era in [Era::Legacy, Era::Modern] {
        let server = Server::start(era).await;
        let kept = server.subscribe("odd://1");
        for round in 0..5 {
            let held: Vec<_> =
                (0..200).map(|number| server.subscribe(&format!("odd://2/{round}-{number}"))).collect();
            // Long enough for some of them to reach the server.
            tokio::time::sleep(Duration::from_millis(5)).await;
            drop(held);
        }
        for number in 0..5_000 {
            drop(server.subscribe(&format!("odd://2/{number}")));
        }
        assert_eq!(server.yard.subscribed_uri_count(), 1);
        server.until_subscribed(&["odd://1"]).await;
        drop(kept);
        server.until_subscribed(&[]).await;
        server.upstream.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_subscribed_to_what_is_still_wanted() {
    for era in [Era::Legacy, Era::Modern] {
        let server = Server::start(era).await;
        let (kept, dropped) = (server.subscribe("odd://1"), server.subscribe("odd://3"));
        server.until_subscribed(&["odd://1", "odd://3"]).await;
        server.call("exit").await;
        drop(dropped);
        server.until_ready().await;
        server.until_subscribed(&["odd://1"]).await;
        drop(kept);
        server.upstream.stop().await;
    }
}
