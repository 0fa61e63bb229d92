//! Shapes as Python, for `mcp_client`: `TypedDict`s in their functional form, which takes any text as a key.

use std::fmt::Write;

use toolyard_program::shapes::{
    Shape, TypeBody, TypeDeclaration, UnionSyntax, python_string, python_type, sanitize_description,
};

use super::ToolTypes;

pub(super) const RESERVED: &[&str] =
    &["Any", "False", "Literal", "None", "NotRequired", "True", "TypeAlias", "TypedDict", "Union"];

const HEAD: &str = r#""""Made by `toolyard types --lang python`; what is changed here is lost when it is made again."""

import sys
from typing import Any, Literal, TypedDict, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired, TypeAlias
else:
    from typing_extensions import NotRequired, TypeAlias
"#;

pub(super) fn write(tools: &[ToolTypes]) -> String {
    let mut text = HEAD.to_owned();
    for tool in tools {
        append(&mut text, format_args!("\n# {}\n", sanitize_description(&tool.name)));
        for declared in &tool.declared {
            write_declaration(&mut text, declared);
        }
    }
    text
}

fn write_declaration(text: &mut String, declared: &TypeDeclaration) {
    let description = sanitize_description(&declared.description);
    if !description.is_empty() {
        append(text, format_args!("# {description}\n"));
    }
    let name = &declared.name;
    match &declared.body {
        // In quotes, because a type may be named before it is there.
        TypeBody::Alias(shape) => {
            append(text, format_args!("{name}: TypeAlias = {}\n", python_string(&type_expression(shape))))
        }
        TypeBody::Record { fields, .. } => {
            append(text, format_args!("{name} = TypedDict(\n    \"{name}\",\n    {{\n"));
            for field in fields {
                let description = sanitize_description(&field.description);
                if !description.is_empty() {
                    append(text, format_args!("        # {description}\n"));
                }
                let shape = python_string(&type_expression(&field.shape));
                let shape = if field.required { shape } else { format!("NotRequired[{shape}]") };
                append(text, format_args!("        {}: {shape},\n", python_string(&field.key)));
            }
            text.push_str("    },\n)\n");
        }
    }
}

fn type_expression(shape: &Shape) -> String {
    python_type(shape, UnionSyntax::Brackets, &mut str::to_owned)
}

fn append(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = text.write_fmt(what);
}
