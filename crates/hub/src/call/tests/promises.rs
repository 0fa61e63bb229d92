//! Results beside the output schemas of their tools: off, warned about, enforced.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::{Error, Kind};
use crate::events::Event;
use crate::fake::{Fake, calling_with, raw, tool, yard_with};
use crate::limits::Limits;
use crate::name::SourceName;
use crate::notes::Notes;
use crate::outcome::Outcome;
use crate::request::{CallContext, MadeBy, Request};
use crate::results::{ResultCheck, ResultChecks};
use crate::source::{Call, Offer};
use crate::yard::Yard;

/// A source whose tool answers with its own arguments, as a result, and promises a number.
fn promising(checks: ResultChecks) -> Arc<Yard> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let promise = tool(&json!({"name": "count", "inputSchema": {"type": "object"}, "outputSchema": schema}));
    let silent = tool(&json!({"name": "talk", "inputSchema": {"type": "object"}}));
    let broken = json!({"type": "object", "properties": {"n": {"type": 7}}});
    let broken = tool(&json!({"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": broken}));
    let offer = Offer { tools: vec![promise, silent, broken], ..Offer::default() };
    let source = Fake::working("s", offer, |call: Call| async move {
        let body = crate::fake::text(&call.target.arguments());
        let failed = body.get().contains("isError");
        Ok(if failed { Outcome::failure(body) } else { Outcome::success(body) })
    });
    yard_with(Limits { results: checks, ..Limits::default() }, Vec::new(), &[&source])
}

fn everywhere(usual: ResultCheck) -> ResultChecks {
    ResultChecks { usual, ..ResultChecks::default() }
}

/// What came back, what the front was told, and what watchers were.
async fn run(
    yard: &Yard,
    name: &str,
    body: &Value,
    made_by: MadeBy,
) -> (Result<String, Error>, Vec<String>, Vec<String>) {
    let mut events = yard.events().subscribe();
    let notes = Arc::new(Notes::default());
    let context = CallContext { made_by, ..CallContext::default() };
    let arguments = raw(body);
    let request = Request { context, notes: Some(Arc::clone(&notes)), ..calling_with(name, arguments.get()) };
    let outcome = yard.call(request).await.map(|outcome| outcome.body.get().to_owned());
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Event::ResultOdd { subject, violations, .. } = &*event {
            seen.push(format!("{subject}: {}", violations.join("; ")));
        }
    }
    (outcome, notes.result_violations().to_vec(), seen)
}

#[tokio::test]
async fn a_result_that_breaks_the_promise_is_warned_about_and_goes_out_as_it_is() {
    let yard = promising(everywhere(ResultCheck::Warn));
    let wrong = json!({"content": [], "structuredContent": {"n": "x"}});
    let (outcome, notes, seen) = run(&yard, "count", &wrong, MadeBy::Caller).await;
    assert_eq!(outcome.unwrap(), wrong.to_string());
    assert_eq!(notes, [r#"n: "x" is not of type "integer""#]);
    assert_eq!(seen, [r#"mcp__s__count: n: "x" is not of type "integer""#]);
    let (_, notes, _) = run(&yard, "count", &json!({"content": []}), MadeBy::Caller).await;
    assert_eq!(notes, ["structuredContent is missing, though the tool declares an output schema"]);
}

#[tokio::test]
async fn an_enforced_promise_that_is_broken_ends_the_call_with_an_error() {
    let yard = promising(everywhere(ResultCheck::Enforce));
    let (outcome, notes, seen) = run(&yard, "count", &json!({"structuredContent": {}}), MadeBy::Caller).await;
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.kind(), error.message(), error.details()),
        (
            Kind::ToolFailed,
            "mcp__s__count gave a result that its output schema does not allow: n: is required",
            Some(&json!({"violations": ["n: is required"]}))
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
        let (outcome, notes, seen) = run(&yard, name, &body, MadeBy::Caller).await;
        assert_eq!((outcome.unwrap(), notes.len(), seen.len()), (body.to_string(), 0, 0));
    }
}

#[tokio::test]
async fn a_source_may_have_a_mode_of_its_own_and_programs_are_never_checked() {
    let wrong = json!({"structuredContent": []});
    let own = |check| BTreeMap::from([(SourceName::new("s"), check)]);
    let lenient = ResultChecks { usual: ResultCheck::Enforce, sources: own(ResultCheck::Off) };
    let strict = ResultChecks { usual: ResultCheck::Off, sources: own(ResultCheck::Enforce) };
    for (checks, made_by, fine) in [
        (ResultChecks::default(), MadeBy::Caller, true),
        (lenient, MadeBy::Caller, true),
        (strict.clone(), MadeBy::Caller, false),
        (strict, MadeBy::Program, true),
    ] {
        let (outcome, ..) = run(&promising(checks), "count", &wrong, made_by).await;
        assert_eq!(outcome.is_ok(), fine);
    }
}
