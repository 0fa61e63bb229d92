//! Converts a JSON Schema into shapes that several languages can express. Anything that cannot be
//! expressed becomes *unknown*, so that a shape is never wrong.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::naming::TypeNames;

type Members = Map<String, Value>;

/// The maximum depth of nested schemas.
const DEEPEST: usize = 24;

/// The shape of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Unknown,
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    /// One of these strings, integers, booleans or nulls.
    Literal(Vec<Value>),
    List(Box<Shape>),
    /// An object with arbitrary keys and values of one shape.
    Map(Box<Shape>),
    Named(String),
    Union(Vec<Shape>),
}

/// A named shape.
#[derive(Debug)]
pub struct TypeDeclaration {
    pub name: String,
    pub description: String,
    pub body: TypeBody,
}

/// The definition of a named shape.
#[derive(Debug)]
pub enum TypeBody {
    Record { fields: Vec<RecordField>, open: bool },
    Alias(Shape),
}

/// One key of a record.
#[derive(Debug)]
pub struct RecordField {
    pub key: String,
    pub description: String,
    pub shape: Shape,
    pub required: bool,
    /// The default, if the schema declares one.
    pub default: Option<Value>,
}

/// Reads one schema.
#[derive(Debug)]
pub struct ShapeReader<'a> {
    root: &'a Value,
    names: &'a mut TypeNames,
    declared: Vec<TypeDeclaration>,
    /// The type names of resolved references. A name is assigned before the type is declared, so
    /// that types may be recursive.
    known: HashMap<String, String>,
    base: String,
}

impl<'a> ShapeReader<'a> {
    pub fn new(root: &'a Value, names: &'a mut TypeNames) -> Self {
        Self { root, names, declared: Vec::new(), known: HashMap::new(), base: String::new() }
    }

    /// Reads the whole schema and declares it under a name.
    pub fn read_root(&mut self, base: &str, description: &str) -> Shape {
        self.base = base.to_owned();
        let name = self.names.assign(base);
        self.known.insert("#".to_owned(), name.clone());
        let root = self.root;
        self.declare(name, description.to_owned(), root, base, 0)
    }

    /// Returns all declared types, dependencies first.
    pub fn finish(self) -> Vec<TypeDeclaration> {
        self.declared
    }

    fn declare(
        &mut self,
        name: String,
        description: String,
        schema: &Value,
        hint: &str,
        depth: usize,
    ) -> Shape {
        let body = match as_record(schema) {
            Some((object, properties)) => self.read_record(object, properties, hint, depth),
            None => TypeBody::Alias(self.read_shape(schema, hint, depth)),
        };
        self.declared.push(TypeDeclaration { name: name.clone(), description, body });
        Shape::Named(name)
    }

    fn read_record(&mut self, object: &Members, properties: &Members, hint: &str, depth: usize) -> TypeBody {
        let required: Vec<&str> = match object.get("required") {
            Some(Value::Array(keys)) => keys.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let fields = properties.iter().map(|(key, schema)| RecordField {
            key: key.clone(),
            description: description(schema),
            shape: self.read_shape(schema, &format!("{hint}_{key}"), depth + 1),
            required: required.contains(&key.as_str()),
            default: schema.get("default").cloned(),
        });
        let fields = fields.collect();
        // Most schemas do not mention further keys and mean that there are none. Treating them as
        // closed finds misspelled names.
        let open = matches!(object.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_)));
        TypeBody::Record { fields, open }
    }

    fn read_shape(&mut self, schema: &Value, hint: &str, depth: usize) -> Shape {
        let Value::Object(object) = schema else { return Shape::Unknown };
        if depth > DEEPEST {
            return Shape::Unknown;
        }
        if let Some(Value::String(reference)) = object.get("$ref") {
            return self.follow_reference(reference, depth);
        }
        if let Some(value) = object.get("const") {
            return literal(std::slice::from_ref(value));
        }
        if let Some(Value::Array(values)) = object.get("enum") {
            return literal(values);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(parts)) = object.get(key) {
                let shapes = parts.iter().enumerate();
                let shapes = shapes
                    .map(|(index, part)| self.read_shape(part, &format!("{hint}_{}", index + 1), depth + 1));
                return union(shapes.collect());
            }
        }
        // `allOf` can be expressed only if it has a single part.
        if let Some(Value::Array(parts)) = object.get("allOf") {
            return match (parts.as_slice(), object.contains_key("properties")) {
                ([only], false) => self.read_shape(only, hint, depth + 1),
                _ => Shape::Unknown,
            };
        }
        match object.get("type") {
            Some(Value::Array(kinds)) => {
                let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
                union(
                    kinds.into_iter().map(|kind| self.read_kind(kind, schema, object, hint, depth)).collect(),
                )
            }
            Some(Value::String(kind)) => self.read_kind(kind, schema, object, hint, depth),
            _ if object.contains_key("properties") => self.read_kind("object", schema, object, hint, depth),
            _ => Shape::Unknown,
        }
    }

    fn read_kind(&mut self, kind: &str, schema: &Value, object: &Members, hint: &str, depth: usize) -> Shape {
        match kind {
            "null" => Shape::Null,
            "boolean" => Shape::Boolean,
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "string" => Shape::Text,
            "array" => {
                let items = object.get("items").unwrap_or(&Value::Null);
                Shape::List(Box::new(self.read_shape(items, &format!("{hint}_item"), depth + 1)))
            }
            "object" if as_record(schema).is_some() => {
                let name = self.names.assign(hint);
                self.declare(name, description(schema), schema, hint, depth)
            }
            "object" => {
                let values = object.get("additionalProperties").unwrap_or(&Value::Null);
                Shape::Map(Box::new(self.read_shape(values, &format!("{hint}_value"), depth + 1)))
            }
            _ => Shape::Unknown,
        }
    }

    /// Resolves a reference within the document. Other references are unknown.
    fn follow_reference(&mut self, reference: &str, depth: usize) -> Shape {
        if let Some(name) = self.known.get(reference) {
            return Shape::Named(name.clone());
        }
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
            return Shape::Unknown;
        };
        let last = reference.rsplit('/').next().unwrap_or_default();
        let hint = format!("{}_{last}", self.base);
        let name = self.names.assign(&hint);
        self.known.insert(reference.to_owned(), name.clone());
        self.declare(name, description(target), target, &hint, depth + 1)
    }
}

/// Returns the schema and properties of an object with named keys.
fn as_record(schema: &Value) -> Option<(&Members, &Members)> {
    let object = schema.as_object()?;
    let is_simple =
        ["$ref", "enum", "const", "anyOf", "oneOf", "allOf"].iter().all(|key| !object.contains_key(*key));
    let is_object = object.get("type").is_none_or(|kind| kind == "object");
    let properties = object.get("properties")?.as_object()?;
    (is_simple && is_object && !properties.is_empty()).then_some((object, properties))
}

fn description(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn literal(values: &[Value]) -> Shape {
    let has_literal = |value: &Value| match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.is_i64(),
        Value::Array(_) | Value::Object(_) => false,
    };
    if !values.is_empty() && values.iter().all(has_literal) {
        Shape::Literal(values.to_vec())
    } else {
        Shape::Unknown
    }
}

fn union(shapes: Vec<Shape>) -> Shape {
    let mut parts: Vec<Shape> = Vec::new();
    for shape in shapes {
        if !parts.contains(&shape) {
            parts.push(shape);
        }
    }
    match parts.len() {
        1 => parts.remove(0),
        _ if parts.is_empty() || parts.contains(&Shape::Unknown) => Shape::Unknown,
        _ => Shape::Union(parts),
    }
}
