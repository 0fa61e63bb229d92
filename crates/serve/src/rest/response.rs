//! HTTP responses: the envelope of the protocol and the common headers.

use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolyard_hub::json::to_raw;
use toolyard_hub::{ExecutionId, Timestamp};

use super::errors::RestError;

/// The latest version of the REST protocol.
pub(super) const VERSION: &str = "1.0";
pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static("x-mcp-version");
pub(super) const EXECUTION_HEADER: HeaderName = HeaderName::from_static("x-execution-id");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The metadata of a response: the execution, its start time and its duration.
#[derive(Debug, Clone)]
pub(super) struct ExecutionMetadata {
    pub(super) id: String,
    pub(super) began: SystemTime,
    pub(super) duration: Duration,
    /// Violations of the tool's output schema.
    pub(super) violations: Vec<String>,
}

impl ExecutionMetadata {
    /// Returns the metadata of a request that was refused before its execution.
    pub(super) fn now() -> Self {
        // The ID of a refusal is never looked up, so a constant is fine if the random number
        // generator fails.
        let id = ExecutionId::generate().unwrap_or(ExecutionId::from_bytes([0; 16]));
        let (id, violations) = (execution_name(id), Vec::new());
        Self { id, began: SystemTime::now(), duration: Duration::ZERO, violations }
    }

    pub(super) fn write(&self) -> String {
        let millis = u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX);
        let at = Timestamp(self.began);
        let warnings = match self.violations.as_slice() {
            [] => String::new(),
            violations => format!(r#","resultViolations":{}"#, to_raw(violations)),
        };
        format!(r#"{{"executionId":"{}","duration":{millis},"timestamp":"{at}"{warnings}}}"#, self.id)
    }
}

/// A start time on both clocks: wall clock for display, monotonic clock for durations.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartTime {
    pub(super) at: SystemTime,
    pub(super) clock: Instant,
}

impl StartTime {
    pub(super) fn now() -> Self {
        Self { at: SystemTime::now(), clock: Instant::now() }
    }
}

/// Returns the ID of an execution as responses contain it.
pub(crate) fn execution_name(id: ExecutionId) -> String {
    id.public_id()
}

/// Builds the envelope of a success. `more` contains further members as text, each preceded by a
/// comma.
pub(super) fn success(result: &RawValue, more: &str, stamp: &ExecutionMetadata) -> String {
    format!(r#"{{"success":true,"result":{}{more},"metadata":{}}}"#, result.get(), stamp.write())
}

/// Builds the envelope of a failure.
pub(super) fn failure(failure: &RestError, more: &str, stamp: &ExecutionMetadata) -> String {
    let (code, message) = (failure.code, to_raw(&failure.message));
    let details = match &failure.details {
        Some(details) => format!(r#","details":{}"#, details.get()),
        None => String::new(),
    };
    let error = format!(r#"{{"code":"{code}","message":{message}{details}}}"#);
    format!(r#"{{"success":false,"error":{error}{more},"metadata":{}}}"#, stamp.write())
}

pub(super) fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

pub(super) fn respond_json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response<Body> {
    json(status, to_raw(value).get().to_owned())
}

/// Builds an error response with the headers that its status requires.
pub(super) fn respond_error(reason: &RestError, body: String) -> Response<Body> {
    let mut response = json(reason.status, body);
    if let Some(wait) = reason.retry_after {
        // Rounded up, so that the client does not retry too early.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if reason.status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// An error outside of any execution.
impl IntoResponse for RestError {
    fn into_response(self) -> Response<Body> {
        let body = failure(&self, "", &ExecutionMetadata::now());
        respond_error(&self, body)
    }
}
