//! Negotiates the version of the REST protocol. Every response states its version.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response};
use axum::middleware::Next;
use axum::response::IntoResponse;
use serde_json::json;
use toolyard_hub::ErrorKind;

use super::errors::RestError;
use super::response::{VERSION, VERSION_HEADER};

/// Supported versions, newest last. The newest is the default.
pub(super) const SUPPORTED: [&str; 1] = [VERSION];

pub(super) async fn negotiate(request: Request, next: Next) -> Response<Body> {
    let mut versions = request.headers().get_all(VERSION_HEADER).iter();
    let unknown = versions.find(|value| !SUPPORTED.iter().any(|known| known.as_bytes() == value.as_bytes()));
    let mut response = match unknown {
        None => next.run(request).await,
        Some(other) => refuse(other).into_response(),
    };
    response.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    response
}

fn refuse(version: &HeaderValue) -> RestError {
    let provided = String::from_utf8_lossy(version.as_bytes());
    let reason = "unsupported protocol version";
    let supported = SUPPORTED.join(", ");
    RestError::from_kind(
        ErrorKind::InvalidArguments,
        format!("X-MCP-Version: {reason}; supported: {supported}"),
    )
    .with_details(&json!({
        "field": "X-MCP-Version",
        "reason": reason,
        "provided": provided,
        "supported": SUPPORTED,
        "violations": [{"pointer": "", "field": "X-MCP-Version", "reason": reason, "provided": provided}],
    }))
}
