//! All routes of the listener.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, Response, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use serde_json::json;
use toolyard_hub::{Principal, SourceName};
use toolyard_wire::Endpoint;

use crate::auth::{Authenticator, WELL_KNOWN, guard};
use crate::fronts::{BuiltinEndpointName, Fronts};
use crate::mcp::McpFront;
use crate::page::{self, ASSETS};
use crate::quotas;
use crate::replicas::peer_router;
use crate::rest;
use crate::route::Route;

/// Routes that need no token.
pub(crate) const PUBLIC: [&str; 2] = ["/", "/health"];
/// Health checks, which are answered regardless of the number of connections.
pub(crate) const HEALTH: [&str; 2] = ["/health", "/ready"];
/// The control socket. It checks tokens itself if they are not in the `Authorization` header.
pub(crate) const CONTROL: &str = "/control";
/// The events of this replica, for the other replicas only. It checks who sends the request itself.
pub(crate) const FEED: &str = "/control/feed";

/// Returns the routes outside the REST front.
fn routes() -> Vec<Route<Arc<Fronts>>> {
    let mut routes = vec![
        Route::at("/").get(page::index),
        Route::at(format!("{ASSETS}{{name}}")).get(page::asset),
        Route::at("/health").get(health),
        Route::at(CONTROL).get(control),
        Route::at(FEED).get(feed),
        Route::at("/mcp").mcp(mcp),
        Route::at("/servers/{name}/mcp").mcp(source_mcp),
    ];
    routes.extend(BuiltinEndpointName::ALL.map(|name| {
        let handler = move |fronts, request| builtin_mcp(name, fronts, request);
        Route::at(format!("/{}/mcp", name.as_str())).mcp(handler)
    }));
    routes
}

/// Returns every routed method and path pattern, and the metadata that the authentication layer
/// serves.
pub(crate) fn requests() -> Vec<(&'static str, String)> {
    let mut requests: Vec<_> = routes().iter().flat_map(Route::requests).collect();
    requests.extend(rest::routes().iter().flat_map(Route::requests));
    requests.push(("GET", format!("{WELL_KNOWN}{{path}}")));
    requests
}

pub(crate) fn router(fronts: Arc<Fronts>, authenticator: Arc<Authenticator>) -> Router {
    let peers = fronts.placed_servers().map(|placed| peer_router(Arc::clone(placed)));
    let rest = rest::router(Arc::clone(fronts.rest()));
    let yard = Arc::clone(fronts.yard());
    let router = routes().into_iter().fold(Router::new(), |router, route| route.add_to(router));
    router
        .method_not_allowed_fallback(rest::method_not_allowed)
        .fallback(rest::not_found)
        .with_state(fronts)
        .merge(rest)
        .layer(from_fn_with_state(yard, quotas::charge))
        .layer(from_fn_with_state(authenticator, guard))
        // Requests of other replicas are authenticated in a way of their own.
        .merge(peers.unwrap_or_default())
}

async fn control(State(fronts): State<Arc<Fronts>>, request: Request<Body>) -> Response<Body> {
    fronts.control().upgrade(request).await
}

async fn feed(State(fronts): State<Arc<Fronts>>, request: Request<Body>) -> Response<Body> {
    fronts.control().feed(request).await
}

async fn mcp(State(fronts): State<Arc<Fronts>>, request: Request<Body>) -> Response<Body> {
    respond(fronts.yard_endpoint(), request).await
}

async fn builtin_mcp(
    name: BuiltinEndpointName,
    State(fronts): State<Arc<Fronts>>,
    request: Request<Body>,
) -> Response<Body> {
    match fronts.builtin_endpoint(name) {
        Some(endpoint) => respond(endpoint, request).await,
        None => rest::not_found().await,
    }
}

async fn source_mcp(
    State(fronts): State<Arc<Fronts>>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response<Body> {
    // Sources outside the caller's allow list do not exist for the caller. Missing permissions are
    // reported by the endpoint.
    let principal = request.extensions().get::<Principal>();
    let source = SourceName::new(name.as_str());
    let known = principal.is_some_and(|principal| fronts.visibility(principal).can_access_source(&source));
    match fronts.source_endpoint(&name).filter(|_| known) {
        Some(endpoint) => respond(&endpoint, request).await,
        None => {
            let body = json!({"error": format!("unknown server `{name}`")}).to_string();
            (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
    }
}

async fn respond(endpoint: &Arc<Endpoint<McpFront>>, request: Request<Body>) -> Response<Body> {
    match request.extensions().get::<Principal>().cloned() {
        Some(principal) => endpoint.respond(principal, request).await,
        // The authentication layer always sets a principal.
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn health() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#)
}
