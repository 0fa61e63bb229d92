//! Calls, reads, prompts and completions: from the words of the socket to a request for the hub, and what it says on the
//! way back. Dropping one cancels it.

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

/// A call as it is asked for.
pub(super) struct SocketCall {
    target: CallTarget,
    timeout: Option<Duration>,
    session_id: Option<String>,
    reach: YardScope,
    question_kinds: Vec<QuestionKindParam>,
    detail: ResponseDetail,
}

/// What the response tells beside the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseDetail {
    Execution,
    Result,
}

impl From<CallParams> for SocketCall {
    fn from(words: CallParams) -> Self {
        Self {
            timeout: words.timeout_ms.map(Duration::from_millis),
            session_id: words.session_id,
            question_kinds: words
                .asks
                .unwrap_or_else(|| vec![QuestionKindParam::ElicitForm, QuestionKindParam::ElicitUrl]),
            ..Self::new(CallTarget::Tool { name: words.tool, arguments: words.arguments })
        }
    }
}

impl From<ReadParams> for SocketCall {
    fn from(words: ReadParams) -> Self {
        Self {
            timeout: words.timeout_ms.map(Duration::from_millis),
            reach: words.server_name.map_or(YardScope::All, |name| YardScope::Source(SourceName::new(name))),
            ..Self::new(CallTarget::Resource { uri: words.uri })
        }
    }
}

impl From<PromptParams> for SocketCall {
    fn from(words: PromptParams) -> Self {
        Self {
            timeout: words.timeout_ms.map(Duration::from_millis),
            ..Self::new(CallTarget::Prompt { name: words.name, arguments: words.arguments })
        }
    }
}

impl From<CompleteParams> for SocketCall {
    fn from(words: CompleteParams) -> Self {
        let reference = match words.r#ref {
            Ref::Prompt { name } => CompletionReference::Prompt(name),
            Ref::Resource { uri } => CompletionReference::Template(uri),
        };
        let Argument { name: argument, value } = words.argument;
        let what = CallTarget::Completion { reference, argument, value, context: words.context };
        Self { detail: ResponseDetail::Result, ..Self::new(what) }
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

/// What a socket can be asked in some call; each call says for itself which of these it can be asked. Roots are not among
/// them: they are of a session, not of a call, and a person has none.
fn socket_capabilities() -> ClientCapabilities {
    ClientCapabilities { elicit_form: true, elicit_url: true, sample: true, roots: false, log_level: None }
}

/// Makes a call and stays with it; what it says meanwhile goes out at once.
pub(super) async fn call(
    session: &ControlSession,
    id: &ControlRequestId,
    wanted: SocketCall,
    cancel: CancellationToken,
) -> Result<String, ControlError> {
    let began = Instant::now();
    let execution =
        ExecutionId::generate().map_err(|error| ControlError::from_hub_error(&error.into(), ""))?;
    let longest = session.control.yard.limits().call_time;
    let can = |kind| wanted.question_kinds.contains(&kind);
    let abilities = ClientCapabilities {
        elicit_form: can(QuestionKindParam::ElicitForm),
        elicit_url: can(QuestionKindParam::ElicitUrl),
        sample: can(QuestionKindParam::Sample),
        roots: can(QuestionKindParam::Roots),
        log_level: Some(LogLevel::Info),
    };
    let (client, mut updates) = CallerChannel::new(abilities);
    let request = CallRequest {
        target: wanted.target,
        tool: None,
        principal: session.principal(),
        deadline: Deadline::after(wanted.timeout.map_or(longest, |timeout| timeout.min(longest))),
        cancel,
        priority: Priority::Normal,
        context: CallContext {
            session_id: Some(wanted.session_id.map_or_else(|| session.id.clone(), Into::into)),
            client_session: Some(ClientSession::new(
                session.id.clone(),
                socket_capabilities(),
                session.ended.clone(),
            )),
            scope: wanted.reach,
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
    let answer = {
        let passing = async {
            forward_updates(session, id, &mut updates).await;
            std::future::pending::<()>().await;
        };
        // Side by side: a client that does not read holds up what is said, never the call's own clock.
        tokio::select! {
            biased;
            answer = &mut calling => answer,
            () = passing => Err(HubError::new(ErrorKind::Bug, "the call was lost")),
        }
    };
    drop(calling);
    // What was said before the end comes before the end.
    updates.close();
    forward_updates(session, id, &mut updates).await;
    match answer {
        Ok(outcome) => Ok(call_response(&outcome, execution, began.elapsed(), wanted.detail)),
        Err(error) => Err(ControlError::from_hub_error(&error, &render::execution(execution))),
    }
}

fn call_response(
    outcome: &Outcome,
    execution: ExecutionId,
    duration: Duration,
    told: ResponseDetail,
) -> String {
    let result = outcome.body.get();
    match told {
        ResponseDetail::Execution => format!(
            r#"{{"executionId":"{}","durationMs":{},"result":{result}}}"#,
            render::execution(execution),
            render::millis(duration)
        ),
        ResponseDetail::Result => format!(r#"{{"result":{result}}}"#),
    }
}

/// Hands on what the call says, until it says no more. Nothing is taken that there is no room for.
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
                let mut told = Map::from_iter([("level".to_owned(), json!(line.level))]);
                if let Some(logger) = line.logger {
                    told.insert("logger".to_owned(), logger.into());
                }
                told.insert("data".to_owned(), line.data);
                ("log", told.into())
            }
            CallerUpdate::Ask(ask) => {
                let question = |question: &toolyard_hub::Question| {
                    let mut told = Object::default();
                    told.set("key", to_raw(&question.key));
                    told.set("kind", to_raw(question_kind_name(question.kind)));
                    told.set("params", question.params.clone());
                    told
                };
                let questions: Vec<Object> = ask.questions.iter().map(question).collect();
                // Before the client hears of it: its answer may be quick.
                session.running.add_questions(id, ask);
                let asked = QuestionList { questions };
                session.outbox.push(ControlRequestMessage { r#type: "ask", id, more: asked }.write());
                continue;
            }
            // Whoever is connected need not hang up.
            CallerUpdate::Pause(_) => continue,
        };
        session.outbox.push(ControlRequestMessage { r#type, id, more }.write());
    }
}

#[derive(serde::Serialize)]
struct QuestionList {
    questions: Vec<Object>,
}
