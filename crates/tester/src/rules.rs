//! Checks of a server's results and definitions against the rules of the protocol. This module
//! checks what the specification requires, not what the contract of the tester promises.

use std::collections::HashSet;

use serde_json::value::RawValue;
use toolyard_hub::json::Object;
use toolyard_hub::{Raw, Schema};
use toolyard_upstream::ServerListKind;

/// The maximum number of definitions of a list that are checked.
const MOST: usize = 2_000;

/// Returns the problems of a tool result. Before 2026-07-28, structured content had to be an
/// object.
pub(crate) fn check_call_result(result: &Object, modern: bool) -> Vec<String> {
    let mut broken = Vec::new();
    match result.get("content") {
        None => broken.push("the result of tools/call has no `content`".to_owned()),
        Some(content) => match list(content) {
            None => broken.push("`content` must be a list of content blocks".to_owned()),
            Some(blocks) => {
                for (at, block) in blocks.iter().enumerate() {
                    broken.extend(check_content_block(block).map(|why| format!("content[{at}]: {why}")));
                }
            }
        },
    }
    if !modern && result.get("structuredContent").is_some_and(|value| !is_object(value)) {
        broken.push("`structuredContent` must be an object".to_owned());
    }
    if result.get("isError").is_some_and(|value| !matches!(value.get(), "true" | "false")) {
        broken.push("`isError` must be true or false".to_owned());
    }
    broken
}

/// Returns the problems of a prompt result.
pub(crate) fn check_prompt(result: &Object) -> Vec<String> {
    let Some(messages) = result.get("messages") else {
        return vec!["the result of prompts/get has no `messages`".to_owned()];
    };
    let Some(messages) = list(messages) else { return vec!["`messages` must be a list".to_owned()] };
    let wrong = |(at, message): (usize, &Raw)| {
        let why = match Object::parse(message) {
            Err(_) => Some("must be an object".to_owned()),
            Ok(message) => match message.get("role").map(RawValue::get) {
                None => Some("`role` is missing".to_owned()),
                Some("\"user\"" | "\"assistant\"") => match message.get("content") {
                    None => Some("`content` is missing".to_owned()),
                    Some(block) => check_content_block(block).map(|why| format!("content: {why}")),
                },
                Some(_) => Some("`role` must be \"user\" or \"assistant\"".to_owned()),
            },
        };
        why.map(|why| format!("messages[{at}]: {why}"))
    };
    messages.iter().enumerate().filter_map(wrong).collect()
}

/// Returns the problems of a resource result.
pub(crate) fn check_resource(result: &Object) -> Vec<String> {
    let Some(contents) = result.get("contents") else {
        return vec!["the result of resources/read has no `contents`".to_owned()];
    };
    let Some(contents) = list(contents) else { return vec!["`contents` must be a list".to_owned()] };
    let wrong =
        |(at, item): (usize, &Raw)| check_resource_contents(item).map(|why| format!("contents[{at}]: {why}"));
    contents.iter().enumerate().filter_map(wrong).collect()
}

/// Returns the problems of the definitions in a list.
pub(crate) fn check_list(which: ServerListKind, items: &[Raw]) -> Vec<String> {
    let (key, named_by) = match which {
        ServerListKind::Tools => ("tools", "name"),
        ServerListKind::Prompts => ("prompts", "name"),
        ServerListKind::Resources => ("resources", "uri"),
        ServerListKind::Templates => ("resourceTemplates", "uriTemplate"),
    };
    let (mut broken, mut seen) = (Vec::new(), HashSet::new());
    for (at, item) in items.iter().take(MOST).enumerate() {
        let Ok(members) = Object::parse(item) else {
            broken.push(format!("{key}[{at}]: must be an object"));
            continue;
        };
        let name = members.get("name").and_then(text).filter(|name| !name.is_empty());
        let place = match &name {
            Some(name) => format!("{key}[{at}] ({})", short(name)),
            None => format!("{key}[{at}]"),
        };
        for required in [named_by, "name"].iter().take(if named_by == "name" { 1 } else { 2 }) {
            broken.extend(check_required_string(&members, required).map(|why| format!("{place}: {why}")));
        }
        if let Some(own) = members.get(named_by).and_then(text)
            && !seen.insert(own)
        {
            let kind = key.strip_suffix('s').unwrap_or(key);
            broken.push(format!("{place}: another {kind} has the same {named_by}"));
        }
        if which == ServerListKind::Tools {
            check_schemas(&members, name.as_deref().unwrap_or(&place), &place, &mut broken);
        }
    }
    broken
}

/// Adds the problems of a tool's schemas.
fn check_schemas(tool: &Object, name: &str, place: &str, broken: &mut Vec<String>) {
    match tool.get("inputSchema") {
        None => broken.push(format!("{place}: `inputSchema` is missing")),
        Some(schema) if !is_object(schema) => {
            broken.push(format!("{place}: `inputSchema` must be an object"));
        }
        Some(schema) => {
            let kind =
                Object::parse(schema).ok().and_then(|schema| schema.get("type").map(ToOwned::to_owned));
            if kind.is_none_or(|kind| kind.get() != "\"object\"") {
                broken.push(format!("{place}: the `type` of `inputSchema` must be \"object\""));
            }
        }
    }
    for (key, words) in [("inputSchema", "input"), ("outputSchema", "output")] {
        let Some(schema) = tool.get(key).filter(|schema| is_object(schema)) else { continue };
        if let Some(problem) = Schema::new(schema.to_owned()).problem() {
            broken.push(format!("the {words} schema of {} cannot be compiled: {problem}", short(name)));
        }
    }
}

/// Returns whether a schema cannot be compiled at all, whatever value is checked.
pub(crate) fn is_uncompilable(schema: &Schema) -> bool {
    Schema::new(schema.text().to_owned()).problem().is_some()
}

/// Returns the problem of a content block, if any.
fn check_content_block(block: &RawValue) -> Option<String> {
    let Ok(members) = Object::parse(block) else { return Some("must be an object".to_owned()) };
    let Some(kind) = members.get("type") else { return Some("`type` is missing".to_owned()) };
    match kind.get() {
        "\"text\"" => check_required_string(&members, "text"),
        "\"image\"" | "\"audio\"" => {
            check_required_string(&members, "data").or_else(|| check_required_string(&members, "mimeType"))
        }
        "\"resource_link\"" => {
            check_required_string(&members, "uri").or_else(|| check_required_string(&members, "name"))
        }
        "\"resource\"" => match members.get("resource") {
            None => Some("`resource` is missing".to_owned()),
            Some(resource) => check_resource_contents(resource),
        },
        // Later protocol versions may have more types.
        kind if kind.starts_with('"') => None,
        _ => Some("`type` must be a string".to_owned()),
    }
}

/// Returns the problem of the contents of a resource, if any.
fn check_resource_contents(contents: &RawValue) -> Option<String> {
    let Ok(members) = Object::parse(contents) else { return Some("must be an object".to_owned()) };
    let uri = check_required_string(&members, "uri");
    uri.or_else(|| match (members.get("text"), members.get("blob")) {
        (None, None) => Some("`text` or `blob` is missing".to_owned()),
        (Some(_), _) => check_required_string(&members, "text"),
        (None, Some(_)) => check_required_string(&members, "blob"),
    })
}

fn check_required_string(members: &Object, key: &str) -> Option<String> {
    match members.get(key) {
        None => Some(format!("`{key}` is missing")),
        Some(value) if !value.get().starts_with('"') => Some(format!("`{key}` must be a string")),
        Some(_) => None,
    }
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

fn list(value: &RawValue) -> Option<Vec<Raw>> {
    serde_json::from_str(value.get()).ok()
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

fn short(name: &str) -> String {
    name.chars().take(100).collect()
}
