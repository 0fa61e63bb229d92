//! `POST /mcp/tools/{name}/execute`: converts an HTTP request into a hub request and the outcome
//! into a response. [`hub_request`] assembles everything the hub needs for the call.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, StatusCode, request::Parts};
use serde_json::Value;
use tokio::sync::mpsc;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallContext, CallRequest as HubRequest, CallTarget, CallerChannel, ClientCapabilities, ClientEra,
    Deadline, ExecutionId, FrontName, LogLevel, Principal, ToolEntry, YardScope,
};

use super::errors::RestError;
use super::execute_request::{
    self, ContentDetail, DisconnectPolicy, ExecuteContext, ExecuteRequest, ResponseMode,
};
use super::executions::{Execution, ExecutionInfo, ExecutionOutcome};
use super::idempotency::IdempotencyKey;
use super::key_hold::{KeyHold, KeyOutcome};
use super::response::{
    EXECUTION_HEADER, StartTime, execution_name, failure, json as json_answer, respond_error, success,
};
use super::result::{RestToolResult, list};
use super::run::{FirstPoll, Job};
use super::{PathName, RestCaller, RestFront, stream};

/// Number of events buffered for a slow client.
const EVENTS: usize = 64;

pub(super) async fn execute(
    State(rest): State<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    PathName(name): PathName,
    request: Request,
) -> Result<Response<Body>, RestError> {
    let began = StartTime::now();
    let (parts, body) = request.into_parts();
    let order = execute_request::read(&parts, body, &rest.settings).await?;
    let look_up = || rest.yard.look_up_tool(&name, &principal, ClientEra::Newest, &YardScope::All);
    let mut tool = look_up();
    if tool.is_none() && !rest.yard.is_startup_complete() {
        // The tool may belong to a source that is still starting.
        rest.yard.wait_for_startup(rest.settings.start_wait).await;
        tool = look_up();
    }
    check_name(&rest, &order, &name, tool.as_deref(), &principal)?;

    let call = ExecutionId::generate().map_err(|error| RestError::from_hub_error(&error.into(), ""))?;
    let about = ExecutionInfo {
        id: execution_name(call),
        call,
        tool: tool.as_ref().map_or_else(|| name.clone(), |tool| tool.full_name.to_string()),
        server: tool.as_ref().map(|tool| tool.source.to_string()),
        principal: principal.clone(),
        session_id: order.context.session_id.as_deref().map(Into::into),
        user_id: order.context.user_id.as_deref().map(Into::into),
        began,
    };
    let execution = Arc::new(Execution::new(about));
    let key = match (&order.context.key, &tool) {
        (Some(key), Some(tool)) => {
            let (principal, tool) = (principal.id().to_owned(), tool.full_name.to_string());
            Some(Arc::new(IdempotencyKey { principal, tool, key: key.clone() }))
        }
        _ => None,
    };
    let key = match key {
        Some(key) => match KeyHold::claim(&rest, key, &order, &execution).await? {
            KeyOutcome::Claimed(key) => Some(key),
            KeyOutcome::Replay(first) => return Ok(replay_response(&first, &order).await),
        },
        None => None,
    };
    if !rest.executions.begin(&execution) {
        if let Some(key) = key {
            key.release(&rest.keys);
        }
        return Err(RestError::too_many_requests("too many executions are running"));
    }
    let request = ToolRequest { name, tool, request: order };
    Ok(start(&rest, &parts, request, execution, key).await)
}

/// The requested tool and the parsed request.
struct ToolRequest {
    name: String,
    tool: Option<Arc<ToolEntry>>,
    request: ExecuteRequest,
}

/// Starts the call and responds in the requested format.
async fn start(
    rest: &Arc<RestFront>,
    parts: &Parts,
    request: ToolRequest,
    execution: Arc<Execution>,
    key: Option<KeyHold>,
) -> Response<Body> {
    let ToolRequest { name, tool, request: order } = request;
    // A client that sends an idempotency key can retry to get the outcome, so a lost connection
    // must not cancel the call.
    let stays = order.on_disconnect == DisconnectPolicy::Detach || key.is_some();
    let guard = (!stays).then(|| execution.cancel.clone().drop_guard());
    let (form, content) = (order.response_mode, order.content);
    let log_level = (form == ResponseMode::Events).then_some(LogLevel::Info);
    let (client, updates) =
        CallerChannel::new(ClientCapabilities { log_level, ..ClientCapabilities::default() });
    let target = CallTarget::Tool { name, arguments: Some(order.params) };
    let request = hub_request(rest, parts, (target, tool), order.context, &execution, client);
    let yard = Arc::clone(&rest.yard);
    let call = Box::pin(async move { yard.call(request).await });
    let job = Job::new(Arc::clone(rest), Arc::clone(&execution), key, updates);
    let (job, call) = match job.poll_once(call).await {
        FirstPoll::Pending(job, call) => (job, call),
        FirstPoll::Ready(events) => {
            // The call was refused or completed immediately. A refusal is reported by its HTTP
            // status even if the client accepts events.
            let ran = !events.is_empty() || execution.outcome().is_some_and(|ending| ending.reached_tool());
            return match form {
                ResponseMode::Events if ran => stream::stream_finished(&execution, events, content),
                ResponseMode::Events | ResponseMode::Json => full_response(&execution, content).await,
            };
        }
    };
    match form {
        ResponseMode::Json => {
            rest.calls.spawn(job.run(call, None));
            let response = full_response(&execution, content).await;
            drop(guard);
            response
        }
        ResponseMode::Events => {
            let (reader, events) = mpsc::channel(EVENTS);
            rest.calls.spawn(job.run(call, Some(reader)));
            stream::stream_live(&execution, events, content, guard)
        }
    }
}

/// Builds the hub request.
fn hub_request(
    rest: &RestFront,
    parts: &Parts,
    (target, tool): (CallTarget, Option<Arc<ToolEntry>>),
    context: ExecuteContext,
    execution: &Execution,
    client: CallerChannel,
) -> HubRequest {
    let longest = rest.yard.limits().call_time;
    let header = |name: &String| Some((name.clone(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
    HubRequest {
        target,
        tool,
        principal: execution.info.principal.clone(),
        deadline: Deadline::after(context.timeout.map_or(longest, |timeout| timeout.min(longest))),
        cancel: execution.cancel.clone(),
        priority: context.priority,
        context: CallContext {
            session_id: execution.info.session_id.clone(),
            user_id: execution.info.user_id.clone(),
            version: context.version,
            front: Some(FrontName::Rest),
            ..CallContext::default()
        },
        headers: rest.settings.forward_headers.iter().filter_map(header).collect(),
        meta: None,
        client,
        id: Some(execution.info.call),
        details: Some(Arc::clone(&execution.details)),
    }
}

/// Rejects a body that names a different tool than the path, because the request would be
/// ambiguous.
fn check_name(
    rest: &RestFront,
    order: &ExecuteRequest,
    name: &str,
    tool: Option<&ToolEntry>,
    principal: &Principal,
) -> Result<(), RestError> {
    let Some(named) = order.tool.as_deref().filter(|named| *named != name) else { return Ok(()) };
    let both = rest.yard.find_tool(named, principal).ok().zip(tool);
    if both.is_some_and(|(named, tool)| named.full_name == tool.full_name) {
        return Ok(());
    }
    Err(RestError::invalid_at("/tool", "does not match the tool in the path", Value::from(named)))
}

/// Waits for the first execution with the same key and returns its outcome.
async fn replay_response(first: &Arc<Execution>, order: &ExecuteRequest) -> Response<Body> {
    first.wait().await;
    let mut response = match order.response_mode {
        ResponseMode::Json => full_response(first, order.content).await,
        ResponseMode::Events => stream::stream_replay(first, order.content),
    };
    response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}

/// Waits for the outcome and returns it as one JSON response.
async fn full_response(execution: &Execution, content: ContentDetail) -> Response<Body> {
    let ending = Arc::clone(execution.wait().await);
    let mut response = match envelope(execution, &ending, content, ChunkDelivery::InEnvelope) {
        Ok(text) => json_answer(StatusCode::OK, text),
        Err((reason, text)) => respond_error(&reason, text),
    };
    add_execution_headers(&mut response, execution);
    response
}

/// Adds the headers for the execution ID, the rate limit and the deprecation of the tool.
pub(super) fn add_execution_headers(response: &mut Response<Body>, execution: &Execution) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&execution.info.id) {
        headers.insert(EXECUTION_HEADER, id);
    }
    if let Some(rate) = execution.details.rate() {
        // Rounded up, so that the limit has been reset when the client retries.
        let reset = rate.reset.as_secs() + u64::from(rate.reset.subsec_nanos() > 0);
        headers.insert("ratelimit-limit", HeaderValue::from(rate.limit));
        headers.insert("ratelimit-remaining", HeaderValue::from(rate.remaining));
        headers.insert("ratelimit-reset", HeaderValue::from(reset));
    }
    if let Some(tool) = execution.details.tool().filter(|tool| tool.deprecated_by.is_some()) {
        // The date of the deprecation is unknown, so the value is `true`.
        headers.insert("deprecation", HeaderValue::from_static("true"));
        let newer = tool.deprecated_by.as_deref().unwrap_or_default();
        if let Ok(newer) = HeaderValue::from_str(newer) {
            headers.insert("x-tool-successor-version", newer);
        }
    }
}

/// Whether the envelope contains the chunks that the tool sent before its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkDelivery {
    InEnvelope,
    /// The client has received them as events.
    Streamed,
}

/// Builds the envelope of a finished execution. The error variant also carries the error, for the
/// status and headers.
pub(super) fn envelope(
    execution: &Execution,
    ending: &ExecutionOutcome,
    content: ContentDetail,
    pieces: ChunkDelivery,
) -> Result<String, (RestError, String)> {
    let stamp = execution.metadata(ending.duration);
    let mut more = String::new();
    if pieces == ChunkDelivery::InEnvelope && !ending.chunks.values.is_empty() {
        let chunks = list(ending.chunks.values.iter().map(to_raw));
        more.push_str(&format!(r#","chunks":{chunks}"#));
    }
    if pieces == ChunkDelivery::InEnvelope && ending.chunks.dropped > 0 {
        more.push_str(&format!(r#","chunksLeftOut":{}"#, ending.chunks.dropped));
    }
    let reason = match &ending.answer {
        Ok(outcome) if !outcome.failed => {
            let result = RestToolResult::read(&outcome.body);
            if content == ContentDetail::Full {
                more.push_str(&format!(r#","content":{}"#, result.content()));
            }
            return Ok(success(&result.result(), &more, &stamp));
        }
        Ok(outcome) => RestError::from_outcome(outcome),
        Err(error) => RestError::from_hub_error(error, &stamp.id),
    };
    let text = failure(&reason, &more, &stamp);
    Err((reason, text))
}
