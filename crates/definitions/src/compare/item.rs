//! Compares two definitions of the same tool, prompt, resource or template.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolyard_hub::json::Object;

use super::describe::{SchemaRole, describe_schema_change};
use super::schema::compare_schemas;
use super::{ChangeClass, ItemChange};
use crate::canonical::canonical_text;
use crate::offer::{ItemKind, read_value};

/// The hints of a tool, their defaults, and the value that promises more to the client.
const HINTS: [(&str, bool, bool); 4] = [
    ("readOnlyHint", false, true),
    ("destructiveHint", true, false),
    ("idempotentHint", false, true),
    ("openWorldHint", true, false),
];

/// What a definition is apart from its name, to recognize renames. `None` if it says too little.
pub(super) fn essence(kind: ItemKind, definition: &RawValue) -> Option<String> {
    let mut object = Object::parse(definition).ok()?;
    let says_something = match kind {
        ItemKind::Tool => {
            let schema = object.get("inputSchema").and_then(read_value)?;
            let properties = schema.get("properties").and_then(Value::as_object);
            let described = object.get("description").is_some_and(|text| text.get().len() > 10);
            properties.is_some_and(|properties| !properties.is_empty()) || described
        }
        ItemKind::Prompt => object.contains("arguments"),
        ItemKind::Resource | ItemKind::Template => object.contains("description"),
    };
    if !says_something {
        return None;
    }
    for key in ["title", "name", kind.id_key(), "icons", "_meta"] {
        object.remove(key);
    }
    if kind == ItemKind::Tool && object.contains("inputSchema") {
        // A renamed tool often gets other words as well.
        let has_properties = read_value(object.get("inputSchema")?).is_some_and(|schema| {
            schema.get("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty())
        });
        if has_properties {
            object.remove("description");
        }
    }
    Some(canonical_text(&object.to_raw()))
}

pub(super) fn compare_items(kind: ItemKind, old: &RawValue, new: &RawValue) -> Vec<ItemChange> {
    let (Some(Value::Object(before)), Some(Value::Object(after))) = (read_value(old), read_value(new)) else {
        let reason = "the definition changed and cannot be shown to be compatible, because it is nested too \
                      deeply or contains a number that does not fit into 64 bits";
        return vec![ItemChange { undecided: true, ..ItemChange::new(ChangeClass::Breaking, "", reason) }];
    };
    let mut changes = Vec::new();
    let keys: BTreeSet<&str> = before.keys().chain(after.keys()).map(String::as_str).collect();
    for key in keys {
        let (was, is) = (before.get(key), after.get(key));
        if was == is {
            continue;
        }
        match (kind, key) {
            (ItemKind::Tool, "inputSchema") => compare_schema(SchemaRole::Input, was, is, &mut changes),
            (ItemKind::Tool, "outputSchema") => compare_schema(SchemaRole::Output, was, is, &mut changes),
            (ItemKind::Tool, "annotations") => compare_hints(was, is, &mut changes),
            (ItemKind::Tool, "execution") => compare_execution(was, is, &mut changes),
            (ItemKind::Prompt, "arguments") => compare_arguments(was, is, &mut changes),
            (ItemKind::Resource | ItemKind::Template, "mimeType") => changes.push(compare_mime_type(was, is)),
            _ => changes.push(wording(key, was, is)),
        }
    }
    if changes.is_empty() {
        let reason = "the text of the definition changed, without an effect on its meaning";
        changes.push(ItemChange::new(ChangeClass::Wording, "", reason));
    }
    changes
}

fn wording(key: &str, was: Option<&Value>, is: Option<&Value>) -> ItemChange {
    let verb = match (was, is) {
        (None, _) => "was added",
        (Some(_), None) => "was removed",
        _ => "changed",
    };
    let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
    ItemChange::new(ChangeClass::Wording, path, format!("`{key}` {verb}")).with_values(was, is)
}

fn compare_schema(role: SchemaRole, was: Option<&Value>, is: Option<&Value>, changes: &mut Vec<ItemChange>) {
    let path = role.path();
    match (role, was, is) {
        (SchemaRole::Output, None, Some(_)) => {
            let reason = "an output schema was added: results promise more than before";
            changes.push(ItemChange::new(ChangeClass::Compatible, path, reason).with_values(None, is));
        }
        (SchemaRole::Output, Some(_), None) => {
            let reason = "the output schema was removed: clients cannot rely on structured results any more";
            changes.push(ItemChange::new(ChangeClass::Breaking, path, reason).with_values(was, None));
        }
        _ => {
            let any = json!({});
            let (was, is) = (was.unwrap_or(&any), is.unwrap_or(&any));
            let found = compare_schemas(was, is, path);
            if found.is_empty() {
                let reason = "the text of the schema changed, without an effect on its meaning";
                changes.push(ItemChange::new(ChangeClass::Wording, path, reason));
            }
            changes.extend(found.into_iter().map(|change| describe_schema_change(role, change)));
        }
    }
}

fn compare_hints(was: Option<&Value>, is: Option<&Value>, changes: &mut Vec<ItemChange>) {
    let empty = Map::new();
    fn members<'v>(value: Option<&'v Value>, empty: &'v Map<String, Value>) -> &'v Map<String, Value> {
        value.and_then(Value::as_object).unwrap_or(empty)
    }
    let (before, after) = (members(was, &empty), members(is, &empty));
    let count = changes.len();
    for (name, default, promise) in HINTS {
        let (was, is) = (before.get(name), after.get(name));
        if was == is {
            continue;
        }
        let path = format!("/annotations/{name}");
        let value = |hint: Option<&Value>| hint.and_then(Value::as_bool).unwrap_or(default);
        let (class, reason) = match (value(was), value(is)) {
            (old, new) if old == new => {
                (ChangeClass::Wording, format!("`{name}` is {old}, as it was by default"))
            }
            (old, new) if old == promise => (
                ChangeClass::Breaking,
                format!("`{name}` changed from {old} to {new}: a promise was taken back"),
            ),
            (old, new) => (
                ChangeClass::Compatible,
                format!("`{name}` changed from {old} to {new}: the tool promises more"),
            ),
        };
        changes.push(ItemChange::new(class, path, reason).with_values(was, is));
    }
    let others: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in others.into_iter().filter(|key| !HINTS.iter().any(|(name, ..)| name == key)) {
        let (was, is) = (before.get(key), after.get(key));
        if was != is {
            let change = wording(key, was, is);
            changes.push(ItemChange { path: format!("/annotations{}", change.path), ..change });
        }
    }
    if changes.len() == count {
        changes.push(wording("annotations", was, is));
    }
}

/// Compares whether the tool runs as a task.
fn compare_execution(was: Option<&Value>, is: Option<&Value>, changes: &mut Vec<ItemChange>) {
    let support = |value: Option<&Value>| {
        let support = value.and_then(|value| value.get("taskSupport")).and_then(Value::as_str);
        support.unwrap_or("forbidden").to_owned()
    };
    let (old, new) = (support(was), support(is));
    if old == new {
        return changes.push(wording("execution", was, is));
    }
    let class = match (old.as_str(), new.as_str()) {
        (_, "optional") => ChangeClass::Compatible,
        _ => ChangeClass::Breaking,
    };
    let reason = match class {
        ChangeClass::Compatible => {
            format!("`taskSupport` changed from {old} to {new}: both kinds of calls work")
        }
        _ => format!("`taskSupport` changed from {old} to {new}: calls that worked are refused"),
    };
    changes.push(ItemChange::new(class, "/execution/taskSupport", reason).with_values(was, is));
}

fn compare_arguments(was: Option<&Value>, is: Option<&Value>, changes: &mut Vec<ItemChange>) {
    type Arguments<'v> = BTreeMap<&'v str, (usize, &'v Value)>;
    fn by_name(list: Option<&Value>) -> Arguments<'_> {
        let items = list.and_then(Value::as_array).into_iter().flatten().enumerate();
        items.filter_map(|(index, item)| Some((item.get("name")?.as_str()?, (index, item)))).collect()
    }
    let count = changes.len();
    let (before, after) = (by_name(was), by_name(is));
    let is_required = |argument: &Value| argument.get("required") == Some(&Value::Bool(true));
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    for name in names {
        match (before.get(name), after.get(name)) {
            (None, Some((index, argument))) => {
                let (class, what) = match is_required(argument) {
                    true => (ChangeClass::Breaking, "required argument"),
                    false => (ChangeClass::Compatible, "optional argument"),
                };
                let reason = match class {
                    ChangeClass::Breaking => format!("{what} `{name}` was added: requests without it fail"),
                    _ => format!("{what} `{name}` was added"),
                };
                let change = ItemChange::new(class, format!("/arguments/{index}"), reason);
                changes.push(change.with_values(None, Some(argument)));
            }
            (Some((index, argument)), None) => {
                let reason =
                    format!("argument `{name}` was removed: clients that send it are ignored or refused");
                let change = ItemChange::new(ChangeClass::Breaking, format!("/arguments/{index}"), reason);
                changes.push(change.with_values(Some(argument), None));
            }
            (Some((_, old)), Some((index, new))) if old != new => {
                let path = format!("/arguments/{index}");
                let change = match (is_required(old), is_required(new)) {
                    (false, true) => ItemChange::new(
                        ChangeClass::Breaking,
                        format!("{path}/required"),
                        format!("argument `{name}` is now required: requests without it fail"),
                    ),
                    (true, false) => ItemChange::new(
                        ChangeClass::Compatible,
                        format!("{path}/required"),
                        format!("argument `{name}` is no longer required"),
                    ),
                    _ => ItemChange::new(
                        ChangeClass::Wording,
                        path,
                        format!("the description of argument `{name}` changed"),
                    ),
                };
                changes.push(change.with_values(Some(old), Some(new)));
            }
            _ => {}
        }
    }
    if changes.len() == count {
        changes.push(wording("arguments", was, is));
    }
}

fn compare_mime_type(was: Option<&Value>, is: Option<&Value>) -> ItemChange {
    let (class, reason) = match (was, is) {
        (None, _) => (ChangeClass::Compatible, "`mimeType` was added"),
        (Some(_), None) => (ChangeClass::Breaking, "`mimeType` was removed: clients cannot rely on the type"),
        _ => (ChangeClass::Breaking, "`mimeType` changed: clients that read the old type get another one"),
    };
    ItemChange::new(class, "/mimeType", reason).with_values(was, is)
}
