//! One call of a program, from its words to the corridor and back.

use std::sync::Arc;

use serde_json::Value;
use toolyard_hub::json::Object;
use toolyard_hub::{
    CallContext, Catalog, Client, ClientEra, Deadline, Error, Kind, Lookup, MadeBy, Outcome, Question, Raw,
    Reach, Request, Tool, Update, What,
};

use super::{Broker, short};
use crate::data;
use crate::definitions::Inspected;
use crate::fault::{failure, of_error};
use crate::program::Reply;
use crate::search::Wanted;
use crate::signature::{Others, Signature};

/// A larger result is not handed to a program: it would be most of its memory.
const LARGEST_RESULT: usize = 32 << 20;
/// The keys of the caller's metadata that go along: those that connect traces.
const TRACES: [&str; 3] = ["traceparent", "tracestate", "baggage"];

impl Broker {
    pub(super) async fn call(&self, number: usize, name: &str, arguments: Raw) -> Reply {
        let catalog = self.yard.catalog();
        let tool = self.seen(&catalog).tool(short(name));
        let (name, arguments) = match (&tool, name) {
            (Some(tool), _) => match fitting(tool, arguments) {
                Ok(arguments) => (tool.full_name.as_str(), arguments),
                Err(error) => return Reply::Failed(of_error(tool.full_name.as_str(), &error)),
            },
            (None, "inspect_tool" | "search_tools") => {
                return self.about_tools(&catalog, name, &arguments).await;
            }
            (None, "execute_program") => {
                return Reply::Failed(failure(
                    name,
                    "forbidden",
                    "a program cannot start another program",
                    None,
                ));
            }
            // The corridor says why not, and puts it on record.
            (None, name) => (short(name), arguments),
        };
        let (outcome, ahead) = self.carry(number, name, arguments).await;
        let data = match outcome {
            Ok(outcome) if outcome.body.get().len() > LARGEST_RESULT => {
                let message =
                    format!("a result of {} bytes; {LARGEST_RESULT} are allowed", outcome.body.get().len());
                Err(failure(name, "too_large", &message, None))
            }
            Ok(outcome) => data::read(name, &outcome, ahead),
            Err(error) => Err(of_error(name, &self.helped(&catalog, name, tool.as_deref(), error).await)),
        };
        data.map_or_else(Reply::Failed, Reply::Data)
    }

    /// The same error with what helps to make a better call.
    async fn helped(&self, catalog: &Arc<Catalog>, name: &str, tool: Option<&Tool>, error: Error) -> Error {
        let several = matches!(catalog.tool(name), Lookup::Ambiguous(_));
        match (error.kind(), tool) {
            (Kind::UnknownTool, _) if !several => self.unknown(catalog, name).await,
            (Kind::InvalidArguments, Some(tool)) => with_names(error, &Signature::of(tool)),
            _ => error,
        }
    }

    /// The two tools about tools, which are answered here.
    async fn about_tools(&self, catalog: &Arc<Catalog>, name: &str, arguments: &Raw) -> Reply {
        let wrong = |error: serde_json::Error| {
            Reply::Failed(failure(name, "invalid_arguments", &error.to_string(), None))
        };
        if name == "inspect_tool" {
            return match serde_json::from_str::<Inspected>(arguments.get()) {
                Ok(asked) => self.inspect(catalog, &asked.tool_name).await,
                Err(error) => wrong(error),
            };
        }
        match serde_json::from_str::<Wanted>(arguments.get()) {
            // Programs get everything at once.
            Ok(wanted) => self.search(catalog, Wanted { cursor: None, ..wanted }).await,
            Err(error) => wrong(error),
        }
    }

    /// Makes the call, and passes on what is said and asked on the way. Pieces of the result that come ahead are kept.
    async fn carry(&self, number: usize, name: &str, arguments: Raw) -> (Result<Outcome, Error>, Vec<Value>) {
        let caller = &self.caller;
        let (client, mut updates) = Client::new(caller.client.abilities().clone());
        let request = Request {
            // Its own clock: a tool with little time must not shorten the program's.
            deadline: Deadline::after(caller.deadline.remaining()),
            cancel: caller.cancel.child_token(),
            priority: caller.priority,
            context: CallContext {
                made_by: MadeBy::Program,
                // Programs are shown what the yard offers in the newest era, whoever runs them.
                era: ClientEra::Newest,
                // Whatever a name is made to look like, it leads to no program.
                reach: Reach::Without([self.own.clone()].into()),
                version: None,
                ..caller.context.clone()
            },
            meta: caller.meta.as_deref().and_then(|meta| traces(&Object::parse(meta).ok()?)),
            client,
            ..Request::new(
                What::Tool { name: name.to_owned(), arguments: Some(arguments) },
                caller.principal.clone(),
            )
        };
        let mut ahead = Vec::new();
        let call = self.yard.call(request);
        tokio::pin!(call);
        let outcome = loop {
            tokio::select! {
                outcome = &mut call => break outcome,
                Some(update) = updates.recv() => self.pass_on(number, name, update, &mut ahead).await,
            }
        };
        // What was said just before the end is still on its way.
        while let Ok(update) = updates.try_recv() {
            if let Update::Chunk(piece) = update {
                ahead.push(piece);
            }
        }
        (outcome, ahead)
    }

    async fn pass_on(&self, number: usize, name: &str, update: Update, ahead: &mut Vec<Value>) {
        let client = &self.caller.client;
        match update {
            Update::Progress(said) => self.meter.of_call(client, name, &said),
            Update::Chunk(piece) => ahead.push(piece),
            Update::Log(line) => client.log(line),
            // The program waits for its calls; only its caller could hang up and come back.
            Update::Pause(_) => {}
            Update::Ask(ask) => {
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
fn fitting(tool: &Tool, arguments: Raw) -> Result<Raw, Error> {
    let signature = Signature::of(tool);
    let wrong = |message: String| with_names(Error::new(Kind::InvalidArguments, message), &signature);
    let Ok(mut members) = Object::parse(&arguments) else {
        return Err(wrong("arguments must be given by name".to_owned()));
    };
    if signature.others() == Others::Refused {
        let unknown: Vec<&str> = members
            .members()
            .map(|(key, _)| key)
            .filter(|key| signature.keys().all(|known| known != *key))
            .collect();
        if let Some(first) = unknown.first() {
            let error = wrong(format!("{} takes no argument {}", tool.full_name, short(first)));
            return Err(match toolyard_hub::nearest(first, signature.keys()) {
                Some(near) => error.suggest(format!("did you mean {near}? {}", names(&signature))),
                None => error,
            });
        }
    }
    let nothing: Vec<String> = members
        .members()
        .filter(|(key, value)| value.get() == "null" && signature.may_be_left_out(key))
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
fn with_names(error: Error, signature: &Signature) -> Error {
    let names = names(signature);
    match error.suggestion().map(ToOwned::to_owned) {
        Some(said) => error.suggest(format!("{said}; {names}")),
        None => error.suggest(names),
    }
}

fn names(signature: &Signature) -> String {
    const SAID: usize = 50;
    let keys: Vec<&str> = signature.keys().collect();
    match keys.len() {
        0 => "it takes no named arguments".to_owned(),
        1..=SAID => format!("its arguments are {}", keys.join(", ")),
        many => format!("its arguments are {} and {} more", keys[..SAID].join(", "), many - SAID),
    }
}

fn traces(meta: &Object) -> Option<Raw> {
    let mut kept = Object::default();
    for key in TRACES {
        if let Some(value) = meta.get(key) {
            kept.set(key, value.to_owned());
        }
    }
    (!kept.is_empty()).then(|| kept.to_raw())
}
