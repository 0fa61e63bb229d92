//! Failures of calls as `ToolError` carries them. The only mapping from error kinds to
//! `ToolError.type` is here.

use serde_json::{Map, Value, json};
use toolyard_hub::{ErrorKind, HubError};

use crate::program::ToolFailure;

/// The type of the error for a program that has used up its calls or lookups.
pub(crate) const LIMIT: &str = "limit_reached";
/// The maximum length of a message, in characters. A tool may return megabytes.
const LONGEST: usize = 20_000;

/// Returns the value of `error.type` for an error kind.
pub(crate) fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::UnknownTool => "tool_not_found",
        ErrorKind::UnknownResource => "resource_not_found",
        ErrorKind::UnknownPrompt => "prompt_not_found",
        ErrorKind::InvalidArguments => "invalid_arguments",
        ErrorKind::Unauthenticated => "unauthenticated",
        ErrorKind::Forbidden => "forbidden",
        ErrorKind::RateLimited => "rate_limited",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::TimedOut => "timeout",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::NotConnected => "not_connected",
        ErrorKind::CannotConnect => "connection_failed",
        ErrorKind::ConnectionLost => "connection_lost",
        ErrorKind::ToolFailed => "tool_failed",
        ErrorKind::ClientCannot => "client_cannot",
        ErrorKind::Bug => "internal_error",
    }
}

/// Converts an error of the hub. The JSON-RPC error of the server is in `code` and `data`.
pub(crate) fn failure_from_error(tool: &str, error: &HubError) -> ToolFailure {
    let mut details = match error.details() {
        None => Map::new(),
        Some(Value::Object(members)) => members.clone(),
        Some(other) => Map::from_iter([("value".to_owned(), other.clone())]),
    };
    if let Some(origin) = error.source_error() {
        details.insert("code".to_owned(), json!(origin.code));
        details.insert("data".to_owned(), json!(origin.data));
    }
    if let Some(wait) = error.retry_after() {
        details
            .insert("retry_after_ms".to_owned(), json!(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
    }
    let details = (!details.is_empty()).then_some(Value::Object(details));
    failure(tool, error_type(error.kind()), &error.message_with_suggestion(), details)
}

pub(crate) fn failure(tool: &str, kind: &str, message: &str, details: Option<Value>) -> ToolFailure {
    let mut text: String = message.chars().take(LONGEST).collect();
    if text.len() < message.len() {
        text.push('…');
    }
    let tool = tool.chars().take(200).collect();
    ToolFailure { message: text, kind: kind.to_owned(), tool, details }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::json;
    use toolyard_hub::{ErrorKind, HubError, SourceError};

    use super::{error_type, failure_from_error};

    #[test]
    fn every_kind_has_a_unique_type() {
        let types: BTreeSet<&str> = ErrorKind::ALL.into_iter().map(error_type).collect();
        assert_eq!(types.len(), ErrorKind::ALL.len());
        assert!(types.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }

    #[test]
    fn code_and_data_of_a_protocol_error_are_in_the_details() {
        let data = Some(json!({"field": "x"}));
        let origin = SourceError { code: -32099, message: "refused".to_owned(), data };
        let failure = failure_from_error(
            "t",
            &HubError::new(ErrorKind::ToolFailed, "refused").with_source_error(origin),
        );
        assert_eq!(failure.details, Some(json!({"code": -32099, "data": {"field": "x"}})));
        let origin = SourceError { code: -32603, message: "no".to_owned(), data: None };
        let error = HubError::new(ErrorKind::ToolFailed, "no")
            .with_details(json!({"more": 1}))
            .with_source_error(origin);
        assert_eq!(
            failure_from_error("t", &error).details,
            Some(json!({"more": 1, "code": -32603, "data": null}))
        );
    }

    #[test]
    fn suggestion_and_retry_delay_are_in_the_failure() {
        let error = HubError::new(ErrorKind::RateLimited, "too often")
            .with_suggestion("wait")
            .with_retry_after(Duration::from_millis(1500));
        let failure = failure_from_error("t", &error);
        assert_eq!(
            (failure.message.as_str(), failure.kind.as_str()),
            ("too often\nhint: wait", "rate_limited")
        );
        assert_eq!(failure.details, Some(json!({"retry_after_ms": 1500})));
        let long = failure_from_error(
            "t",
            &HubError::new(ErrorKind::Bug, "x".repeat(1_000_000)).with_details(json!([1])),
        );
        assert_eq!((long.message.chars().count(), long.details), (20_001, Some(json!({"value": [1]}))));
    }
}
