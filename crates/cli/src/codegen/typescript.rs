//! Shapes as TypeScript, for `@toolyard/client`.

use std::fmt::Write;

use serde_json::Value;
use toolyard_program::shapes::{Shape, TypeBody, TypeDeclaration, sanitize_description};

use super::ToolTypes;

pub(super) const RESERVED: &[&str] =
    &["ExecuteOptions", "ExecutionResponse", "MCPClient", "Promise", "Record", "Tools"];

const HEAD: &str = r#"// Made by `toolyard types --lang ts`; what is changed here is lost when it is made again.

import type { ExecuteOptions, ExecutionResponse, MCPClient } from "@toolyard/client";
"#;

const TAIL: &str = r"
/** `client.executeTool` with the types of the tool. */
export function executeTool<Name extends keyof Tools>(
  client: MCPClient,
  name: Name,
  params: Tools[Name]['params'],
  options?: ExecuteOptions,
): Promise<ExecutionResponse<Tools[Name]['result']>> {
  return client.executeTool(name, params as object, options);
}
";

pub(super) fn write(tools: &[ToolTypes]) -> String {
    let mut text = HEAD.to_owned();
    for declared in tools.iter().flat_map(|tool| &tool.declared) {
        write_declaration(&mut text, declared);
    }
    text.push_str("\n/** Every tool by its name. */\nexport interface Tools {\n");
    for tool in tools {
        let (params, result) = (type_expression(&tool.params), type_expression(&tool.result));
        append(
            &mut text,
            format_args!("  {}: {{ params: {params}; result: {result} }};\n", quoted(&tool.name)),
        );
    }
    text.push_str("}\n");
    text.push_str(TAIL);
    text
}

fn write_declaration(text: &mut String, declared: &TypeDeclaration) {
    text.push('\n');
    comment(text, "", &declared.description);
    let name = &declared.name;
    match &declared.body {
        TypeBody::Alias(shape) => {
            append(text, format_args!("export type {name} = {};\n", type_expression(shape)))
        }
        TypeBody::Record { fields, open } => {
            append(text, format_args!("export interface {name} {{\n"));
            for field in fields {
                comment(text, "  ", &field.description);
                let mark = if field.required { "" } else { "?" };
                append(
                    text,
                    format_args!("  {}{mark}: {};\n", quoted(&field.key), type_expression(&field.shape)),
                );
            }
            if *open {
                text.push_str("  [key: string]: unknown;\n");
            }
            text.push_str("}\n");
        }
    }
}

fn comment(text: &mut String, indent: &str, description: &str) {
    let description = sanitize_description(description);
    if !description.is_empty() {
        append(text, format_args!("{indent}/** {description} */\n"));
    }
}

fn type_expression(shape: &Shape) -> String {
    match shape {
        Shape::Unknown => "unknown".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer | Shape::Number => "number".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::Literal(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | "),
        Shape::List(item) => format!("Array<{}>", type_expression(item)),
        Shape::Map(value) => format!("Record<string, {}>", type_expression(value)),
        Shape::Named(name) => name.clone(),
        Shape::Union(parts) => parts.iter().map(type_expression).collect::<Vec<_>>().join(" | "),
    }
}

/// JSON's way to write a text is TypeScript's too.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn append(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = text.write_fmt(what);
}
