//! One tool call of a program: checks the arguments, calls the hub and converts the result.

use std::sync::Arc;

use serde_json::Value;
use toolyard_hub::json::Object;
use toolyard_hub::{
    CallContext, CallOrigin, CallRequest, CallTarget, CallerChannel, CallerUpdate, Catalog, ClientEra,
    Deadline, ErrorKind, HubError, Lookup, Outcome, Question, Raw, ToolEntry, YardScope,
};

use super::{Broker, truncate_name};
use crate::data;
use crate::definitions::InspectArguments;
use crate::program::ProgramReply;
use crate::search::SearchArguments;
use crate::signature::{ExtraArguments, Signature};
use crate::tool_failure::{failure, failure_from_error};

/// The maximum size of a result, in bytes. A larger one would fill most of a program's memory.
const LARGEST_RESULT: usize = 32 << 20;
/// The keys of the caller's metadata that are passed on: the trace context.
const TRACES: [&str; 3] = ["traceparent", "tracestate", "baggage"];

impl Broker {
    pub(super) async fn call(&self, number: usize, name: &str, arguments: Raw) -> ProgramReply {
        let catalog = self.yard.catalog();
        let tool = self.visible_tools(&catalog).tool(truncate_name(name));
        let (name, arguments) = match (&tool, name) {
            (Some(tool), _) => match normalize_arguments(tool, arguments) {
                Ok(arguments) => (tool.full_name.as_str(), arguments),
                Err(error) => {
                    return ProgramReply::Failed(failure_from_error(tool.full_name.as_str(), &error));
                }
            },
            (None, "inspect_tool" | "search_tools") => {
                return self.call_builtin_tool(&catalog, name, &arguments).await;
            }
            (None, "execute_program") => {
                return ProgramReply::Failed(failure(
                    name,
                    "forbidden",
                    "a program cannot start another program",
                    None,
                ));
            }
            // The hub reports the error and records the call.
            (None, name) => (truncate_name(name), arguments),
        };
        let (outcome, chunks) = self.forward_call(number, name, tool.clone(), arguments).await;
        let data = match outcome {
            Ok(outcome) if outcome.body.get().len() > LARGEST_RESULT => {
                let size = outcome.body.get().len();
                let message =
                    format!("the result of {size} bytes exceeds the limit of {LARGEST_RESULT} bytes");
                Err(failure(name, "too_large", &message, None))
            }
            Ok(outcome) => data::read_outcome(name, &outcome, chunks),
            Err(error) => Err(failure_from_error(
                name,
                &self.enrich_error(&catalog, name, tool.as_deref(), error).await,
            )),
        };
        data.map_or_else(ProgramReply::Failed, ProgramReply::Data)
    }

    /// Adds similar tool names or the valid argument names to an error.
    async fn enrich_error(
        &self,
        catalog: &Arc<Catalog>,
        name: &str,
        tool: Option<&ToolEntry>,
        error: HubError,
    ) -> HubError {
        let is_ambiguous = matches!(catalog.tool(name), Lookup::Ambiguous(_));
        match (error.kind(), tool) {
            (ErrorKind::UnknownTool, _) if !is_ambiguous => self.unknown_tool_error(catalog, name).await,
            (ErrorKind::InvalidArguments, Some(tool)) => {
                with_argument_names(error, &Signature::from_tool(tool))
            }
            _ => error,
        }
    }

    /// Answers calls of `inspect_tool` and `search_tools` without going through the hub.
    async fn call_builtin_tool(&self, catalog: &Arc<Catalog>, name: &str, arguments: &Raw) -> ProgramReply {
        let invalid = |error: serde_json::Error| {
            ProgramReply::Failed(failure(name, "invalid_arguments", &error.to_string(), None))
        };
        if name == "inspect_tool" {
            return match serde_json::from_str::<InspectArguments>(arguments.get()) {
                Ok(arguments) => self.inspect(catalog, &arguments.tool_name).await,
                Err(error) => invalid(error),
            };
        }
        match serde_json::from_str::<SearchArguments>(arguments.get()) {
            // Programs get all results in one page.
            Ok(arguments) => self.search(catalog, SearchArguments { cursor: None, ..arguments }).await,
            Err(error) => invalid(error),
        }
    }

    /// Calls the tool. Forwards progress, log lines and questions to the caller, and returns the
    /// outcome with the result chunks that arrived before it.
    async fn forward_call(
        &self,
        number: usize,
        name: &str,
        tool: Option<Arc<ToolEntry>>,
        arguments: Raw,
    ) -> (Result<Outcome, HubError>, Vec<Value>) {
        let caller = &self.caller;
        let (client, mut updates) = CallerChannel::new(caller.client.capabilities().clone());
        let request = CallRequest {
            tool,
            // A separate deadline: the shorter timeout of a tool must not shorten the program's.
            deadline: Deadline::after(caller.deadline.remaining()),
            cancel: caller.cancel.child_token(),
            priority: caller.record.priority,
            context: CallContext {
                origin: CallOrigin::Program,
                // Programs see what the yard offers in the newest era, independent of the caller.
                era: ClientEra::Newest,
                // No spelling of a name can reach the program tools.
                scope: YardScope::Without([self.own.clone()].into()),
                version: None,
                ..caller.record.context.clone()
            },
            headers: caller.headers.clone(),
            meta: caller.meta.as_deref().and_then(|meta| trace_context(&Object::parse(meta).ok()?)),
            client,
            ..CallRequest::new(
                CallTarget::Tool { name: name.to_owned(), arguments: Some(arguments) },
                caller.record.principal.clone(),
            )
        };
        let mut chunks = Vec::new();
        let call = self.yard.call(request);
        tokio::pin!(call);
        let outcome = loop {
            tokio::select! {
                outcome = &mut call => break outcome,
                Some(update) = updates.recv() => self.forward_update(number, name, update, &mut chunks).await,
            }
        };
        // Chunks that were sent just before the end may still be in the channel.
        while let Ok(update) = updates.try_recv() {
            if let CallerUpdate::Chunk(chunk) = update {
                chunks.push(chunk);
            }
        }
        (outcome, chunks)
    }

    async fn forward_update(&self, number: usize, name: &str, update: CallerUpdate, chunks: &mut Vec<Value>) {
        let client = &self.caller.client;
        match update {
            CallerUpdate::Progress(progress) => self.meter.report_call(client, name, &progress),
            CallerUpdate::Chunk(chunk) => chunks.push(chunk),
            CallerUpdate::Log(line) => client.log(line),
            // The program waits for its calls. Only its caller can disconnect and resume.
            CallerUpdate::Pause(_) => {}
            CallerUpdate::Ask(ask) => {
                // Two concurrent calls may use the same question key.
                let prefix = format!("call-{number}.");
                let add_prefix =
                    |question: Question| Question { key: format!("{prefix}{}", question.key), ..question };
                let questions = ask.questions.into_iter().map(add_prefix).collect();
                let mut reply = ask.reply;
                let answers = tokio::select! {
                    answers = client.ask(questions) => answers,
                    () = reply.closed() => return,
                };
                let strip_prefix = |(key, answer): (String, Raw)| {
                    (key.strip_prefix(&prefix).map_or(key.clone(), ToOwned::to_owned), answer)
                };
                let _ = reply.send(answers.map(|answers| answers.into_iter().map(strip_prefix).collect()));
            }
        }
    }
}

/// Checks the argument names against the signature. Removes arguments that are null if the
/// parameter is optional and not nullable: in Python, `None` then means *not given*.
fn normalize_arguments(tool: &ToolEntry, arguments: Raw) -> Result<Raw, HubError> {
    let signature = Signature::from_tool(tool);
    let invalid = |message: String| {
        with_argument_names(HubError::new(ErrorKind::InvalidArguments, message), &signature)
    };
    let Ok(mut members) = Object::parse(&arguments) else {
        return Err(invalid("arguments must be passed by name".to_owned()));
    };
    if signature.extra_arguments() == ExtraArguments::Deny {
        let unknown: Vec<&str> = members
            .members()
            .map(|(key, _)| key)
            .filter(|key| signature.keys().all(|known| known != *key))
            .collect();
        if let Some(first) = unknown.first() {
            let error = invalid(format!("{} has no argument `{}`", tool.full_name, truncate_name(first)));
            return Err(match toolyard_hub::nearest(first, signature.keys()) {
                Some(near) => error
                    .with_suggestion(format!("did you mean `{near}`? {}", describe_arguments(&signature))),
                None => error,
            });
        }
    }
    let omitted: Vec<String> = members
        .members()
        .filter(|(key, value)| value.get() == "null" && signature.is_omittable(key))
        .map(|(key, _)| key.to_owned())
        .collect();
    if omitted.is_empty() {
        return Ok(arguments);
    }
    for key in omitted {
        members.remove(&key);
    }
    Ok(members.to_raw())
}

/// Adds the valid argument names to the suggestion of an error.
fn with_argument_names(error: HubError, signature: &Signature) -> HubError {
    let names = describe_arguments(signature);
    match error.suggestion().map(ToOwned::to_owned) {
        Some(suggestion) => error.with_suggestion(format!("{suggestion}; {names}")),
        None => error.with_suggestion(names),
    }
}

fn describe_arguments(signature: &Signature) -> String {
    const MOST_NAMES: usize = 50;
    let keys: Vec<&str> = signature.keys().collect();
    match keys.len() {
        0 => "the tool has no named arguments".to_owned(),
        1..=MOST_NAMES => format!("valid arguments: {}", keys.join(", ")),
        count => {
            format!("valid arguments: {} and {} more", keys[..MOST_NAMES].join(", "), count - MOST_NAMES)
        }
    }
}

fn trace_context(meta: &Object) -> Option<Raw> {
    let mut context = Object::default();
    for key in TRACES {
        if let Some(value) = meta.get(key) {
            context.set(key, value.to_owned());
        }
    }
    (!context.is_empty()).then(|| context.to_raw())
}
