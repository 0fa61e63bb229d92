//! Calls, reads, prompts and completions: translates the parameters into a request for the hub and
//! forwards the updates of the call. Dropping the future cancels the call.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{
    CallContext, CallRequest, CallTarget, CallerChannel, CallerUpdate, ClientCapabilities, ClientSession,
    CompletionReference, Deadline, ErrorKind, ExecutionId, FrontName, HubError, LogLevel, Outcome, Priority,
    Raw, SourceName, YardScope,
};

use super::dispatch::ControlSession;
use super::errors::ControlError;
use super::questions::question_kind_name;
use super::render;
use super::request::{ControlRequestId, ControlRequestMessage};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallParams {
    tool: String,
    arguments: Option<Raw>,
    timeout_ms: Option<u64>,
    session_id: Option<String>,
    asks: Option<Vec<QuestionKindParam>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum QuestionKindParam {
    ElicitForm,
    ElicitUrl,
    Sample,
    Roots,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadParams {
    uri: String,
    server_name: Option<String>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptParams {
    name: String,
    arguments: Option<Raw>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompleteParams {
    r#ref: Ref,
    argument: Argument,
    context: Option<Raw>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Ref {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Argument {
    name: String,
    value: String,
}

/// A requested call.
pub(super) struct SocketCall {
    target: CallTarget,
    timeout: Option<Duration>,
    session_id: Option<String>,
    reach: YardScope,
    question_kinds: Vec<QuestionKindParam>,
    detail: ResponseDetail,
}

/// Whether the response contains the execution or only the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseDetail {
    Execution,
    Result,
}

impl From<CallParams> for SocketCall {
    fn from(params: CallParams) -> Self {
        Self {
            timeout: params.timeout_ms.map(Duration::from_millis),
            session_id: params.session_id,
            question_kinds: params
                .asks
                .unwrap_or_else(|| vec![QuestionKindParam::ElicitForm, QuestionKindParam::ElicitUrl]),
            ..Self::new(CallTarget::Tool { name: params.tool, arguments: params.arguments })
        }
    }
}

impl From<ReadParams> for SocketCall {
    fn from(params: ReadParams) -> Self {
        Self {
            timeout: params.timeout_ms.map(Duration::from_millis),
            reach: params.server_name.map_or(YardScope::All, |name| YardScope::Source(SourceName::new(name))),
            ..Self::new(CallTarget::Resource { uri: params.uri })
        }
    }
}

impl From<PromptParams> for SocketCall {
    fn from(params: PromptParams) -> Self {
        Self {
            timeout: params.timeout_ms.map(Duration::from_millis),
            ..Self::new(CallTarget::Prompt { name: params.name, arguments: params.arguments })
        }
    }
}

impl From<CompleteParams> for SocketCall {
    fn from(params: CompleteParams) -> Self {
        let reference = match params.r#ref {
            Ref::Prompt { name } => CompletionReference::Prompt(name),
            Ref::Resource { uri } => CompletionReference::Template(uri),
        };
        let Argument { name: argument, value } = params.argument;
        let target = CallTarget::Completion { reference, argument, value, context: params.context };
        Self { detail: ResponseDetail::Result, ..Self::new(target) }
    }
}

impl SocketCall {
    fn new(target: CallTarget) -> Self {
        Self {
            target,
            timeout: None,
            session_id: None,
            reach: YardScope::All,
            question_kinds: Vec::new(),
            detail: ResponseDetail::Execution,
        }
    }
}

/// Returns the capabilities of a socket. Each call declares which of them apply to it. Roots are
/// not included, because they belong to a session, not to a call, and a user of the socket has
/// none.
fn socket_capabilities() -> ClientCapabilities {
    ClientCapabilities { elicit_form: true, elicit_url: true, sample: true, roots: false, log_level: None }
}

/// Executes a call and forwards its updates immediately.
pub(super) async fn call(
    session: &ControlSession,
    id: &ControlRequestId,
    call: SocketCall,
    cancel: CancellationToken,
) -> Result<String, ControlError> {
    let started = Instant::now();
    let execution =
        ExecutionId::generate().map_err(|error| ControlError::from_hub_error(&error.into(), ""))?;
    let longest = session.control.yard.limits().call_time;
    let supports = |kind| call.question_kinds.contains(&kind);
    let capabilities = ClientCapabilities {
        elicit_form: supports(QuestionKindParam::ElicitForm),
        elicit_url: supports(QuestionKindParam::ElicitUrl),
        sample: supports(QuestionKindParam::Sample),
        roots: supports(QuestionKindParam::Roots),
        log_level: Some(LogLevel::Info),
    };
    let (client, mut updates) = CallerChannel::new(capabilities);
    let request = CallRequest {
        target: call.target,
        tool: None,
        principal: session.principal(),
        deadline: Deadline::after(call.timeout.map_or(longest, |timeout| timeout.min(longest))),
        cancel,
        priority: Priority::Normal,
        context: CallContext {
            session_id: Some(call.session_id.map_or_else(|| session.id.clone(), Into::into)),
            client_session: Some(ClientSession::new(
                session.id.clone(),
                socket_capabilities(),
                session.ended.clone(),
            )),
            scope: call.reach,
            front: Some(FrontName::Control),
            ..CallContext::default()
        },
        headers: session.headers.clone(),
        meta: None,
        client,
        id: Some(execution),
        details: None,
    };
    let mut calling = Box::pin(session.control.yard.call(request));
    let result = {
        let forwarding = async {
            forward_updates(session, id, &mut updates).await;
            std::future::pending::<()>().await;
        };
        // Runs concurrently: a client that does not read delays the updates, but not the deadline
        // of the call.
        tokio::select! {
            biased;
            result = &mut calling => result,
            () = forwarding => Err(HubError::new(ErrorKind::Bug, "the call ended without a result")),
        }
    };
    drop(calling);
    // Forwards the remaining updates before the response.
    updates.close();
    forward_updates(session, id, &mut updates).await;
    match result {
        Ok(outcome) => Ok(call_response(&outcome, execution, started.elapsed(), call.detail)),
        Err(error) => Err(ControlError::from_hub_error(&error, &render::execution(execution))),
    }
}

fn call_response(
    outcome: &Outcome,
    execution: ExecutionId,
    duration: Duration,
    detail: ResponseDetail,
) -> String {
    let result = outcome.body.get();
    match detail {
        ResponseDetail::Execution => format!(
            r#"{{"executionId":"{}","durationMs":{},"result":{result}}}"#,
            render::execution(execution),
            render::millis(duration)
        ),
        ResponseDetail::Result => format!(r#"{{"result":{result}}}"#),
    }
}

/// Forwards the updates of a call until the channel closes. Takes an update only if there is room
/// for it.
async fn forward_updates(
    session: &ControlSession,
    id: &ControlRequestId,
    updates: &mut mpsc::Receiver<CallerUpdate>,
) {
    loop {
        session.outbox.wait_for_room().await;
        let Some(update) = updates.recv().await else { return };
        let (r#type, more) = match update {
            CallerUpdate::Progress(progress) => ("progress", Value::Object(render::progress(&progress))),
            CallerUpdate::Chunk(chunk) => ("chunk", json!({"chunk": chunk})),
            CallerUpdate::Log(line) => {
                let mut members = Map::from_iter([("level".to_owned(), json!(line.level))]);
                if let Some(logger) = line.logger {
                    members.insert("logger".to_owned(), logger.into());
                }
                members.insert("data".to_owned(), line.data);
                ("log", members.into())
            }
            CallerUpdate::Ask(batch) => {
                let render_question = |question: &toolyard_hub::Question| {
                    let mut rendered = Object::default();
                    rendered.set("key", to_raw(&question.key));
                    rendered.set("kind", to_raw(question_kind_name(question.kind)));
                    rendered.set("params", question.params.clone());
                    rendered
                };
                let questions: Vec<Object> = batch.questions.iter().map(render_question).collect();
                // Registered before they are sent, because the answer may arrive immediately.
                session.running.add_questions(id, batch);
                let more = QuestionList { questions };
                session.outbox.push(ControlRequestMessage { r#type: "ask", id, more }.write());
                continue;
            }
            // A connected client need not disconnect.
            CallerUpdate::Pause(_) => continue,
        };
        session.outbox.push(ControlRequestMessage { r#type, id, more }.write());
    }
}

#[derive(serde::Serialize)]
struct QuestionList {
    questions: Vec<Object>,
}
