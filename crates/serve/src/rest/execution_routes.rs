//! `/mcp/executions`: running, recent and, with a history, past executions, and how to cancel them.
//! Callers see their own executions. Seeing those of others requires the permission `observe`,
//! canceling them `manage`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde_json::{Map, Value};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::permission::MANAGE;
use toolyard_hub::{CallStatus, EntryKind, HistoryCursor, OBSERVE, Principal, Raw, RecordedCall, Timestamp};

use super::errors::RestError;
use super::execute::{ChunkDelivery, envelope};
use super::execute_request::ContentDetail;
use super::executions::Execution;
use super::history::{self, ExecutionFilter};
use super::query::Query;
use super::response::json;
use super::result::list as list_of;
use super::stream::progress_data;
use super::{PathName, RestCaller, RestFront};

pub(super) async fn list(
    State(rest): State<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    request: Request,
) -> Result<Response<Body>, RestError> {
    let (head, _) = request.into_parts();
    let mut query = Query::read(head.uri.query());
    let filter = ExecutionFilter::read(&mut query);
    query.finish()?;
    let router = rest.settings.replicas.as_ref();
    let is_forwarded = router.is_some_and(|router| router.was_forwarded(&head.headers));
    // The replica that merges the lists has already counted the request.
    if !is_forwarded {
        rest.admit_list(&principal).await?;
    }
    let all = rest.executions.all();
    let over = all.iter().filter(|execution| execution.outcome().is_some());
    let over: Vec<_> = over.map(|execution| execution.info.call).collect();
    let visibility = rest.yard.visibility(&principal);
    let past = history::recent(&rest, &filter, &visibility, &over).await?;
    let matching = all
        .iter()
        .filter(|execution| visibility.sees_call(&recorded_call(execution)) && filter.fits(execution));
    let mut listed: Vec<(HistoryCursor, Raw)> = matching
        .map(|execution| (history::cursor(execution), describe(execution, &principal).to_raw()))
        .chain(past.iter().map(|call| (call.cursor(), history::describe(call, &principal))))
        .collect();
    rest.add_other_executions(&head, &mut listed).await;
    listed.sort_by_key(|(cursor, _)| std::cmp::Reverse(*cursor));
    let more = listed.len() > filter.limit;
    listed.truncate(filter.limit);
    let next = listed.last().filter(|_| more).map(|(last, _)| format!(r#","nextCursor":"{last}""#));
    let mut more = next.unwrap_or_default();
    if is_forwarded {
        // The replica that merges the lists needs the position of each execution.
        let cursors: Vec<String> = listed.iter().map(|(cursor, _)| cursor.to_string()).collect();
        more.push_str(&format!(r#","cursors":{}"#, to_raw(&cursors)));
    }
    let shown = list_of(listed.into_iter().map(|(_, shown)| shown));
    Ok(json(StatusCode::OK, format!(r#"{{"executions":{shown}{more}}}"#)))
}

pub(super) async fn show(
    State(rest): State<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    PathName(id): PathName,
    request: Request,
) -> Result<Response<Body>, RestError> {
    let (head, _) = request.into_parts();
    let mut query = Query::read(head.uri.query());
    let content =
        query.take_keyword("content", &[("full", ContentDetail::Full), ("result", ContentDetail::Result)]);
    query.finish()?;
    let visibility = rest.yard.visibility(&principal);
    let found = rest.executions.find(&id).filter(|execution| visibility.sees_call(&recorded_call(execution)));
    let Some(execution) = found else {
        if let Some(response) = rest.ask_other_replicas(&head).await {
            return Ok(response);
        }
        let call = history::find(&rest, &id, &visibility).await?.ok_or_else(not_found)?;
        return Ok(json(StatusCode::OK, history::describe(&call, &principal).get().to_owned()));
    };
    let content = content.unwrap_or(ContentDetail::Result);
    Ok(json(StatusCode::OK, describe_with_outcome(&execution, &principal, content).get().to_owned()))
}

pub(super) async fn cancel(
    State(rest): State<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    PathName(id): PathName,
    request: Request,
) -> Result<Response<Body>, RestError> {
    let (head, _) = request.into_parts();
    Query::read(head.uri.query()).finish()?;
    let visibility = rest.yard.visibility(&principal);
    let found = rest.executions.find(&id);
    let execution = match found {
        Some(execution) if visibility.may_stop_call(&recorded_call(&execution)) => execution,
        Some(execution) if visibility.sees_call(&recorded_call(&execution)) => {
            return Err(RestError::forbidden("canceling another caller's execution", MANAGE));
        }
        _ => {
            if let Some(response) = rest.ask_other_replicas(&head).await {
                return Ok(response);
            }
            // Executions that are only in the history have finished, so there is nothing to cancel.
            let call = history::find(&rest, &id, &visibility).await?.ok_or_else(not_found)?;
            return Ok(json(StatusCode::OK, history::describe(&call, &principal).get().to_owned()));
        }
    };
    let status = if execution.outcome().is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    execution.cancel.cancel();
    Ok(json(status, describe(&execution, &principal).to_raw().get().to_owned()))
}

fn not_found() -> RestError {
    // The same response for unknown, evicted and hidden executions.
    RestError::new(StatusCode::NOT_FOUND, "NOT_FOUND", "no recent execution has this ID")
}

/// The properties that decide who may see the execution.
fn recorded_call(execution: &Execution) -> RecordedCall<'_> {
    let about = &execution.info;
    RecordedCall {
        principal: about.principal.id(),
        kind: EntryKind::Tool,
        subject: &about.tool,
        source: about.server.as_deref(),
    }
}

fn call_status(execution: &Execution) -> CallStatus {
    execution.outcome().map_or(CallStatus::Running, |ending| ending.state())
}

/// Describes an execution without its outcome.
fn describe(execution: &Execution, principal: &Principal) -> Object {
    let about = &execution.info;
    let duration = execution.outcome().map_or_else(|| about.began.clock.elapsed(), |ending| ending.duration);
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
    put("executionId", about.id.clone().into());
    put("tool", about.tool.clone().into());
    if let Some(server) = &about.server {
        put("server", server.clone().into());
    }
    put("state", call_status(execution).as_str().into());
    put("timestamp", Timestamp(about.began.at).to_string().into());
    put("duration", u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into());
    if principal.has_permission(OBSERVE) {
        put("principal", about.principal.id().into());
    }
    if let Some(session) = about.session_id.as_deref() {
        put("sessionId", session.into());
    }
    if let Some(user) = about.user_id.as_deref() {
        put("userId", user.into());
    }
    if let (None, Some(progress)) = (execution.outcome(), execution.progress()) {
        put("progress", progress_data(&progress));
    }
    let mut object = Object::default();
    for (key, value) in &members {
        object.set(key, to_raw(value));
    }
    object
}

/// Describes an execution with its outcome, if it has finished.
fn describe_with_outcome(execution: &Execution, principal: &Principal, content: ContentDetail) -> Raw {
    let mut object = describe(execution, principal);
    if let Some(ending) = execution.outcome() {
        let text = match envelope(execution, ending, content, ChunkDelivery::InEnvelope) {
            Ok(text) | Err((_, text)) => text,
        };
        object.set("response", toolyard_hub::json::from_text(text));
    }
    object.to_raw()
}
