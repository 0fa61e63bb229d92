//! Structured content that matches the tool's output schema, or how a response violates the schema
//! of the document.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Raw, Schema, SchemaCheck, SchemaViolation};

use super::{BufferedResponse, ResponseBody};
use crate::operation::{Operation, ResponseRule, ResultWrapping};

/// Maximum number of violations that are reported, and of characters of each.
const MAX_REPORTED: usize = 3;
const LONGEST: usize = 300;

/// Returns the structured content of a successful response, if there is any. The error is one line
/// for the user: that the call was made, and what is wrong with its response.
pub(super) async fn extract_structured_content(
    operation: &Operation,
    answer: &BufferedResponse,
    body: &ResponseBody,
) -> Result<Option<Raw>, String> {
    let Some(schema) = operation.output_schema() else {
        return Ok(body.json.clone().filter(|json| is_object(json)));
    };
    let candidates = candidates(operation.wrapping, body);
    for candidate in &candidates {
        if violations(schema, candidate).await.is_empty() {
            return Ok(Some(candidate.clone()));
        }
    }
    let rule = response_rule(operation, answer.status.as_u16());
    let broken = match (describe_non_json(answer, body), candidates.first()) {
        (Some(kind), _) => format!("the response {kind}"),
        (None, Some(candidate)) => describe_violations(operation, schema, rule, candidate).await,
        (None, None) => "the response is JSON, but not an object".to_owned(),
    };
    let reason = answer.status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let place = rule.map(|rule| format!(" at #{}", rule.pointer)).unwrap_or_default();
    let (method, path, status) = (operation.method.as_str(), &operation.path, answer.status.as_u16());
    Err(format!(
        "the call was made: {method} {path} answered HTTP {status}{reason}, but the response violates the schema of the document{place}: {broken}"
    ))
}

/// Returns the candidates for the structured content, most likely first.
fn candidates(wrapping: ResultWrapping, body: &ResponseBody) -> Vec<Raw> {
    let shaped = |json: &RawValue| match wrapping {
        ResultWrapping::Always => Some(wrap_result(json.to_owned())),
        ResultWrapping::Never => is_object(json).then(|| json.to_owned()),
        ResultWrapping::Others if is_object(json) => Some(json.to_owned()),
        ResultWrapping::Others => Some(wrap_result(json.to_owned())),
    };
    if let Some(json) = &body.json {
        return shaped(json).into_iter().collect();
    }
    let mut found = Vec::new();
    if let Some(text) = &body.text {
        // Some servers declare JSON as another text type.
        let json = serde_json::from_str::<Raw>(text).ok();
        found.extend(json.filter(|json| json.get().starts_with(['{', '['])).and_then(|json| shaped(&json)));
    }
    if wrapping != ResultWrapping::Never {
        found.push(wrap_result(body.text.as_ref().map_or_else(|| RawValue::NULL.to_owned(), to_raw)));
    }
    found
}

fn is_object(json: &RawValue) -> bool {
    json.get().starts_with('{')
}

fn wrap_result(inner: Raw) -> Raw {
    let mut whole = Object::default();
    whole.set("result", inner);
    whole.to_raw()
}

/// Returns whether the value matches. `None` if the check could not be made.
async fn violations(schema: &Schema, candidate: &Raw) -> Vec<SchemaViolation> {
    match schema.check(candidate).await {
        SchemaCheck::Checked(violations) => violations,
        SchemaCheck::Skipped(_) => Vec::new(),
    }
}

/// Describes a response that is not JSON.
fn describe_non_json(answer: &BufferedResponse, body: &ResponseBody) -> Option<String> {
    if body.json.is_some() {
        return None;
    }
    if answer.bytes.is_empty() {
        return Some("has no body".to_owned());
    }
    let kind = super::content_type(&answer.headers);
    Some(match super::essence(kind).as_str() {
        "" => "has no content type and is not JSON".to_owned(),
        kind if crate::request::is_json(kind) => format!("is declared as {kind} but is not JSON"),
        kind => format!("is {}, not JSON", kind.chars().take(100).collect::<String>()),
    })
}

/// Returns the schema of the document for a status.
fn response_rule(operation: &Operation, status: u16) -> Option<&ResponseRule> {
    let rules = &operation.response_rules;
    let named = |name: &str| rules.iter().find(|rule| rule.status.eq_ignore_ascii_case(name));
    named(&status.to_string()).or_else(|| named("2XX")).or_else(|| rules.first())
}

/// Returns where the response does not match. If there are several schemas, only the one for this
/// status is checked.
async fn describe_violations(
    operation: &Operation,
    schema: &Schema,
    rule: Option<&ResponseRule>,
    candidate: &Raw,
) -> String {
    let several = operation.response_rules.iter().any(|rule| rule.branch > 0);
    let own =
        rule.filter(|_| several).and_then(|rule| branch_schema(schema, operation.wrapping, rule.branch));
    let mut found = match own {
        Some(own) => violations(&own, candidate).await,
        None => Vec::new(),
    };
    if found.is_empty() {
        found = violations(schema, candidate).await;
    }
    let sentence = |violation: &SchemaViolation| {
        let pointer = match operation.wrapping {
            ResultWrapping::Always => violation.pointer.trim_start_matches("/result"),
            ResultWrapping::Never | ResultWrapping::Others => &violation.pointer,
        };
        let message = SchemaViolation::new(pointer, violation.reason.as_str(), Value::Null).message();
        message.chars().take(LONGEST).collect::<String>()
    };
    let mut messages: Vec<String> = found.iter().take(MAX_REPORTED).map(sentence).collect();
    if found.len() > MAX_REPORTED {
        messages.push(format!("and {} more", found.len() - MAX_REPORTED));
    }
    messages.join("; ")
}

/// Returns one of the schemas in the `anyOf` of the output schema as an output schema of its own.
fn branch_schema(schema: &Schema, wrapping: ResultWrapping, number: usize) -> Option<Schema> {
    let mut whole: Map<String, Value> = serde_json::from_str(schema.text().get()).ok()?;
    let list = match wrapping {
        ResultWrapping::Always => whole.get_mut("properties")?.get_mut("result")?.as_object_mut()?,
        ResultWrapping::Never | ResultWrapping::Others => &mut whole,
    };
    let Value::Array(mut branches) = list.remove("anyOf")? else { return None };
    let own = (number < branches.len()).then(|| branches.swap_remove(number))?;
    list.insert("allOf".to_owned(), Value::Array(vec![own]));
    Some(Schema::new(to_raw(&whole)))
}
