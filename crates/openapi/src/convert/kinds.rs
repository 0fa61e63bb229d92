//! `type`, `nullable`, `enum` and `const`: what kinds of values a schema allows.

use std::collections::HashSet;

use super::draft::{Draft, Fields};
use super::keywords::{DEEPEST_DATA, is_shallow};
use super::spot::{At, Report};
use super::view::View;
use crate::document::Node;

const KINDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// What a schema says about the kind of its values.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    pub(super) names: Vec<&'static str>,
    /// `nullable` of 3.0, or its like in Swagger.
    pub(super) nullable: bool,
    /// Swagger's `type: file`.
    pub(super) file: bool,
}

impl Kinds {
    pub(super) fn of(source: View<'_>, at: &At<'_>, report: &mut Report<'_>) -> Self {
        let nullable = source.says("nullable") || source.says("x-nullable");
        let mut kinds = Self { names: Vec::new(), nullable, file: false };
        match source.get("type") {
            None => {}
            Some(Node::String(name)) => kinds.add(name, at, report),
            Some(Node::Array(names)) => {
                for name in names {
                    match name {
                        Node::String(name) => kinds.add(name, at, report),
                        Node::Null => kinds.add("null", at, report),
                        _ => report.warn(
                            &at.key("type"),
                            "wrong-type",
                            "a type is not a string; it was left out",
                        ),
                    }
                }
            }
            // An unquoted `null` in YAML.
            Some(Node::Null) => kinds.add("null", at, report),
            Some(_) => {
                report.warn(&at.key("type"), "wrong-type", "the type is not a string; it was left out")
            }
        }
        kinds
    }

    fn add(&mut self, name: &str, at: &At<'_>, report: &mut Report<'_>) {
        let lower = name.trim().to_ascii_lowercase();
        let known = match lower.as_str() {
            "int" | "int32" | "int64" | "long" | "short" => Some("integer"),
            "float" | "double" | "decimal" | "numeric" => Some("number"),
            "bool" => Some("boolean"),
            "str" | "text" | "date" | "datetime" | "date-time" | "uuid" | "binary" | "byte" | "char" => {
                Some("string")
            }
            "list" => Some("array"),
            "map" | "dict" | "hash" => Some("object"),
            "file" => {
                self.file = true;
                Some("string")
            }
            other => KINDS.iter().copied().find(|kind| *kind == other),
        };
        match known {
            Some(kind) => {
                if kind != name && lower != "file" {
                    report.note(&at.key("type"), "odd-type", format!("the type `{name}` was read as {kind}"));
                }
                if !self.names.contains(&kind) {
                    self.names.push(kind);
                }
            }
            None if lower == "any" || lower.is_empty() => {}
            None => {
                let message = format!("`{name}` is no type; it was left out");
                report.warn(&at.key("type"), "unknown-type", message);
            }
        }
    }

    pub(super) fn allows(&self, kind: &str) -> bool {
        self.names.is_empty() || self.names.contains(&kind)
    }

    /// `type` as Draft 07 has it. A schema that may be null says so, also if it said `nullable`.
    pub(super) fn write(&self, out: &mut Fields<'_>) {
        let mut names = self.names.clone();
        if self.nullable && !names.is_empty() && !names.contains(&"null") {
            names.push("null");
        }
        match names.as_slice() {
            [] => {}
            [one] => out.put("type", *one),
            several => out.put("type", Draft::texts(several.iter().copied())),
        }
    }
}

/// `enum` and `const`, with values of the kind that the type asks for: YAML reads `1.0` as a number where its author
/// meant a version.
pub(super) fn choices<'d>(
    source: View<'d>,
    kinds: &Kinds,
    at: &At<'_>,
    report: &mut Report<'_>,
    out: &mut Fields<'d>,
) {
    match source.get("enum") {
        None => {}
        Some(choices) if !is_shallow(choices, DEEPEST_DATA) => {
            report.warn(&at.key("enum"), "too-deep", "the values are nested too deeply; they were left out");
        }
        Some(Node::Array(values)) if !values.is_empty() => {
            let mut meant: Vec<Draft<'d>> = Vec::with_capacity(values.len());
            let (mut texts, mut others) = (HashSet::new(), HashSet::new());
            for value in values {
                let value = fitting(value, kinds, &at.key("enum"), report);
                let new = match &value {
                    Draft::Text(text) => texts.insert(text.clone()),
                    other => others.insert(other.to_text()),
                };
                if new {
                    meant.push(value);
                }
            }
            if kinds.nullable && !meant.contains(&Draft::Null) {
                meant.push(Draft::Null);
            }
            out.put("enum", meant);
        }
        Some(Node::Array(_)) => {
            report.warn(&at.key("enum"), "empty-enum", "the list of values is empty; it was left out");
        }
        Some(other) => {
            let message = format!("the list of values is {}; it was left out", crate::document::kind(other));
            report.warn(&at.key("enum"), "wrong-type", message);
        }
    }
    if let Some(value) = source.get("const").filter(|value| is_shallow(value, DEEPEST_DATA)) {
        let value = fitting(value, kinds, &at.key("const"), report);
        if kinds.nullable && value != Draft::Null {
            if !out.contains_key("enum") {
                out.put("enum", vec![value, Draft::Null]);
            }
        } else {
            out.put("const", value);
        }
    }
}

fn fitting<'d>(value: &'d Node, kinds: &Kinds, at: &At<'_>, report: &mut Report<'_>) -> Draft<'d> {
    let fitted = match value {
        Node::Number(number)
            if !kinds.allows("number") && !kinds.allows("integer") && kinds.allows("string") =>
        {
            Draft::from(number.to_string())
        }
        Node::Bool(value) if !kinds.allows("boolean") && kinds.allows("string") => {
            Draft::from(value.to_string())
        }
        Node::String(text) if !kinds.allows("string") => {
            let number =
                crate::document::number(text).filter(|_| kinds.allows("number") || kinds.allows("integer"));
            match (number, &**text) {
                (Some(number), _) => Draft::Number(number),
                (None, "true") if kinds.allows("boolean") => Draft::Bool(true),
                (None, "false") if kinds.allows("boolean") => Draft::Bool(false),
                _ => return Draft::of(value),
            }
        }
        _ => return Draft::of(value),
    };
    let message = format!("the value {value} was read as {}, as the type asks", fitted.to_text());
    report.note(at, "odd-choice", message);
    fitted
}
