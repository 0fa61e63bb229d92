//! Valid execute requests, and the violations reported for invalid ones.

use std::time::Duration;

use axum::http::{HeaderMap, header};
use serde_json::{Value, json};
use toolyard_hub::Priority;

use super::{
    ContentDetail, ExecuteContext, ResponseMode, header_key, is_json, negotiate_response, read_members,
};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(*name, value.parse().unwrap());
    }
    map
}

/// Returns the violations of a body.
fn wrong(body: &str) -> Vec<(String, String, Value)> {
    let failure = read_members(body, None).unwrap_err();
    let details: Value = serde_json::from_str(failure.details.unwrap().get()).unwrap();
    let violations = details["violations"].as_array().unwrap().iter();
    violations
        .map(|violation| {
            let text = |key: &str| violation[key].as_str().unwrap().to_owned();
            (text("pointer"), text("reason"), violation["provided"].clone())
        })
        .collect()
}

#[test]
fn everything_of_the_protocol_is_understood() {
    let body = r#"{"tool":"t","params":{"n":9007199254740993123},"context":{"sessionId":"s","userId":"u",
        "timeout":1500.5,"priority":"high","idempotencyKey":"k","version":"1.2"}}"#;
    let (tool, params, context) = read_members(body, None).unwrap();
    assert_eq!((tool.as_deref(), params.get()), (Some("t"), r#"{"n":9007199254740993123}"#));
    let expected = ExecuteContext {
        session_id: Some("s".to_owned()),
        user_id: Some("u".to_owned()),
        timeout: Some(Duration::from_micros(1_500_500)),
        priority: Priority::High,
        key: Some("k".to_owned()),
        version: Some("1.2".to_owned()),
    };
    assert_eq!(context, expected);
}

#[test]
fn what_is_absent_or_null_has_its_usual_meaning() {
    for body in
        ["{}", r#"{"context":null}"#, r#"{"context":{"timeout":null,"priority":null,"sessionId":null}}"#]
    {
        let (tool, params, context) = read_members(body, None).unwrap();
        assert_eq!((tool, params.get(), context), (None, "{}", ExecuteContext::default()));
    }
}

#[test]
fn a_timeout_that_no_clock_can_tell_is_no_timeout() {
    let (_, _, context) = read_members(r#"{"context":{"timeout":1e300}}"#, None).unwrap();
    assert_eq!(context.timeout, None);
}

#[test]
fn reports_all_violations_together() {
    let body = r#"{"params":[1],"context":{"timeout":0,"priority":"urgent","sessionId":7,"idempotencyKey":"",
        "a/b":1},"paramz":{}}"#;
    let violation = |pointer: &str, reason: &str, provided| (pointer.to_owned(), reason.to_owned(), provided);
    assert_eq!(
        wrong(body),
        [
            violation("/params", "must be an object", json!([1])),
            violation("/context/sessionId", "must be a string", json!(7)),
            violation("/context/idempotencyKey", "must have 1 to 255 characters", Value::Null),
            violation("/context/priority", "must be one of: low, normal, high", json!("urgent")),
            violation("/context/timeout", "must be greater than 0", json!(0.0)),
            violation("/context/a~1b", "unknown member", json!(1)),
            violation("/paramz", "unknown member", json!({})),
        ]
    );
    assert_eq!(
        wrong(r#"{"a":2}"#),
        [violation("/a", "unknown member; tool arguments belong in `params`", json!(2))]
    );
    assert_eq!(wrong("[]"), [violation("", "the body must be an object", Value::Null)]);
    let long = json!({"context": {"userId": "x".repeat(256)}}).to_string();
    assert_eq!(wrong(&long), [violation("/context/userId", "must have 0 to 255 characters", Value::Null)]);
}

#[test]
fn a_key_may_come_in_the_header_or_in_the_body_but_not_as_two_different_ones() {
    let key = |body: &str, header: &str| {
        read_members(body, Some(header.to_owned())).map(|(_, _, context)| context.key.unwrap())
    };
    assert_eq!(key("{}", "k").unwrap(), "k");
    assert_eq!(key(r#"{"context":{"idempotencyKey":"k"}}"#, "k").unwrap(), "k");
    assert!(key(r#"{"context":{"idempotencyKey":"other"}}"#, "k").is_err());
    assert!(header_key(&headers(&[("idempotency-key", "a"), ("idempotency-key", "b")])).is_err());
    assert!(header_key(&headers(&[("idempotency-key", "é")])).is_err());
    assert!(header_key(&headers(&[("idempotency-key", &"x".repeat(256))])).is_err());
    assert_eq!(header_key(&headers(&[])).unwrap(), None);
}

#[test]
fn only_json_in_utf8_is_read() {
    let fine = |kind: &str| is_json(&headers(&[("content-type", kind)]));
    assert!(fine("application/json") && fine("Application/JSON; charset=\"UTF-8\"; x=y"));
    for kind in ["", "text/plain", "application/jsonp", "application/json; charset=latin1", "application/xml"]
    {
        assert!(!fine(kind), "{kind}");
    }
    assert!(!is_json(&headers(&[])));
    assert!(!is_json(&headers(&[("content-type", "application/json"), ("content-encoding", "gzip")])));
}

#[test]
fn the_answer_is_of_the_kind_that_the_client_likes_best() {
    let accepts = |text: &str| negotiate_response(&headers(&[(header::ACCEPT.as_str(), text)]));
    let (json, events, full) = (
        (ResponseMode::Json, ContentDetail::Result),
        (ResponseMode::Events, ContentDetail::Result),
        (ResponseMode::Json, ContentDetail::Full),
    );
    assert_eq!(negotiate_response(&headers(&[])), json);
    assert_eq!(accepts("*/*"), json);
    assert_eq!(accepts("text/event-stream"), events);
    assert_eq!(accepts("text/event-stream, application/json"), events);
    assert_eq!(accepts("application/json, text/event-stream"), json);
    assert_eq!(accepts("application/json;q=0.5, text/event-stream;q=0.9"), events);
    assert_eq!(accepts("text/event-stream;q=0, */*;q=0.1"), json);
    assert_eq!(accepts("application/vnd.toolyard.content+json"), full);
    assert_eq!(accepts("text/html, image/*"), json);
    assert_eq!(accepts("text/event-stream;q=x"), json);
}
