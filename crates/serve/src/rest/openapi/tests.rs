//! The document as a whole: its references resolve, and its schemas are valid.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_hub::Yard;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_sdk::{Context, NativeSource, Tool};

use super::{SKELETON, document};
use crate::rest::tool_cache::{RestTool, RestToolCache};

/// A tool with this schema that does nothing.
fn tool(name: &str, schema: &Value) -> Tool {
    let definition = json!({"name": name, "inputSchema": schema, "outputSchema": schema});
    let nothing = |_: toolyard_hub::Raw, _: Context| async { Ok(from_text(r#"{"content":[]}"#.to_owned())) };
    Tool::raw(name, nothing).definition(&to_raw(&definition))
}

fn documented(tools: Vec<Tool>) -> Value {
    let yard = Yard::with_sources([NativeSource::new("native").tools(tools).into_source()]);
    let cached: Arc<[RestTool]> = RestToolCache::default().tools(&yard);
    document(&cached.iter().collect::<Vec<_>>())
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.push(reference.clone());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_schema_is_one() {
    let tree = json!({
        "type": "object",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"node": {"properties": {"children": {"items": {"$ref": "#/definitions/node"}}}}},
        "properties": {"root": {"$ref": "#/definitions/node"}, "self": {"$ref": "#"}},
    });
    let broken = json!({"type": "object", "properties": {"a": {"type": 7}}});
    let document = documented(vec![tool("tree", &tree), tool("broken", &broken)]);
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.contains(&"#/components/schemas/tree.params/definitions/node".to_owned()), "{found:?}");
    for reference in &found {
        let place = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "{reference} does not resolve");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        // The document is not a schema, but a schema may refer to any part of it.
        let mut schema = document.clone();
        schema["$ref"] = format!("#/components/schemas/{name}").into();
        let compiled = jsonschema::options().build(&schema);
        assert!(compiled.is_ok(), "{name}: {}", compiled.unwrap_err());
    }
}

#[test]
fn the_skeleton_is_read_and_names_the_versions_of_today() {
    assert_eq!(SKELETON.document["openapi"], "3.1.0");
    assert_eq!(SKELETON.execute["post"]["requestBody"]["required"], true);
    let paths = SKELETON.document["paths"].as_object().unwrap();
    let operations: Vec<&Value> = paths
        .values()
        .chain([&SKELETON.execute])
        .flat_map(|item| item.as_object().unwrap().values())
        .collect();
    assert_eq!(operations.len(), 12);
    for operation in operations {
        // Only one operation is the same in every version.
        let version = operation["parameters"].get(0).map(|first| (&first["name"], &first["schema"]["enum"]));
        match operation["operationId"].as_str() {
            Some("health") => assert_eq!(version, None),
            _ => {
                assert_eq!(version, Some((&json!("X-MCP-Version"), &json!(crate::rest::version::SUPPORTED))))
            }
        }
    }
}

#[test]
fn the_schema_of_a_tool_means_the_same_in_the_document() {
    let schema = json!({
        "type": "object",
        "$defs": {"even": {"multipleOf": 2}},
        "properties": {"n": {"$ref": "#/$defs/even"}},
        "required": ["n"],
    });
    let document = documented(vec![tool("t", &schema)]);
    let body =
        &document["paths"]["/mcp/tools/t/execute"]["post"]["requestBody"]["content"]["application/json"];
    let mut whole = document.clone();
    whole["allOf"] = json!([body["schema"]]);
    let compiled = jsonschema::options().build(&whole).unwrap();
    assert!(compiled.is_valid(&json!({"params": {"n": 4}, "context": {"priority": "high"}})));
    for wrong in [
        json!({"params": {"n": 3}}),
        json!({"params": {}}),
        json!({}),
        json!({"params": {"n": 4}, "x": 1}),
        json!({"params": {"n": 4}, "context": {"timeout": 0}}),
        json!({"params": {"n": 4}, "tool": "other"}),
    ] {
        assert!(!compiled.is_valid(&wrong), "{wrong}");
    }
}
