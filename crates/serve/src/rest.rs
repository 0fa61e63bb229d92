//! The REST front: plain HTTP for scripts, dashboards and other languages. `docs/reference/rest.md` documents
//! it, and `/openapi.json` describes it for programs. It only translates; access decisions are made
//! in the hub.

mod errors;
mod execute;
mod execute_request;
mod execution_routes;
mod executions;
mod history;
mod idempotency;
mod key_hold;
mod metrics;
mod openapi;
mod query;
#[cfg(test)]
mod reference;
mod replicas;
mod response;
mod result;
mod run;
mod servers;
mod stored_execution;
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
use crate::replicas::ReplicaRouter;
use crate::route::Route;

/// The settings of the REST front.
#[derive(Debug, Clone)]
pub(crate) struct RestSettings {
    /// Maximum size of a request body in bytes, and the time limit for receiving it.
    body: usize,
    body_time: Duration,
    /// How long a list waits for sources that are still starting.
    start_wait: Duration,
    /// Lowercase names of request headers that are forwarded to sources.
    forward_headers: Vec<String>,
    retention: RetentionLimits,
    keys: IdempotencyLimits,
    /// The other replicas of the yard, if there can be any.
    replicas: Option<Arc<ReplicaRouter>>,
}

impl RestSettings {
    /// Derives the settings from those of the MCP front.
    pub(crate) fn from_mcp(mcp: &McpSettings, endpoint: &EndpointSettings) -> Self {
        let ten_minutes = Duration::from_secs(600);
        Self {
            body: endpoint.max_body_bytes,
            body_time: endpoint.body_timeout,
            start_wait: mcp.start_wait,
            forward_headers: mcp.forward_headers.clone(),
            retention: RetentionLimits { running: 4_096, most: 1_000, bytes: 32 << 20, time: ten_minutes },
            keys: IdempotencyLimits { most: 10_000, bytes: 32 << 20, time: ten_minutes },
            replicas: None,
        }
    }

    pub(crate) fn with_replicas(self, replicas: Option<Arc<ReplicaRouter>>) -> Self {
        Self { replicas, ..self }
    }
}

/// The REST front of a yard.
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

/// How long canceled calls may take to clean up before the process exits.
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

    /// Checks whether this principal may request a list, which counts against its rate limit.
    async fn admit_list(&self, principal: &Principal) -> Result<(), RestError> {
        self.yard.admit_list(principal).await.map_err(|error| RestError::from_hub_error(&error, ""))
    }

    /// Reports the front as not ready. Running executions continue.
    pub(crate) fn close(&self) {
        self.stopping.cancel();
    }

    /// Waits for executions that outlive their connection.
    pub(crate) async fn drain(&self) {
        self.calls.close();
        self.calls.wait().await;
    }

    /// Cancels executions that did not finish in time.
    pub(crate) fn cancel_calls(&self) {
        self.executions.cancel_all();
    }

    /// Cancels all executions and waits for them to clean up.
    pub(crate) async fn shutdown(&self) {
        self.executions.cancel_all();
        self.calls.close();
        if tokio::time::timeout(SETTLE, self.calls.wait()).await.is_err() {
            tracing::warn!(calls = self.calls.len(), "canceled executions are still running");
        }
    }
}

/// The routes of this front.
pub(crate) fn routes() -> [Route<Arc<RestFront>>; 10] {
    [
        Route::at("/mcp/tools").get(tools::list),
        Route::at("/mcp/tools/{name}").get(tools::show),
        Route::at("/mcp/tools/{name}/execute").post(execute::execute),
        Route::at("/mcp/executions").get(execution_routes::list),
        Route::at("/mcp/executions/{id}").get(execution_routes::show).delete(execution_routes::cancel),
        Route::at("/mcp/servers").get(servers::list),
        Route::at("/mcp/replicas").get(replicas::list),
        Route::at("/ready").get(servers::ready),
        Route::at("/metrics").get(metrics::show),
        Route::at("/openapi.json").get(openapi::show),
    ]
}

pub(crate) fn router(rest: Arc<RestFront>) -> Router {
    let router = routes().into_iter().fold(Router::new(), |router, route| route.add_to(router));
    router.method_not_allowed_fallback(method_not_allowed).layer(from_fn(version::negotiate)).with_state(rest)
}

/// The response for an unknown path.
pub(crate) async fn not_found() -> Response<Body> {
    let failure = RestError::new(StatusCode::NOT_FOUND, "NOT_FOUND", "no such path")
        .with_details(&json!({"suggestion": "use /mcp for MCP, or see /openapi.json for the REST paths"}));
    with_version(failure.into_response())
}

/// The response for a known path with an unsupported method. The router adds the Allow header.
pub(crate) async fn method_not_allowed(request: Request) -> Response<Body> {
    let message = format!("method {} is not allowed for this path", request.method());
    RestError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message).into_response()
}

/// The response for a request that authentication rejected.
pub(crate) fn refusal(kind: ErrorKind, status: StatusCode, text: &str, reason: &str) -> Response<Body> {
    let failure = RestError::from_kind(kind, text).with_details(&json!({"reason": reason}));
    with_version(RestError { status, ..failure }.into_response())
}

fn with_version(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    response
}

/// The caller of a request. Authentication guarantees that it is present.
struct RestCaller(Principal);

impl<S: Sync> FromRequestParts<S> for RestCaller {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RestError> {
        let principal = parts.extensions.get::<Principal>().cloned();
        principal
            .map(Self)
            .ok_or_else(|| RestError::from_kind(ErrorKind::Unauthenticated, "a bearer token is required"))
    }
}

/// A decoded path segment.
struct PathName(String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RestError> {
        let no_text = |_| RestError::invalid_at("name", "is not valid UTF-8 after decoding", Value::Null);
        Path::<String>::from_request_parts(parts, state).await.map(|Path(name)| Self(name)).map_err(no_text)
    }
}

#[cfg(test)]
mod tests;
