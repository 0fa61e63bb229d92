//! The REST front: plain HTTP for scripts, dashboards and other languages. What it means is written down in
//! `docs/rest.md`; the document at `/openapi.json` describes it to machines. It translates and never decides what is
//! allowed.

mod errors;
mod execute;
mod execute_request;
mod execution_routes;
mod executions;
mod history;
mod idempotency;
mod metrics;
mod openapi;
mod query;
mod response;
mod result;
mod run;
mod servers;
mod stream;
mod strict_json;
mod tool_cache;
mod tools;
mod version;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::{HeaderValue, Response, StatusCode, request::Parts};
use axum::middleware::from_fn;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{ErrorKind, Principal, Yard};
use toolyard_wire::EndpointSettings;

pub(crate) use self::errors::RestError;
use self::executions::{Executions, RetentionLimits};
use self::idempotency::{IdempotencyLimits, IdempotencyStore};
pub(crate) use self::response::execution_name;
use self::response::{VERSION, VERSION_HEADER};
use self::tool_cache::RestToolCache;
use crate::mcp::McpSettings;
use crate::route::Route;

/// What the REST front obeys.
#[derive(Debug, Clone)]
pub(crate) struct RestSettings {
    /// The largest request body, in bytes, and how long it may take to come.
    body: usize,
    body_time: Duration,
    /// How long a list waits for sources that are still starting.
    start_wait: Duration,
    /// Headers of callers, by lower-case name, that some source is to be handed.
    forward_headers: Vec<String>,
    retention: RetentionLimits,
    keys: IdempotencyLimits,
}

impl RestSettings {
    /// What holds for MCP holds here.
    pub(crate) fn from_mcp(mcp: &McpSettings, endpoint: &EndpointSettings) -> Self {
        let ten_minutes = Duration::from_secs(600);
        Self {
            body: endpoint.max_body_bytes,
            body_time: endpoint.body_timeout,
            start_wait: mcp.start_wait,
            forward_headers: mcp.forward_headers.clone(),
            retention: RetentionLimits { running: 4_096, most: 1_000, bytes: 32 << 20, time: ten_minutes },
            keys: IdempotencyLimits { most: 10_000, bytes: 32 << 20, time: ten_minutes },
        }
    }
}

/// One yard, spoken to in REST.
#[derive(Debug)]
pub(crate) struct RestFront {
    yard: Arc<Yard>,
    settings: RestSettings,
    executions: Executions,
    keys: IdempotencyStore,
    tool_cache: RestToolCache,
    calls: TaskTracker,
    stopping: CancellationToken,
}

/// How long calls that were cancelled may take to put things away before the process ends.
const SETTLE: Duration = Duration::from_secs(5);

impl RestFront {
    pub(crate) fn new(yard: Arc<Yard>, settings: RestSettings) -> Arc<Self> {
        Arc::new(Self {
            executions: Executions::new(settings.retention.clone()),
            keys: IdempotencyStore::new(settings.keys.clone()),
            tool_cache: RestToolCache::default(),
            calls: TaskTracker::new(),
            stopping: CancellationToken::new(),
            yard,
            settings,
        })
    }

    /// Whether this principal may be sent a list, which takes from its rate.
    fn admit_list(&self, principal: &Principal) -> Result<(), RestError> {
        self.yard.admit_list(principal).map_err(|error| RestError::from_hub_error(&error, ""))
    }

    /// No longer ready; what is under way goes on.
    pub(crate) fn close(&self) {
        self.stopping.cancel();
    }

    /// Waits for the executions that outlive their connection.
    pub(crate) async fn drain(&self) {
        self.calls.close();
        self.calls.wait().await;
    }

    /// Gives up on executions that did not finish in time.
    pub(crate) fn cancel_calls(&self) {
        self.executions.cancel_all();
    }

    /// Waits for executions that were cancelled to put things away.
    pub(crate) async fn shutdown(&self) {
        self.executions.cancel_all();
        self.calls.close();
        if tokio::time::timeout(SETTLE, self.calls.wait()).await.is_err() {
            tracing::warn!(calls = self.calls.len(), "executions that were cancelled do not end");
        }
    }
}

/// The routes of this front.
pub(crate) fn routes() -> [Route<Arc<RestFront>>; 9] {
    [
        Route::at("/mcp/tools").get(tools::list),
        Route::at("/mcp/tools/{name}").get(tools::show),
        Route::at("/mcp/tools/{name}/execute").post(execute::execute),
        Route::at("/mcp/executions").get(execution_routes::list),
        Route::at("/mcp/executions/{id}").get(execution_routes::show).delete(execution_routes::cancel),
        Route::at("/mcp/servers").get(servers::list),
        Route::at("/ready").get(servers::ready),
        Route::at("/metrics").get(metrics::show),
        Route::at("/openapi.json").get(openapi::show),
    ]
}

pub(crate) fn router(rest: Arc<RestFront>) -> Router {
    let router = routes().into_iter().fold(Router::new(), |router, route| route.add_to(router));
    router.method_not_allowed_fallback(method_not_allowed).layer(from_fn(version::negotiate)).with_state(rest)
}

/// There is nothing at this address.
pub(crate) async fn not_found() -> Response<Body> {
    let failure = RestError::new(StatusCode::NOT_FOUND, "NOT_FOUND", "nothing is served at this address")
        .with_details(
            &json!({"suggestion": "MCP is at /mcp; the REST addresses are described by /openapi.json"}),
        );
    with_version(failure.into_response())
}

/// There is something at this address, but not for this method. Which ones there are is added by the router.
pub(crate) async fn method_not_allowed(request: Request) -> Response<Body> {
    let message = format!("{} is not for this address", request.method());
    RestError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message).into_response()
}

/// Somebody whom the door turned away, in the words of REST.
pub(crate) fn refusal(kind: ErrorKind, status: StatusCode, text: &str, reason: &str) -> Response<Body> {
    let failure = RestError::from_kind(kind, text).with_details(&json!({"reason": reason}));
    with_version(RestError { status, ..failure }.into_response())
}

fn with_version(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    response
}

/// Who is calling. The door lets nobody through without one.
struct RestCaller(Principal);

impl<S: Sync> FromRequestParts<S> for RestCaller {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RestError> {
        let principal = parts.extensions.get::<Principal>().cloned();
        principal
            .map(Self)
            .ok_or_else(|| RestError::from_kind(ErrorKind::Unauthenticated, "a bearer token is needed"))
    }
}

/// A name in an address, decoded.
struct PathName(String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RestError> {
        let no_text = |_| RestError::invalid_at("name", "is no UTF-8 once decoded", Value::Null);
        Path::<String>::from_request_parts(parts, state).await.map(|Path(name)| Self(name)).map_err(no_text)
    }
}

#[cfg(test)]
mod tests;
