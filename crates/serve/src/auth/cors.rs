//! CORS headers and preflight responses. Only configured origins receive them. Requests from other
//! origins on this machine are accepted, but their browsers do not let the page read the response.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

/// Request headers that a page may send.
const ALLOWED_HEADERS: &str = "authorization, content-type, accept, last-event-id, if-none-match, idempotency-key, x-mcp-version, \
                    mcp-protocol-version, mcp-session-id, mcp-method, mcp-name";
/// Response headers that a page may read.
const EXPOSED_HEADERS: &str = "mcp-session-id, mcp-protocol-version, x-mcp-version, x-execution-id, www-authenticate, retry-after, etag, \
                    ratelimit-limit, ratelimit-remaining, ratelimit-reset, deprecation, x-tool-successor-version, \
                    idempotency-replayed";
const METHODS: &str = "GET, POST, DELETE";
/// How long a browser may cache a preflight response, in seconds.
const MAX_AGE: &str = "600";

/// Returns whether a request is a CORS preflight.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Builds the preflight response. It allows all requested headers, because a page may also send
/// headers with names of its own, such as mirrored parameters.
pub(super) fn preflight_response(headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let requested = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let allowed = requested.cloned().unwrap_or(HeaderValue::from_static(ALLOWED_HEADERS));
    let response_headers = response.headers_mut();
    response_headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    response_headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    response_headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    response
}

/// Lets pages of this origin read the response, including rejections.
pub(super) fn allow_origin(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}
