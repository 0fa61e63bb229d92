//! The generated parts of the reference pages about REST, errors, metrics and the control socket.

use std::fmt::Write;

use serde_json::{Value, json};
use toolyard_hub::{ErrorKind, Principal};
use toolyard_testkit::docs::{check_generated, prose, repository_file, table};
use toolyard_wire::Version;

use super::errors::code_and_status;
use super::metrics::{RECORDS_LOST_HELP, connections, error_label, family, render_metrics, replicas};
use super::openapi::SKELETON_TEXT;
use super::tests::yard;
use crate::mcp::describe_tool_error;

const METHODS: [&str; 3] = ["get", "post", "delete"];

/// Follows a reference within the document.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(target) => document.pointer(target.trim_start_matches('#')).unwrap(),
        None => value,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The type of a schema in a few words, with links to named schemas.
fn schema_type(schema: &Value) -> String {
    if let Some(target) = schema["$ref"].as_str() {
        let name = target.rsplit('/').next().unwrap();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(only) = schema.get("const") {
        return format!("`{only}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().map(|value| format!("`{}`", value.to_string().trim_matches('"')));
        return values.collect::<Vec<_>>().join(", ");
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(branches) = schema[key].as_array() {
            return branches.iter().map(schema_type).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(first) = schema["allOf"].get(0) {
        return schema_type(first);
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" && schema["items"].is_object() => {
            format!("array of {}", schema_type(&schema["items"]))
        }
        Value::String(kind) if kind == "object" && schema["additionalProperties"].is_object() => {
            format!("object of {}", schema_type(&schema["additionalProperties"]))
        }
        Value::String(kind) => match (&schema["minimum"], &schema["maximum"], &schema["maxLength"]) {
            (Value::Number(least), Value::Number(most), _) => format!("{kind} from {least} to {most}"),
            (_, _, Value::Number(most)) => format!("{kind} of up to {most} characters"),
            _ => kind.clone(),
        },
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

/// One row for each member of an object, and for the members of objects and arrays within it.
/// Leaves out the members that `skipped` names.
fn rows(schema: &Value, prefix: &str, skipped: &[&str]) -> Vec<Vec<String>> {
    let required: Vec<String> = schema["required"].as_array().into_iter().flatten().map(text).collect();
    let mut rows = Vec::new();
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        if skipped.contains(&name.as_str()) {
            continue;
        }
        let needed = if required.contains(name) { "yes" } else { "" };
        let description = text(&below["description"]);
        rows.push(vec![format!("`{prefix}{name}`"), schema_type(below), needed.to_owned(), description]);
        rows.extend(self::rows(below, &format!("{prefix}{name}."), &[]));
        rows.extend(self::rows(&below["items"], &format!("{prefix}{name}[]."), &[]));
    }
    rows
}

fn members(schema: &Value, prefix: &str, skipped: &[&str]) -> String {
    table(&["member", "type", "required", "description"], rows(schema, prefix, skipped))
}

/// A heading, the description and the members of a named schema.
fn push_schema(page: &mut String, name: &str, schema: &Value) {
    let _ = write!(page, "\n### {name}\n\n");
    if let Some(description) = schema["description"].as_str() {
        let _ = write!(page, "{}\n\n", prose(description));
    }
    if schema["properties"].is_object() {
        page.push_str(&members(schema, "", &[]));
    } else {
        let _ = writeln!(page, "Type: {}", schema_type(schema));
    }
}

#[test]
fn the_reference_lists_every_route() {
    let document: Value = serde_json::from_str(SKELETON_TEXT).unwrap();
    let mut page = String::from("## Routes\n");
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let path = path.replace("{tool}", "{name}");
            let _ = write!(page, "\n### `{} {path}`\n\n", method.to_uppercase());
            let summary = if path.ends_with("/execute") {
                "Call a tool".to_owned()
            } else {
                text(&operation["summary"])
            };
            let _ = write!(page, "{}.\n\n", summary.trim_end_matches('.'));
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<&Value> = parameters
                .map(|parameter| resolve(&document, parameter))
                .filter(|parameter| parameter["name"] != "X-MCP-Version")
                .collect();
            if !parameters.is_empty() {
                let rows = parameters.into_iter().map(|parameter| {
                    vec![
                        format!("`{}`", text(&parameter["name"])),
                        text(&parameter["in"]),
                        schema_type(&parameter["schema"]),
                        text(&parameter["description"]),
                    ]
                });
                page.push_str(&table(&["parameter", "in", "type", "description"], rows));
                page.push('\n');
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            if body.is_object() {
                // The values of these two depend on the tool.
                let mut body = body.clone();
                body["properties"]["tool"]["enum"].take();
                body["properties"]["tool"]["type"] = "string".into();
                body["properties"]["params"] =
                    json!({"type": "object", "description": "Parameters of the tool. Default: `{}`."});
                body["properties"]["tool"].as_object_mut().unwrap().remove("enum");
                let _ = write!(page, "Request body:\n\n{}\n", members(&body, "", &[]));
            }
            let (errors, own): (Vec<_>, Vec<_>) = operation["responses"]
                .as_object()
                .unwrap()
                .iter()
                .partition(|(_, response)| response["$ref"].is_string());
            let rows = own.into_iter().map(|(status, response)| {
                let mut kinds = response["content"].as_object().into_iter().flatten();
                let schema = kinds.next().map_or(&Value::Null, |(_, content)| &content["schema"]);
                let is_named = schema["$ref"].is_string() || schema["allOf"].is_array();
                let body = if is_named { schema_type(schema) } else { String::new() };
                vec![status.clone(), body, text(&response["description"])]
            });
            page.push_str(&table(&["status", "body", "response"], rows));
            let errors: Vec<&str> = errors.into_iter().map(|(status, _)| status.as_str()).collect();
            if !errors.is_empty() {
                let _ = write!(page, "\n[Errors](#errors): {}.\n", errors.join(", "));
            }
        }
    }
    page.push_str("\n## Schemas\n");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        push_schema(&mut page, name, schema);
    }
    check_generated("reference/rest.md", &page);
}

/// When an error of this kind occurs, and what to do about it.
fn meaning(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::UnknownTool => {
            "No tool of this name exists for the caller. Check the name with `toolyard list`; a tool outside the token's lists is reported the same way."
        }
        ErrorKind::UnknownResource => "No resource or template matches the URI.",
        ErrorKind::UnknownPrompt => "No prompt of this name exists for the caller.",
        ErrorKind::InvalidArguments => {
            "The arguments do not match the tool's input schema, or the request is malformed. Every violation is listed with its JSON pointer."
        }
        ErrorKind::Unauthenticated => "The token is missing, unknown or expired.",
        ErrorKind::Forbidden => "The caller lacks a permission, which the message names.",
        ErrorKind::RateLimited => {
            "The caller exceeded a rate or a quota. Retry after the time in `Retry-After`."
        }
        ErrorKind::TooLarge => "The request or the result exceeds a size limit.",
        ErrorKind::TimedOut => "The call exceeded its deadline.",
        ErrorKind::Cancelled => "The caller canceled the call or disconnected.",
        ErrorKind::NotConnected => "The server is starting, retrying or disabled.",
        ErrorKind::CannotConnect => "The server could not be started or reached.",
        ErrorKind::ConnectionLost => {
            "The connection to the server was lost during the call. The call may have taken effect."
        }
        ErrorKind::ToolFailed => "The server answered with an error, or a program failed.",
        ErrorKind::ClientCannot => {
            "The tool needs an answer from the client (elicitation, sampling or roots), and the client does not support it."
        }
        ErrorKind::Bug => "Internal error in Toolyard. The log has the details under the ID in the response.",
    }
}

/// The exit code of the command line for a kind of error, from the snapshot of a test of the CLI.
fn exit_code(kind: ErrorKind) -> String {
    let table = "crates/cli/src/snapshots/toolyard__error__tests__every_kind_of_error_has_its_exit_code.snap";
    let table = std::fs::read_to_string(repository_file(table)).unwrap();
    let start = format!("{}: ExitCode(unix_exit_status(", kind.as_str());
    let line = table.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no exit code for {}", kind.as_str())).trim_end_matches(')').to_owned()
}

#[test]
fn the_reference_lists_every_kind_of_error() {
    let rows = ErrorKind::ALL.map(|kind| {
        let (code, status) = code_and_status(kind);
        vec![
            kind.as_str().to_owned(),
            format!("`{code}`"),
            status.as_u16().to_string(),
            describe_tool_error(kind, Version::V2025_11_25),
            describe_tool_error(kind, Version::V2026_07_28),
            exit_code(kind),
            format!("`{}`", error_label(kind)),
        ]
    });
    let head = [
        "kind",
        "REST and control code",
        "HTTP status",
        "MCP 2025-11-25",
        "MCP 2026-07-28",
        "exit code",
        "`error` label in metrics",
    ];
    let mut page = format!("## Kinds of errors\n\n{}", table(&head, rows));
    page.push_str("\n## What each kind means\n\n");
    let rows = ErrorKind::ALL.map(|kind| vec![kind.as_str().to_owned(), meaning(kind).to_owned()]);
    page.push_str(&table(&["kind", "meaning"], rows));
    check_generated("reference/errors.md", &page);
}

#[test]
fn the_reference_lists_every_metric() {
    let mut text = render_metrics(&yard(), &Principal::owner());
    connections(&mut text, 0, 0);
    family(&mut text, "toolyard_records_lost_total", "counter", RECORDS_LOST_HELP, [(String::new(), 0)]);
    replicas(&mut text, &[], true);
    let mut rows: Vec<Vec<String>> = text
        .split("# HELP ")
        .skip(1)
        .map(|family| {
            let (name, rest) = family.split_once(' ').unwrap();
            let (help, rest) = rest.split_once('\n').unwrap();
            let kind = rest.lines().next().unwrap().rsplit(' ').next().unwrap();
            vec![format!("`{name}`"), kind.to_owned(), help.to_owned()]
        })
        .collect();
    rows.sort();
    rows.dedup();
    assert!(rows.len() > 10, "{rows:?}");
    check_generated("reference/metrics.md", &table(&["metric", "type", "description"], rows));
}

/// The definitions that a definition such as `ClientMessage` lists.
fn listed<'a>(schema: &'a Value, of: &str) -> Vec<&'a Value> {
    let targets = schema["$defs"][of]["oneOf"].as_array().unwrap();
    targets.iter().map(|target| resolve(schema, target)).collect()
}

fn constant<'a>(message: &'a Value, member: &str) -> &'a str {
    message["properties"][member]["const"].as_str().unwrap_or_default()
}

/// A heading, the description and the members of a message, without those that all messages have.
fn push_message(page: &mut String, heading: &str, message: &Value) {
    let _ = writeln!(page, "\n### {heading}");
    if let Some(description) = message["description"].as_str() {
        let _ = write!(page, "\n{}\n", prose(description));
    }
    let skipped = ["type", "id", "subtype", "event", "seq", "at"];
    if !rows(message, "", &skipped).is_empty() {
        let _ = write!(page, "\n{}", members(message, "", &skipped));
    }
}

#[test]
fn the_reference_lists_every_message_of_the_control_socket() {
    let schema = std::fs::read_to_string(repository_file("docs/reference/control.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let answers = listed(&schema, "ServerMessage");
    let mut page = String::from(
        "## Requests\n\nEvery request also has `id` and `subtype`. Its response repeats both and has `type: \"response\"`.\n",
    );
    for request in listed(&schema, "ClientMessage") {
        let subtype = constant(request, "subtype");
        push_message(&mut page, &format!("`{subtype}`"), request);
        let is_response = |answer: &&&Value| {
            constant(answer, "type") == "response" && constant(answer, "subtype") == subtype
        };
        if let Some(response) = answers.iter().find(is_response) {
            let response = &response["properties"]["response"];
            if rows(response, "", &[]).is_empty() {
                page.push_str("\nThe response is an empty object.\n");
            } else {
                let _ = write!(page, "\nResponse:\n\n{}", members(response, "response.", &[]));
            }
        } else {
            page.push_str("\nThe answer is a [`welcome`](#message-welcome) message.\n");
        }
    }
    page.push_str(
        "\n## Messages\n\nEvery message has `type`, and the `id` of the request that it belongs to.\n",
    );
    for message in
        answers.iter().filter(|message| !["response", "event"].contains(&constant(message, "type")))
    {
        push_message(&mut page, &format!("Message `{}`", constant(message, "type")), message);
    }
    page.push_str("\n## Event types\n\nEvery event also has `type: \"event\"`, `event`, `seq` and `at`.\n");
    for event in answers.iter().filter(|message| constant(message, "type") == "event") {
        push_message(&mut page, &format!("Event `{}`", constant(event, "event")), event);
    }
    page.push_str("\n## Schemas\n");
    let is_message = |name: &str| {
        ["Request", "Response", "Message", "Event"].iter().any(|end| name.ends_with(end)) || name == "Welcome"
    };
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        if !is_message(name) {
            push_schema(&mut page, name, definition);
        }
    }
    check_generated("reference/control.md", &page);
}
