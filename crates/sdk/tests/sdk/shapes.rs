//! The four signatures of functions and closures that can be tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolyard_sdk::call::Permissions;
use toolyard_sdk::testing::{self, LogLine, TestCaller};
use toolyard_sdk::{ClientCapabilities, Context, ErrorKind, LogLevel, Tool, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[tool]
async fn nothing() -> Result<&'static str, ToolError> {
    Ok("nothing")
}

#[tool]
async fn only_params(Name { name }: Name) -> Result<String, ToolError> {
    Ok(name)
}

#[tool]
async fn only_context(ctx: Context) -> Result<String, ToolError> {
    Ok(ctx.principal().id().to_owned())
}

#[tool]
async fn both(params: Name, ctx: Context) -> Result<String, ToolError> {
    Ok(format!("{} for {}", params.name, ctx.principal().id()))
}

#[tokio::test]
async fn functions_with_all_four_signatures_are_tools() {
    assert_eq!(testing::call(nothing(), json!({})).await.text(), "nothing");
    assert_eq!(testing::call(only_params(), json!({"name": "ada"})).await.text(), "ada");
    assert_eq!(testing::call(only_context(), json!({})).await.text(), "test");
    let unit = Tool::new("unit", |(): (), ctx: Context| async move { Ok(ctx.principal().id().to_owned()) });
    assert_eq!(testing::call(unit, json!({})).await.text(), "test");
    assert_eq!(testing::call(both(), json!({"name": "ada"})).await.text(), "ada for test");
}

#[tokio::test]
async fn closures_with_state_are_tools() {
    let counter = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&counter);
    let tool = Tool::new("count", move |params: Name, ctx: Context| {
        let counter = Arc::clone(&counting);
        async move {
            let many = counter.fetch_add(1, Ordering::Relaxed) + 1;
            ctx.log(LogLevel::Info, many);
            Ok(format!("{} {many}", params.name))
        }
    });
    assert_eq!(testing::call(tool.clone(), json!({"name": "a"})).await.text(), "a 1");
    assert_eq!(testing::call(tool, json!({"name": "b"})).await.text(), "b 2");
    assert_eq!(counter.load(Ordering::Relaxed), 2);
    let context_only = Tool::new("c", |ctx: Context| async move { Ok(format!("{:?}", ctx.meta())) });
    let report = TestCaller::new().meta(json!({"trace": 1})).call(context_only, json!({})).await;
    assert_eq!(report.text(), r#"Some(RawValue({"trace":1}))"#);
}

#[tokio::test]
async fn a_tool_knows_its_caller_and_its_deadline() {
    let tool = Tool::new("who", |ctx: Context| async move {
        let Permissions::Only(held) = ctx.principal().permissions() else { return Ok("all".to_owned()) };
        let in_time = ctx.remaining().as_secs() > 0;
        Ok(format!("{held:?} {in_time} {:?}", ctx.call_context().session_id))
    });
    let report = TestCaller::new().permissions(["read"]).call(tool, json!({})).await;
    assert_eq!(report.text(), r#"{"read"} true None"#);
}

#[tokio::test]
async fn a_task_of_a_canceled_call_is_notified() {
    let (begun, learned) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begin, learn) = (Arc::clone(&begun), Arc::clone(&learned));
    let tool = Tool::new("slow", move |ctx: Context| {
        let (begin, learn) = (Arc::clone(&begin), Arc::clone(&learn));
        async move {
            tokio::spawn(async move {
                begin.notify_one();
                ctx.cancelled().await;
                assert!(ctx.is_cancelled());
                learn.notify_one();
            });
            std::future::pending::<Result<(), ToolError>>().await
        }
    });
    let cancel = CancellationToken::new();
    let call = tokio::spawn(TestCaller::new().cancel(cancel.clone()).call(tool, json!({})));
    begun.notified().await;
    cancel.cancel();
    assert_eq!(call.await.unwrap().error_kind(), Some(ErrorKind::Cancelled));
    learned.notified().await;
}

#[tokio::test]
async fn log_messages_below_the_level_of_the_client_are_not_sent() {
    let tool = Tool::new("logs", |ctx: Context| async move {
        ctx.log(LogLevel::Debug, "fine");
        ctx.log_as("store", LogLevel::Error, json!({"full": true}));
        Ok(())
    });
    let capabilities =
        ClientCapabilities { log_level: Some(LogLevel::Warning), ..ClientCapabilities::default() };
    let report = TestCaller::new().capabilities(capabilities).call(tool, json!({})).await;
    let line =
        LogLine { level: LogLevel::Error, logger: Some("store".to_owned()), data: json!({"full": true}) };
    assert_eq!(report.log, [line]);
}
