//! The version of the protocol: which ones are spoken, and that every answer says which one it is in.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response};
use axum::middleware::Next;
use axum::response::IntoResponse;
use serde_json::json;
use toolyard_hub::ErrorKind;

use super::errors::RestError;
use super::response::{VERSION, VERSION_HEADER};

/// Every version that is spoken, newest last. A client that names none gets the newest.
pub(super) const SUPPORTED: [&str; 1] = [VERSION];

pub(super) async fn negotiate(request: Request, next: Next) -> Response<Body> {
    let mut said = request.headers().get_all(VERSION_HEADER).iter();
    let unknown = said.find(|value| !SUPPORTED.iter().any(|known| known.as_bytes() == value.as_bytes()));
    let mut response = match unknown {
        None => next.run(request).await,
        Some(other) => refuse(other).into_response(),
    };
    response.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    response
}

fn refuse(said: &HeaderValue) -> RestError {
    let said = String::from_utf8_lossy(said.as_bytes());
    let reason = "this version of the protocol is not spoken here";
    let supported = SUPPORTED.join(", ");
    RestError::from_kind(
        ErrorKind::InvalidArguments,
        format!("X-MCP-Version: {reason}; spoken are: {supported}"),
    )
    .with_details(&json!({
        "field": "X-MCP-Version",
        "reason": reason,
        "provided": said,
        "supported": SUPPORTED,
        "violations": [{"pointer": "", "field": "X-MCP-Version", "reason": reason, "provided": said}],
    }))
}
