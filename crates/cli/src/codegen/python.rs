//! Shapes as Python, for `mcp_client`: `TypedDict`s in their functional form, which takes any text as a key.

use std::fmt::Write;

use toolyard_program::shapes::{
    Shape, TypeBody, TypeDeclaration, UnionSyntax, prose, python_string, python_type,
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
        put(&mut text, format_args!("\n# {}\n", prose(&tool.name)));
        for declared in &tool.declared {
            declare(&mut text, declared);
        }
    }
    text
}

fn declare(text: &mut String, declared: &TypeDeclaration) {
    let description = prose(&declared.description);
    if !description.is_empty() {
        put(text, format_args!("# {description}\n"));
    }
    let name = &declared.name;
    match &declared.body {
        // In quotes, because a type may be named before it is there.
        TypeBody::Alias(shape) => {
            put(text, format_args!("{name}: TypeAlias = {}\n", python_string(&say(shape))))
        }
        TypeBody::Record { fields, .. } => {
            put(text, format_args!("{name} = TypedDict(\n    \"{name}\",\n    {{\n"));
            for field in fields {
                let description = prose(&field.description);
                if !description.is_empty() {
                    put(text, format_args!("        # {description}\n"));
                }
                let shape = python_string(&say(&field.shape));
                let shape = if field.required { shape } else { format!("NotRequired[{shape}]") };
                put(text, format_args!("        {}: {shape},\n", python_string(&field.key)));
            }
            text.push_str("    },\n)\n");
        }
    }
}

fn say(shape: &Shape) -> String {
    python_type(shape, UnionSyntax::Brackets, &mut str::to_owned)
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = text.write_fmt(what);
}
