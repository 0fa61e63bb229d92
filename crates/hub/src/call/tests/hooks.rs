//! The steps around the source: hooks, their order, and what they see.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use crate::BoxFuture;
use crate::deadline::Deadline;
use crate::error::{ErrorKind, HubError};
use crate::fake::{ScriptedSource, done, raw, tool, tool_request_with, yard_with};
use crate::hooks::{HookCall, HookDecision, Hooks};
use crate::limits::YardLimits;
use crate::outcome::Outcome;
use crate::source::{SourceCall, SourceOffer};
use crate::yard::Yard;

type Log = Arc<Mutex<Vec<String>>>;

/// A hook that logs what it sees and acts as instructed before and after the call.
struct Spy {
    name: &'static str,
    log: Log,
    before: fn() -> Result<HookDecision, HubError>,
    afterwards: Duration,
}

impl Spy {
    fn write(&self, text: &str) {
        self.log.lock().push(format!("{} {text}", self.name));
    }
}

impl Hooks for Spy {
    fn before<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
        Box::pin(async move {
            self.write(&format!("before {} {}", call.record.tool_name(), call.arguments));
            (self.before)()
        })
    }

    fn after<'a>(&'a self, _call: HookCall<'a>, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.write(&format!("after {} failed={}", outcome.body, outcome.failed));
            tokio::time::sleep(self.afterwards).await;
        })
    }

    fn on_error<'a>(&'a self, call: HookCall<'a>, error: &'a HubError) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.write(&format!("error {} of {}", error.kind().as_str(), call.record.source_name()))
        })
    }
}

fn spy(name: &'static str, log: &Log, before: fn() -> Result<HookDecision, HubError>) -> Arc<dyn Hooks> {
    Arc::new(Spy { name, log: Arc::clone(log), before, afterwards: Duration::ZERO })
}

/// A yard with a hook and a tool with another hook. The `do` argument controls what the tool does.
fn hooked(
    log: &Log,
    yard_hook: fn() -> Result<HookDecision, HubError>,
    tool_hook: fn() -> Result<HookDecision, HubError>,
) -> Arc<Yard> {
    let mut offer = tool(&json!({"name": "t", "inputSchema": {"type": "object"}}));
    offer.hooks = vec![spy("tool", log, tool_hook)];
    let log_of_source = Arc::clone(log);
    let source = ScriptedSource::with_handler(
        "s",
        SourceOffer { tools: vec![offer], ..SourceOffer::default() },
        move |call: SourceCall| {
            log_of_source.lock().push("source".to_owned());
            async move {
                let arguments = call.target.arguments();
                match arguments.as_str() {
                    r#"{"do":"fail"}"# => Ok(Outcome::failure(raw(&json!("no")))),
                    r#"{"do":"error"}"# => Err(HubError::new(ErrorKind::ConnectionLost, "gone")),
                    r#"{"do":"panic"}"# => panic!("on purpose"),
                    r#"{"do":"hang"}"# => std::future::pending().await,
                    _ => Ok(done()),
                }
            }
        },
    );
    yard_with(YardLimits::default(), vec![spy("yard", log, yard_hook)], &[&source])
}

async fn run(
    what: &str,
    yard_hook: fn() -> Result<HookDecision, HubError>,
    tool_hook: fn() -> Result<HookDecision, HubError>,
) -> (Option<ErrorKind>, Vec<String>) {
    let log = Log::default();
    let yard = hooked(&log, yard_hook, tool_hook);
    let mut request = tool_request_with("t", what);
    request.deadline = Deadline::after(Duration::from_secs(5));
    let outcome = yard.call(request).await;
    let log = log.lock().clone();
    (outcome.err().map(|error| error.kind()), log)
}

fn go() -> Result<HookDecision, HubError> {
    Ok(HookDecision::Pass)
}

fn stop() -> Result<HookDecision, HubError> {
    Err(HubError::new(ErrorKind::Forbidden, "not today"))
}

fn crash() -> Result<HookDecision, HubError> {
    panic!("a hook that crashes")
}

#[tokio::test(start_paused = true)]
async fn the_yards_hooks_run_outside_and_the_tools_inside() {
    let (error, log) = run("{}", go, go).await;
    assert_eq!(error, None);
    assert_eq!(
        log,
        [
            "yard before mcp__s__t {}",
            "tool before mcp__s__t {}",
            "source",
            r#"tool after "done" failed=false"#,
            r#"yard after "done" failed=false"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_before_hook_stops_the_call() {
    let (error, log) = run("{}", go, stop).await;
    assert_eq!(error, Some(ErrorKind::Forbidden));
    assert_eq!(
        log,
        [
            "yard before mcp__s__t {}",
            "tool before mcp__s__t {}",
            "tool error forbidden of s",
            "yard error forbidden of s"
        ]
    );
    let (error, log) = run("{}", stop, go).await;
    assert_eq!((error, log.contains(&"source".to_owned())), (Some(ErrorKind::Forbidden), false));
}

#[tokio::test(start_paused = true)]
async fn hooks_see_how_it_ended_whatever_way_it_did() {
    let ending = async |what: &str| {
        let (error, mut log) = run(what, go, go).await;
        (error, log.pop().unwrap())
    };
    let fail = ending(r#"{"do":"fail"}"#).await;
    assert_eq!(fail, (None, r#"yard after "no" failed=true"#.to_owned()));
    let lost = ending(r#"{"do":"error"}"#).await;
    assert_eq!(lost, (Some(ErrorKind::ConnectionLost), "yard error connection lost of s".to_owned()));
    let crashed = ending(r#"{"do":"panic"}"#).await;
    assert_eq!(crashed, (Some(ErrorKind::Bug), "yard error internal error of s".to_owned()));
    let late = ending(r#"{"do":"hang"}"#).await;
    assert_eq!(late, (Some(ErrorKind::TimedOut), "yard error timed out of s".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_crashes_fails_its_call_and_no_other() {
    let (error, log) = run("{}", go, crash).await;
    assert_eq!(error, Some(ErrorKind::Bug));
    assert_eq!(log.last().unwrap(), "yard error internal error of s");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_after_the_call_does_not_block_the_result() {
    let log = Log::default();
    let hanging = Spy { name: "slow", log, before: go, afterwards: Duration::from_secs(3600) };
    let source = ScriptedSource::with_handler("s", crate::fake::tools(&["t"]), |_| async { Ok(done()) });
    let yard = yard_with(YardLimits::default(), vec![Arc::new(hanging)], &[&source]);
    let began = Instant::now();
    yard.call(tool_request_with("t", "{}")).await.unwrap();
    assert_eq!(began.elapsed(), super::super::hook_chain::AFTERWARDS);
}

fn change(text: &str) -> Result<HookDecision, HubError> {
    Ok(HookDecision::Change(crate::fake::text(text)))
}

#[tokio::test(start_paused = true)]
async fn a_before_hook_may_change_the_arguments_for_all_that_comes_after_it() {
    let (error, log) = run(r#"{"do":"error"}"#, || change(r#"{"do":"fail"}"#), go).await;
    assert_eq!(error, None);
    assert_eq!(
        log,
        [
            r#"yard before mcp__s__t {"do":"error"}"#,
            r#"tool before mcp__s__t {"do":"fail"}"#,
            "source",
            r#"tool after "no" failed=true"#,
            r#"yard after "no" failed=true"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_makes_of_the_arguments_is_checked_like_what_callers_send() {
    let (error, log) = run("{}", || change("[1]"), go).await;
    assert_eq!(error, Some(ErrorKind::InvalidArguments));
    assert!(!log.contains(&"source".to_owned()));
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let offer = SourceOffer {
        tools: vec![tool(&json!({"name": "t", "inputSchema": schema}))],
        ..SourceOffer::default()
    };
    let source = ScriptedSource::with_handler("s", offer, |_| async { panic!("must not be called") });
    let yard = |hook| {
        let limits = YardLimits { payload: 40, ..YardLimits::default() };
        yard_with(limits, vec![spy("yard", &Log::default(), hook)], &[&source])
    };
    let error = yard(|| change(r#"{"n":"x"}"#)).call(tool_request_with("t", "{}")).await.unwrap_err();
    let message = "a hook changed the arguments: invalid arguments for `mcp__s__t`: `n`: \"x\" is not of type \"integer\"";
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArguments, message));
    assert_eq!(error.details().unwrap()["field"], "n");
    let long = || change(&format!("{{\"text\":\"{}\"}}", "x".repeat(40)));
    let error = yard(long).call(tool_request_with("t", "{}")).await.unwrap_err();
    assert_eq!(
        error.message(),
        "a hook changed the arguments for `mcp__s__t` to 51 bytes, which exceeds the limit of 40 bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_does_not_want_a_tool_is_not_asked_about_it() {
    struct Picky;
    impl Hooks for Picky {
        fn applies_to(&self, tool: &str) -> bool {
            tool.ends_with("other")
        }
        fn before<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
            Box::pin(async { stop() })
        }
    }
    let source =
        ScriptedSource::with_handler("s", crate::fake::tools(&["t", "other"]), |_| async { Ok(done()) });
    let yard = yard_with(YardLimits::default(), vec![Arc::new(Picky)], &[&source]);
    yard.call(tool_request_with("t", "{}")).await.unwrap();
    assert_eq!(yard.call(tool_request_with("other", "{}")).await.unwrap_err().kind(), ErrorKind::Forbidden);
}
