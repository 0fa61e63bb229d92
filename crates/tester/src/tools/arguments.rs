//! Errors for arguments that do not match the advertised schema: which ones, where, and what is
//! expected.

use serde_json::{Map, Value, json};
use toolyard_hub::{ErrorKind, HubError, Schema, SchemaViolation, nearest};

/// Returns the error for arguments that do not match a tool's input schema.
pub(super) fn invalid_arguments_error(
    tool: &str,
    schema: &Schema,
    given: &Map<String, Value>,
    violations: &[SchemaViolation],
) -> HubError {
    let schema: Value = serde_json::from_str(schema.text().get()).unwrap_or_default();
    let listed: Vec<Value> = violations
        .iter()
        .map(|violation| {
            let mut entry = json!({
                "pointer": violation.pointer,
                "reason": violation.reason,
                "provided": violation.provided,
            });
            if let Some(expected) = declared_schema(&schema, violation) {
                entry["schema"] = expected.clone();
            }
            entry
        })
        .collect();
    let message = violations.iter().map(describe_violation).collect::<Vec<_>>().join("; ");
    let details = json!({"violations": listed, "input_schema": schema});
    let error =
        HubError::new(ErrorKind::InvalidArguments, format!("invalid arguments for `{tool}`: {message}"));
    error.with_details(details).with_suggestion(suggestion(&schema, given, violations))
}

fn describe_violation(violation: &SchemaViolation) -> String {
    match violation.pointer.as_str() {
        "" => violation.reason.clone(),
        pointer => format!("{pointer} {}", violation.reason),
    }
}

/// Returns the schema of the argument that a violation is about.
fn declared_schema<'a>(schema: &'a Value, violation: &SchemaViolation) -> Option<&'a Value> {
    schema.get("properties")?.get(argument_name(violation)?)
}

/// Returns the name of the argument that a violation is in.
fn argument_name(violation: &SchemaViolation) -> Option<String> {
    let first = violation.pointer.strip_prefix('/')?.split('/').next()?;
    Some(first.replace("~1", "/").replace("~0", "~"))
}

fn suggestion(schema: &Value, given: &Map<String, Value>, violations: &[SchemaViolation]) -> String {
    let known = |name: &str| schema.get("properties").and_then(|all| all.get(name)).is_some();
    let Some(first) = violations.first() else { return "see the input schema in the details".to_owned() };
    let Some(name) = argument_name(first) else { return format!("pass arguments that match {schema}") };
    if !given.contains_key(&name) {
        let unknown = given.keys().map(String::as_str).filter(|key| !known(key));
        if let Some(slip) = nearest(&name, unknown) {
            return format!("did you mean `{name}` instead of `{slip}`?");
        }
    }
    match declared_schema(schema, first) {
        Some(declared) => format!("pass a `{name}` that matches {declared}"),
        None => "see the input schema in the details".to_owned(),
    }
}
