//! JSON Schemas out of Rust types: valid under Draft 07, with an object at the root. The schemas of forms, which
//! follow narrower rules, are in `schema/form.rs`.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RestrictFormats;
use serde_json::{Map, Value, json};
use toolyard_hub::{Raw, json as raw};

use crate::output::OutputSchema;

mod form;

pub(crate) use form::form_schema;

/// The schema of a tool's arguments. Arguments are always an object, so a type that is none accepts any object
/// here and complains when it reads them.
pub(crate) fn input_schema<T: JsonSchema>() -> Raw {
    let schema = root_schema::<T>(settings().for_deserialize());
    if schema.get("type").is_some_and(|kind| kind == "null") {
        return empty_input_schema();
    }
    if is_object(&schema, &schema) { raw::to_raw(&ensure_object_type(schema)) } else { any_input_schema() }
}

/// The schema of arguments that nobody described: any object.
pub(crate) fn any_input_schema() -> Raw {
    raw::to_raw(&json!({"type": "object"}))
}

/// The schema of the arguments of a tool that has none.
pub(crate) fn empty_input_schema() -> Raw {
    raw::to_raw(&json!({"type": "object", "properties": {}}))
}

/// The schema of a tool's structured result, which clients of most versions want to be an object: anything else
/// is put under `result`.
pub(crate) fn output_schema<T: JsonSchema>() -> OutputSchema {
    let mut schema = root_schema::<T>(settings().for_serialize());
    if is_object(&schema, &schema) {
        return OutputSchema::Object(raw::to_raw(&ensure_object_type(schema)));
    }
    let mut wrapped = Map::new();
    // References point at the root, so what they lead to must stay there.
    for key in ["$schema", "definitions"] {
        if let Some(value) = schema.shift_remove(key) {
            wrapped.insert(key.to_owned(), value);
        }
    }
    wrapped.insert("properties".to_owned(), json!({"result": schema}));
    wrapped.insert("required".to_owned(), json!(["result"]));
    OutputSchema::Wrapped(raw::to_raw(&ensure_object_type(wrapped)))
}

/// Formats that only Rust knows (`uint32`, `double`) are left out: strict clients refuse them.
fn settings() -> SchemaSettings {
    SchemaSettings::draft07().with_transform(RestrictFormats::default())
}

/// The schema of the type, without the title that is only the type's name.
fn root_schema<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let members = schema.ensure_object();
    if members.get("title").and_then(Value::as_str) == Some(&*T::schema_name()) {
        members.shift_remove("title");
    }
    std::mem::take(members)
}

/// Whether everything that fits the schema is an object.
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

/// Says at the root that it is an object, as clients want it, and always lists its properties.
fn ensure_object_type(mut schema: Map<String, Value>) -> Map<String, Value> {
    let mut said = Map::new();
    if let Some(dialect) = schema.shift_remove("$schema") {
        said.insert("$schema".to_owned(), dialect);
    }
    schema.shift_remove("type");
    said.insert("type".to_owned(), json!("object"));
    let bare = !["properties", "additionalProperties", "oneOf", "anyOf", "allOf", "$ref"]
        .iter()
        .any(|key| schema.contains_key(*key));
    if bare {
        said.insert("properties".to_owned(), json!({}));
    }
    said.extend(schema);
    said
}

#[cfg(test)]
mod tests;
