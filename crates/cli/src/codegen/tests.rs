//! The generated files as a whole, in both languages.

use serde_json::json;

use super::{ToolSchemas, write};
use crate::args::Language;

fn tools() -> Vec<ToolSchemas> {
    let schema = json!({
        "type": "object",
        "properties": {
            "kind": {"enum": ["a\"b", 2, null, true]},
            "half": {"enum": [0.5]},
            "with-dash": {"type": ["string", "null"], "description": "Ends */ here.\n\"\"\""},
            "tree": {"$ref": "#/$defs/node"},
            "again": {"$ref": "#"},
            "elsewhere": {"$ref": "https://example.com/schema.json"},
            "any": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "number"}}]},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "inner": {"type": "object", "properties": {"x": {"type": "boolean"}}, "additionalProperties": false},
            "both": {"allOf": [{"type": "string"}, {"minLength": 1}]},
        },
        "required": ["kind", "tree"],
        "$defs": {"node": {
            "type": "object",
            "description": "A tree.",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }},
    });
    let described = |name: &str, input, output| ToolSchemas {
        name: name.to_owned(),
        description: "Does something.".to_owned(),
        input,
        output,
    };
    vec![
        described("mcp__x__odd", schema, Some(json!({"type": "array", "items": {"type": "string"}}))),
        described("bare", json!({"type": "object"}), None),
        described("mcp__x-odd", json!(true), None),
    ]
}

#[test]
fn typescript_says_what_the_schemas_say() {
    insta::assert_snapshot!(write(Language::Ts, tools()));
}

#[test]
fn python_says_what_the_schemas_say() {
    insta::assert_snapshot!(write(Language::Python, tools()));
}

#[test]
fn a_schema_without_an_end_is_not_followed_forever() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    let tool = ToolSchemas { name: "deep".to_owned(), description: String::new(), input: deep, output: None };
    assert!(write(Language::Ts, vec![tool]).contains("Array<unknown>"));
}
