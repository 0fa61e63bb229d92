//! `inspect_tool`: the definition of a tool, exactly as the server advertised it, in the format of
//! Python's `json.dumps`.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolyard_hub::json::{Object, from_text};
use toolyard_hub::{Raw, ToolEntry};

use crate::dumps::{dumps, dumps_text, newline_indent};
use crate::signature::Signature;
use crate::visible_tools::VisibleTools;

const NOTE: &str = "No output schema defined by the upstream server. Inspect the return value in your script (e.g., \
                    print(type(result), result[:1])) to determine the structure.";

/// Returns the definition of a tool as formatted JSON.
pub(crate) fn describe_tool(tool: &ToolEntry) -> String {
    let members = Object::parse(&tool.definition).unwrap_or_default();
    let verbatim = |key: &str| members.get(key).map_or_else(|| "null".to_owned(), |value| dumps(value, 1));
    let mut entries = vec![
        ("name", dumps_text(tool.full_name.as_str())),
        ("description", verbatim("description")),
        ("inputSchema", verbatim("inputSchema")),
    ];
    match members.get("outputSchema").filter(|schema| is_truthy_schema(schema)) {
        Some(schema) => entries.push(("outputSchema", dumps(schema, 1))),
        None => {
            entries.push(("outputSchema", "null".to_owned()));
            entries.push(("note", dumps_text(NOTE)));
        }
    }
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{}\"{key}\": {value}", newline_indent(1))).collect();
    format!("{{{}\n}}", entries.join(","))
}

/// Returns the definition of a tool as JSON data.
pub(crate) fn tool_json(tool: &ToolEntry) -> Raw {
    from_text(describe_tool(tool))
}

/// Returns the tool as a Python function, as programs call it.
pub(crate) fn describe_usage(visible: &VisibleTools<'_>, tool: &Arc<ToolEntry>) -> String {
    Signature::from_tool(tool).definition(visible.short_name(tool))
}

pub(crate) fn not_found(name: &str) -> String {
    format!("[Tool not found] '{name}' is not available in execute_program")
}

/// Returns whether a schema is truthy in Python. The specification treats an empty schema as absent.
fn is_truthy_schema(schema: &RawValue) -> bool {
    let is_falsy = |text: &str| matches!(text, "null" | "false" | "{}" | "[]" | "\"\"" | "0" | "0.0" | "-0");
    let text: String = schema.get().chars().take(16).filter(|character| !character.is_whitespace()).collect();
    schema.get().len() > 16 || !is_falsy(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::describe_tool;
    use crate::fixtures::tool;

    fn described(definition: &Value) -> String {
        describe_tool(&tool(definition))
    }

    #[test]
    fn missing_members_are_null_and_unusual_values_are_unchanged() {
        let minimal = described(&json!({"name": "t"}));
        assert_eq!(
            minimal.lines().take(5).collect::<Vec<_>>(),
            [
                "{",
                "  \"name\": \"mcp__s__t\",",
                "  \"description\": null,",
                "  \"inputSchema\": null,",
                "  \"outputSchema\": null,"
            ]
        );
        let unusual = described(
            &json!({"name": "t", "description": 5, "inputSchema": {"type": "string"}, "outputSchema": {"x": []}}),
        );
        assert_eq!(
            unusual,
            "{\n  \"name\": \"mcp__s__t\",\n  \"description\": 5,\n  \"inputSchema\": {\n    \"type\": \"string\"\n  },\n  \
             \"outputSchema\": {\n    \"x\": []\n  }\n}"
        );
    }

    #[test]
    fn a_falsy_output_schema_counts_as_missing() {
        for empty in [json!(null), json!({}), json!([]), json!(false), json!(""), json!(0)] {
            let text = described(&json!({"name": "t", "inputSchema": {}, "outputSchema": empty}));
            assert!(text.contains("\"outputSchema\": null,\n  \"note\": \"No output schema"), "{text}");
        }
        let text = described(&json!({"name": "t", "inputSchema": {}, "outputSchema": true}));
        assert!(text.ends_with("\"outputSchema\": true\n}"), "{text}");
    }
}
