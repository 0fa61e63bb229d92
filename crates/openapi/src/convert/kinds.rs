//! `type`, `nullable`, `enum` and `const`: what kinds of values a schema allows.

use serde_json::{Map, Value};

use super::keywords::{DEEPEST_DATA, is_shallow};
use super::spot::{At, Report};

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
    pub(super) fn of(source: &Map<String, Value>, at: &At<'_>, report: &mut Report<'_>) -> Self {
        let nullable =
            ["nullable", "x-nullable"].iter().any(|key| source.get(*key) == Some(&Value::Bool(true)));
        let mut kinds = Self { names: Vec::new(), nullable, file: false };
        match source.get("type") {
            None => {}
            Some(Value::String(name)) => kinds.add(name, at, report),
            Some(Value::Array(names)) => {
                for name in names {
                    match name {
                        Value::String(name) => kinds.add(name, at, report),
                        Value::Null => kinds.add("null", at, report),
                        _ => report.warn(
                            &at.key("type"),
                            "wrong-type",
                            "a type is not a string; it was left out",
                        ),
                    }
                }
            }
            // An unquoted `null` in YAML.
            Some(Value::Null) => kinds.add("null", at, report),
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
    pub(super) fn write(&self, out: &mut Map<String, Value>) {
        let mut names = self.names.clone();
        if self.nullable && !names.is_empty() && !names.contains(&"null") {
            names.push("null");
        }
        match names.as_slice() {
            [] => {}
            [one] => drop(out.insert("type".to_owned(), Value::from(*one))),
            several => drop(out.insert("type".to_owned(), Value::from(several))),
        }
    }
}

/// `enum` and `const`, with values of the kind that the type asks for: YAML reads `1.0` as a number where its author
/// meant a version.
pub(super) fn choices(
    source: &Map<String, Value>,
    kinds: &Kinds,
    at: &At<'_>,
    report: &mut Report<'_>,
    out: &mut Map<String, Value>,
) {
    match source.get("enum") {
        None => {}
        Some(choices) if !is_shallow(choices, DEEPEST_DATA) => {
            report.warn(&at.key("enum"), "too-deep", "the values are nested too deeply; they were left out");
        }
        Some(Value::Array(values)) if !values.is_empty() => {
            let mut meant: Vec<Value> = Vec::with_capacity(values.len());
            let mut seen = std::collections::HashSet::new();
            for value in values {
                let value = fitting(value, kinds, &at.key("enum"), report);
                if seen.insert(value.to_string()) {
                    meant.push(value);
                }
            }
            if kinds.nullable && !meant.contains(&Value::Null) {
                meant.push(Value::Null);
            }
            out.insert("enum".to_owned(), Value::Array(meant));
        }
        Some(Value::Array(_)) => {
            report.warn(&at.key("enum"), "empty-enum", "the list of values is empty; it was left out");
        }
        Some(other) => {
            let message = format!("the list of values is {}; it was left out", crate::document::kind(other));
            report.warn(&at.key("enum"), "wrong-type", message);
        }
    }
    if let Some(value) = source.get("const").filter(|value| is_shallow(value, DEEPEST_DATA)) {
        let value = fitting(value, kinds, &at.key("const"), report);
        if kinds.nullable && !value.is_null() {
            out.entry("enum").or_insert_with(|| Value::Array(vec![value, Value::Null]));
        } else {
            out.insert("const".to_owned(), value);
        }
    }
}

fn fitting(value: &Value, kinds: &Kinds, at: &At<'_>, report: &mut Report<'_>) -> Value {
    let fitted = match value {
        Value::Number(number)
            if !kinds.allows("number") && !kinds.allows("integer") && kinds.allows("string") =>
        {
            Value::String(number.to_string())
        }
        Value::Bool(value) if !kinds.allows("boolean") && kinds.allows("string") => {
            Value::String(value.to_string())
        }
        Value::String(text) if !kinds.allows("string") => {
            let number =
                crate::document::number(text).filter(|_| kinds.allows("number") || kinds.allows("integer"));
            match (number, text.as_str()) {
                (Some(number), _) => Value::Number(number),
                (None, "true") if kinds.allows("boolean") => Value::Bool(true),
                (None, "false") if kinds.allows("boolean") => Value::Bool(false),
                _ => return value.clone(),
            }
        }
        _ => return value.clone(),
    };
    report.note(at, "odd-choice", format!("the value {value} was read as {fitted}, as the type asks"));
    fitted
}
