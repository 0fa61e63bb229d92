//! `type`, `nullable`, `enum` and `const`: the types of values that a schema allows.

use std::collections::HashSet;

use super::keyword_view::KeywordView;
use super::keywords::{DEEPEST_DATA, is_shallow};
use super::location::{ConversionReport, SpecPath};
use super::schema_node::{SchemaFields, SchemaNode};
use crate::document::SpecNode;

const KINDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// The types that a schema allows.
#[derive(Debug, Default)]
pub(super) struct AllowedTypes {
    pub(super) names: Vec<&'static str>,
    /// `nullable` of OpenAPI 3.0, or its Swagger equivalents.
    pub(super) nullable: bool,
    /// `type: file` of Swagger 2.0.
    pub(super) file: bool,
}

impl AllowedTypes {
    pub(super) fn read(
        source: KeywordView<'_>,
        at: &SpecPath<'_>,
        report: &mut ConversionReport<'_>,
    ) -> Self {
        let nullable = source.is_true("nullable") || source.is_true("x-nullable");
        let mut kinds = Self { names: Vec::new(), nullable, file: false };
        match source.get("type") {
            None => {}
            Some(SpecNode::String(name)) => kinds.add(name, at, report),
            Some(SpecNode::Array(names)) => {
                for name in names {
                    match name {
                        SpecNode::String(name) => kinds.add(name, at, report),
                        SpecNode::Null => kinds.add("null", at, report),
                        _ => report.warn(&at.key("type"), "wrong-type", "a type is not a string; ignored"),
                    }
                }
            }
            // An unquoted `null` in YAML.
            Some(SpecNode::Null) => kinds.add("null", at, report),
            Some(_) => report.warn(&at.key("type"), "wrong-type", "the type is not a string; ignored"),
        }
        kinds
    }

    fn add(&mut self, name: &str, at: &SpecPath<'_>, report: &mut ConversionReport<'_>) {
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
                    report.note(
                        &at.key("type"),
                        "odd-type",
                        format!("the type `{name}` is treated as {kind}"),
                    );
                }
                if !self.names.contains(&kind) {
                    self.names.push(kind);
                }
            }
            None if lower == "any" || lower.is_empty() => {}
            None => {
                let message = format!("`{name}` is not a valid type; ignored");
                report.warn(&at.key("type"), "unknown-type", message);
            }
        }
    }

    pub(super) fn allows(&self, kind: &str) -> bool {
        self.names.is_empty() || self.names.contains(&kind)
    }

    /// Writes `type` for Draft 07, with `null` added for nullable schemas.
    pub(super) fn write(&self, out: &mut SchemaFields<'_>) {
        let mut names = self.names.clone();
        if self.nullable && !names.is_empty() && !names.contains(&"null") {
            names.push("null");
        }
        match names.as_slice() {
            [] => {}
            [one] => out.put("type", *one),
            several => out.put("type", SchemaNode::texts(several.iter().copied())),
        }
    }
}

/// Writes `enum` and `const`, with values converted to the declared type: YAML reads `1.0` as a
/// number where the author meant a string.
pub(super) fn write_enum<'d>(
    source: KeywordView<'d>,
    kinds: &AllowedTypes,
    at: &SpecPath<'_>,
    report: &mut ConversionReport<'_>,
    out: &mut SchemaFields<'d>,
) {
    match source.get("enum") {
        None => {}
        Some(choices) if !is_shallow(choices, DEEPEST_DATA) => {
            report.warn(&at.key("enum"), "too-deep", "the values are nested too deeply; ignored");
        }
        Some(SpecNode::Array(values)) if !values.is_empty() => {
            let mut meant: Vec<SchemaNode<'d>> = Vec::with_capacity(values.len());
            let (mut texts, mut others) = (HashSet::new(), HashSet::new());
            for value in values {
                let value = coerce_to_type(value, kinds, &at.key("enum"), report);
                let new = match &value {
                    SchemaNode::Text(text) => texts.insert(text.clone()),
                    other => others.insert(other.to_text()),
                };
                if new {
                    meant.push(value);
                }
            }
            if kinds.nullable && !meant.contains(&SchemaNode::Null) {
                meant.push(SchemaNode::Null);
            }
            out.put("enum", meant);
        }
        Some(SpecNode::Array(_)) => {
            report.warn(&at.key("enum"), "empty-enum", "`enum` is empty; ignored");
        }
        Some(other) => {
            let message =
                format!("`enum` is {}, not an array; ignored", crate::document::describe_kind(other));
            report.warn(&at.key("enum"), "wrong-type", message);
        }
    }
    if let Some(value) = source.get("const").filter(|value| is_shallow(value, DEEPEST_DATA)) {
        let value = coerce_to_type(value, kinds, &at.key("const"), report);
        if kinds.nullable && value != SchemaNode::Null {
            if !out.contains_key("enum") {
                out.put("enum", vec![value, SchemaNode::Null]);
            }
        } else {
            out.put("const", value);
        }
    }
}

fn coerce_to_type<'d>(
    value: &'d SpecNode,
    kinds: &AllowedTypes,
    at: &SpecPath<'_>,
    report: &mut ConversionReport<'_>,
) -> SchemaNode<'d> {
    let fitted = match value {
        SpecNode::Number(number)
            if !kinds.allows("number") && !kinds.allows("integer") && kinds.allows("string") =>
        {
            SchemaNode::from(number.to_string())
        }
        SpecNode::Bool(value) if !kinds.allows("boolean") && kinds.allows("string") => {
            SchemaNode::from(value.to_string())
        }
        SpecNode::String(text) if !kinds.allows("string") => {
            let number = crate::document::parse_number(text)
                .filter(|_| kinds.allows("number") || kinds.allows("integer"));
            match (number, &**text) {
                (Some(number), _) => SchemaNode::Number(number),
                (None, "true") if kinds.allows("boolean") => SchemaNode::Bool(true),
                (None, "false") if kinds.allows("boolean") => SchemaNode::Bool(false),
                _ => return SchemaNode::from_data(value),
            }
        }
        _ => return SchemaNode::from_data(value),
    };
    let message = format!("the value {value} is treated as {} to match the type", fitted.to_text());
    report.note(at, "odd-choice", message);
    fitted
}
