//! Process servers that support both eras: each era has its own process, and no more processes are
//! started than needed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallContext, CallRequest, CallTarget, ClientEra, Principal, SourceCommand, SourceName, SourceState, Yard,
    YardScope,
};
use toolyard_testkit::harness::{Scratch, within_timeout};
use toolyard_upstream::{ServerSettings, TransportSettings, Upstream, UpstreamContext};

use super::ODD;
use super::tree::{command, keeper, mark, marked, nothing_left};

struct Server {
    yard: Arc<Yard>,
    upstream: Arc<Upstream>,
    mark: String,
    scratch: Scratch,
}

impl Server {
    async fn start(kind: &str) -> Self {
        let (mark, scratch) = (mark(), Scratch::new());
        let starts = scratch.path("starts").display().to_string();
        let script = r#"echo started >> "$4"; "$1" "$2" stdio"#;
        let args = ["-c", script, "sh", ODD, kind, &mark, &starts];
        let transport = TransportSettings::Command(command("sh", &args));
        let settings = ServerSettings::new(SourceName::new("odd"), transport);
        let me = to_raw(&json!({"name": "test", "version": "1"}));
        let upstream = Upstream::start(settings, UpstreamContext::new(keeper(), me).unwrap());
        let server = Self { yard: Yard::with_sources([Arc::clone(&upstream) as _]), upstream, mark, scratch };
        server.until(SourceState::Ready).await;
        server
    }

    async fn until(&self, state: SourceState) {
        within_timeout(&format!("the server to be {state:?}"), async {
            while self.yard.status(&SourceName::new("odd")).unwrap().state != state {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    fn processes(&self) -> usize {
        let is_shell = |pid: &u32| {
            std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with(b"sh\0")
        };
        marked(&self.mark).iter().filter(|pid| is_shell(pid)).count()
    }

    /// Returns how many processes have been started for the server.
    fn starts(&self) -> usize {
        std::fs::read_to_string(self.scratch.path("starts")).unwrap().lines().count()
    }

    async fn call(&self, era: ClientEra, tool: &str) -> Value {
        self.yard.discover_era(era, &YardScope::All, Duration::from_secs(60)).await;
        let what = CallTarget::Tool { name: tool.to_owned(), arguments: None };
        let context = CallContext { era, ..CallContext::default() };
        let request = CallRequest { context, ..CallRequest::new(what, Principal::owner()) };
        let outcome = within_timeout("a call", self.yard.call(request)).await.unwrap();
        let body: Value = serde_json::from_str(outcome.body.get()).unwrap();
        body["content"][0]["text"].clone()
    }

    fn offers(&self, era: ClientEra, tool: &str) -> bool {
        self.yard.catalog_for_era(era).tools().iter().any(|offered| offered.raw_name == tool)
    }
}

#[tokio::test]
async fn the_legacy_side_of_a_process_is_another_process_which_comes_and_goes_with_need() {
    let server = Server::start("dual").await;
    assert_eq!(server.call(ClientEra::Newest, "modern_tool").await, "modern");
    assert_eq!(server.processes(), 1);
    for _ in 0..2 {
        assert_eq!(server.call(ClientEra::Legacy, "legacy_tool").await, "legacy");
        assert_eq!(server.processes(), 2);
    }
    assert_eq!(server.call(ClientEra::Newest, "modern_tool").await, "modern");
    for (era, tool) in [(ClientEra::Newest, "modern_tool"), (ClientEra::Legacy, "legacy_tool")] {
        let other = if tool == "modern_tool" { "legacy_tool" } else { "modern_tool" };
        assert!(server.offers(era, tool) && !server.offers(era, other), "{era:?}");
    }
    server.yard.manage(&Principal::owner(), "odd", SourceCommand::Disable).unwrap();
    server.until(SourceState::Disabled).await;
    within_timeout("both processes to end", async {
        while server.processes() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(!server.offers(ClientEra::Legacy, "legacy_tool"));
    server.yard.manage(&Principal::owner(), "odd", SourceCommand::Enable).unwrap();
    server.until(SourceState::Ready).await;
    assert_eq!(server.call(ClientEra::Legacy, "legacy_tool").await, "legacy");
    server.upstream.stop().await;
    nothing_left(&server.mark);
}

#[tokio::test]
async fn a_server_that_knows_one_era_only_is_not_tried_in_the_other_again_and_again() {
    let server = Server::start("modern-only").await;
    for _ in 0..3 {
        assert_ne!(server.call(ClientEra::Legacy, "requests").await, "0");
        assert!(server.yard.status(&SourceName::new("odd")).unwrap().state == SourceState::Ready);
    }
    // Long enough for a retry to happen.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((server.starts(), server.processes()), (2, 1), "one for each era that was tried");
    server.upstream.stop().await;
    nothing_left(&server.mark);
}
