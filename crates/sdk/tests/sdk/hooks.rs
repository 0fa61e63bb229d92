//! Hooks around tools.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use toolyard_sdk::hooks::{BoxFuture, HookCall, HookDecision, Hooks};
use toolyard_sdk::testing;
use toolyard_sdk::{ErrorKind, HubError, Outcome, Tool, ToolError, tool};

/// Records its calls under its name.
struct Diary {
    name: &'static str,
    pages: Pages,
    decision: Result<HookDecision, HubError>,
}

type Pages = Arc<Mutex<Vec<String>>>;

impl Diary {
    fn new(name: &'static str, pages: &Pages) -> Self {
        Self { name, pages: Arc::clone(pages), decision: Ok(HookDecision::Pass) }
    }

    fn write(&self, what: &str) {
        self.pages.lock().push(format!("{} {what}", self.name));
    }
}

impl Hooks for Diary {
    fn before<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
        self.write(&format!("before {} {}", call.record.tool_name(), call.arguments.get()));
        Box::pin(std::future::ready(self.decision.clone()))
    }

    fn after<'a>(&'a self, _: HookCall<'a>, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        self.write(&format!("after, failed: {}", outcome.failed));
        Box::pin(std::future::ready(()))
    }

    fn on_error<'a>(&'a self, _: HookCall<'a>, error: &'a HubError) -> BoxFuture<'a, ()> {
        self.write(&format!("error {}", error.message()));
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn hooks_run_in_order_around_the_tool() {
    let pages = Pages::default();
    let running = Arc::clone(&pages);
    let tool = Tool::new("t", move || {
        running.lock().push("the tool".to_owned());
        async { Err::<(), _>(ToolError::failed("no")) }
    });
    let tool =
        tool.hooks(Arc::new(Diary::new("first", &pages))).hooks(Arc::new(Diary::new("second", &pages)));
    testing::call(tool, json!({"a": 1})).await;
    assert_eq!(
        *pages.lock(),
        [
            r#"first before t {"a":1}"#,
            r#"second before t {"a":1}"#,
            "the tool",
            "first after, failed: true",
            "second after, failed: true",
        ]
    );
}

#[tokio::test]
async fn a_hook_that_rejects_a_call_stops_it_and_notifies_all_hooks() {
    let pages = Pages::default();
    let refusing = Diary {
        decision: Err(HubError::new(ErrorKind::Forbidden, "not now")),
        ..Diary::new("second", &pages)
    };
    let tool = Tool::new("t", || async { Ok("never") })
        .hooks(Arc::new(Diary::new("first", &pages)))
        .hooks(Arc::new(refusing));
    let report = testing::call(tool, json!({})).await;
    assert_eq!(report.error_kind(), Some(ErrorKind::Forbidden));
    assert_eq!(
        *pages.lock(),
        ["first before t {}", "second before t {}", "first error not now", "second error not now"]
    );
}

#[tokio::test]
async fn the_attribute_sets_hooks() {
    struct Closed;
    impl Hooks for Closed {
        fn before<'a>(&'a self, _: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
            Box::pin(std::future::ready(Err(HubError::new(ErrorKind::Forbidden, "closed"))))
        }
    }
    #[tool(hooks = Closed)]
    async fn guarded() -> Result<(), ToolError> {
        Ok(())
    }
    assert_eq!(testing::call(guarded(), json!({})).await.error_kind(), Some(ErrorKind::Forbidden));
}
