//! The words about a tool: its title and its description, for people and for models.

use crate::document::{SpecNode, SpecObject};

use super::keywords::truncate;
use super::location::ResolvedObject;
use super::parameters::{ParameterKind, SpecParameter};
use crate::operation::ArgumentLocation;

fn text<'a>(members: &'a SpecObject, key: &str) -> &'a str {
    members.get(key).and_then(SpecNode::as_str).unwrap_or_default().trim()
}

/// The summary, else the operationId in words, else method and path. An id in another script than the name's is the title as
/// it is.
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

/// What the operation does, what it takes and what it answers, cut where it gets too long.
pub(super) fn description(
    operation: &SpecObject,
    item: &SpecObject,
    label: &str,
    parameters: &[SpecParameter<'_>],
    responses: &[(&str, ResolvedObject<'_>)],
    most: usize,
) -> String {
    let mut said = String::new();
    if operation.get("deprecated") == Some(&SpecNode::Bool(true)) {
        said.push_str("Deprecated. ");
    }
    let summary = text(operation, "summary");
    let description = text(operation, "description");
    let (summary, description) = if summary.is_empty() && description.is_empty() {
        (text(item, "summary"), text(item, "description"))
    } else {
        (summary, description)
    };
    // Without any words, what it is is all that can be said about it.
    let summary = if summary.is_empty() && description.is_empty() { label } else { summary };
    said.push_str(summary);
    if !description.is_empty() && !description.starts_with(summary.trim_end_matches('.')) {
        if !summary.is_empty() {
            said.push_str("\n\n");
        }
        said.push_str(description);
    } else if description.len() > summary.len() {
        said.truncate(said.len() - summary.len());
        said.push_str(description);
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
    push_section(&mut said, "Parameters:", &lines);
    let mut lines = Vec::new();
    for (status, response) in responses {
        let about = text(response.members, "description");
        if !about.is_empty() {
            lines.push(format!("- {status}: {}", truncate(&one_line(about), 120)));
        }
    }
    push_section(&mut said, "Responses:", &lines);
    truncate(said.trim(), most).into_owned()
}

fn push_section(said: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    if !said.is_empty() {
        said.push_str("\n\n");
    }
    said.push_str(heading);
    for line in lines {
        said.push('\n');
        said.push_str(line);
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
