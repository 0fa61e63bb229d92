//! Schemas of tools: what cannot work, and what clients refuse.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toolyard_hub::Schema;
use toolyard_hub::json::{from_text, to_raw};

use super::rules::{
    SCHEMA_BROKEN_REF, SCHEMA_DEFAULT_INVALID, SCHEMA_EMPTY_ENUM, SCHEMA_INVALID, SCHEMA_MISSING,
    SCHEMA_RECURSIVE, SCHEMA_REMOTE_REF, SCHEMA_REQUIRED_UNKNOWN, SCHEMA_ROOT_TYPE, SCHEMA_ROOT_UNION,
};
use super::{LintItem, LintRule, Linter};

/// Further defaults of one schema are not checked: each one needs a schema to be compiled.
const MOST_DEFAULTS: usize = 100;
/// Defaults of larger schemas are not checked.
const LARGEST_FOR_DEFAULTS: usize = 65_536;
/// Keywords whose value is a schema, a list of schemas, or schemas by name.
const SINGLE: [&str; 12] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
const LISTS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

pub(super) fn check(linter: &mut Linter<'_>, item: &LintItem<'_>) {
    match item.members.get("inputSchema") {
        None | Some(Value::Null) => {
            linter.report(&SCHEMA_MISSING, item, "/inputSchema", "the tool has no `inputSchema`");
        }
        Some(schema) => {
            check_root(linter, item, schema);
            check_schema(linter, item, schema, "/inputSchema");
        }
    }
    if let Some(schema) = item.members.get("outputSchema").filter(|schema| !schema.is_null()) {
        check_schema(linter, item, schema, "/outputSchema");
    }
}

fn check_root(linter: &mut Linter<'_>, item: &LintItem<'_>, schema: &Value) {
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        Some(kind) => {
            let message = format!("the type of the input schema is {kind}, not \"object\"");
            linter.report(&SCHEMA_ROOT_TYPE, item, "/inputSchema/type", message);
        }
        None if schema.is_object() => {
            let message = "the input schema does not have `\"type\": \"object\"`";
            linter.report(&SCHEMA_ROOT_TYPE, item, "/inputSchema", message);
        }
        None => {
            linter.report(&SCHEMA_ROOT_TYPE, item, "/inputSchema", "the input schema is not an object");
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if schema.get(key).is_some() {
            let message = format!("the input schema has `{key}` at its root");
            linter.report(&SCHEMA_ROOT_UNION, item, format!("/inputSchema/{key}"), message);
        }
    }
}

/// Checks a schema with all of its subschemas.
fn check_schema(linter: &mut Linter<'_>, item: &LintItem<'_>, schema: &Value, path: &str) {
    let raw = to_raw(schema);
    let checks_defaults = raw.get().len() <= LARGEST_FOR_DEFAULTS;
    let mut found =
        SchemaFindings { root: schema, path, checks_defaults, reports: Vec::new(), defaults: Vec::new() };
    found.visit(schema, path);
    let has_references = found
        .reports
        .iter()
        .any(|(rule, ..)| [SCHEMA_REMOTE_REF.id, SCHEMA_BROKEN_REF.id].contains(&rule.id));
    let defaults = std::mem::take(&mut found.defaults);
    for (rule, path, message) in found.reports {
        linter.report(rule, item, path, message);
    }
    if path == "/inputSchema" && is_recursive(schema) {
        linter.report(&SCHEMA_RECURSIVE, item, path, "the input schema contains itself through `$ref`");
    }
    let compiled = Schema::new(raw);
    match compiled.problem() {
        // The reference is the reason, and it is reported.
        Some(_) if has_references => {}
        Some(problem) => {
            let problem = toolyard_hub::json::truncate_for_message(problem);
            linter.report(&SCHEMA_INVALID, item, path, format!("the schema does not compile: {problem}"));
        }
        None if !has_references => {
            for (place, schema, default) in defaults {
                check_default(linter, item, &schema, &default, place);
            }
        }
        None => {}
    }
}

fn check_default(
    linter: &mut Linter<'_>,
    item: &LintItem<'_>,
    schema: &Map<String, Value>,
    default: &Value,
    path: String,
) {
    let violations = Schema::new(to_raw(schema)).violations(&from_text(default.to_string()));
    if let Some(first) = violations.first() {
        let why = toolyard_hub::json::truncate_for_message(&first.reason).into_owned();
        linter.report(&SCHEMA_DEFAULT_INVALID, item, path, format!("the default is not valid: {why}"));
    }
}

/// What a walk over a schema finds.
struct SchemaFindings<'a> {
    root: &'a Value,
    path: &'a str,
    checks_defaults: bool,
    reports: Vec<(&'static LintRule, String, String)>,
    /// Schemas with a default, each complete with the definitions that it may refer to.
    defaults: Vec<(String, Map<String, Value>, Value)>,
}

impl SchemaFindings<'_> {
    fn visit(&mut self, schema: &Value, path: &str) {
        let Value::Object(members) = schema else { return };
        if let Some(Value::Array(values)) = members.get("enum")
            && values.is_empty()
        {
            self.reports.push((
                &SCHEMA_EMPTY_ENUM,
                format!("{path}/enum"),
                "the list of values is empty".to_owned(),
            ));
        }
        self.check_reference(members, path);
        self.check_required(members, path);
        if let Some(default) = members.get("default")
            && self.checks_defaults
            && self.defaults.len() < MOST_DEFAULTS
            && path != self.path
        {
            let mut complete = members.clone();
            for key in ["$defs", "definitions", "$schema"] {
                if let Some(value) = self.root.get(key) {
                    complete.entry(key).or_insert_with(|| value.clone());
                }
            }
            self.defaults.push((format!("{path}/default"), complete, default.clone()));
        }
        for key in SINGLE {
            if let Some(below) = members.get(key) {
                self.visit(below, &format!("{path}/{key}"));
            }
        }
        for key in LISTS {
            for (index, below) in members.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.visit(below, &format!("{path}/{key}/{index}"));
            }
        }
        for key in MAPS {
            for (name, below) in members.get(key).and_then(Value::as_object).into_iter().flatten() {
                self.visit(below, &format!("{path}/{key}/{}", name.replace('~', "~0").replace('/', "~1")));
            }
        }
    }

    fn check_reference(&mut self, members: &Map<String, Value>, path: &str) {
        let Some(reference) = members.get("$ref").and_then(Value::as_str) else { return };
        let shown = toolyard_hub::json::truncate_for_message(reference);
        let path = format!("{path}/$ref");
        match reference.strip_prefix('#') {
            None if self.root.get("$id").is_some() => {}
            None => {
                let message = format!("`{shown}` is in another document");
                self.reports.push((&SCHEMA_REMOTE_REF, path, message));
            }
            // Anchors and escapes are left to the compiler.
            Some(fragment) if fragment.starts_with('/') && !fragment.contains('%') => {
                if self.root.pointer(fragment).is_none() {
                    self.reports.push((&SCHEMA_BROKEN_REF, path, format!("`{shown}` leads to nothing")));
                }
            }
            Some(_) => {}
        }
    }

    fn check_required(&mut self, members: &Map<String, Value>, path: &str) {
        let (Some(Value::Array(required)), Some(Value::Object(properties))) =
            (members.get("required"), members.get("properties"))
        else {
            return;
        };
        // These can declare properties, too.
        let elsewhere = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"];
        if elsewhere.iter().any(|key| members.contains_key(*key)) {
            return;
        }
        for name in required.iter().filter_map(Value::as_str).filter(|name| !properties.contains_key(*name)) {
            let shown = toolyard_hub::json::truncate_for_message(name);
            let message = format!("`{shown}` is required, but not declared");
            self.reports.push((&SCHEMA_REQUIRED_UNKNOWN, format!("{path}/required"), message));
        }
    }
}

/// Whether following references and subschemas leads back to a schema.
fn is_recursive(root: &Value) -> bool {
    /// Which definitions a schema refers to, without following them.
    fn references<'a>(schema: &'a Value, found: &mut HashSet<&'a str>) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$ref", Value::String(target)) => drop(found.insert(target)),
                        // Values, not schemas.
                        ("enum" | "const" | "default" | "examples", _) => {}
                        // Only what is referred to matters.
                        ("$defs" | "definitions", _) => {}
                        _ => references(value, found),
                    }
                }
            }
            _ => {}
        }
    }
    fn leads_back<'a>(
        root: &'a Value,
        target: &'a str,
        active: &mut Vec<&'a str>,
        done: &mut HashSet<&'a str>,
    ) -> bool {
        if active.contains(&target) {
            return true;
        }
        // A chain of references longer than this is not followed.
        if active.len() > 100 || done.contains(target) {
            return false;
        }
        let Some(schema) = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else {
            return false;
        };
        let mut found = HashSet::new();
        references(schema, &mut found);
        active.push(target);
        let is_recursive = found.into_iter().any(|next| leads_back(root, next, active, done));
        active.pop();
        done.insert(target);
        is_recursive
    }
    let mut found = HashSet::new();
    references(root, &mut found);
    let mut done = HashSet::new();
    found.into_iter().any(|target| leads_back(root, target, &mut Vec::new(), &mut done))
}
