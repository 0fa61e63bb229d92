//! Answers as bytes: the envelope of the protocol, and the headers that every answer carries.

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

/// The version of the protocol that is spoken here.
pub(super) const VERSION: &str = "1.0";
pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static("x-mcp-version");
pub(super) const EXECUTION_HEADER: HeaderName = HeaderName::from_static("x-execution-id");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Which execution an answer is of, when that began and how long it took.
#[derive(Debug, Clone)]
pub(super) struct ExecutionMetadata {
    pub(super) id: String,
    pub(super) began: SystemTime,
    pub(super) duration: Duration,
    /// In what the result is not what the tool promised.
    pub(super) violations: Vec<String>,
}

impl ExecutionMetadata {
    /// For what is refused before it begins.
    pub(super) fn now() -> Self {
        // Nothing is looked up by the id of a refusal, so a constant will do where there are no random numbers.
        let id = ExecutionId::generate().unwrap_or(ExecutionId::from_bytes([0; 16]));
        let (id, violations) = (execution_name(id), Vec::new());
        Self { id, began: SystemTime::now(), duration: Duration::ZERO, violations }
    }

    pub(super) fn write(&self) -> String {
        let millis = u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX);
        let at = Timestamp(self.began);
        let odd = match self.violations.as_slice() {
            [] => String::new(),
            violations => format!(r#","resultViolations":{}"#, to_raw(violations)),
        };
        format!(r#"{{"executionId":"{}","duration":{millis},"timestamp":"{at}"{odd}}}"#, self.id)
    }
}

/// When something began, on both clocks: one tells the time, the other how long it takes.
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

/// An execution as answers name it.
pub(crate) fn execution_name(id: ExecutionId) -> String {
    id.public_id()
}

/// The envelope of an execution that went well. `more` are members as text, each with a comma before it.
pub(super) fn success(result: &RawValue, more: &str, stamp: &ExecutionMetadata) -> String {
    format!(r#"{{"success":true,"result":{}{more},"metadata":{}}}"#, result.get(), stamp.write())
}

/// The envelope of everything that did not.
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

/// Adds what the status of a failure demands.
pub(super) fn respond_error(reason: &RestError, body: String) -> Response<Body> {
    let mut response = json(reason.status, body);
    if let Some(wait) = reason.retry_after {
        // Whole seconds, and never so few that the next try comes too early.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if reason.status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A failure of its own, before anything was executed.
impl IntoResponse for RestError {
    fn into_response(self) -> Response<Body> {
        let body = failure(&self, "", &ExecutionMetadata::now());
        respond_error(&self, body)
    }
}
