//! Builds form fields from a schema.

use std::sync::Arc;

use serde_json::Value;
use toolyard_hub::Raw;
use toolyard_hub::parameters::{SchemaProperty, parameter, properties, resolve_reference};

use super::node::{FormNode, FormNodeKind};
use crate::editor::Editor;

/// The limits of a form: nesting depth, number of fields, and choices per field. Anything beyond is
/// edited as JSON.
const DEEPEST: usize = 5;
const MOST: usize = 400;
const MOST_CHOICES: usize = 2_000;

/// Builds the whole form, or returns why the schema cannot be shown as a form.
pub(super) fn build_root(schema: &Raw) -> Result<FormNode, String> {
    let root: Value =
        serde_json::from_str(schema.get()).map_err(|_| "the schema cannot be parsed".to_owned())?;
    let resolved = resolve_reference(&root, &root);
    match resolved.get("type") {
        None => {}
        Some(Value::String(word)) if word == "object" => {}
        Some(other) => return Err(format!("the schema has the type {other}, not \"object\"")),
    }
    if resolved.get("properties").is_some_and(|properties| !properties.is_object()) {
        return Err("`properties` of the schema is not an object".to_owned());
    }
    // A reference that is still there is unresolvable or circular.
    if !resolved.is_object() || resolved.get("$ref").is_some() {
        return Err("the schema is empty or refers to nothing".to_owned());
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if resolved.get(key).is_some() && properties(&root, &root).is_empty() {
            return Err(format!("the schema uses {key}"));
        }
    }
    let mut budget = MOST;
    let shared = Arc::new(root.clone());
    let nodes = build_fields(&shared, &root, 0, &mut budget);
    if budget == 0 {
        return Err(format!("the schema has more than {MOST} fields"));
    }
    Ok(FormNode { kind: FormNodeKind::Members(nodes), ..FormNode::empty() })
}

/// Builds one more item of a list.
pub(super) fn build_item(root: &Arc<Value>, shape: &Arc<Value>, at: usize) -> FormNode {
    let name = at.to_string();
    let member = SchemaProperty { name: &name, required: true, schema: shape };
    let mut node = build_field(root, member, 1, &mut MOST.clone());
    // An added item is always part of the value.
    node.given = !matches!(node.kind, FormNodeKind::Choice { .. });
    node
}

fn build_fields(root: &Arc<Value>, schema: &Value, depth: usize, budget: &mut usize) -> Vec<FormNode> {
    let mut nodes = Vec::new();
    for member in properties(root, schema) {
        if *budget == 0 {
            break;
        }
        *budget -= 1;
        nodes.push(build_field(root, member, depth, budget));
    }
    nodes
}

fn build_field(root: &Arc<Value>, member: SchemaProperty<'_>, depth: usize, budget: &mut usize) -> FormNode {
    let resolved = resolve_reference(root, member.schema);
    let words = parameter(root, member);
    let keyword = |key: &str| member.schema.get(key).or_else(|| resolved.get(key));
    let kind = build_kind(root, resolved, depth, budget);
    let whole = member.required && matches!(kind, FormNodeKind::Members(_));
    let mut node = FormNode {
        name: member.name.to_owned(),
        required: member.required,
        given: whole,
        remarks: words.remarks().join(" "),
        word: words.kind,
        about: keyword("description").or_else(|| keyword("title")).and_then(Value::as_str).map(str::to_owned),
        kind,
    };
    if let Some(default) = keyword("default") {
        let mut filled = node.clone();
        // A default that does not match its own schema is ignored.
        if filled.fill(default) {
            node = filled;
        }
    } else if let FormNodeKind::Choice { values, chosen, .. } = &mut node.kind
        && values.len() == 1
        && node.required
    {
        *chosen = Some(0);
        node.given = true;
    }
    node
}

fn build_kind(root: &Arc<Value>, schema: &Value, depth: usize, budget: &mut usize) -> FormNodeKind {
    let json = || FormNodeKind::Json(Editor::single_line(""));
    if let Some((values, labels)) = choices(root, schema) {
        return FormNodeKind::Choice { values, labels, chosen: None };
    }
    // A type that is nullable through `anyOf` or `oneOf` is treated as optional.
    let schema = match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        Some(list) => {
            let is_null = |one: &&Value| {
                resolve_reference(root, one).get("type").and_then(Value::as_str) == Some("null")
            };
            let others: Vec<&Value> = list.iter().filter(|one| !is_null(one)).collect();
            match others.as_slice() {
                [only] => resolve_reference(root, only),
                _ => return json(),
            }
        }
        None => schema,
    };
    if let Some((values, labels)) = choices(root, schema) {
        return FormNodeKind::Choice { values, labels, chosen: None };
    }
    let word = match schema.get("type") {
        Some(Value::String(word)) => Some(word.as_str()),
        Some(Value::Array(words)) => {
            let others: Vec<&str> =
                words.iter().filter_map(Value::as_str).filter(|word| *word != "null").collect();
            match others.as_slice() {
                [only] => Some(*only),
                _ => return json(),
            }
        }
        _ => schema.get("properties").map(|_| "object"),
    };
    match word {
        Some("string") => FormNodeKind::Text(Editor::single_line("")),
        Some("integer" | "number") => FormNodeKind::Number(Editor::single_line("")),
        Some("boolean") => FormNodeKind::Flag(false),
        Some("object") if depth < DEEPEST && !properties(root, schema).is_empty() => {
            FormNodeKind::Members(build_fields(root, schema, depth + 1, budget))
        }
        Some("array") => match schema.get("items") {
            Some(items) if items.is_object() && depth < DEEPEST => FormNodeKind::Items {
                shape: Arc::new(items.clone()),
                root: Arc::clone(root),
                items: Vec::new(),
            },
            _ => json(),
        },
        _ => json(),
    }
}

/// Returns the allowed values and their labels, if the schema enumerates them.
fn choices(root: &Value, schema: &Value) -> Option<(Vec<Value>, Vec<String>)> {
    let label = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(only) = schema.get("const") {
        return Some((vec![only.clone()], vec![label(only)]));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty()) {
        let values: Vec<Value> = values.iter().take(MOST_CHOICES).cloned().collect();
        let names = schema.get("enumNames").and_then(Value::as_array);
        let named = |(at, value): (usize, &Value)| match names.and_then(|names| names.get(at)?.as_str()) {
            Some(name) => format!("{name} ({})", label(value)),
            None => label(value),
        };
        let labels = values.iter().enumerate().map(named).collect();
        return Some((values, labels));
    }
    let titled = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)?;
    let constant = |one: &Value| {
        let one = resolve_reference(root, one);
        let value = one.get("const")?.clone();
        let title = one.get("title").and_then(Value::as_str);
        let label = title.map_or_else(|| label(&value), |title| format!("{title} ({})", label(&value)));
        Some((value, label))
    };
    let all: Option<Vec<(Value, String)>> = titled.iter().take(MOST_CHOICES).map(constant).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.into_iter().unzip())
}
