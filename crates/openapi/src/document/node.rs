//! A value of a document: the JSON types, with members in document order.

use std::fmt;

use serde::ser::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::ordered_map::OrderedMap;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SpecNode {
    Null,
    Bool(bool),
    Number(Number),
    String(Box<str>),
    Array(Vec<SpecNode>),
    Object(SpecObject),
}

/// Returns the members of an object.
pub(crate) type SpecObject = OrderedMap<Box<str>, SpecNode>;

impl SpecNode {
    pub(crate) fn as_object(&self) -> Option<&SpecObject> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    pub(crate) fn as_array(&self) -> Option<&[SpecNode]> {
        if let Self::Array(values) = self { Some(values) } else { None }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    pub(crate) fn as_u64(&self) -> Option<u64> {
        if let Self::Number(number) = self { number.as_u64() } else { None }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether the value is an object without members.
    pub(crate) fn is_blank(&self) -> bool {
        self.as_object().is_some_and(SpecObject::is_empty)
    }

    /// Returns a member if the value is an object that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&SpecNode> {
        self.as_object()?.get(key)
    }

    /// Returns the value that a JSON pointer refers to.
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&SpecNode> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |node, step| match node {
            Self::Object(members) if step.contains('~') => {
                members.get(&step.replace("~1", "/").replace("~0", "~"))
            }
            Self::Object(members) => members.get(step),
            Self::Array(values) => values.get(index(step)?),
            _ => None,
        })
    }
}

/// Parses an array index of a JSON pointer: no sign and no leading zeros.
fn index(step: &str) -> Option<usize> {
    let padded = step.starts_with('+') || (step.starts_with('0') && step.len() > 1);
    if padded { None } else { step.parse().ok() }
}

impl Serialize for SpecNode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(values) => serializer.collect_seq(values),
            Self::Object(members) => members.serialize(serializer),
        }
    }
}

/// Formats the value as JSON.
impl fmt::Display for SpecNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl From<&SpecNode> for Value {
    fn from(node: &SpecNode) -> Self {
        match node {
            SpecNode::Null => Self::Null,
            SpecNode::Bool(value) => Self::Bool(*value),
            SpecNode::Number(number) => Self::Number(number.clone()),
            SpecNode::String(text) => Self::String(text.to_string()),
            SpecNode::Array(values) => Self::Array(values.iter().map(Self::from).collect()),
            SpecNode::Object(members) => Self::Object(
                members.iter().map(|(key, value)| (key.to_string(), Self::from(value))).collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parse::{ParseContext, read};
    use super::Value;

    #[test]
    fn pointers_lead_where_they_lead_in_json() {
        let text = r#"{"a": [{"b/c": 1}, [2]], "": {"~": 3}, "01": 4}"#;
        let mut reading = ParseContext { depth: 9, left: 99, diagnostics: Vec::new() };
        let node = read(text.as_bytes(), &mut reading).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(Value::from(&node), value);
        for pointer in [
            "",
            "/",
            "//~0",
            "/a",
            "/a/0/b~1c",
            "/a/1/0",
            "/a/01",
            "/a/+1",
            "/a/2",
            "/01",
            "a",
            "/a/0/b/c",
            "/a/1/0/0",
            "/a/-",
        ] {
            assert_eq!(node.pointer(pointer).map(Value::from).as_ref(), value.pointer(pointer), "{pointer}");
        }
        assert_eq!(json!(node.to_string()), json!(value.to_string()));
    }
}
