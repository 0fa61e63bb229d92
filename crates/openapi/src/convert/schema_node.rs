//! A Draft 07 schema under construction. It borrows texts and data from the document and copies
//! them only when it is serialized.

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};
use serde_json::Number;

use crate::document::SpecNode;
use crate::ordered_map::OrderedMap;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum SchemaNode<'d> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'d, str>),
    List(Vec<SchemaNode<'d>>),
    Object(SchemaFields<'d>),
    /// An array or object of the document that is not a schema, such as a default.
    Data(&'d SpecNode),
}

/// The members of a schema or of another object.
pub(super) type SchemaFields<'d> = OrderedMap<Cow<'d, str>, SchemaNode<'d>>;

impl<'d> OrderedMap<Cow<'d, str>, SchemaNode<'d>> {
    /// Inserts a member and replaces an existing one.
    pub(super) fn put(&mut self, key: impl Into<Cow<'d, str>>, value: impl Into<SchemaNode<'d>>) {
        self.insert(key.into(), value.into());
    }

    /// Returns a member if it is text.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(SchemaNode::as_str)
    }
}

/// Creates an object with these members.
pub(super) fn object<'d, const N: usize>(members: [(&'static str, SchemaNode<'d>); N]) -> SchemaNode<'d> {
    SchemaNode::Object(fields(members))
}

pub(super) fn fields<'d, const N: usize>(members: [(&'static str, SchemaNode<'d>); N]) -> SchemaFields<'d> {
    members.into_iter().map(|(key, value)| (Cow::Borrowed(key), value)).collect()
}

/// Creates a schema that contains only a type.
pub(super) fn type_schema<'d>(kind: &'static str) -> SchemaNode<'d> {
    object([("type", kind.into())])
}

impl<'d> SchemaNode<'d> {
    /// Creates the schema that accepts any value.
    pub(super) fn anything() -> Self {
        Self::Object(SchemaFields::new())
    }

    /// Wraps data of the document.
    pub(super) fn from_data(node: &'d SpecNode) -> Self {
        match node {
            SpecNode::Null => Self::Null,
            SpecNode::Bool(value) => Self::Bool(*value),
            SpecNode::Number(number) => Self::Number(number.clone()),
            SpecNode::String(text) => Self::Text(Cow::Borrowed(text)),
            SpecNode::Array(_) | SpecNode::Object(_) => Self::Data(node),
        }
    }

    pub(super) fn texts(texts: impl IntoIterator<Item = &'d str>) -> Self {
        Self::List(texts.into_iter().map(Self::from).collect())
    }

    pub(super) fn as_object(&self) -> Option<&SchemaFields<'d>> {
        if let Self::Object(fields) = self { Some(fields) } else { None }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Whether this schema accepts any value.
    pub(super) fn is_anything(&self) -> bool {
        self.as_object().is_some_and(SchemaFields::is_empty)
    }

    /// Serializes the node.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for SchemaNode<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Object(fields) => fields.serialize(serializer),
            Self::Data(node) => node.serialize(serializer),
        }
    }
}

impl<'d> From<&'d str> for SchemaNode<'d> {
    fn from(text: &'d str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for SchemaNode<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'d> From<Cow<'d, str>> for SchemaNode<'d> {
    fn from(text: Cow<'d, str>) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for SchemaNode<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for SchemaNode<'_> {
    fn from(value: u64) -> Self {
        Self::Number(value.into())
    }
}

impl From<Number> for SchemaNode<'_> {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl<'d> From<Vec<SchemaNode<'d>>> for SchemaNode<'d> {
    fn from(values: Vec<SchemaNode<'d>>) -> Self {
        Self::List(values)
    }
}

impl<'d> From<SchemaFields<'d>> for SchemaNode<'d> {
    fn from(fields: SchemaFields<'d>) -> Self {
        Self::Object(fields)
    }
}

/// Whether a value takes at most this many bytes as JSON. Stops counting at the limit.
pub(super) fn fits_json_size(value: &impl Serialize, most: usize) -> bool {
    serde_json::to_writer(ByteCounter { left: most }, value).is_ok()
}

/// Returns the size of a value as JSON, in bytes.
pub(super) fn json_size(value: &impl Serialize) -> usize {
    let mut scales = ByteCounter { left: usize::MAX };
    // Serialization cannot fail here. If it did, the bytes written so far would count.
    let _ = serde_json::to_writer(&mut scales, value);
    usize::MAX - scales.left
}

/// A writer that only counts bytes.
struct ByteCounter {
    left: usize,
}

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
