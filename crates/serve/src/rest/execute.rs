//! `POST /mcp/tools/{name}/execute`: from an order to a request for the hub, and back to an answer. Whatever else is to
//! be known of a call before the hub gets it is joined in [`request`].

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, StatusCode, request::Parts};
use serde_json::Value;
use tokio::sync::mpsc;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    Abilities, CallContext, Client, Deadline, ExecutionId, FrontName, Level, Principal,
    Request as HubRequest, Tool, What,
};

use super::answer::{Began, EXECUTION_HEADER, failure, json as json_answer, named, refused, success};
use super::errors::Failure;
use super::executions::{About, Ending, Execution};
use super::intake::{self, Content, Form, HangUp, Order};
use super::keys::{Claim, KeyName};
use super::result::{Said, list};
use super::run::{FirstStep, Job};
use super::{Caller, Name, Rest, stream};

/// How many events wait for a slow reader.
const EVENTS: usize = 64;

pub(super) async fn execute(
    State(rest): State<Arc<Rest>>,
    Caller(principal): Caller,
    Name(name): Name,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let began = Began::now();
    let (parts, body) = request.into_parts();
    let order = intake::read(&parts, body, &rest.settings).await?;
    let mut tool = rest.yard.find_tool(&name, &principal).ok();
    if tool.is_none() && !rest.yard.is_settled() {
        // It may be of a source that is still starting.
        rest.yard.settle(rest.settings.start_wait).await;
        tool = rest.yard.find_tool(&name, &principal).ok();
    }
    check_name(&rest, &order, &name, tool.as_deref(), &principal)?;

    let call = ExecutionId::fresh().map_err(|error| Failure::of(&error.into(), ""))?;
    let about = About {
        id: named(call),
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
            Some(Arc::new(KeyName { principal, tool, key: key.clone() }))
        }
        _ => None,
    };
    if let Some(key) = &key {
        match rest.keys.claim(key, order.params.get(), &execution) {
            Claim::First => {}
            Claim::Again(first) => return Ok(replayed(&first, &order).await),
            Claim::Different => return Err(reused("was used with other params")),
            Claim::Forgotten => return Err(reused("was used, and the outcome is not kept any more")),
            Claim::Full => return Err(too_many("too many idempotency keys are in use")),
        }
    }
    if !rest.executions.begin(&execution) {
        if let Some(key) = &key {
            rest.keys.release(key);
        }
        return Err(too_many("too many executions are under way"));
    }
    Ok(start(&rest, &parts, name, order, execution, key).await)
}

/// Makes the call and answers in the form that was asked for.
async fn start(
    rest: &Arc<Rest>,
    parts: &Parts,
    name: String,
    order: Order,
    execution: Arc<Execution>,
    key: Option<Arc<KeyName>>,
) -> Response<Body> {
    // Whoever sends a key means to come back for the outcome, so losing the connection must not cost it.
    let stays = order.hang_up == HangUp::Detaches || key.is_some();
    let guard = (!stays).then(|| execution.cancel.clone().drop_guard());
    let (form, content) = (order.form, order.content);
    let log_level = (form == Form::Events).then_some(Level::Info);
    let (client, updates) = Client::new(Abilities { log_level, ..Abilities::default() });
    let request = request(rest, parts, name, order, &execution, client);
    let yard = Arc::clone(&rest.yard);
    let call = Box::pin(async move { yard.call(request).await });
    let job = Job::new(Arc::clone(rest), Arc::clone(&execution), key, updates);
    let (job, call) = match job.first_step(call).await {
        FirstStep::Goes(job, call) => (job, call),
        FirstStep::Over(said) => {
            // Refused before it began, or done at once. The status says which, also to who asked for events.
            let ran = !said.is_empty() || execution.ending().is_some_and(|ending| ending.is_of_tool());
            return match form {
                Form::Events if ran => stream::of_done(&execution, said, content),
                Form::Events | Form::Whole => whole(&execution, content).await,
            };
        }
    };
    match form {
        Form::Whole => {
            rest.calls.spawn(job.run(call, None));
            let response = whole(&execution, content).await;
            drop(guard);
            response
        }
        Form::Events => {
            let (reader, events) = mpsc::channel(EVENTS);
            rest.calls.spawn(job.run(call, Some(reader)));
            stream::of(&execution, events, content, guard)
        }
    }
}

/// The call as the hub gets it.
fn request(
    rest: &Rest,
    parts: &Parts,
    name: String,
    order: Order,
    execution: &Execution,
    client: Client,
) -> HubRequest {
    let longest = rest.yard.limits().call_time;
    let header = |name: &String| Some((name.clone(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
    HubRequest {
        what: What::Tool { name, arguments: Some(order.params) },
        principal: execution.about.principal.clone(),
        deadline: Deadline::after(order.context.timeout.map_or(longest, |timeout| timeout.min(longest))),
        cancel: execution.cancel.clone(),
        priority: order.context.priority,
        context: CallContext {
            session_id: execution.about.session_id.clone(),
            user_id: execution.about.user_id.clone(),
            headers: rest.settings.forward_headers.iter().filter_map(header).collect(),
            version: order.context.version,
            front: Some(FrontName::Rest),
            ..CallContext::default()
        },
        meta: None,
        client,
        id: Some(execution.about.call),
        notes: Some(Arc::clone(&execution.notes)),
    }
}

/// A body that names another tool than the address does would leave open which one is meant.
fn check_name(
    rest: &Rest,
    order: &Order,
    name: &str,
    tool: Option<&Tool>,
    principal: &Principal,
) -> Result<(), Failure> {
    let Some(said) = order.tool.as_deref().filter(|said| *said != name) else { return Ok(()) };
    let same = rest.yard.find_tool(said, principal).ok().zip(tool);
    if same.is_some_and(|(said, tool)| said.full_name == tool.full_name) {
        return Ok(());
    }
    Err(Failure::invalid_at("/tool", "is not the tool that the address names", Value::from(said)))
}

fn reused(reason: &str) -> Failure {
    let failure = Failure::invalid_at("/context/idempotencyKey", reason, Value::Null);
    Failure { status: StatusCode::CONFLICT, ..failure }
}

fn too_many(message: &str) -> Failure {
    let failure = Failure::of_kind(toolyard_hub::Kind::RateLimited, message);
    Failure { retry_after: Some(std::time::Duration::from_secs(5)), ..failure }
}

/// The outcome of the first execution with the same key, once it is there.
async fn replayed(first: &Arc<Execution>, order: &Order) -> Response<Body> {
    first.wait().await;
    let mut response = match order.form {
        Form::Whole => whole(first, order.content).await,
        Form::Events => stream::of_ended(first, order.content),
    };
    response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}

/// The whole answer, once there is one.
async fn whole(execution: &Execution, content: Content) -> Response<Body> {
    let ending = Arc::clone(execution.wait().await);
    let mut response = match envelope(execution, &ending, content, Pieces::Told) {
        Ok(text) => json_answer(StatusCode::OK, text),
        Err((reason, text)) => refused(&reason, text),
    };
    label(&mut response, execution);
    response
}

/// Says in headers which execution it is, what is left of the rate, and whether the tool is out of date.
pub(super) fn label(response: &mut Response<Body>, execution: &Execution) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&execution.about.id) {
        headers.insert(EXECUTION_HEADER, id);
    }
    if let Some(rate) = execution.notes.rate() {
        // Whole seconds, and never so few that the burst is not there yet.
        let reset = rate.reset.as_secs() + u64::from(rate.reset.subsec_nanos() > 0);
        headers.insert("ratelimit-limit", HeaderValue::from(rate.limit));
        headers.insert("ratelimit-remaining", HeaderValue::from(rate.remaining));
        headers.insert("ratelimit-reset", HeaderValue::from(reset));
    }
    if let Some(tool) = execution.notes.tool().filter(|tool| tool.deprecated_by.is_some()) {
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
pub(super) enum Pieces {
    Told,
    /// The reader of events has had them.
    Sent,
}

/// The envelope of an execution that is over: of its result, or of why there is none.
pub(super) fn envelope(
    execution: &Execution,
    ending: &Ending,
    content: Content,
    pieces: Pieces,
) -> Result<String, (Failure, String)> {
    let stamp = execution.stamp(ending.duration);
    let mut more = String::new();
    if pieces == Pieces::Told && !ending.chunks.kept.is_empty() {
        let chunks = list(ending.chunks.kept.iter().map(to_raw));
        more.push_str(&format!(r#","chunks":{chunks}"#));
    }
    if pieces == Pieces::Told && ending.chunks.left_out > 0 {
        more.push_str(&format!(r#","chunksLeftOut":{}"#, ending.chunks.left_out));
    }
    let reason = match &ending.answer {
        Ok(outcome) if !outcome.failed => {
            let said = Said::read(&outcome.body);
            if content == Content::Full {
                more.push_str(&format!(r#","content":{}"#, said.content()));
            }
            return Ok(success(&said.result(), &more, &stamp));
        }
        Ok(outcome) => Failure::of_outcome(outcome),
        Err(error) => Failure::of(error, &stamp.id),
    };
    let text = failure(&reason, &more, &stamp);
    Err((reason, text))
}
