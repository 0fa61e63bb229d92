//! The steps before the source is called: permission, rate, payload and schema, in this order.

use serde_json::json;

use super::parts;
use crate::error::ErrorKind;
use crate::fake::{ScriptedSource, principal_with, tool, tool_request, tool_request_with, yard_with};
use crate::limits::{RateLimit, YardLimits};
use crate::source::SourceOffer;

/// A source with one tool that requires two permissions and an integer.
fn guarded() -> std::sync::Arc<ScriptedSource> {
    let mut offer = tool(&json!({
        "name": "drop",
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }));
    offer.permissions = vec!["read".to_owned(), "write".to_owned()];
    ScriptedSource::echo("db", SourceOffer { tools: vec![offer], ..SourceOffer::default() })
}

fn tight() -> YardLimits {
    YardLimits { payload: 20, rate: Some(RateLimit { per_second: 1.0, burst: 2.0 }), ..YardLimits::default() }
}

#[tokio::test(start_paused = true)]
async fn every_permission_of_the_list_is_needed() {
    let yard = yard_with(YardLimits::default(), Vec::new(), &[&guarded()]);
    for (held, missing) in
        [(vec![], Some("read")), (vec!["read"], Some("write")), (vec!["read", "write"], None)]
    {
        let mut request = tool_request_with("drop", r#"{"n":1}"#);
        request.principal = principal_with(&held);
        let error = yard.call(request).await.err();
        assert_eq!(
            error.as_ref().map(|error| (error.kind(), error.message().to_owned())),
            missing.map(|missing| (
                ErrorKind::Forbidden,
                format!("mcp__db__drop needs the permission `{missing}`")
            ))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_gates_come_in_order_permission_rate_payload_schema() {
    let yard = yard_with(tight(), Vec::new(), &[&guarded()]);
    let kind = async |arguments: &str, held: &[&str]| {
        let mut request = tool_request_with("drop", arguments);
        request.principal = principal_with(held);
        yard.call(request).await.map_or_else(|error| Some(error.kind()), |_| None)
    };
    let long = r#"{"n":"far too long for this yard"}"#;
    let all = &["read", "write"];
    // A forbidden call does not count against the rate.
    for _ in 0..5 {
        assert_eq!(kind(long, &[]).await, Some(ErrorKind::Forbidden));
    }
    assert_eq!(kind(long, all).await, Some(ErrorKind::TooLarge));
    assert_eq!(kind(r#"{"n":"x"}"#, all).await, Some(ErrorKind::InvalidArguments));
    assert_eq!(kind(long, all).await, Some(ErrorKind::RateLimited));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(kind(r#"{"n":1}"#, all).await, None);
}

#[tokio::test(start_paused = true)]
async fn says_how_much_was_too_large_and_when_to_come_back() {
    let yard = yard_with(tight(), Vec::new(), &[&guarded()]);
    let error = yard.call(tool_request_with("drop", r#"{"n":1,"m":"0123456789"}"#)).await.unwrap_err();
    let message = "the arguments for `mcp__db__drop` have 24 bytes, which exceeds the limit of 20 bytes";
    assert_eq!(parts(&error), (ErrorKind::TooLarge, message, None));
    yard.call(tool_request_with("drop", r#"{"n":1}"#)).await.unwrap();
    let error = yard.call(tool_request_with("drop", r#"{"n":1}"#)).await.unwrap_err();
    assert_eq!(
        (parts(&error), error.retry_after()),
        (
            (
                ErrorKind::RateLimited,
                "exceeded the rate limit of 1 call per second",
                Some("wait 1.0 s before the next call")
            ),
            Some(std::time::Duration::from_secs(1))
        )
    );
}

#[tokio::test]
async fn says_what_the_schema_does_not_allow() {
    let yard = yard_with(YardLimits::default(), Vec::new(), &[&guarded()]);
    let error = yard.call(tool_request("drop")).await.unwrap_err();
    let message = "invalid arguments for `mcp__db__drop`: `n` is required";
    assert_eq!(parts(&error), (ErrorKind::InvalidArguments, message, None));
    let deep = format!(r#"{{"n":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    // Arguments arrive as parsed text. Deep nesting must not overflow the stack.
    let error = yard.call(tool_request_with("drop", &deep)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
}
