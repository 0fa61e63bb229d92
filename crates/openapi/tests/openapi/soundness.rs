//! Invariants of every tool of every document.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toolyard_openapi::{ArgumentLocation, Conversion};

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
const KEYWORDS: [&str; 47] = [
    "$schema",
    "$ref",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "additionalItems",
    "items",
    "maxItems",
    "minItems",
    "uniqueItems",
    "contains",
    "maxProperties",
    "minProperties",
    "required",
    "additionalProperties",
    "definitions",
    "properties",
    "patternProperties",
    "dependencies",
    "propertyNames",
    "const",
    "enum",
    "type",
    "format",
    "contentMediaType",
    "contentEncoding",
    "if",
    "then",
    "else",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "readOnly",
    "writeOnly",
    "$id",
    "id",
];

/// Checks every tool and returns the first violation.
pub(crate) fn check(conversion: &Conversion) -> Result<(), String> {
    let mut names = HashSet::new();
    for operation in &conversion.operations {
        let name = &operation.name;
        let tell =
            |what: String| format!("{} {} ({name}): {what}", operation.method.as_str(), operation.path);
        let sound = name.len() <= 60
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !sound {
            return Err(tell("the name is invalid".to_owned()));
        }
        if !names.insert(name) {
            return Err(tell("the name is not unique".to_owned()));
        }
        let definition: Value =
            serde_json::from_str(operation.definition.get()).map_err(|error| tell(error.to_string()))?;
        for field in ["name", "title"] {
            if definition[field].as_str().is_none_or(str::is_empty) {
                return Err(tell(format!("no {field}")));
            }
        }
        let meta = &definition["_meta"];
        if meta["method"] != operation.method.as_str() || meta["path"] != operation.path.as_str() {
            return Err(tell(format!("_meta is {meta}")));
        }
        let hints = &definition["annotations"];
        if !hints["readOnlyHint"].is_boolean() || hints["openWorldHint"] != true {
            return Err(tell(format!("annotations are {hints}")));
        }
        schema(&definition["inputSchema"]).map_err(|error| tell(format!("input: {error}")))?;
        if let Some(output) = definition.get("outputSchema") {
            schema(output).map_err(|error| tell(format!("output: {error}")))?;
        }
        table(operation, &definition["inputSchema"]).map_err(tell)?;
    }
    Ok(())
}

/// The argument mapping and the properties match.
fn table(operation: &toolyard_openapi::Operation, input: &Value) -> Result<(), String> {
    let properties: HashSet<&str> =
        input["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let arguments: HashSet<&str> =
        operation.arguments.iter().map(|argument| argument.property.as_str()).collect();
    if properties != arguments || operation.arguments.len() != arguments.len() {
        return Err(format!("properties are {properties:?}, arguments {arguments:?}"));
    }
    for name in input["required"].as_array().unwrap() {
        if !properties.contains(name.as_str().unwrap()) {
            return Err(format!("{name} is required but is not a property"));
        }
    }
    for part in
        operation.path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
    {
        let fills = |argument: &&toolyard_openapi::Argument| {
            argument.place == ArgumentLocation::Path && argument.wire_name == part
        };
        if !part.is_empty() && !operation.arguments.iter().any(|argument| fills(&argument)) {
            return Err(format!("nothing fills {{{part}}}"));
        }
    }
    let has_body = operation
        .arguments
        .iter()
        .any(|argument| matches!(argument.place, ArgumentLocation::Body | ArgumentLocation::BodyField));
    if has_body != operation.body.is_some() {
        return Err("body arguments without a body, or a body without arguments".to_owned());
    }
    if operation.servers.is_empty() {
        return Err("no server".to_owned());
    }
    Ok(())
}

fn schema(schema: &Value) -> Result<(), String> {
    if schema["$schema"] != DRAFT || schema["type"] != "object" {
        return Err("the root is not a Draft 07 object schema".to_owned());
    }
    if let Err(error) = jsonschema::draft7::meta::validate(schema) {
        return Err(format!("{error} at {}", error.instance_path()));
    }
    jsonschema::draft7::new(schema).map_err(|error| format!("does not compile: {error}"))?;
    let empty = Map::new();
    let definitions = schema.get("definitions").and_then(Value::as_object).unwrap_or(&empty);
    let mut waiting: Vec<&Value> = definitions.values().collect();
    waiting.push(schema);
    while let Some(schema) = waiting.pop() {
        let Value::Object(members) = schema else {
            if schema.is_boolean() {
                continue;
            }
            return Err(format!("{schema} is not a schema"));
        };
        for (key, value) in members {
            match key.as_str() {
                "$ref" => {
                    let name = value.as_str().and_then(|reference| reference.strip_prefix("#/definitions/"));
                    if name.is_none_or(|name| !definitions.contains_key(name)) {
                        return Err(format!("{value} does not resolve"));
                    }
                    if members.len() > 1 {
                        return Err("keywords next to $ref".to_owned());
                    }
                }
                "properties" | "patternProperties" => waiting.extend(value.as_object().unwrap().values()),
                "dependencies" => {
                    waiting.extend(value.as_object().unwrap().values().filter(|value| !value.is_array()));
                }
                "allOf" | "anyOf" | "oneOf" => waiting.extend(value.as_array().unwrap()),
                "items" if value.is_array() => waiting.extend(value.as_array().unwrap()),
                "items"
                | "additionalItems"
                | "contains"
                | "additionalProperties"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else" => waiting.push(value),
                key if KEYWORDS.contains(&key) => {}
                key => return Err(format!("`{key}` is not a Draft 07 keyword")),
            }
        }
    }
    Ok(())
}
