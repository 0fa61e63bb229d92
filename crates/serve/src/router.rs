//! The one page of routes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{any, get};
use toolyard_hub::Principal;
use toolyard_wire::Endpoint;

use crate::door::{Door, guard};
use crate::mcp::Front;

/// Routes that anybody may see without a token.
pub(crate) const PUBLIC: [&str; 2] = ["/", "/health"];

pub(crate) fn router(endpoint: Arc<Endpoint<Front>>, door: Arc<Door>) -> Router {
    Router::new()
        .route("/", get(welcome))
        .route("/health", get(health))
        .route("/mcp", any(mcp))
        .fallback(nowhere)
        .with_state(endpoint)
        .layer(from_fn_with_state(door, guard))
}

async fn mcp(State(endpoint): State<Arc<Endpoint<Front>>>, request: Request<Body>) -> Response<Body> {
    match request.extensions().get::<Principal>().cloned() {
        Some(principal) => endpoint.respond(principal, request).await,
        // The door lets nobody through without one.
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn health() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#)
}

async fn welcome() -> impl IntoResponse {
    (
        [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
        ],
        include_str!("welcome.html"),
    )
}

async fn nowhere() -> impl IntoResponse {
    let body = r#"{"error":"nothing is served here; MCP is at /mcp"}"#;
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "application/json")], body)
}
