//! The title and description of a tool.

use crate::document::{SpecNode, SpecObject};

use super::keywords::truncate;
use super::location::ResolvedObject;
use super::parameters::{ParameterKind, SpecParameter};
use crate::operation::ArgumentLocation;

fn text<'a>(members: &'a SpecObject, key: &str) -> &'a str {
    members.get(key).and_then(SpecNode::as_str).unwrap_or_default().trim()
}

/// Returns the summary, else the operationId as words, else the method and path. An operationId in
/// a non-Latin script is used unchanged.
pub(super) fn title(operation: &SpecObject, id: Option<&str>, method: &str, path: &str) -> String {
    let summary = text(operation, "summary");
    if !summary.is_empty() {
        return truncate(&one_line(summary), 200).into_owned();
    }
    let id = id.unwrap_or_default().trim();
    if !id.is_ascii() {
        return truncate(&one_line(id), 200).into_owned();
    }
    let words = super::names::snake_case(id).replace('_', " ");
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => {
            truncate(&format!("{}{}", first.to_ascii_uppercase(), characters.as_str()), 200).into_owned()
        }
        None => truncate(&format!("{method} {path}"), 200).into_owned(),
    }
}

/// Returns what the operation does, its parameters and its responses, truncated to a length limit.
pub(super) fn description(
    operation: &SpecObject,
    item: &SpecObject,
    label: &str,
    parameters: &[SpecParameter<'_>],
    responses: &[(&str, ResolvedObject<'_>)],
    most: usize,
) -> String {
    let mut full = String::new();
    if operation.get("deprecated") == Some(&SpecNode::Bool(true)) {
        full.push_str("Deprecated. ");
    }
    let summary = text(operation, "summary");
    let description = text(operation, "description");
    let (summary, description) = if summary.is_empty() && description.is_empty() {
        (text(item, "summary"), text(item, "description"))
    } else {
        (summary, description)
    };
    // Without any description, the method and path are all that is known.
    let summary = if summary.is_empty() && description.is_empty() { label } else { summary };
    full.push_str(summary);
    if !description.is_empty() && !description.starts_with(summary.trim_end_matches('.')) {
        if !summary.is_empty() {
            full.push_str("\n\n");
        }
        full.push_str(description);
    } else if description.len() > summary.len() {
        full.truncate(full.len() - summary.len());
        full.push_str(description);
    }
    let mut lines = Vec::new();
    for parameter in parameters {
        let about = text(parameter.members, "description");
        if !about.is_empty() {
            let place = match parameter.kind {
                ParameterKind::At(ArgumentLocation::Path) => "path",
                ParameterKind::At(ArgumentLocation::Query | ArgumentLocation::QueryString) => "query",
                ParameterKind::At(ArgumentLocation::Header) => "header",
                ParameterKind::At(ArgumentLocation::Cookie) => "cookie",
                ParameterKind::At(ArgumentLocation::Body | ArgumentLocation::BodyField)
                | ParameterKind::Body
                | ParameterKind::FormField => "body",
            };
            lines.push(format!("- {} ({place}): {}", parameter.wire_name, truncate(&one_line(about), 120)));
        }
    }
    push_section(&mut full, "Parameters:", &lines);
    let mut lines = Vec::new();
    for (status, response) in responses {
        let about = text(response.members, "description");
        if !about.is_empty() {
            lines.push(format!("- {status}: {}", truncate(&one_line(about), 120)));
        }
    }
    push_section(&mut full, "Responses:", &lines);
    truncate(full.trim(), most).into_owned()
}

fn push_section(text: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(heading);
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
