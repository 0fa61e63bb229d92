//! `inspect_tool`: what a tool is, byte for byte as the server advertised it, in the form that Python's `json.dumps` gives it.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolyard_hub::json::{Object, from_text};
use toolyard_hub::{Raw, ToolEntry};

use crate::dumps::{dumps, dumps_text, newline_indent};
use crate::signature::Signature;
use crate::visible_tools::VisibleTools;

const NOTE: &str = "No output schema defined by the upstream server. Inspect the return value in your script (e.g., \
                    print(type(result), result[:1])) to determine the structure.";

/// The description of a tool, as text.
pub(crate) fn describe_tool(tool: &ToolEntry) -> String {
    let members = Object::parse(&tool.definition).unwrap_or_default();
    let as_said = |key: &str| members.get(key).map_or_else(|| "null".to_owned(), |value| dumps(value, 1));
    let mut entries = vec![
        ("name", dumps_text(tool.full_name.as_str())),
        ("description", as_said("description")),
        ("inputSchema", as_said("inputSchema")),
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

/// The same as data.
pub(crate) fn tool_json(tool: &ToolEntry) -> Raw {
    from_text(describe_tool(tool))
}

/// What is beside it: how a program calls the tool.
pub(crate) fn describe_usage(seen: &VisibleTools<'_>, tool: &Arc<ToolEntry>) -> String {
    Signature::from_tool(tool).definition(seen.short_name(tool))
}

pub(crate) fn not_found(name: &str) -> String {
    format!("[Tool not found] '{name}' is not available in execute_program")
}

/// Whether Python would take it for true: an empty schema says as much as none.
fn is_truthy_schema(schema: &RawValue) -> bool {
    let nothing = |text: &str| matches!(text, "null" | "false" | "{}" | "[]" | "\"\"" | "0" | "0.0" | "-0");
    let text: String = schema.get().chars().take(16).filter(|letter| !letter.is_whitespace()).collect();
    schema.get().len() > 16 || !nothing(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::describe_tool;
    use crate::fixtures::tool;

    fn shown(definition: &Value) -> String {
        describe_tool(&tool(definition))
    }

    #[test]
    fn what_is_not_said_is_null_and_what_is_odd_stays_odd() {
        let nothing = shown(&json!({"name": "t"}));
        assert_eq!(
            nothing.lines().take(5).collect::<Vec<_>>(),
            [
                "{",
                "  \"name\": \"mcp__s__t\",",
                "  \"description\": null,",
                "  \"inputSchema\": null,",
                "  \"outputSchema\": null,"
            ]
        );
        let odd = shown(
            &json!({"name": "t", "description": 5, "inputSchema": {"type": "string"}, "outputSchema": {"x": []}}),
        );
        assert_eq!(
            odd,
            "{\n  \"name\": \"mcp__s__t\",\n  \"description\": 5,\n  \"inputSchema\": {\n    \"type\": \"string\"\n  },\n  \
             \"outputSchema\": {\n    \"x\": []\n  }\n}"
        );
    }

    #[test]
    fn a_schema_that_python_takes_for_false_is_none() {
        for empty in [json!(null), json!({}), json!([]), json!(false), json!(""), json!(0)] {
            let text = shown(&json!({"name": "t", "inputSchema": {}, "outputSchema": empty}));
            assert!(text.contains("\"outputSchema\": null,\n  \"note\": \"No output schema"), "{text}");
        }
        let text = shown(&json!({"name": "t", "inputSchema": {}, "outputSchema": true}));
        assert!(text.ends_with("\"outputSchema\": true\n}"), "{text}");
    }
}
