//! Schemas of forms. Clients display them, so a form has only flat fields: strings, numbers,
//! booleans and choices, without nesting and without references.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use toolyard_hub::{ErrorKind, HubError, Raw, json as raw};

/// The string formats that clients support.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Returns the schema of a form with one field per member of the type.
pub(crate) fn form_schema<T: JsonSchema>() -> Result<Raw, HubError> {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let schema = super::root_schema::<T>(settings);
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        return Err(unsupported_field(&T::schema_name(), "the type is not a struct with named fields"));
    };
    let mut properties = Map::new();
    for (name, field) in fields {
        let flat = field.as_object().cloned().and_then(flatten_field).ok_or_else(|| {
            unsupported_field(
                name,
                "a field must be a string, a number, a boolean, a choice or a list of choices",
            )
        })?;
        properties.insert(name.clone(), Value::Object(flat));
    }
    let mut form = json!({"type": "object", "properties": properties});
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(raw::to_raw(&form))
}

fn unsupported_field(name: &str, why: &str) -> HubError {
    HubError::new(ErrorKind::Bug, format!("`{name}` cannot be part of a form: {why}"))
}

/// Returns the field in a form that clients can display, or `None` if no such form exists.
fn flatten_field(mut field: Map<String, Value>) -> Option<Map<String, Value>> {
    remove_null(&mut field)?;
    let choices = choices(&field);
    if !choices.is_empty() {
        field.retain(|key, _| matches!(key.as_str(), "title" | "description" | "default"));
        field.extend(choice_schema(&choices, "oneOf"));
        return Some(field);
    }
    match field.get("type")?.as_str()? {
        "string" => {
            if !field.get("format").is_some_and(|format| FORMATS.iter().any(|known| format == known)) {
                field.remove("format");
            }
        }
        "integer" | "number" | "boolean" => {
            field.remove("format");
        }
        "array" => {
            let choices =
                field.get("items").and_then(Value::as_object).map(self::choices).unwrap_or_default();
            if choices.is_empty() {
                return None;
            }
            let mut items = choice_schema(&choices, "anyOf");
            if items.contains_key("anyOf") {
                // The protocol defines no `type` for titled choices in a list.
                items.remove("type");
            }
            field.insert("items".to_owned(), Value::Object(items));
        }
        _ => return None,
    }
    Some(field)
}

/// Removes `null`: an optional field is not required, so `null` is not a separate value.
fn remove_null(field: &mut Map<String, Value>) -> Option<()> {
    if field.get("default").is_some_and(Value::is_null) {
        field.shift_remove("default");
    }
    if let Some(Value::Array(kinds)) = field.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        let [only] = kinds.as_slice() else { return None };
        let only = only.clone();
        field.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(either)) = field.get("anyOf") {
        let null = json!({"type": "null"});
        let [only] = either.iter().filter(|one| **one != null).collect::<Vec<_>>()[..] else { return None };
        let only = only.as_object()?.clone();
        field.shift_remove("anyOf");
        for (key, value) in only {
            field.entry(key).or_insert(value);
        }
    }
    if let Some(Value::Array(values)) = field.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    Some(())
}

/// Returns the values of a choice with their titles. Empty if the schema is not a choice of
/// strings.
fn choices(schema: &Map<String, Value>) -> Vec<(String, Option<String>)> {
    let titled = |schema: &Map<String, Value>| {
        let title = schema.get("title").or_else(|| schema.get("description"))?;
        title.as_str().map(ToOwned::to_owned)
    };
    if let Some(one) = schema.get("const").and_then(Value::as_str) {
        return vec![(one.to_owned(), titled(schema))];
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return values.iter().filter_map(|value| Some((value.as_str()?.to_owned(), None))).collect();
    }
    let Some(Value::Array(each)) = schema.get("oneOf") else { return Vec::new() };
    let each: Vec<_> = each.iter().map(|one| one.as_object().map(choices).unwrap_or_default()).collect();
    if each.iter().any(Vec::is_empty) { Vec::new() } else { each.into_iter().flatten().collect() }
}

/// Writes a choice as the protocol defines it: a plain `enum`, or titled values under the given
/// key.
fn choice_schema(choices: &[(String, Option<String>)], titled: &str) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("string"));
    if choices.iter().all(|(_, title)| title.is_none()) {
        let values: Vec<_> = choices.iter().map(|(value, _)| value).collect();
        schema.insert("enum".to_owned(), json!(values));
        return schema;
    }
    let values: Vec<_> = choices
        .iter()
        .map(|(value, title)| json!({"const": value, "title": title.as_deref().unwrap_or(value)}))
        .collect();
    schema.insert(titled.to_owned(), json!(values));
    schema
}
