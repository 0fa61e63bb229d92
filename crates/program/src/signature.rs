//! A tool as a Python function: signature and docstring, derived from the schemas of the tool. They
//! are meant for people and models to read and are never executed.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::Value;
use toolyard_hub::ToolEntry;

use crate::python_names::is_identifier;
use crate::shapes::{
    RecordField, Shape, ShapeReader, TypeBody, TypeDeclaration, TypeNames, UnionSyntax, python_literal,
    python_string, python_type, sanitize_description,
};

mod docstring;

/// The maximum number of values in a `Literal`. An enum with more is shown by its type.
const MOST_VALUES: usize = 12;
/// The maximum number of shapes that are followed.
const MOST_SHAPES: usize = 2_000;
/// The maximum length of a default, in characters. Longer defaults are shown as `...`.
const LONGEST_DEFAULT: usize = 40;

/// The parameters and the result of a tool.
#[derive(Debug)]
pub(crate) struct Signature {
    /// Required parameters first, and valid Python identifiers first within both groups. Otherwise
    /// in the order of the schema.
    parameters: Vec<Parameter>,
    /// Whether further arguments are allowed.
    others: ExtraArguments,
    returns: PythonType,
    description: String,
}

#[derive(Debug)]
struct Parameter {
    key: String,
    typed: PythonType,
    required: bool,
    default: Option<String>,
    description: String,
    nullable: bool,
}

/// A Python type, and the fields of the objects in it.
#[derive(Debug, Default)]
struct PythonType {
    name: String,
    fields: Vec<Entry>,
}

/// One field of an object, with its nested fields.
#[derive(Debug)]
struct Entry {
    key: String,
    typed: PythonType,
    required: bool,
    description: String,
}

/// Whether a tool accepts arguments beyond the named ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtraArguments {
    /// An unknown name is a mistake.
    Deny,
    Allow,
}

impl Signature {
    pub(crate) fn from_tool(tool: &ToolEntry) -> Self {
        let parse = |raw: &str| serde_json::from_str::<Value>(raw).unwrap_or(Value::Bool(true));
        let mut names = TypeNames::new(&[]);
        let input = parse(tool.input_schema.get());
        let mut reader = ShapeReader::new(&input, &mut names);
        let root = reader.read_root("arguments", "");
        let declared = DeclaredTypes::new(reader.finish());
        let (parameters, others) = match declared.body(&root) {
            Some(TypeBody::Record { fields, open }) => {
                (declared.parameters(fields), record_extra_arguments(&input, *open))
            }
            _ => (Vec::new(), unnamed_extra_arguments(&input)),
        };
        let output = tool.output_schema.as_ref().map(|schema| parse(schema.get()));
        let returns = output.map_or_else(any_type, |output| {
            let mut names = TypeNames::new(&[]);
            let mut reader = ShapeReader::new(&output, &mut names);
            let root = reader.read_root("result", "");
            DeclaredTypes::new(reader.finish()).resolve_type(&root, 0)
        });
        Self { parameters, others, returns, description: tool.description.clone().unwrap_or_default() }
    }

    /// Returns the names of the parameters, in positional order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.key.as_str())
    }

    /// Returns the number of required parameters.
    pub(crate) fn required_count(&self) -> usize {
        self.parameters.iter().filter(|parameter| parameter.required).count()
    }

    pub(crate) fn extra_arguments(&self) -> ExtraArguments {
        self.others
    }

    /// Returns whether `None` for this argument means that it is not given.
    pub(crate) fn is_omittable(&self, key: &str) -> bool {
        let parameter = self.parameters.iter().find(|parameter| parameter.key == key);
        parameter.is_some_and(|parameter| !parameter.required && !parameter.nullable)
    }

    /// Returns `async def name(ticker: str, limit: int | None = None) -> list[dict]`.
    pub(crate) fn declaration(&self, name: &str) -> String {
        let function =
            if is_identifier(name) { name.to_owned() } else { format!("tools[{}]", python_string(name)) };
        format!("async def {function}({}) -> {}", self.render_parameters().join(", "), self.returns.name)
    }

    fn render_parameters(&self) -> Vec<String> {
        let (identifiers, others): (Vec<&Parameter>, Vec<&Parameter>) =
            self.parameters.iter().partition(|parameter| is_identifier(&parameter.key));
        let mut rendered: Vec<String> = identifiers.iter().map(|parameter| parameter.render()).collect();
        if !others.is_empty() {
            let members = others
                .iter()
                .map(|parameter| format!("{}: {}", python_string(&parameter.key), parameter.annotation()));
            rendered.push(format!("**{{{}}}", members.collect::<Vec<_>>().join(", ")));
        } else if self.others == ExtraArguments::Allow {
            rendered.push("**others: Any".to_owned());
        }
        rendered
    }
}

impl Parameter {
    fn annotation(&self) -> String {
        let is_complete =
            self.nullable || self.typed.name == "Any" || self.required || self.default.is_some();
        if is_complete { self.typed.name.clone() } else { format!("{} | None", self.typed.name) }
    }

    fn render(&self) -> String {
        let default = match (&self.default, self.required) {
            (_, true) => String::new(),
            (Some(default), false) => format!(" = {default}"),
            (None, false) => " = None".to_owned(),
        };
        format!("{}: {}{default}", self.key, self.annotation())
    }
}

fn any_type() -> PythonType {
    PythonType { name: "Any".to_owned(), fields: Vec::new() }
}

/// Returns whether a schema with named properties allows further arguments. Most schemas do not
/// mention further keys and mean that there are none, unless another keyword describes them.
fn record_extra_arguments(schema: &Value, open: bool) -> ExtraArguments {
    let keywords = ["patternProperties", "dependentSchemas", "if", "unevaluatedProperties"];
    let describes_more = keywords.iter().any(|key| schema.get(*key).is_some());
    if open || describes_more { ExtraArguments::Allow } else { ExtraArguments::Deny }
}

/// Returns whether a schema without named properties allows arguments: yes, unless it excludes them.
fn unnamed_extra_arguments(schema: &Value) -> ExtraArguments {
    let is_simple = ["$ref", "anyOf", "oneOf", "allOf"].iter().all(|key| schema.get(*key).is_none());
    let additional = schema.get("additionalProperties");
    let is_closed = additional == Some(&Value::Bool(false));
    let is_empty =
        schema.get("properties").is_some_and(|keys| keys.as_object().is_some_and(serde_json::Map::is_empty));
    if is_simple && (is_closed || (is_empty && additional.is_none())) {
        ExtraArguments::Deny
    } else {
        ExtraArguments::Allow
    }
}

/// The declared types of a schema, by name.
struct DeclaredTypes {
    bodies: HashMap<String, TypeBody>,
    /// How many more shapes may be followed. A few mutually recursive names can expand to millions.
    left: Cell<usize>,
}

impl DeclaredTypes {
    fn new(declared: Vec<TypeDeclaration>) -> Self {
        let bodies = declared.into_iter().map(|declaration| (declaration.name, declaration.body)).collect();
        Self { bodies, left: Cell::new(MOST_SHAPES) }
    }

    fn body(&self, shape: &Shape) -> Option<&TypeBody> {
        match shape {
            Shape::Named(name) => self.bodies.get(name),
            _ => None,
        }
    }

    fn parameters(&self, fields: &[RecordField]) -> Vec<Parameter> {
        let mut parameters: Vec<Parameter> = fields.iter().map(|field| self.parameter(field)).collect();
        parameters.sort_by_key(|parameter| (!parameter.required, !is_identifier(&parameter.key)));
        parameters
    }

    fn parameter(&self, field: &RecordField) -> Parameter {
        let default = field.default.as_ref().map(|value| {
            let literal = python_literal(value);
            if literal.chars().count() > LONGEST_DEFAULT { "...".to_owned() } else { literal }
        });
        Parameter {
            key: field.key.clone(),
            typed: self.resolve_type(&field.shape, 0),
            required: field.required,
            default,
            description: sanitize_description(&field.description),
            nullable: self.accepts_null(&field.shape, 0),
        }
    }

    /// Counts one shape. Returns whether it is within the budget.
    fn try_consume_budget(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    fn accepts_null(&self, shape: &Shape, depth: usize) -> bool {
        match shape {
            Shape::Unknown | Shape::Null => true,
            Shape::Literal(values) => values.contains(&Value::Null),
            Shape::Union(parts) => parts.iter().any(|part| self.accepts_null(part, depth)),
            Shape::Named(_) if depth < docstring::DEEPEST && self.try_consume_budget() => {
                match self.body(shape) {
                    Some(TypeBody::Alias(inner)) => self.accepts_null(inner, depth + 1),
                    Some(TypeBody::Record { .. }) | None => false,
                }
            }
            // Unknown for types that are recursive or too deep.
            Shape::Named(_) => true,
            Shape::Boolean
            | Shape::Integer
            | Shape::Number
            | Shape::Text
            | Shape::List(_)
            | Shape::Map(_) => false,
        }
    }

    fn resolve_type(&self, shape: &Shape, depth: usize) -> PythonType {
        let mut fields = Vec::new();
        let name = self.render_type(shape, depth, &mut fields);
        PythonType { name, fields }
    }

    /// Renders a shape as a Python type. Objects become `dict`; their fields are added to `fields`.
    fn render_type(&self, shape: &Shape, depth: usize, fields: &mut Vec<Entry>) -> String {
        if !self.try_consume_budget() {
            return "Any".to_owned();
        }
        if let Shape::Literal(values) = shape
            && values.len() > MOST_VALUES
        {
            return type_names(values);
        }
        // Only composed shapes can contain fields.
        match shape {
            Shape::List(item) => format!("list[{}]", self.render_type(item, depth, fields)),
            Shape::Map(value) => format!("dict[str, {}]", self.render_type(value, depth, fields)),
            Shape::Union(parts) => {
                let mut rendered: Vec<String> = Vec::new();
                for part in parts {
                    let part = self.render_type(part, depth, fields);
                    if !rendered.contains(&part) {
                        rendered.push(part);
                    }
                }
                rendered.join(" | ")
            }
            Shape::Named(name) => match self.bodies.get(name) {
                _ if depth >= docstring::DEEPEST => "Any".to_owned(),
                Some(TypeBody::Record { fields: inner, .. }) => {
                    let entries = inner.iter().take_while(|_| self.try_consume_budget());
                    fields.extend(entries.map(|field| self.entry(field, depth + 1)));
                    "dict".to_owned()
                }
                Some(TypeBody::Alias(inner)) => self.render_type(inner, depth + 1, fields),
                None => "Any".to_owned(),
            },
            simple => python_type(simple, UnionSyntax::Bars, &mut |_| "Any".to_owned()),
        }
    }

    fn entry(&self, field: &RecordField, depth: usize) -> Entry {
        Entry {
            key: field.key.clone(),
            typed: if depth >= docstring::DEEPEST {
                self.shallow_type(&field.shape)
            } else {
                self.resolve_type(&field.shape, depth)
            },
            required: field.required,
            description: sanitize_description(&field.description),
        }
    }

    /// Returns the type of a shape at the maximum depth, without its fields.
    fn shallow_type(&self, shape: &Shape) -> PythonType {
        let name = match (shape, self.body(shape)) {
            (_, Some(TypeBody::Record { .. })) => "dict".to_owned(),
            (Shape::List(_), _) => "list".to_owned(),
            (Shape::Map(_), _) => "dict".to_owned(),
            (Shape::Union(_) | Shape::Named(_), _) => "Any".to_owned(),
            (simple, _) => python_type(simple, UnionSyntax::Bars, &mut |_| "Any".to_owned()),
        };
        PythonType { name, fields: Vec::new() }
    }
}

/// Returns the types of the values of a long enum.
fn type_names(values: &[Value]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for value in values {
        let kind = match value {
            Value::Null => "None",
            Value::Bool(_) => "bool",
            Value::Number(_) => "int",
            Value::String(_) => "str",
            Value::Array(_) | Value::Object(_) => "Any",
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.join(" | ")
}

#[cfg(test)]
mod tests;
