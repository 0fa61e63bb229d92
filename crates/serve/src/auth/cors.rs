//! What a browser wants to hear before a page of another origin may use this server. Only origins that are configured get
//! such words: a page from this machine that nobody named is let in, but its browser is not told to trust us.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

/// What pages may send and read beyond what every page may.
const SENT: &str = "authorization, content-type, accept, last-event-id, if-none-match, idempotency-key, x-mcp-version, \
                    mcp-protocol-version, mcp-session-id, mcp-method, mcp-name";
const READ: &str = "mcp-session-id, mcp-protocol-version, x-mcp-version, x-execution-id, www-authenticate, retry-after, etag, \
                    ratelimit-limit, ratelimit-remaining, ratelimit-reset, deprecation, x-tool-successor-version, \
                    idempotency-replayed";
const METHODS: &str = "GET, POST, DELETE";
/// How long a browser may remember it, in seconds.
const REMEMBERED: &str = "600";

/// Whether a browser asks what a page may do, instead of a page doing it.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to that. What a page asks for by its own header names, such as mirrored parameters, it may send too.
pub(super) fn preflight_response(headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let asked = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let sent = asked.cloned().unwrap_or(HeaderValue::from_static(SENT));
    let answers = response.headers_mut();
    answers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, sent);
    answers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    answers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED));
    response
}

/// Lets a page of this origin read an answer, refusals included.
pub(super) fn allow_origin(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}
