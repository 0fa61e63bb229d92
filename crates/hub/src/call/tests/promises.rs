//! Result checks against output schemas: off, warn, enforce.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call_details::CallDetails;
use crate::deadline::Deadline;
use crate::error::{ErrorKind, HubError};
use crate::events::YardEvent;
use crate::fake::{ScriptedSource, raw, tool, tool_request_with, yard_with};
use crate::limits::YardLimits;
use crate::name::SourceName;
use crate::outcome::Outcome;
use crate::request::{CallContext, CallOrigin, CallRequest};
use crate::result_check::{ResultCheck, ResultChecks};
use crate::source::{SourceCall, SourceOffer};
use crate::yard::Yard;

/// A source whose tool returns its arguments as the result and declares a number in its output
/// schema.
fn promising(checks: ResultChecks) -> Arc<Yard> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let promise = tool(&json!({"name": "count", "inputSchema": {"type": "object"}, "outputSchema": schema}));
    let silent = tool(&json!({"name": "talk", "inputSchema": {"type": "object"}}));
    let broken = json!({"type": "object", "properties": {"n": {"type": 7}}});
    let broken = tool(&json!({"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": broken}));
    let offer = SourceOffer { tools: vec![promise, silent, broken], ..SourceOffer::default() };
    let source = ScriptedSource::with_handler("s", offer, |call: SourceCall| async move {
        let body = crate::fake::text(&call.target.arguments());
        let failed = body.get().contains("isError");
        Ok(if failed { Outcome::failure(body) } else { Outcome::success(body) })
    });
    yard_with(YardLimits { results: checks, ..YardLimits::default() }, Vec::new(), &[&source])
}

fn everywhere(usual: ResultCheck) -> ResultChecks {
    ResultChecks { default: usual, ..ResultChecks::default() }
}

/// The outcome, the violations reported to the front, and the published events.
async fn run(
    yard: &Yard,
    name: &str,
    body: &Value,
    made_by: CallOrigin,
) -> (Result<String, HubError>, Vec<String>, Vec<String>) {
    let mut events = yard.events().subscribe();
    let details = Arc::new(CallDetails::default());
    let context = CallContext { origin: made_by, ..CallContext::default() };
    let arguments = raw(body);
    let request = CallRequest {
        context,
        details: Some(Arc::clone(&details)),
        ..tool_request_with(name, arguments.get())
    };
    let outcome = yard.call(request).await.map(|outcome| outcome.body.get().to_owned());
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let YardEvent::ResultViolatesSchema { call, violations } = &*event {
            seen.push(format!("{}: {}", call.tool_name(), violations.join("; ")));
        }
    }
    (outcome, details.result_violations().to_vec(), seen)
}

#[tokio::test]
async fn a_result_that_breaks_the_promise_is_warned_about_and_goes_out_as_it_is() {
    let yard = promising(everywhere(ResultCheck::Warn));
    let wrong = json!({"content": [], "structuredContent": {"n": "x"}});
    let (outcome, notes, seen) = run(&yard, "count", &wrong, CallOrigin::Caller).await;
    assert_eq!(outcome.unwrap(), wrong.to_string());
    assert_eq!(notes, [r#"`n`: "x" is not of type "integer""#]);
    assert_eq!(seen, [r#"mcp__s__count: `n`: "x" is not of type "integer""#]);
    let (_, notes, _) = run(&yard, "count", &json!({"content": []}), CallOrigin::Caller).await;
    assert_eq!(notes, ["structuredContent is missing, but the tool declares an output schema"]);
}

#[tokio::test]
async fn an_enforced_promise_that_is_broken_ends_the_call_with_an_error() {
    let yard = promising(everywhere(ResultCheck::Enforce));
    let (outcome, notes, seen) =
        run(&yard, "count", &json!({"structuredContent": {}}), CallOrigin::Caller).await;
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.kind(), error.message(), error.details()),
        (
            ErrorKind::ToolFailed,
            "the result of `mcp__s__count` violates its output schema: `n` is required",
            Some(&json!({"violations": ["`n` is required"]}))
        )
    );
    assert_eq!((notes.len(), seen.len()), (0, 1));
}

#[tokio::test]
async fn promises_that_are_kept_or_cannot_be_judged_pass_whatever_the_mode() {
    let yard = promising(everywhere(ResultCheck::Enforce));
    for (name, body) in [
        ("count", json!({"structuredContent": {"n": 1}})),
        ("count", json!({"isError": true, "content": []})),
        ("talk", json!({"content": []})),
        ("odd", json!({"structuredContent": {"n": 1}})),
    ] {
        let (outcome, notes, seen) = run(&yard, name, &body, CallOrigin::Caller).await;
        assert_eq!((outcome.unwrap(), notes.len(), seen.len()), (body.to_string(), 0, 0));
    }
}

#[tokio::test]
async fn a_source_may_have_a_mode_of_its_own_and_programs_are_never_checked() {
    let wrong = json!({"structuredContent": []});
    let own = |check| BTreeMap::from([(SourceName::new("s"), check)]);
    let lenient = ResultChecks { default: ResultCheck::Enforce, sources: own(ResultCheck::Off) };
    let strict = ResultChecks { default: ResultCheck::Off, sources: own(ResultCheck::Enforce) };
    for (checks, made_by, fine) in [
        (ResultChecks::default(), CallOrigin::Caller, true),
        (lenient, CallOrigin::Caller, true),
        (strict.clone(), CallOrigin::Caller, false),
        (strict, CallOrigin::Program, true),
    ] {
        let (outcome, ..) = run(&promising(checks), "count", &wrong, made_by).await;
        assert_eq!(outcome.is_ok(), fine);
    }
}

/// A slow check: each of many items is checked against many alternatives.
fn laborious() -> (Value, Value) {
    let mut kinds = vec![json!({"type": "string"}); 50];
    kinds.push(json!({"type": "integer"}));
    let schema = json!({"type": "object", "properties": {"n": {"items": {"anyOf": kinds}}}});
    (schema, json!({"n": vec![1; 20_000]}))
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_checked_in_time_is_refused_where_the_promise_is_enforced() {
    let (schema, value) = laborious();
    let promise = tool(&json!({"name": "count", "inputSchema": {"type": "object"}, "outputSchema": schema}));
    for (check, expected) in [(ResultCheck::Enforce, Err(ErrorKind::TimedOut)), (ResultCheck::Warn, Ok(()))] {
        let offer = SourceOffer { tools: vec![promise.clone()], ..SourceOffer::default() };
        let body = raw(&json!({"content": [], "structuredContent": value.clone()}));
        let source = ScriptedSource::with_handler("s", offer, move |_| {
            let body = body.clone();
            async move { Ok(Outcome::success(body)) }
        });
        let yard = yard_with(
            YardLimits { results: everywhere(check), ..YardLimits::default() },
            Vec::new(),
            &[&source],
        );
        let request = CallRequest {
            deadline: Deadline::after(Duration::from_millis(1)),
            ..tool_request_with("count", "{}")
        };
        let outcome = yard.call(request).await;
        assert_eq!(outcome.map(drop).map_err(|error| error.kind()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_cannot_be_checked_in_time_are_not_sent() {
    let (schema, value) = laborious();
    let offer = SourceOffer {
        tools: vec![tool(&json!({"name": "t", "inputSchema": schema}))],
        ..SourceOffer::default()
    };
    let source = ScriptedSource::with_handler("s", offer, |_| async { panic!("it was sent") });
    let yard = yard_with(YardLimits::default(), Vec::new(), &[&source]);
    let arguments = value.to_string();
    let request = CallRequest {
        deadline: Deadline::after(Duration::from_millis(1)),
        ..tool_request_with("t", &arguments)
    };
    assert_eq!(yard.call(request).await.map(drop).map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
    let cancelled = CallRequest { ..tool_request_with("t", &arguments) };
    cancelled.cancel.cancel();
    assert_eq!(yard.call(cancelled).await.map(drop).map_err(|error| error.kind()), Err(ErrorKind::Cancelled));
}

#[tokio::test]
async fn a_result_whose_check_would_stop_the_yard_goes_out_unchecked_and_the_tool_says_so() {
    let schema =
        json!({"type": "object", "properties": {"n": {"items": {"pattern": "^((?=a)a|a)*b$|^a*$"}}}});
    let promise = tool(&json!({"name": "count", "inputSchema": {"type": "object"}, "outputSchema": schema}));
    let result = json!({"content": [], "structuredContent": {"n": vec!["a".repeat(40) + "c"; 2_500]}});
    let offer = SourceOffer { tools: vec![promise], ..SourceOffer::default() };
    let body = raw(&result);
    let source = ScriptedSource::with_handler("s", offer, move |_| {
        let body = body.clone();
        async move { Ok(Outcome::success(body)) }
    });
    let limits = YardLimits { results: everywhere(ResultCheck::Enforce), ..YardLimits::default() };
    let yard = yard_with(limits, Vec::new(), &[&source]);
    assert_eq!(yard.catalog().tools()[0].output_schema_problem(), None);
    let (outcome, notes, seen) = run(&yard, "count", &json!({}), CallOrigin::Caller).await;
    assert_eq!((outcome.unwrap(), notes.len(), seen.len()), (result.to_string(), 0, 0));
    let problem = yard.catalog().tools()[0].output_schema_problem().unwrap_or_default().to_owned();
    assert!(
        problem.contains("was not checked: the check would exceed the limit of 10000000 steps"),
        "{problem}"
    );
}
