//! `POST /mcp/tools/{name}/execute`: from an order to a request for the hub, and back to an answer. Whatever else is to
//! be known of a call before the hub gets it is joined in [`hub_request`].

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
use super::idempotency::{IdempotencyClaim, IdempotencyKey};
use super::response::{
    EXECUTION_HEADER, StartTime, execution_name, failure, json as json_answer, respond_error, success,
};
use super::result::{RestToolResult, list};
use super::run::{FirstPoll, Job};
use super::{PathName, RestCaller, RestFront, stream};

/// How many events wait for a slow reader.
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
        // It may be of a source that is still starting.
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
    if let Some(key) = &key {
        match rest.keys.claim(key, order.params.get(), &execution) {
            IdempotencyClaim::First => {}
            IdempotencyClaim::Replay(first) => return Ok(replay_response(&first, &order).await),
            IdempotencyClaim::Different => return Err(key_conflict("was used with other params")),
            IdempotencyClaim::Evicted => {
                return Err(key_conflict("was used, and the outcome is not kept any more"));
            }
            IdempotencyClaim::Full => return Err(too_many_requests("too many idempotency keys are in use")),
        }
    }
    if !rest.executions.begin(&execution) {
        if let Some(key) = &key {
            rest.keys.release(key);
        }
        return Err(too_many_requests("too many executions are under way"));
    }
    let request = ToolRequest { name, tool, request: order };
    Ok(start(&rest, &parts, request, execution, key).await)
}

/// Which tool is asked for, and how.
struct ToolRequest {
    name: String,
    tool: Option<Arc<ToolEntry>>,
    request: ExecuteRequest,
}

/// Makes the call and answers in the form that was asked for.
async fn start(
    rest: &Arc<RestFront>,
    parts: &Parts,
    request: ToolRequest,
    execution: Arc<Execution>,
    key: Option<Arc<IdempotencyKey>>,
) -> Response<Body> {
    let ToolRequest { name, tool, request: order } = request;
    // Whoever sends a key means to come back for the outcome, so losing the connection must not cost it.
    let stays = order.on_disconnect == DisconnectPolicy::Detach || key.is_some();
    let guard = (!stays).then(|| execution.cancel.clone().drop_guard());
    let (form, content) = (order.response_mode, order.content);
    let log_level = (form == ResponseMode::Events).then_some(LogLevel::Info);
    let (client, updates) =
        CallerChannel::new(ClientCapabilities { log_level, ..ClientCapabilities::default() });
    let what = CallTarget::Tool { name, arguments: Some(order.params) };
    let request = hub_request(rest, parts, (what, tool), order.context, &execution, client);
    let yard = Arc::clone(&rest.yard);
    let call = Box::pin(async move { yard.call(request).await });
    let job = Job::new(Arc::clone(rest), Arc::clone(&execution), key, updates);
    let (job, call) = match job.poll_once(call).await {
        FirstPoll::Pending(job, call) => (job, call),
        FirstPoll::Ready(said) => {
            // Refused before it began, or done at once. The status says which, also to who asked for events.
            let ran = !said.is_empty() || execution.outcome().is_some_and(|ending| ending.reached_tool());
            return match form {
                ResponseMode::Events if ran => stream::stream_finished(&execution, said, content),
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

/// The call as the hub gets it.
fn hub_request(
    rest: &RestFront,
    parts: &Parts,
    (what, tool): (CallTarget, Option<Arc<ToolEntry>>),
    context: ExecuteContext,
    execution: &Execution,
    client: CallerChannel,
) -> HubRequest {
    let longest = rest.yard.limits().call_time;
    let header = |name: &String| Some((name.clone(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
    HubRequest {
        target: what,
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

/// A body that names another tool than the address does would leave open which one is meant.
fn check_name(
    rest: &RestFront,
    order: &ExecuteRequest,
    name: &str,
    tool: Option<&ToolEntry>,
    principal: &Principal,
) -> Result<(), RestError> {
    let Some(said) = order.tool.as_deref().filter(|said| *said != name) else { return Ok(()) };
    let same = rest.yard.find_tool(said, principal).ok().zip(tool);
    if same.is_some_and(|(said, tool)| said.full_name == tool.full_name) {
        return Ok(());
    }
    Err(RestError::invalid_at("/tool", "is not the tool that the address names", Value::from(said)))
}

fn key_conflict(reason: &str) -> RestError {
    let failure = RestError::invalid_at("/context/idempotencyKey", reason, Value::Null);
    RestError { status: StatusCode::CONFLICT, ..failure }
}

fn too_many_requests(message: &str) -> RestError {
    let failure = RestError::from_kind(toolyard_hub::ErrorKind::RateLimited, message);
    RestError { retry_after: Some(std::time::Duration::from_secs(5)), ..failure }
}

/// The outcome of the first execution with the same key, once it is there.
async fn replay_response(first: &Arc<Execution>, order: &ExecuteRequest) -> Response<Body> {
    first.wait().await;
    let mut response = match order.response_mode {
        ResponseMode::Json => full_response(first, order.content).await,
        ResponseMode::Events => stream::stream_replay(first, order.content),
    };
    response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}

/// The whole answer, once there is one.
async fn full_response(execution: &Execution, content: ContentDetail) -> Response<Body> {
    let ending = Arc::clone(execution.wait().await);
    let mut response = match envelope(execution, &ending, content, ChunkDelivery::InEnvelope) {
        Ok(text) => json_answer(StatusCode::OK, text),
        Err((reason, text)) => respond_error(&reason, text),
    };
    add_execution_headers(&mut response, execution);
    response
}

/// Says in headers which execution it is, what is left of the rate, and whether the tool is out of date.
pub(super) fn add_execution_headers(response: &mut Response<Body>, execution: &Execution) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&execution.info.id) {
        headers.insert(EXECUTION_HEADER, id);
    }
    if let Some(rate) = execution.details.rate() {
        // Whole seconds, and never so few that the burst is not there yet.
        let reset = rate.reset.as_secs() + u64::from(rate.reset.subsec_nanos() > 0);
        headers.insert("ratelimit-limit", HeaderValue::from(rate.limit));
        headers.insert("ratelimit-remaining", HeaderValue::from(rate.remaining));
        headers.insert("ratelimit-reset", HeaderValue::from(reset));
    }
    if let Some(tool) = execution.details.tool().filter(|tool| tool.deprecated_by.is_some()) {
        // When it became so is not known; it is so now.
        headers.insert("deprecation", HeaderValue::from_static("true"));
        let newer = tool.deprecated_by.as_deref().unwrap_or_default();
        if let Ok(newer) = HeaderValue::from_str(newer) {
            headers.insert("x-tool-successor-version", newer);
        }
    }
}

/// Whether the envelope tells what the tool sent ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkDelivery {
    InEnvelope,
    /// The reader of events has had them.
    Streamed,
}

/// The envelope of an execution that is over: of its result, or of why there is none.
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
            let said = RestToolResult::read(&outcome.body);
            if content == ContentDetail::Full {
                more.push_str(&format!(r#","content":{}"#, said.content()));
            }
            return Ok(success(&said.result(), &more, &stamp));
        }
        Ok(outcome) => RestError::from_outcome(outcome),
        Err(error) => RestError::from_hub_error(error, &stamp.id),
    };
    let text = failure(&reason, &more, &stamp);
    Err((reason, text))
}
