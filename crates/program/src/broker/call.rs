//! One call of a program, from its words to the corridor and back.

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

/// A larger result is not handed to a program: it would be most of its memory.
const LARGEST_RESULT: usize = 32 << 20;
/// The keys of the caller's metadata that go along: those that connect traces.
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
            // The corridor says why not, and puts it on record.
            (None, name) => (truncate_name(name), arguments),
        };
        let (outcome, ahead) = self.forward_call(number, name, tool.clone(), arguments).await;
        let data = match outcome {
            Ok(outcome) if outcome.body.get().len() > LARGEST_RESULT => {
                let message =
                    format!("a result of {} bytes; {LARGEST_RESULT} are allowed", outcome.body.get().len());
                Err(failure(name, "too_large", &message, None))
            }
            Ok(outcome) => data::read_outcome(name, &outcome, ahead),
            Err(error) => Err(failure_from_error(
                name,
                &self.enrich_error(&catalog, name, tool.as_deref(), error).await,
            )),
        };
        data.map_or_else(ProgramReply::Failed, ProgramReply::Data)
    }

    /// The same error with what helps to make a better call.
    async fn enrich_error(
        &self,
        catalog: &Arc<Catalog>,
        name: &str,
        tool: Option<&ToolEntry>,
        error: HubError,
    ) -> HubError {
        let several = matches!(catalog.tool(name), Lookup::Ambiguous(_));
        match (error.kind(), tool) {
            (ErrorKind::UnknownTool, _) if !several => self.unknown_tool_error(catalog, name).await,
            (ErrorKind::InvalidArguments, Some(tool)) => {
                with_argument_names(error, &Signature::from_tool(tool))
            }
            _ => error,
        }
    }

    /// The two tools about tools, which are answered here.
    async fn call_builtin_tool(&self, catalog: &Arc<Catalog>, name: &str, arguments: &Raw) -> ProgramReply {
        let wrong = |error: serde_json::Error| {
            ProgramReply::Failed(failure(name, "invalid_arguments", &error.to_string(), None))
        };
        if name == "inspect_tool" {
            return match serde_json::from_str::<InspectArguments>(arguments.get()) {
                Ok(asked) => self.inspect(catalog, &asked.tool_name).await,
                Err(error) => wrong(error),
            };
        }
        match serde_json::from_str::<SearchArguments>(arguments.get()) {
            // Programs get everything at once.
            Ok(wanted) => self.search(catalog, SearchArguments { cursor: None, ..wanted }).await,
            Err(error) => wrong(error),
        }
    }

    /// Makes the call, and passes on what is said and asked on the way. Pieces of the result that come ahead are kept.
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
            // Its own clock: a tool with little time must not shorten the program's.
            deadline: Deadline::after(caller.deadline.remaining()),
            cancel: caller.cancel.child_token(),
            priority: caller.record.priority,
            context: CallContext {
                origin: CallOrigin::Program,
                // Programs are shown what the yard offers in the newest era, whoever runs them.
                era: ClientEra::Newest,
                // Whatever a name is made to look like, it leads to no program.
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
        let mut ahead = Vec::new();
        let call = self.yard.call(request);
        tokio::pin!(call);
        let outcome = loop {
            tokio::select! {
                outcome = &mut call => break outcome,
                Some(update) = updates.recv() => self.forward_update(number, name, update, &mut ahead).await,
            }
        };
        // What was said just before the end is still on its way.
        while let Ok(update) = updates.try_recv() {
            if let CallerUpdate::Chunk(piece) = update {
                ahead.push(piece);
            }
        }
        (outcome, ahead)
    }

    async fn forward_update(&self, number: usize, name: &str, update: CallerUpdate, ahead: &mut Vec<Value>) {
        let client = &self.caller.client;
        match update {
            CallerUpdate::Progress(said) => self.meter.report_call(client, name, &said),
            CallerUpdate::Chunk(piece) => ahead.push(piece),
            CallerUpdate::Log(line) => client.log(line),
            // The program waits for its calls; only its caller could hang up and come back.
            CallerUpdate::Pause(_) => {}
            CallerUpdate::Ask(ask) => {
                // Two calls may ask at once, and each thinks that its names are its own.
                let prefix = format!("call-{number}.");
                let named =
                    |question: Question| Question { key: format!("{prefix}{}", question.key), ..question };
                let questions = ask.questions.into_iter().map(named).collect();
                let mut reply = ask.reply;
                let answers = tokio::select! {
                    answers = client.ask(questions) => answers,
                    () = reply.closed() => return,
                };
                let plain = |(key, answer): (String, Raw)| {
                    (key.strip_prefix(&prefix).map_or(key.clone(), ToOwned::to_owned), answer)
                };
                let _ = reply.send(answers.map(|answers| answers.into_iter().map(plain).collect()));
            }
        }
    }
}

/// The arguments as the tool takes them, or what is wrong with their names. Nothing stands for *not given* where a
/// parameter may be left out and cannot be null.
fn normalize_arguments(tool: &ToolEntry, arguments: Raw) -> Result<Raw, HubError> {
    let signature = Signature::from_tool(tool);
    let wrong = |message: String| {
        with_argument_names(HubError::new(ErrorKind::InvalidArguments, message), &signature)
    };
    let Ok(mut members) = Object::parse(&arguments) else {
        return Err(wrong("arguments must be given by name".to_owned()));
    };
    if signature.extra_arguments() == ExtraArguments::Deny {
        let unknown: Vec<&str> = members
            .members()
            .map(|(key, _)| key)
            .filter(|key| signature.keys().all(|known| known != *key))
            .collect();
        if let Some(first) = unknown.first() {
            let error = wrong(format!("{} takes no argument {}", tool.full_name, truncate_name(first)));
            return Err(match toolyard_hub::nearest(first, signature.keys()) {
                Some(near) => {
                    error.with_suggestion(format!("did you mean {near}? {}", describe_arguments(&signature)))
                }
                None => error,
            });
        }
    }
    let nothing: Vec<String> = members
        .members()
        .filter(|(key, value)| value.get() == "null" && signature.is_omittable(key))
        .map(|(key, _)| key.to_owned())
        .collect();
    if nothing.is_empty() {
        return Ok(arguments);
    }
    for key in nothing {
        members.remove(&key);
    }
    Ok(members.to_raw())
}

/// The same, which says what arguments there are.
fn with_argument_names(error: HubError, signature: &Signature) -> HubError {
    let names = describe_arguments(signature);
    match error.suggestion().map(ToOwned::to_owned) {
        Some(said) => error.with_suggestion(format!("{said}; {names}")),
        None => error.with_suggestion(names),
    }
}

fn describe_arguments(signature: &Signature) -> String {
    const SAID: usize = 50;
    let keys: Vec<&str> = signature.keys().collect();
    match keys.len() {
        0 => "it takes no named arguments".to_owned(),
        1..=SAID => format!("its arguments are {}", keys.join(", ")),
        many => format!("its arguments are {} and {} more", keys[..SAID].join(", "), many - SAID),
    }
}

fn trace_context(meta: &Object) -> Option<Raw> {
    let mut kept = Object::default();
    for key in TRACES {
        if let Some(value) = meta.get(key) {
            kept.set(key, value.to_owned());
        }
    }
    (!kept.is_empty()).then(|| kept.to_raw())
}
