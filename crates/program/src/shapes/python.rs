//! Shapes as Python types.

use serde_json::Value;

use super::schema::Shape;

/// The syntax of union types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnionSyntax {
    /// `int | None`, which is easier to read.
    Bars,
    /// `Union[int, None]`, which also works in Python versions before 3.10.
    Brackets,
}

/// Returns a shape as a Python type. `named` maps the names of shapes to types.
pub fn python_type(shape: &Shape, unions: UnionSyntax, named: &mut dyn FnMut(&str) -> String) -> String {
    match shape {
        Shape::Unknown => "Any".to_owned(),
        Shape::Null => "None".to_owned(),
        Shape::Boolean => "bool".to_owned(),
        Shape::Integer => "int".to_owned(),
        Shape::Number => "float".to_owned(),
        Shape::Text => "str".to_owned(),
        Shape::Literal(values) => {
            let values: Vec<String> = values.iter().map(python_literal).collect();
            format!("Literal[{}]", values.join(", "))
        }
        Shape::List(item) => format!("list[{}]", python_type(item, unions, named)),
        Shape::Map(value) => format!("dict[str, {}]", python_type(value, unions, named)),
        Shape::Named(name) => named(name),
        Shape::Union(parts) => {
            let parts: Vec<String> = parts.iter().map(|part| python_type(part, unions, named)).collect();
            match unions {
                UnionSyntax::Bars => parts.join(" | "),
                UnionSyntax::Brackets => format!("Union[{}]", parts.join(", ")),
            }
        }
    }
}

/// Returns a JSON value as a Python literal.
pub fn python_literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => python_string(text),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python_literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{}: {}", python_string(key), python_literal(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// Returns a string as a Python literal. JSON escapes are valid in Python, but some characters that
/// JSON does not escape may end a line.
pub fn python_string(text: &str) -> String {
    let mut quoted = String::new();
    for character in Value::from(text).to_string().chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => quoted.push(character),
        }
    }
    quoted
}
