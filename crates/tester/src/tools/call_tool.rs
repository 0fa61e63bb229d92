//! `call_tool`

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{ErrorKind, HubError, Outcome, Raw, SchemaCheck, SourceTarget, nearest};
use toolyard_suite::SavedRequest;

use super::arguments::invalid_arguments_error;
use super::{ToolInvocation, connection_answer, parse_result_object};
use crate::answer::{AnswerMetadata, TesterAnswer, format_time};
use crate::connection::{ConnectionCounts, TesterConnection};
use crate::error::TesterError;
use crate::rules;
use crate::saved_calls::read_arguments;
use crate::tool_schemas::{Freshness, TesterToolSchemas, ToolSchemaIndex};

/// The maximum number of tool names in an error.
const TOLD: usize = 100;

#[derive(Deserialize)]
struct Arguments {
    name: String,
    arguments: Raw,
}

impl ToolInvocation<'_> {
    pub(super) async fn call_tool(&self) -> Result<TesterAnswer, TesterError> {
        let Arguments { name, arguments } = self.parse_arguments()?;
        let connection = self.connection()?;
        let mut metadata = AnswerMetadata::default();
        let tool = self.check_tool_call(&connection, &name, &arguments, &mut metadata).await?;

        let began = SystemTime::now();
        let call = self.build_call(SourceTarget::Tool { name: name.clone(), arguments: arguments.clone() });
        let mut took = None;
        let work = async {
            let exchange = connection.link.call(&call).await;
            took = Some(exchange.duration);
            if exchange.was_sent {
                ConnectionCounts::increment(&connection.counts.tools_called);
            }
            let request = SavedRequest::Call { tool: name.clone(), arguments: read_arguments(&arguments) };
            connection.saved_calls.add(request, &exchange.result);
            exchange.result
        };
        let ended = self.run_on_connection(&connection, work).await;
        let execution = |success: bool| Execution { started_at: began, duration: took, success };
        let call = |success, result| tool_call_json(&name, &arguments, result, execution(success));
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(fault) => {
                // The tool exists, so the server can only have rejected its arguments.
                let fault = match fault.error.kind() {
                    ErrorKind::UnknownResource => fault.with_kind(ErrorKind::ToolFailed),
                    _ => fault,
                };
                return Err(fault.with_member("tool_call", call(false, None)));
            }
        };
        let result = match parse_result_object(&connection, "tools/call", &outcome.body) {
            Ok(result) => result,
            Err(fault) => return Err(fault.with_member("tool_call", call(false, Some(&outcome.body)))),
        };
        connection.record_violations(&rules::check_call_result(&result, outcome.modern));
        if outcome.failed {
            let fault = TesterError::on_connection(&connection, tool_failed_error(&name, &outcome));
            return Err(fault.with_member("tool_call", call(false, Some(&outcome.body))));
        }
        let checking = async { Ok(with_output_violations(metadata, &tool, &outcome).await) };
        let metadata = self.run_on_connection(&connection, checking).await?;
        Ok(connection_answer(&connection)
            .with("tool_call", call(true, Some(&outcome.body)))
            .with_metadata(metadata))
    }

    /// Returns the tool if the server currently advertises it and its input schema accepts the
    /// arguments.
    async fn check_tool_call(
        &self,
        connection: &Arc<TesterConnection>,
        name: &str,
        arguments: &Raw,
        metadata: &mut AnswerMetadata,
    ) -> Result<Arc<TesterToolSchemas>, TesterError> {
        let mut refused = None;
        // The cache may be out of date, so a call is rejected only after a fresh read.
        for reading in [Freshness::Cached, Freshness::Fresh] {
            let tools = self
                .run_on_connection(connection, connection.tool_schemas.tools(&connection.link, reading))
                .await?;
            let Some(tool) = tools.get(name) else {
                refused = Some(unknown_tool_error(name, &tools));
                continue;
            };
            let Some(schema) = &tool.input else { return Ok(tool) };
            let violations = match self
                .run_on_connection(connection, async { Ok(schema.check(arguments).await) })
                .await?
            {
                SchemaCheck::Checked(violations) if violations.is_empty() => return Ok(tool),
                SchemaCheck::Checked(violations) => violations,
                SchemaCheck::Skipped(problem) if rules::is_uncompilable(schema) => {
                    let name: String = name.chars().take(100).collect();
                    let rule = "cannot be compiled, so nothing was checked";
                    connection.record_violations(&[format!("the input schema of {name} {rule}: {problem}")]);
                    return Ok(tool);
                }
                SchemaCheck::Skipped(problem) => {
                    metadata.add_note(format!(
                        "the input schema cannot be used, so the arguments were not checked: {problem}"
                    ));
                    return Ok(tool);
                }
            };
            let given: Map<String, Value> = serde_json::from_str(arguments.get()).unwrap_or_default();
            refused = Some(invalid_arguments_error(name, schema, &given, &violations));
        }
        let error = refused.unwrap_or_else(|| HubError::new(ErrorKind::Bug, "no schema was checked"));
        Err(TesterError::on_connection(connection, error))
    }
}

/// The execution of a call.
#[derive(Clone, Copy)]
struct Execution {
    started_at: SystemTime,
    /// The time until the response. `None` if there was no response.
    duration: Option<Duration>,
    success: bool,
}

fn tool_call_json(name: &str, arguments: &Raw, result: Option<&Raw>, execution: Execution) -> Raw {
    let took = execution.duration.or_else(|| execution.started_at.elapsed().ok()).unwrap_or_default();
    let mut call = Object::default();
    call.set("tool_name", to_raw(name));
    call.set("arguments", arguments.clone());
    if let Some(result) = result {
        call.set("result", result.clone());
    }
    let execution = json!({
        "started_at": format_time(execution.started_at),
        "completed_at": format_time(execution.started_at + took),
        "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "success": execution.success,
    });
    call.set("execution", to_raw(&execution));
    call.to_raw()
}

fn unknown_tool_error(name: &str, tools: &ToolSchemaIndex) -> HubError {
    let names = tools.names();
    let error = HubError::new(ErrorKind::UnknownTool, format!("the server has no tool named {name:?}"));
    let error = error.with_details(json!({
        "requested": name,
        "total_tools": names.len(),
        "available": names.iter().take(TOLD).collect::<Vec<_>>(),
    }));
    match nearest(name, names.iter().map(String::as_str)) {
        Some(close) => error.with_suggestion(format!("did you mean `{close}`?")),
        None if names.is_empty() => error.with_suggestion("the server has no tools"),
        None => error.with_suggestion("call list_tools to see the available tools"),
    }
}

/// Returns the error for a tool that reported a failure. The text of its result becomes the
/// message.
fn tool_failed_error(name: &str, outcome: &Outcome) -> HubError {
    #[derive(Deserialize)]
    struct Result {
        content: Option<Vec<Block>>,
    }
    #[derive(Deserialize)]
    struct Block {
        text: Option<String>,
    }
    let read = serde_json::from_str::<Result>(outcome.body.get()).ok();
    let blocks = read.and_then(|result| result.content).unwrap_or_default();
    let text: Vec<String> = blocks.into_iter().filter_map(|block| block.text).collect();
    let message = match text.is_empty() {
        true => format!("{name} reported a failure without a message"),
        false => text.join("\n"),
    };
    HubError::new(ErrorKind::ToolFailed, message)
        .with_details(json!({"is_error": true}))
        .with_suggestion("see the complete result in tool_call.result")
}

/// Adds the violations of the tool's output schema to the metadata.
async fn with_output_violations(
    mut metadata: AnswerMetadata,
    tool: &TesterToolSchemas,
    outcome: &Outcome,
) -> AnswerMetadata {
    let Some(schema) = &tool.output else { return metadata };
    let structured =
        Object::parse(&outcome.body).ok().and_then(|mut result| result.remove("structuredContent"));
    let Some(structured) = structured else {
        metadata.add_note("the tool has an output schema, but its result has no structuredContent");
        return metadata.with(
            "output_schema_violations",
            json!([{"pointer": "", "reason": "structuredContent is missing"}]),
        );
    };
    let violations = match schema.check(&structured).await {
        SchemaCheck::Checked(violations) => violations,
        SchemaCheck::Skipped(problem) => {
            metadata.add_note(format!(
                "the output schema cannot be used, so the result was not checked: {problem}"
            ));
            return metadata;
        }
    };
    let violations: Vec<Value> = violations
        .iter()
        .map(|violation| json!({"pointer": violation.pointer, "reason": violation.reason, "provided": violation.provided}))
        .collect();
    if violations.is_empty() { metadata } else { metadata.with("output_schema_violations", violations) }
}
