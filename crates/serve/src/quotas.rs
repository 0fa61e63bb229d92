//! Quota charges of HTTP responses: streams while they are open, and bytes of the REST front until
//! they are sent. The MCP front charges each of its responses itself.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use serde_json::json;
use toolyard_hub::{HubError, Principal, Quota, Yard};

use crate::auth::ErrorFormat;
use crate::rest::RestError;

/// Smaller responses are not charged.
const SMALL: u64 = 1024;

pub(crate) async fn charge(
    State(yard): State<Arc<Yard>>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let Some(principal) = request.extensions().get::<Principal>().cloned() else {
        return next.run(request).await;
    };
    let format = ErrorFormat::for_path(request.uri().path());
    let response = next.run(request).await;
    let charged = if is_stream(&response) {
        yard.charge(&principal, Quota::Streams, 1)
    } else {
        match (format, response.body().size_hint().exact()) {
            (ErrorFormat::Rest, Some(size)) if size >= SMALL => {
                yard.charge(&principal, Quota::Bytes, usize::try_from(size).unwrap_or(usize::MAX))
            }
            _ => return response,
        }
    };
    match charged {
        // The body holds the charge until it has been sent. `map_err` preserves the size hint.
        Ok(charge) => response.map(|body| {
            Body::new(body.map_err(move |error| {
                let _held = &charge;
                error
            }))
        }),
        Err(error) => refuse(&error, format),
    }
}

/// Renders an exceeded quota in the format of the front.
fn refuse(error: &HubError, format: ErrorFormat) -> Response<Body> {
    match format {
        ErrorFormat::Rest => RestError::from_hub_error(error, "").into_response(),
        ErrorFormat::Mcp => {
            let body = json!({"jsonrpc": "2.0", "error": {"code": -32603, "message": error.message_with_suggestion()}});
            let mut response = (StatusCode::TOO_MANY_REQUESTS, body.to_string()).into_response();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}

pub(crate) fn is_stream(response: &Response<Body>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
