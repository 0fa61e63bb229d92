//! `GET /mcp/servers` and `GET /ready`: the state of the sources.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use toolyard_hub::{CatalogView, SourceName, SourceStatus, YardScope};

use super::errors::RestError;
use super::query::Query;
use super::response::respond_json;
use super::{RestCaller, RestFront};

pub(super) async fn list(
    Shared(rest): Shared<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    request: Request,
) -> Result<Response<Body>, RestError> {
    Query::read(request.uri().query()).finish()?;
    rest.admit_list(&principal).await?;
    let catalog = rest.yard.catalog();
    let statuses = rest.yard.statuses_for(&principal);
    let servers: Vec<Value> = statuses
        .iter()
        .map(|(name, status)| {
            let view = CatalogView::new(Arc::clone(&catalog), principal.clone())
                .with_scope(YardScope::Source(name.clone()));
            describe(name, status, &view)
        })
        .collect();
    Ok(respond_json(StatusCode::OK, &json!({"servers": servers})))
}

fn describe(name: &SourceName, status: &SourceStatus, view: &CatalogView) -> Value {
    let mut server = json!({
        "name": name.as_str(),
        "state": status.state.as_str(),
        "tools": view.tools().count(),
        "resources": view.resources().count(),
        "templates": view.templates().count(),
        "prompts": view.prompts().count(),
    });
    if let Some(reason) = &status.reason {
        server["reason"] = reason.clone().into();
    }
    if !status.warnings.is_empty() {
        server["warnings"] = json!(status.warnings);
    }
    if let Some(transport) = status.transport {
        server["transport"] = transport.into();
    }
    if let Some(replica) = &status.replica {
        server["replica"] = replica.as_str().into();
    }
    if let Some(version) = status.version {
        server["protocolVersion"] = version.into();
    }
    if let Some(retry_at) = status.retry_at {
        let wait = retry_at.saturating_duration_since(tokio::time::Instant::now());
        server["retryInMs"] = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).into();
    }
    server
}

/// Reports whether every source has started or failed to start, so that lists are complete.
pub(super) async fn ready(
    Shared(rest): Shared<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    request: Request,
) -> Result<Response<Body>, RestError> {
    Query::read(request.uri().query()).finish()?;
    let (status, word) = if rest.stopping.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping")
    } else if rest.yard.is_startup_complete() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "starting")
    };
    let starting: Vec<String> = rest
        .yard
        .statuses_for(&principal)
        .into_iter()
        .filter(|(_, status)| !status.startup_complete)
        .map(|(name, _)| name.to_string())
        .collect();
    let mut readiness = json!({"status": word, "starting": starting});
    if let Some(router) = &rest.settings.replicas {
        // Without the store a replica still serves most requests, so it stays ready.
        readiness["store"] = router.store_state().into();
        readiness["replicas"] = router.replicas().all().len().into();
    }
    Ok(respond_json(status, &readiness))
}
