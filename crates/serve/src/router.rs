//! The one page of routes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, Response, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{any, get};
use toolyard_hub::{Principal, SourceName};
use toolyard_wire::Endpoint;

use crate::door::{Door, guard};
use crate::fronts::Fronts;
use crate::mcp::Front;
use crate::page;
use crate::quotas;
use crate::rest;

/// Routes that anybody may see without a token.
pub(crate) const PUBLIC: [&str; 2] = ["/", "/health"];
/// Health checks, which are answered however many connections there are.
pub(crate) const HEALTH: [&str; 2] = ["/health", "/ready"];
/// The control socket, which looks at tokens that come in other ways than by a header itself.
pub(crate) const CONTROL: &str = "/control";

pub(crate) fn router(fronts: Arc<Fronts>, door: Arc<Door>) -> Router {
    let rest = rest::routes(Arc::clone(fronts.rest()));
    let yard = Arc::clone(fronts.yard());
    let mut router = Router::new()
        .route("/", get(page::front))
        .route("/assets/{name}", get(page::asset))
        .route("/health", get(health))
        .route(CONTROL, get(control))
        .route("/mcp", any(mcp))
        .route("/servers/{name}/mcp", any(mcp_of_source));
    for (name, endpoint) in fronts.annexes() {
        let endpoint = Arc::clone(endpoint);
        let annex = any(move |request: Request<Body>| async move { respond(&endpoint, request).await });
        router = router.route(&format!("/{name}/mcp"), annex);
    }
    router
        .method_not_allowed_fallback(rest::wrong_method)
        .fallback(rest::nowhere)
        .with_state(fronts)
        .merge(rest)
        .layer(from_fn_with_state(yard, quotas::charge))
        .layer(from_fn_with_state(door, guard))
}

async fn control(State(fronts): State<Arc<Fronts>>, request: Request<Body>) -> Response<Body> {
    fronts.control().meet(request).await
}

async fn mcp(State(fronts): State<Arc<Fronts>>, request: Request<Body>) -> Response<Body> {
    respond(fronts.all(), request).await
}

async fn mcp_of_source(
    State(fronts): State<Arc<Fronts>>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response<Body> {
    // What a caller is not shown is not there for them.
    let principal = request.extensions().get::<Principal>();
    let known = principal.is_some_and(|principal| principal.knows_source(&SourceName::new(name.as_str())));
    match fronts.of_source(&name).filter(|_| known) {
        Some(endpoint) => respond(&endpoint, request).await,
        None => {
            let body = r#"{"error":"there is no server of this name"}"#;
            (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
    }
}

async fn respond(endpoint: &Arc<Endpoint<Front>>, request: Request<Body>) -> Response<Body> {
    match request.extensions().get::<Principal>().cloned() {
        Some(principal) => endpoint.respond(principal, request).await,
        // The door lets nobody through without one.
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn health() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#)
}
