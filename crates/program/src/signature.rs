//! A tool as a Python function: its signature and what `help` says about it, made from its schemas. For people and models
//! to read; nothing of it is ever executed.

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

/// More values than this say less than their type does.
const MOST_VALUES: usize = 12;
/// More shapes than this are not looked at.
const MOST_SHAPES: usize = 2_000;
/// A default that is longer is not shown.
const LONGEST_DEFAULT: usize = 40;

/// What a tool takes and gives.
#[derive(Debug)]
pub(crate) struct Signature {
    /// Required ones first, and of each those first that Python can name; else in the order of the schema.
    parameters: Vec<Parameter>,
    /// Whether there may be arguments that are not named here.
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
    /// Whether it may be nothing.
    nullable: bool,
}

/// A type in Python's words, and the fields of the objects in it.
#[derive(Debug, Default)]
struct PythonType {
    name: String,
    fields: Vec<Entry>,
}

/// One field of an object, with those below it.
#[derive(Debug)]
struct Entry {
    key: String,
    typed: PythonType,
    required: bool,
    description: String,
}

/// What is known of arguments beyond the named ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtraArguments {
    /// There are none: a name that is not known is a slip.
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

    /// The names of the parameters, in the order in which they can be given.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.key.as_str())
    }

    /// How many of them are required.
    pub(crate) fn required_count(&self) -> usize {
        self.parameters.iter().filter(|parameter| parameter.required).count()
    }

    pub(crate) fn extra_arguments(&self) -> ExtraArguments {
        self.others
    }

    /// Whether nothing may be given for this argument, which is then the same as not giving it.
    pub(crate) fn is_omittable(&self, key: &str) -> bool {
        let known = self.parameters.iter().find(|parameter| parameter.key == key);
        known.is_some_and(|parameter| !parameter.required && !parameter.nullable)
    }

    /// `async def name(ticker: str, limit: int | None = None) -> list[dict]`
    pub(crate) fn declaration(&self, name: &str) -> String {
        let function =
            if is_identifier(name) { name.to_owned() } else { format!("tools[{}]", python_string(name)) };
        format!("async def {function}({}) -> {}", self.render_parameters().join(", "), self.returns.name)
    }

    fn render_parameters(&self) -> Vec<String> {
        let (words, odd): (Vec<&Parameter>, Vec<&Parameter>) =
            self.parameters.iter().partition(|parameter| is_identifier(&parameter.key));
        let mut said: Vec<String> = words.iter().map(|parameter| parameter.render()).collect();
        if !odd.is_empty() {
            let odd = odd.iter().map(|one| format!("{}: {}", python_string(&one.key), one.annotation()));
            said.push(format!("**{{{}}}", odd.collect::<Vec<_>>().join(", ")));
        } else if self.others == ExtraArguments::Allow {
            said.push("**others: Any".to_owned());
        }
        said
    }
}

impl Parameter {
    fn annotation(&self) -> String {
        let may_be_none =
            self.nullable || self.typed.name == "Any" || self.required || self.default.is_some();
        if may_be_none { self.typed.name.clone() } else { format!("{} | None", self.typed.name) }
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

/// Most schemas say nothing about other keys and mean none, unless other keys are described in another way.
fn record_extra_arguments(schema: &Value, open: bool) -> ExtraArguments {
    let more = ["patternProperties", "dependentSchemas", "if", "unevaluatedProperties"];
    let more = more.iter().any(|key| schema.get(*key).is_some());
    if open || more { ExtraArguments::Allow } else { ExtraArguments::Deny }
}

/// A schema that names no keys takes any, unless it says that it takes none.
fn unnamed_extra_arguments(schema: &Value) -> ExtraArguments {
    let plain = ["$ref", "anyOf", "oneOf", "allOf"].iter().all(|key| schema.get(*key).is_none());
    let none = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let empty =
        schema.get("properties").is_some_and(|keys| keys.as_object().is_some_and(serde_json::Map::is_empty));
    let said = schema.get("additionalProperties").is_some();
    if plain && (none || (empty && !said)) { ExtraArguments::Deny } else { ExtraArguments::Allow }
}

/// What the names of a schema's shapes stand for.
struct DeclaredTypes {
    bodies: HashMap<String, TypeBody>,
    /// How many more shapes are looked at. A few names that lead to each other can stand for millions.
    left: Cell<usize>,
}

impl DeclaredTypes {
    fn new(declared: Vec<TypeDeclaration>) -> Self {
        let bodies = declared.into_iter().map(|one| (one.name, one.body)).collect();
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
            let said = python_literal(value);
            if said.chars().count() > LONGEST_DEFAULT { "...".to_owned() } else { said }
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

    /// Whether there is still something left to look with.
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
            // A type that leads in a circle says nothing about what it takes.
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

    /// A shape in Python's words. Objects are dicts, whose fields are gathered beside.
    fn render_type(&self, shape: &Shape, depth: usize, fields: &mut Vec<Entry>) -> String {
        if !self.try_consume_budget() {
            return "Any".to_owned();
        }
        if let Shape::Literal(values) = shape
            && values.len() > MOST_VALUES
        {
            return type_names(values);
        }
        // Shapes that are made of others are taken apart here; the rest needs no fields.
        match shape {
            Shape::List(item) => format!("list[{}]", self.render_type(item, depth, fields)),
            Shape::Map(value) => format!("dict[str, {}]", self.render_type(value, depth, fields)),
            Shape::Union(parts) => {
                let mut said: Vec<String> = Vec::new();
                for part in parts {
                    let part = self.render_type(part, depth, fields);
                    if !said.contains(&part) {
                        said.push(part);
                    }
                }
                said.join(" | ")
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

    /// The type of something too deep down to be taken apart.
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

/// The types of values that are too many to name.
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
