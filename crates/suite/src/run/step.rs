//! Performs one step on a connection and observes what happens.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallerChannel, ErrorKind, ExecutionId, HubError, Outcome, Principal, SourceCall, SourceTarget,
};
use toolyard_upstream::ServerListKind;

use super::answers::AnswerScript;
use super::session::TestSession;
use crate::expect::observation::{Observation, StepFailure, strip_envelope};
use crate::file::{CompletionTargetSpec, StepAction};
use crate::values::Variables;

/// How long after a canceled call messages of the server still count as part of the step.
const AFTER_CANCEL: Duration = Duration::from_millis(50);

/// A step with its variables completed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReadyStep {
    Call(CallRequestSpec),
    Cancel(CallRequestSpec, Duration),
    List(ServerListKind),
    Subscribe(Vec<String>),
    Unsubscribe(Vec<String>),
    Wait { method: String, params: Option<Value> },
    Reconnect,
    Decided(Result<(), String>),
}

/// A request that can have questions and progress.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallRequestSpec {
    Tool { name: String, arguments: Value },
    Resource { uri: String },
    Prompt { name: String, arguments: Value },
    PromptCompletion { name: String, argument: String, value: String, context: Option<Value> },
    TemplateCompletion { uri: String, argument: String, value: String, context: Option<Value> },
}

impl ReadyStep {
    pub(crate) fn prepare(action: &StepAction, variables: &Variables) -> Result<Self, String> {
        let text = |text: &String| variables.complete_text(text).map_err(|error| error.to_string());
        let value = |value: &Value| variables.complete(value).map_err(|error| error.to_string());
        let texts = |all: &[String]| all.iter().map(text).collect::<Result<Vec<_>, _>>();
        Ok(match action {
            StepAction::Call { tool, arguments } => {
                Self::Call(CallRequestSpec::Tool { name: text(tool)?, arguments: value(arguments)? })
            }
            StepAction::Read { uri } => Self::Call(CallRequestSpec::Resource { uri: text(uri)? }),
            StepAction::Prompt { name, arguments } => {
                Self::Call(CallRequestSpec::Prompt { name: text(name)?, arguments: value(arguments)? })
            }
            StepAction::Complete(step) => {
                let (argument, typed) = (text(&step.argument)?, text(&step.value)?);
                let context = step.context.as_ref().map(value).transpose()?;
                let context = context.map(|arguments| json!({"arguments": arguments}));
                Self::Call(match &step.reference {
                    CompletionTargetSpec::Prompt(name) => CallRequestSpec::PromptCompletion {
                        name: text(name)?,
                        argument,
                        value: typed,
                        context,
                    },
                    CompletionTargetSpec::Template(uri) => CallRequestSpec::TemplateCompletion {
                        uri: text(uri)?,
                        argument,
                        value: typed,
                        context,
                    },
                })
            }
            StepAction::List(kind) => Self::List(*kind),
            StepAction::Subscribe { uris } => Self::Subscribe(texts(uris)?),
            StepAction::Unsubscribe { uris } => Self::Unsubscribe(texts(uris)?),
            StepAction::Wait { method, params } => {
                Self::Wait { method: text(method)?, params: params.as_ref().map(value).transpose()? }
            }
            StepAction::Cancel { tool, arguments, after } => Self::Cancel(
                CallRequestSpec::Tool { name: text(tool)?, arguments: value(arguments)? },
                *after,
            ),
            StepAction::Reconnect => Self::Reconnect,
            StepAction::Decided(verdict) => Self::Decided(verdict.clone()),
        })
    }

    /// Describes the step in a few words, for reports.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Call(request) => request.label(),
            Self::Cancel(request, _) => format!("cancel {}", request.label()),
            Self::List(kind) => format!("list {}", list_name(*kind)),
            Self::Subscribe(uris) => format!("subscribe {}", uris.join(" ")).trim_end().to_owned(),
            Self::Unsubscribe(uris) => format!("unsubscribe {}", uris.join(" ")),
            Self::Wait { method, .. } => format!("wait {method}"),
            Self::Reconnect => "reconnect".to_owned(),
            Self::Decided(_) => "check".to_owned(),
        }
    }
}

fn list_name(kind: ServerListKind) -> &'static str {
    match kind {
        ServerListKind::Tools => "tools",
        ServerListKind::Resources => "resources",
        ServerListKind::Templates => "templates",
        ServerListKind::Prompts => "prompts",
    }
}

impl CallRequestSpec {
    fn label(&self) -> String {
        match self {
            Self::Tool { name, .. } => format!("call {name}"),
            Self::Resource { uri } => format!("read {uri}"),
            Self::Prompt { name, .. } => format!("prompt {name}"),
            Self::PromptCompletion { name, argument, .. } => format!("complete {argument} of {name}"),
            Self::TemplateCompletion { uri, argument, .. } => format!("complete {argument} of {uri}"),
        }
    }

    fn target(&self) -> SourceTarget {
        let (completion_context, clone) =
            (|context: &Option<Value>| context.as_ref().map(to_raw), String::clone);
        match self {
            Self::Tool { name, arguments } => {
                SourceTarget::Tool { name: clone(name), arguments: to_raw(arguments) }
            }
            Self::Resource { uri } => SourceTarget::Resource { uri: clone(uri) },
            Self::Prompt { name, arguments } => {
                SourceTarget::Prompt { name: clone(name), arguments: to_raw(arguments) }
            }
            Self::PromptCompletion { name, argument, value, context } => SourceTarget::PromptCompletion {
                name: clone(name),
                argument: clone(argument),
                value: clone(value),
                context: completion_context(context),
            },
            Self::TemplateCompletion { uri, argument, value, context } => SourceTarget::TemplateCompletion {
                uri: clone(uri),
                argument: clone(argument),
                value: clone(value),
                context: completion_context(context),
            },
        }
    }
}

/// Whether a call needs the definition of its tool, for the output schema and for coverage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolDefinitions {
    Needed,
    Unused,
}

/// Performs a step. `Reconnect` is done by the owner of the connection.
pub(crate) async fn perform(
    step: &ReadyStep,
    session: &mut TestSession,
    script: &AnswerScript,
    definitions: ToolDefinitions,
) -> Observation {
    if let (ReadyStep::Call(CallRequestSpec::Tool { .. }), ToolDefinitions::Needed) = (step, definitions) {
        // Over HTTP, modern servers also require headers that follow from the schemas.
        session.read_tools().await;
    }
    let mark = session.inbox.mark();
    let started = Instant::now();
    let mut seen = match step {
        ReadyStep::Call(request) => {
            let called = call(session, request, script).await;
            let duration = called.1;
            Observation { duration, ..observe_outcome(request, called.0) }
        }
        ReadyStep::Cancel(request, after) => cancel(session, request, *after, script).await,
        ReadyStep::List(kind) => observe_list(*kind, session).await,
        ReadyStep::Subscribe(uris) => observe_failure(session.subscribe(uris).await),
        ReadyStep::Unsubscribe(uris) => observe_failure(session.unsubscribe(uris).await),
        ReadyStep::Wait { method, params } => {
            let found = session.inbox.wait_for(method, params.as_ref()).await;
            Observation { result: Some(found.params), ..Observation::default() }
        }
        ReadyStep::Reconnect => Observation::default(),
        ReadyStep::Decided(verdict) => {
            let failure = verdict.clone().err().map(StepFailure::Other);
            Observation { failure, result: Some(json!({})), ..Observation::default() }
        }
    };
    if seen.duration.is_zero() {
        seen.duration = started.elapsed();
    }
    (seen.messages, seen.dropped) = session.inbox.since(mark);
    seen.stderr = session.link.stderr();
    seen
}

/// Calls, answers questions, and measures the time of the server.
async fn call(
    session: &TestSession,
    request: &CallRequestSpec,
    script: &AnswerScript,
) -> (Result<Outcome, HubError>, Duration) {
    let id = match ExecutionId::generate() {
        Ok(id) => id,
        Err(error) => return (Err(HubError::new(ErrorKind::Bug, error.to_string())), Duration::ZERO),
    };
    let (client, updates) = CallerChannel::new(session.capabilities.clone());
    let call = SourceCall { client, ..SourceCall::new(id, request.target(), Principal::owner()) };
    let calling = async {
        let done = session.link.call(&call).await;
        // Ends the answering.
        drop(call);
        done
    };
    let (done, ()) = tokio::join!(calling, script.answer(updates));
    (done.result, done.duration)
}

fn observe_outcome(request: &CallRequestSpec, outcome: Result<Outcome, HubError>) -> Observation {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return observe_failure(Err(error)),
    };
    let mut seen = Observation { bytes: outcome.body.get().len(), ..Observation::default() };
    match serde_json::from_str::<Value>(outcome.body.get()) {
        Ok(result) => {
            let is_completion = matches!(
                request,
                CallRequestSpec::PromptCompletion { .. } | CallRequestSpec::TemplateCompletion { .. }
            );
            if is_completion {
                seen.names = result.pointer("/completion/values").cloned();
            }
            if matches!(request, CallRequestSpec::Tool { .. })
                && !result.get("content").is_some_and(Value::is_array)
            {
                seen.violations.push("the result of `tools/call` must have a list `content`".to_owned());
            }
            seen.result = Some(strip_envelope(result));
        }
        Err(error) => {
            seen.failure = Some(StepFailure::Other(format!("the result cannot be parsed: {error}")))
        }
    }
    seen
}

fn observe_failure(done: Result<(), HubError>) -> Observation {
    let failure = done.err().map(|error| match error.source_error() {
        Some(origin) => {
            StepFailure::Rpc { code: origin.code, message: origin.message.clone(), data: origin.data.clone() }
        }
        None => StepFailure::Other(error.message().to_owned()),
    });
    let result = failure.is_none().then(|| json!({}));
    Observation { failure, result, ..Observation::default() }
}

async fn observe_list(kind: ServerListKind, session: &TestSession) -> Observation {
    let pages = match session.link.list(kind).await {
        Ok(pages) => pages,
        Err(error) => return observe_failure(Err(error)),
    };
    let items: Vec<Value> =
        pages.items.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect();
    let (key, field) = match kind {
        ServerListKind::Tools => ("tools", "name"),
        ServerListKind::Resources => ("resources", "uri"),
        ServerListKind::Templates => ("resourceTemplates", "uriTemplate"),
        ServerListKind::Prompts => ("prompts", "name"),
    };
    let names: Value = items.iter().map(|item| item.get(field).cloned().unwrap_or(Value::Null)).collect();
    let mut seen = Observation {
        bytes: pages.items.iter().map(|item| item.get().len()).sum(),
        result: Some(json!({key: items})),
        names: Some(names),
        ..Observation::default()
    };
    if let Some(reason) = pages.truncated_reason {
        seen.violations.push(format!("the list was not read to its end: {reason}"));
    }
    seen
}

async fn cancel(
    session: &TestSession,
    request: &CallRequestSpec,
    after: Duration,
    script: &AnswerScript,
) -> Observation {
    let ended = tokio::time::timeout(after, call(session, request, script)).await;
    match ended {
        // Dropping the call has canceled it.
        Err(_) => {
            tokio::time::sleep(AFTER_CANCEL).await;
            Observation { result: Some(json!({})), ..Observation::default() }
        }
        Ok((outcome, duration)) => {
            let what = match outcome {
                Ok(_) => "with a result".to_owned(),
                Err(error) => format!("with an error: {}", error.message()),
            };
            let reason =
                format!("the call ended after {} ms {what}, before it was canceled", duration.as_millis());
            Observation { failure: Some(StepFailure::Other(reason)), ..Observation::default() }
        }
    }
}
