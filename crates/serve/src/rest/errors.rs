//! REST errors: the table of codes and statuses for hub errors, and the fields of an error
//! response. Handlers return a [`RestError`]; `response.rs` serializes it.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use toolyard_hub::json::{Object, from_text, to_raw};
use toolyard_hub::{ErrorKind, HubError, Outcome, Raw, SchemaViolation, permission};

use super::result;

/// Status 499 "Client Closed Request", introduced by nginx: the client disconnected or canceled the
/// call.
const CLIENT_CLOSED: u16 = 499;

/// Returns the error code and HTTP status for an error kind.
pub(super) fn code_and_status(kind: ErrorKind) -> (&'static str, StatusCode) {
    match kind {
        ErrorKind::UnknownTool => ("TOOL_NOT_FOUND", StatusCode::NOT_FOUND),
        ErrorKind::UnknownResource | ErrorKind::UnknownPrompt => ("NOT_FOUND", StatusCode::NOT_FOUND),
        ErrorKind::InvalidArguments => ("VALIDATION_ERROR", StatusCode::BAD_REQUEST),
        ErrorKind::Unauthenticated => ("AUTHENTICATION_ERROR", StatusCode::UNAUTHORIZED),
        ErrorKind::Forbidden => ("PERMISSION_ERROR", StatusCode::FORBIDDEN),
        ErrorKind::RateLimited => ("RATE_LIMIT_ERROR", StatusCode::TOO_MANY_REQUESTS),
        ErrorKind::TooLarge => ("PAYLOAD_TOO_LARGE", StatusCode::PAYLOAD_TOO_LARGE),
        ErrorKind::TimedOut => ("TIMEOUT_ERROR", StatusCode::GATEWAY_TIMEOUT),
        ErrorKind::Cancelled => ("CANCELLED", client_closed_request()),
        ErrorKind::NotConnected | ErrorKind::CannotConnect | ErrorKind::ConnectionLost => {
            ("EXECUTION_ERROR", StatusCode::BAD_GATEWAY)
        }
        ErrorKind::ToolFailed => ("EXECUTION_ERROR", StatusCode::INTERNAL_SERVER_ERROR),
        // REST has no way to ask the caller, so this tool cannot be used over REST at all.
        ErrorKind::ClientCannot => ("EXECUTION_ERROR", StatusCode::NOT_IMPLEMENTED),
        ErrorKind::Bug => ("INTERNAL_ERROR", StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn client_closed_request() -> StatusCode {
    StatusCode::from_u16(CLIENT_CLOSED).unwrap_or(StatusCode::BAD_REQUEST)
}

/// An error as the caller sees it.
#[derive(Debug, Clone)]
pub(crate) struct RestError {
    pub(super) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Raw>,
    pub(crate) retry_after: Option<Duration>,
}

impl RestError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: None, retry_after: None }
    }

    /// Creates an error with the code and status of `kind`.
    pub(crate) fn from_kind(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (code, status) = code_and_status(kind);
        Self::new(status, code, message)
    }

    /// Creates the error for a missing permission.
    pub(super) fn forbidden(subject: impl std::fmt::Display, missing: &str) -> Self {
        Self::from_kind(ErrorKind::Forbidden, permission::missing_message(subject, missing))
            .with_details(&json!({"suggestion": permission::ASK_FOR_PERMISSION}))
    }

    #[must_use]
    pub(crate) fn with_details(mut self, details: &Value) -> Self {
        self.details = Some(to_raw(details));
        self
    }

    /// Creates a validation error for the given violations. The pointer of a violation outside the
    /// body is a parameter name.
    pub(crate) fn invalid(violations: &[SchemaViolation]) -> Self {
        let messages: Vec<String> = violations.iter().map(SchemaViolation::message).collect();
        let first = violations.first();
        Self::from_kind(ErrorKind::InvalidArguments, format!("invalid request: {}", messages.join("; ")))
            .with_details(&json!({
                "field": first.map(|wrong| &wrong.field),
                "reason": first.map(|wrong| &wrong.reason),
                "provided": first.map(|wrong| &wrong.provided),
                "violations": violations,
            }))
    }

    /// Creates a validation error with one violation.
    pub(crate) fn invalid_at(pointer: &str, reason: impl Into<String>, provided: Value) -> Self {
        Self::invalid(&[SchemaViolation::new(pointer, reason, provided)])
    }

    /// Creates the conflict of a request whose idempotency key cannot be used.
    pub(super) fn key_conflict(reason: &str) -> Self {
        let failure = Self::invalid_at("/context/idempotencyKey", reason, Value::Null);
        Self { status: StatusCode::CONFLICT, ..failure }
    }

    pub(super) fn too_many_requests(message: &str) -> Self {
        let failure = Self::from_kind(ErrorKind::RateLimited, message);
        Self { retry_after: Some(Duration::from_secs(5)), ..failure }
    }

    /// Converts a hub error. For internal errors, the caller only sees the execution ID under which
    /// the error is logged.
    pub(crate) fn from_hub_error(error: &HubError, execution: &str) -> Self {
        let (code, status) = code_and_status(error.kind());
        if error.kind() == ErrorKind::Bug {
            tracing::error!(execution, error = error.message(), "internal error in a call");
            return Self::new(status, code, "internal error").with_details(&json!({"id": execution}));
        }
        let mut details = match error.details() {
            Some(Value::Object(details)) => details.clone(),
            Some(Value::Null) | None => Map::new(),
            Some(other) => Map::from_iter([("data".to_owned(), other.clone())]),
        };
        if error.kind() == ErrorKind::InvalidArguments {
            fill_validation_details(&mut details, error.message());
        }
        if let Some(origin) = error.source_error() {
            let mut upstream = json!({"code": origin.code, "message": origin.message});
            if let Some(data) = &origin.data {
                upstream["data"] = data.clone();
            }
            details.insert("upstream".to_owned(), upstream);
        }
        if let Some(suggestion) = error.suggestion() {
            details.insert("suggestion".to_owned(), suggestion.into());
        }
        let failure = Self::new(status, code, error.message());
        let failure =
            if details.is_empty() { failure } else { failure.with_details(&Value::Object(details)) };
        Self { retry_after: error.retry_after(), ..failure }
    }

    /// Converts the result of a tool that reported an error: its text becomes the message, its
    /// content goes into the details.
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        let result = result::RestToolResult::read(&outcome.body);
        let text = result.text();
        let message =
            if text.is_empty() { "the tool failed without an error message".to_owned() } else { text };
        let mut details = Object::default();
        details.set("content", result.content());
        if let Some(structured) = result.structured() {
            details.set("structuredContent", from_text(structured.get().to_owned()));
        }
        Self { details: Some(details.to_raw()), ..Self::from_kind(ErrorKind::ToolFailed, message) }
    }
}

/// Adds the fields that the protocol requires for every validation error, if the source did not
/// provide them.
fn fill_validation_details(details: &mut Map<String, Value>, message: &str) {
    if !details.get("field").is_some_and(Value::is_string) {
        details.insert("field".to_owned(), "".into());
    }
    details.entry("reason").or_insert_with(|| message.into());
    details.entry("provided").or_insert(Value::Null);
    if !details.contains_key("violations") {
        let field = details["field"].as_str().unwrap_or_default();
        let pointer = if field.is_empty() { String::new() } else { format!("/{}", field.replace('.', "/")) };
        let only = json!([{
            "pointer": pointer,
            "field": details["field"],
            "reason": details["reason"],
            "provided": details["provided"],
        }]);
        details.insert("violations".to_owned(), only);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use serde_json::{Value, json};
    use toolyard_hub::json::to_raw;
    use toolyard_hub::{ErrorKind, HubError, Outcome, SourceError};

    use super::{RestError, code_and_status};

    #[test]
    fn every_kind_of_error_has_its_words() {
        let mut table = String::new();
        for kind in ErrorKind::ALL {
            let (code, status) = code_and_status(kind);
            writeln!(table, "{:<26} {code:<22} {}", kind.as_str(), status.as_u16()).unwrap();
        }
        insta::assert_snapshot!(table);
    }

    fn details(failure: &RestError) -> Value {
        serde_json::from_str(failure.details.as_ref().unwrap().get()).unwrap()
    }

    #[test]
    fn internal_errors_expose_only_the_execution_id() {
        let failure = RestError::from_hub_error(
            &HubError::new(ErrorKind::Bug, "secret").with_suggestion("secret"),
            "exec-1",
        );
        assert_eq!(
            (failure.message.as_str(), details(&failure)),
            ("internal error", json!({"id": "exec-1"}))
        );
    }

    #[test]
    fn a_validation_error_always_has_the_fields_that_the_protocol_requires() {
        let error = HubError::new(ErrorKind::InvalidArguments, "no such file")
            .with_details(json!({"field": "a.b", "reason": "is gone", "provided": 1}));
        assert_eq!(
            details(&RestError::from_hub_error(&error, "exec-1")),
            json!({
                "field": "a.b",
                "reason": "is gone",
                "provided": 1,
                "violations": [{"pointer": "/a/b", "field": "a.b", "reason": "is gone", "provided": 1}],
            })
        );
        assert_eq!(
            details(&RestError::from_hub_error(&HubError::new(ErrorKind::InvalidArguments, "no"), "exec-1")),
            json!({
                "field": "",
                "reason": "no",
                "provided": null,
                "violations": [{"pointer": "", "field": "", "reason": "no", "provided": null}],
            })
        );
    }

    #[test]
    fn an_error_of_an_upstream_is_reported_unchanged() {
        let origin = SourceError { code: -32050, message: "no paper".to_owned(), data: Some(json!([2])) };
        let error = HubError::new(ErrorKind::ToolFailed, "printer: no paper")
            .with_suggestion("fill it up")
            .with_source_error(origin);
        let failure = RestError::from_hub_error(&error, "exec-1");
        assert_eq!((failure.code, failure.message.as_str()), ("EXECUTION_ERROR", "printer: no paper"));
        let upstream = json!({"code": -32050, "message": "no paper", "data": [2]});
        assert_eq!(details(&failure), json!({"upstream": upstream, "suggestion": "fill it up"}));
    }

    #[test]
    fn the_text_of_a_failed_tool_is_the_message() {
        let content = json!([{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]);
        let outcome = Outcome::failure(to_raw(&json!({"content": content, "isError": true})));
        let failure = RestError::from_outcome(&outcome);
        assert_eq!(failure.message, "first\nsecond");
        assert_eq!(details(&failure), json!({"content": content}));
    }
}
