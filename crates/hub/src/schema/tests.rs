//! Which schemas are checked, how violations are reported, and the limits on malicious schemas.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{FutureExt, poll};
use serde_json::json;

use super::offload::acquire_all_permits;
use super::{CompiledSchema, Schema, SchemaCheck};
use crate::error::HubError;
use crate::json::{from_text, to_raw};

fn checked(compiled: &Arc<CompiledSchema>, schema: &str, arguments: &str) -> Result<(), HubError> {
    let (schema, arguments) = (from_text(schema.to_owned()), from_text(arguments.to_owned()));
    compiled.check("t", &schema, &arguments).now_or_never().expect("it is small")
}

fn check(schema: &str, arguments: &str) -> Result<(), (String, serde_json::Value)> {
    checked(&Arc::default(), schema, arguments)
        .map_err(|error| (error.message().to_owned(), error.details().cloned().unwrap_or_default()))
}

/// The error details for a single violation.
fn details(violation: &serde_json::Value) -> serde_json::Value {
    json!({
        "field": violation["field"],
        "reason": violation["reason"],
        "provided": violation["provided"],
        "violations": [violation],
    })
}

#[test]
fn every_violation_is_listed_with_a_pointer_that_leads_to_it() {
    let schema = r#"{"properties":{"a/b":{"properties":{"n":{"type":"integer"}},"required":["~m"]},"list":{"items":{"type":"string"}}}}"#;
    let (_, details_found) = check(schema, r#"{"a/b":{"n":"x"},"list":["fine",7]}"#).unwrap_err();
    let mut listed: Vec<_> = details_found["violations"].as_array().unwrap().clone();
    listed.sort_by_key(|violation| violation["pointer"].as_str().unwrap().to_owned());
    assert_eq!(
        listed,
        [
            json!({"pointer": "/a~1b/n", "field": "a/b.n", "reason": "\"x\" is not of type \"integer\"", "provided": "x"}),
            json!({"pointer": "/a~1b/~0m", "field": "a/b.~m", "reason": "is required", "provided": null}),
            json!({"pointer": "/list/1", "field": "list.1", "reason": "7 is not of type \"string\"", "provided": 7}),
        ]
    );
}

#[test]
fn tells_which_field_why_and_what_was_given() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    assert_eq!(check(schema, r#"{"n":1}"#), Ok(()));
    assert_eq!(
        check(schema, r#"{"n":"x"}"#),
        Err((
            "invalid arguments for `t`: `n`: \"x\" is not of type \"integer\"".to_owned(),
            details(&json!({
                "pointer": "/n",
                "field": "n",
                "reason": "\"x\" is not of type \"integer\"",
                "provided": "x",
            })),
        ))
    );
    assert_eq!(
        check(schema, "{}"),
        Err((
            "invalid arguments for `t`: `n` is required".to_owned(),
            details(&json!({"pointer": "/n", "field": "n", "reason": "is required", "provided": null}),),
        ))
    );
}

#[test]
fn obeys_the_declared_dialect() {
    let tuple = r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{"type":"string"}]}}}"#;
    assert!(check(tuple, r#"{"a":[1]}"#).is_err());
    let prefix = r#"{"properties":{"a":{"prefixItems":[{"type":"string"}]}}}"#;
    assert!(check(prefix, r#"{"a":[1]}"#).is_err());
}

#[test]
fn a_schema_that_does_not_compile_blocks_nothing_and_says_why() {
    let broken = r#"{"type":"object","properties":{"a":{"type":7}}}"#;
    let compiled = Arc::default();
    assert!(checked(&compiled, broken, r#"{"a":1}"#).is_ok());
    assert!(compiled.problem(&from_text(broken.to_owned())).is_some());
    let remote = from_text(r#"{"$ref":"https://example.com/schema.json"}"#.to_owned());
    assert!(CompiledSchema::default().problem(&remote).is_some());
}

#[test]
fn arguments_that_are_no_object_are_refused() {
    assert_eq!(check("{}", "[1]").unwrap_err().0, "arguments of `t` must be an object");
}

#[test]
fn long_arguments_are_not_repeated_in_the_error() {
    let long = format!(r#"{{"n":"{}"}}"#, "x".repeat(100_000));
    let (message, found_details) = check(r#"{"properties":{"n":{"type":"integer"}}}"#, &long).unwrap_err();
    assert_eq!(message, "invalid arguments for `t`: `n`: value is not of type \"integer\"");
    let reason = "value is not of type \"integer\"";
    assert_eq!(
        found_details,
        details(&json!({"pointer": "/n", "field": "n", "reason": reason, "provided": null}))
    );
}

#[test]
fn a_schema_that_refers_to_itself_without_end_does_no_harm() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        r##"{"not":{"$ref":"#"}}"##,
        r##"{"$dynamicRef":"#x","$dynamicAnchor":"x"}"##,
    ] {
        let _ = check(schema, r#"{"a":1}"#);
    }
}

/// With this many strings, the expression kept two cores busy for half a minute.
const HOSTILE: &str = "^((?=a)a|a)*b$|^a*$";

fn strings(count: usize) -> crate::json::Raw {
    to_raw(&vec!["a".repeat(40) + "c"; count])
}

fn schema(value: &serde_json::Value) -> Schema {
    Schema::new(to_raw(value))
}

#[tokio::test]
async fn a_check_above_a_small_cost_leaves_the_thread_of_its_task() {
    let hostile = schema(&json!({"items": {"pattern": HOSTILE}}));
    let plain = schema(&json!({"items": {"anyOf": vec![json!({"type": "integer"}); 50]}}));
    let (few, many) = (strings(20), strings(2_000));
    for (schema, value) in [(&hostile, &few), (&plain, &many)] {
        let mut check = Box::pin(schema.check(value));
        let turns = acquire_all_permits().await;
        // Other tasks on the same thread continue.
        assert!(poll!(check.as_mut()).is_pending());
        drop(turns);
        assert!(matches!(check.await, SchemaCheck::Checked(_)));
    }
    // An ordinary check runs inline, and so does a larger one of a value that the schema visits
    // only once.
    let ordinary = schema(&json!({
        "type": "object",
        "properties": {"names": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}},
        "required": ["n"],
    }));
    let names = vec!["some name"; 2_000];
    assert_eq!(
        ordinary.check(&to_raw(&json!({"names": names, "n": 1}))).now_or_never(),
        Some(SchemaCheck::Checked(Vec::new()))
    );
}

#[tokio::test]
async fn a_value_over_the_budget_is_reported_as_unchecked() {
    let hostile = schema(&json!({"items": {"pattern": HOSTILE}}));
    assert_eq!(hostile.problem(), None);
    let skipped = hostile.check(&strings(2_500)).await;
    let problem =
        "a value of 110001 bytes was not checked: the check would exceed the limit of 10000000 steps";
    assert_eq!(skipped, SchemaCheck::Skipped(problem.to_owned()));
    assert_eq!(hostile.problem(), Some(problem));
    // Violations in a large value are not located: that could take too much memory.
    let plain = schema(&json!({"items": {"anyOf": vec![json!({"type": "integer"}); 50]}}));
    let violations = plain.check(&strings(2_000)).await.violations();
    assert_eq!(violations.len(), 1);
    assert_eq!(
        violations[0].reason,
        "does not match the schema; the value is too large to locate the violations"
    );
    // Values that can be checked are still checked.
    let plain = schema(&json!({"items": {"type": "integer"}}));
    assert_eq!(plain.check(&strings(3)).await.violations().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_tasks_go_on_while_hostile_checks_run() {
    let heavy = json!({"items": {"anyOf": vec![json!({"type": "integer"}); 100]}});
    let counters: Arc<[AtomicU64; 3]> = Arc::default();
    let counted = Arc::clone(&counters);
    let ticking = tokio::spawn(async move {
        let [begun, ended, ticks] = &*counted;
        loop {
            // As many checks as there are threads have started, and none has ended.
            if begun.load(Ordering::SeqCst) >= 2 && ended.load(Ordering::SeqCst) == 0 {
                ticks.fetch_add(1, Ordering::SeqCst);
            }
            tokio::task::yield_now().await;
        }
    });
    let checks: Vec<_> = (0..4)
        .map(|_| {
            let (schema, counted) = (schema(&heavy), Arc::clone(&counters));
            tokio::spawn(async move {
                let [begun, ended, _] = &*counted;
                begun.fetch_add(1, Ordering::SeqCst);
                let found = schema.check(&strings(2_000)).await.violations().len();
                ended.fetch_add(1, Ordering::SeqCst);
                found
            })
        })
        .collect();
    let mut found = Vec::new();
    for check in checks {
        found.push(check.await.unwrap());
    }
    ticking.abort();
    let ticks = counters[2].load(Ordering::SeqCst);
    assert!(ticks > 100, "only {ticks} polls of another task");
    assert_eq!(found, [1; 4]);
}

#[tokio::test]
async fn patterns_are_those_of_ecma_and_look_around_is_checked_where_it_is_cheap() {
    let mail =
        r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
    let fits = async |pattern: &str, text: &str| {
        schema(&json!({"pattern": pattern})).check(&to_raw(text)).await == SchemaCheck::Checked(Vec::new())
    };
    for (pattern, good, bad) in [
        (mail, "ada.lovelace+mcp@example.co.uk", "ada..lovelace@example.com"),
        (r"^(?=.*[A-Z])(?=.*\d).{8,}$", "Passw0rd", "password"),
        (r"^\d+$", "123", "\u{663}"),
        (r"^\w+$", "abc_1", "\u{e4}"),
        (r"^\p{Letter}+$", "\u{e4}", "1"),
        (r"^[^\s]+$", "a", "\u{a0}"),
        (r"(a)\1", "aa", "ab"),
        (r"^\/x$", "/x", "x"),
    ] {
        assert!(fits(pattern, good).await, "{pattern} {good}");
        let result = schema(&json!({"pattern": pattern})).check(&to_raw(bad)).await;
        assert!(
            matches!(&result, SchemaCheck::Checked(violations) if violations.len() == 1),
            "{pattern} {bad} {result:?}"
        );
    }
}

#[test]
fn a_schema_over_budget_is_reported_and_lets_everything_pass() {
    let large: Vec<_> = (0..30).map(|at| json!({"pattern": format!(r"^\p{{L}}{{10}}{at}$")})).collect();
    let endless = json!({"pattern": "(((((a{100}){100}){100}){100}){100}){100}"});
    for (schema, problem) in [
        (schema(&json!({"description": "x".repeat(1 << 20)})), "it exceeds the limit of 1048576 bytes"),
        (schema(&json!({"allOf": large})), "more than 8 of its patterns are large"),
        (schema(&json!({"pattern": "a".repeat(40_000)})), "its patterns exceed 32768 bytes in total"),
        (schema(&endless), "is not a valid regular expression, or exceeds 1048576 bytes when compiled"),
    ] {
        let reported = schema.problem().unwrap_or_default();
        assert!(reported.contains(problem), "{reported}");
        assert_eq!(schema.violations(&to_raw("!")), []);
    }
}

#[test]
fn a_recursive_schema_over_a_deep_value_does_not_use_up_the_stack() {
    let chain =
        (0..40).fold(json!({"properties": {"a": {"$ref": "#"}}}), |inner, _| json!({"allOf": [inner]}));
    let deep = (0..120).fold(json!({}), |inner, _| json!({"a": inner}));
    let schema = schema(&chain);
    assert_eq!(schema.problem(), None);
    assert_eq!(schema.violations(&to_raw(&deep)), []);
    assert!(schema.problem().is_some());
}
