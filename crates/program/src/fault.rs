//! Failures of calls as `ToolError` carries them. The table from the yard's kinds of errors to words is here and nowhere
//! else.

use serde_json::{Map, Value, json};
use toolyard_hub::{Error, Kind};

use crate::program::Failure;

/// The word of a program that asked for more than it may.
pub(crate) const LIMIT: &str = "limit_reached";
/// Longer messages are cut: a tool may answer with megabytes.
const LONGEST: usize = 20_000;

/// What a script finds in `error.type`.
pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::UnknownTool => "tool_not_found",
        Kind::UnknownResource => "resource_not_found",
        Kind::UnknownPrompt => "prompt_not_found",
        Kind::InvalidArguments => "invalid_arguments",
        Kind::Unauthenticated => "unauthenticated",
        Kind::Forbidden => "forbidden",
        Kind::RateLimited => "rate_limited",
        Kind::TooLarge => "too_large",
        Kind::TimedOut => "timeout",
        Kind::Cancelled => "cancelled",
        Kind::NotConnected => "not_connected",
        Kind::CannotConnect => "connection_failed",
        Kind::ConnectionLost => "connection_lost",
        Kind::ToolFailed => "tool_failed",
        Kind::ClientCannot => "client_cannot",
        Kind::Bug => "internal_error",
    }
}

/// A call without an outcome. What the server itself answered is in `code` and `data`.
pub(crate) fn of_error(tool: &str, error: &Error) -> Failure {
    let mut details = match error.details() {
        None => Map::new(),
        Some(Value::Object(members)) => members.clone(),
        Some(other) => Map::from_iter([("value".to_owned(), other.clone())]),
    };
    if let Some(origin) = error.origin() {
        details.insert("code".to_owned(), json!(origin.code));
        details.insert("data".to_owned(), json!(origin.data));
    }
    if let Some(wait) = error.wait() {
        details
            .insert("retry_after_ms".to_owned(), json!(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
    }
    let details = (!details.is_empty()).then_some(Value::Object(details));
    failure(tool, word(error.kind()), &error.sentence(), details)
}

pub(crate) fn failure(tool: &str, kind: &str, message: &str, details: Option<Value>) -> Failure {
    let mut text: String = message.chars().take(LONGEST).collect();
    if text.len() < message.len() {
        text.push('…');
    }
    let tool = tool.chars().take(200).collect();
    Failure { message: text, kind: kind.to_owned(), tool, details }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::json;
    use toolyard_hub::{Error, Kind, Origin};

    use super::{of_error, word};

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        let words: BTreeSet<&str> = Kind::ALL.into_iter().map(word).collect();
        assert_eq!(words.len(), Kind::ALL.len());
        assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }

    #[test]
    fn code_and_data_of_a_protocol_error_are_in_the_details() {
        let data = Some(json!({"field": "x"}));
        let origin = Origin { code: -32099, message: "refused".to_owned(), data };
        let failure = of_error("t", &Error::new(Kind::ToolFailed, "refused").from_source(origin));
        assert_eq!(failure.details, Some(json!({"code": -32099, "data": {"field": "x"}})));
        let origin = Origin { code: -32603, message: "no".to_owned(), data: None };
        let error = Error::new(Kind::ToolFailed, "no").with_details(json!({"more": 1})).from_source(origin);
        assert_eq!(of_error("t", &error).details, Some(json!({"more": 1, "code": -32603, "data": null})));
    }

    #[test]
    fn what_is_known_of_an_error_is_in_the_failure() {
        let error = Error::new(Kind::RateLimited, "too often")
            .suggest("wait")
            .retry_after(Duration::from_millis(1500));
        let failure = of_error("t", &error);
        assert_eq!((failure.message.as_str(), failure.kind.as_str()), ("too often; wait", "rate_limited"));
        assert_eq!(failure.details, Some(json!({"retry_after_ms": 1500})));
        let odd = of_error("t", &Error::new(Kind::Bug, "x".repeat(1_000_000)).with_details(json!([1])));
        assert_eq!((odd.message.chars().count(), odd.details), (20_001, Some(json!({"value": [1]}))));
    }
}
