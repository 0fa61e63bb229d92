//! `get_prompt`

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_hub::json::{Object, empty_object, to_raw};
use toolyard_hub::{ErrorKind, HubError, Raw, Schema, SourceTarget, nearest};
use toolyard_suite::SavedRequest;
use toolyard_upstream::ServerListKind;

use super::{ToolInvocation, connection_answer, parse_result_object};
use crate::answer::{AnswerMetadata, TesterAnswer, now};
use crate::connection::{ConnectionCounts, TesterConnection};
use crate::definitions::{TesterTool, contract_violations};
use crate::error::TesterError;
use crate::rules;
use crate::saved_calls::read_arguments;
use crate::tool_schemas::read_list;

/// The contract's schema for the prompt in an answer.
static PROMPT: LazyLock<Schema> =
    LazyLock::new(|| TesterTool::GetPrompt.output_schema_part(&["properties", "prompt"]));

#[derive(Deserialize)]
struct Arguments {
    name: String,
    arguments: Option<Raw>,
}

/// The parts of a prompt that arguments are checked against.
#[derive(Deserialize)]
struct Definition {
    name: String,
    arguments: Option<Vec<Raw>>,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    required: Option<bool>,
}

impl ToolInvocation<'_> {
    pub(super) async fn get_prompt(&self) -> Result<TesterAnswer, TesterError> {
        let Arguments { name, arguments } = self.parse_arguments()?;
        let arguments = arguments.unwrap_or_else(empty_object);
        let connection = self.connection()?;
        self.check_prompt_arguments(&connection, &name, &arguments).await?;
        let request = SavedRequest::Prompt { name: name.clone(), arguments: read_arguments(&arguments) };
        let call = self.build_call(SourceTarget::Prompt { name: name.clone(), arguments });
        let work = async {
            let result = connection.link.call(&call).await.result;
            connection.saved_calls.add(request, &result);
            result
        };
        let outcome =
            self.run_on_connection(&connection, work).await.map_err(|fault| match fault.error.kind() {
                ErrorKind::UnknownResource => fault.with_kind(ErrorKind::ToolFailed),
                _ => fault,
            })?;
        let result = parse_result_object(&connection, "prompts/get", &outcome.body)?;
        connection.record_violations(&rules::check_prompt(&result));
        ConnectionCounts::increment(&connection.counts.prompts_retrieved);
        let mut metadata = AnswerMetadata::default().with("retrieved_at", now());
        let mut prompt = Object::default();
        prompt.set("name", to_raw(&name));
        for (key, value) in result.members().filter(|(key, _)| *key != "name") {
            prompt.set(key, value.to_owned());
        }
        let prompt = prompt.to_raw();
        let answer = match contract_violations(&PROMPT, &prompt).first() {
            None => connection_answer(&connection).with("prompt", prompt),
            // The server's result is included unmodified, but not where the contract requires
            // something else.
            Some(first) => {
                metadata.add_note(format!("the server's result is malformed: {}", first.message()));
                let bare = to_raw(&json!({"name": name}));
                connection_answer(&connection).with("prompt", bare).with("malformed", outcome.body)
            }
        };
        Ok(answer.with_metadata(metadata))
    }

    /// Checks that the server has this prompt and that it accepts these arguments.
    async fn check_prompt_arguments(
        &self,
        connection: &Arc<TesterConnection>,
        name: &str,
        arguments: &Raw,
    ) -> Result<(), TesterError> {
        let (pages, _) =
            self.run_on_connection(connection, read_list(&connection.link, ServerListKind::Prompts)).await?;
        let read = |item: &Raw| serde_json::from_str::<Definition>(item.get()).ok();
        let all: Vec<Definition> = pages.items.iter().filter_map(read).collect();
        let Some(prompt) = all.iter().find(|prompt| prompt.name == name) else {
            return Err(TesterError::on_connection(connection, unknown_prompt_error(name, &all)));
        };
        let advertised = prompt.arguments.as_deref().unwrap_or_default();
        let read = |argument: &Raw| serde_json::from_str::<Argument>(argument.get()).ok();
        let declared: Vec<Argument> = advertised.iter().filter_map(read).collect();
        let given: Map<String, Value> = serde_json::from_str(arguments.get()).unwrap_or_default();
        let violations = violations(&declared, &given);
        if violations.is_empty() {
            return Ok(());
        }
        let error = invalid_arguments_error(name, &declared, &given, &violations);
        // The arguments as the server advertises them, complete.
        let known: Vec<Value> =
            advertised.iter().filter_map(|one| serde_json::from_str(one.get()).ok()).collect();
        let mut details = error.details().cloned().unwrap_or_else(|| json!({}));
        details["arguments"] = json!(known);
        Err(TesterError::on_connection(connection, error.with_details(details)))
    }
}

/// A JSON pointer and a reason.
type Violation = (String, String);

fn violations(declared: &[Argument], given: &Map<String, Value>) -> Vec<Violation> {
    let missing = declared
        .iter()
        .filter(|argument| argument.required == Some(true) && !given.contains_key(&argument.name))
        .map(|argument| (format!("/{}", argument.name), "is required".to_owned()));
    // The protocol allows no other values here.
    let no_text = given
        .iter()
        .filter(|(_, value)| !value.is_string())
        .map(|(name, value)| (format!("/{name}"), format!("must be a string, not {value}")));
    missing.chain(no_text).collect()
}

fn invalid_arguments_error(
    name: &str,
    declared: &[Argument],
    given: &Map<String, Value>,
    violations: &[Violation],
) -> HubError {
    let reasons: Vec<String> =
        violations.iter().map(|(pointer, reason)| format!("{pointer} {reason}")).collect();
    let listed: Vec<Value> =
        violations.iter().map(|(pointer, reason)| json!({"pointer": pointer, "reason": reason})).collect();
    let error = HubError::new(
        ErrorKind::InvalidArguments,
        format!("invalid arguments for `{name}`: {}", reasons.join("; ")),
    );
    let error = error.with_details(json!({"violations": listed}));
    let strangers = given.keys().filter(|key| declared.iter().all(|argument| argument.name != **key));
    let missing =
        declared.iter().map(|argument| argument.name.as_str()).filter(|name| !given.contains_key(*name));
    let missing: Vec<&str> = missing.collect();
    let slip = strangers.filter_map(|key| Some((key, nearest(key, missing.iter().copied())?))).next();
    match slip {
        Some((given, meant)) => {
            error.with_suggestion(format!("did you mean `{meant}` instead of `{given}`?"))
        }
        None => {
            error.with_suggestion("pass every required argument as a string; see the details for their names")
        }
    }
}

fn unknown_prompt_error(name: &str, all: &[Definition]) -> HubError {
    let names: Vec<&str> = all.iter().map(|prompt| prompt.name.as_str()).collect();
    let error = HubError::new(ErrorKind::UnknownPrompt, format!("the server has no prompt named {name:?}"));
    let error = error.with_details(json!({"requested": name, "available": names}));
    match nearest(name, names.iter().copied()) {
        Some(close) => error.with_suggestion(format!("did you mean `{close}`?")),
        None if names.is_empty() => error.with_suggestion("the server has no prompts"),
        None => error.with_suggestion("call list_prompts to see the available prompts"),
    }
}
