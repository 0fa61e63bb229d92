//! JSON Schemas derived from Rust types: valid under Draft 07, with an object at the root. Form
//! schemas have stricter rules and are in `schema/form.rs`.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RestrictFormats;
use serde_json::{Map, Value, json};
use toolyard_hub::{Raw, json as raw};

use crate::output::OutputSchema;

mod form;

pub(crate) use form::form_schema;

/// Returns the input schema of a tool. Arguments are always an object, so a type that is not an
/// object accepts any object here and fails when the arguments are parsed.
pub(crate) fn input_schema<T: JsonSchema>() -> Raw {
    let schema = root_schema::<T>(settings().for_deserialize());
    if schema.get("type").is_some_and(|kind| kind == "null") {
        return empty_input_schema();
    }
    if is_object(&schema, &schema) { raw::to_raw(&ensure_object_type(schema)) } else { any_input_schema() }
}

/// Returns the input schema of a tool that accepts any object.
pub(crate) fn any_input_schema() -> Raw {
    raw::to_raw(&json!({"type": "object"}))
}

/// Returns the input schema of a tool without parameters.
pub(crate) fn empty_input_schema() -> Raw {
    raw::to_raw(&json!({"type": "object", "properties": {}}))
}

/// Returns the output schema of a tool. Most protocol versions require an object, so the schema of
/// any other type is placed under `result`.
pub(crate) fn output_schema<T: JsonSchema>() -> OutputSchema {
    let mut schema = root_schema::<T>(settings().for_serialize());
    if is_object(&schema, &schema) {
        return OutputSchema::Object(raw::to_raw(&ensure_object_type(schema)));
    }
    let mut wrapped = Map::new();
    // References are relative to the root, so their definitions must stay there.
    for key in ["$schema", "definitions"] {
        if let Some(value) = schema.shift_remove(key) {
            wrapped.insert(key.to_owned(), value);
        }
    }
    wrapped.insert("properties".to_owned(), json!({"result": schema}));
    wrapped.insert("required".to_owned(), json!(["result"]));
    OutputSchema::Wrapped(raw::to_raw(&ensure_object_type(wrapped)))
}

/// Formats that exist only in Rust (`uint32`, `double`) are removed, because strict clients reject
/// them.
fn settings() -> SchemaSettings {
    SchemaSettings::draft07().with_transform(RestrictFormats::default())
}

/// Returns the schema of a type. A title that only repeats the name of the type is removed.
fn root_schema<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let members = schema.ensure_object();
    if members.get("title").and_then(Value::as_str) == Some(&*T::schema_name()) {
        members.shift_remove("title");
    }
    std::mem::take(members)
}

/// Returns whether every value that matches the schema is an object.
fn is_object(schema: &Map<String, Value>, root: &Map<String, Value>) -> bool {
    let inside = |schema: &Value| schema.as_object().is_some_and(|schema| is_object(schema, root));
    let any = |key: &str| schema.get(key).and_then(Value::as_array).filter(|list| !list.is_empty());
    let definition = |path: &str| root.get("definitions")?.get(path.strip_prefix("#/definitions/")?);
    match schema.get("type") {
        Some(kind) => kind == "object",
        None => {
            any("oneOf").or_else(|| any("anyOf")).is_some_and(|list| list.iter().all(inside))
                || any("allOf").is_some_and(|list| list.iter().any(inside))
                || schema.get("$ref").and_then(Value::as_str).and_then(definition).is_some_and(inside)
        }
    }
}

/// Declares an object at the root and lists its properties, as clients expect.
fn ensure_object_type(mut schema: Map<String, Value>) -> Map<String, Value> {
    let mut object = Map::new();
    if let Some(dialect) = schema.shift_remove("$schema") {
        object.insert("$schema".to_owned(), dialect);
    }
    schema.shift_remove("type");
    object.insert("type".to_owned(), json!("object"));
    let bare = !["properties", "additionalProperties", "oneOf", "anyOf", "allOf", "$ref"]
        .iter()
        .any(|key| schema.contains_key(*key));
    if bare {
        object.insert("properties".to_owned(), json!({}));
    }
    object.extend(schema);
    object
}

#[cfg(test)]
mod tests;
