//! A schema of Draft 07 while it is put together. Its texts, and the data in it, are those of the document wherever that
//! has them: they are written out once, and copied nowhere before.

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};
use serde_json::Number;

use crate::document::Node;
use crate::ordered::Ordered;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Draft<'d> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'d, str>),
    List(Vec<Draft<'d>>),
    Object(Fields<'d>),
    /// A list or an object of the document that is no schema, such as a default.
    Data(&'d Node),
}

/// The members of a schema, or of another object in it.
pub(super) type Fields<'d> = Ordered<Cow<'d, str>, Draft<'d>>;

impl<'d> Ordered<Cow<'d, str>, Draft<'d>> {
    /// Puts a member in, instead of what has its name.
    pub(super) fn put(&mut self, key: impl Into<Cow<'d, str>>, value: impl Into<Draft<'d>>) {
        self.insert(key.into(), value.into());
    }

    /// The text of a member, if it is one.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Draft::as_str)
    }
}

/// An object of these members.
pub(super) fn object<'d, const N: usize>(members: [(&'static str, Draft<'d>); N]) -> Draft<'d> {
    Draft::Object(fields(members))
}

pub(super) fn fields<'d, const N: usize>(members: [(&'static str, Draft<'d>); N]) -> Fields<'d> {
    members.into_iter().map(|(key, value)| (Cow::Borrowed(key), value)).collect()
}

/// A schema of one type, and nothing else.
pub(super) fn typed<'d>(kind: &'static str) -> Draft<'d> {
    object([("type", kind.into())])
}

impl<'d> Draft<'d> {
    /// The schema that allows anything.
    pub(super) fn anything() -> Self {
        Self::Object(Fields::new())
    }

    /// Data of the document, as it stands there.
    pub(super) fn of(node: &'d Node) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(value) => Self::Bool(*value),
            Node::Number(number) => Self::Number(number.clone()),
            Node::String(text) => Self::Text(Cow::Borrowed(text)),
            Node::Array(_) | Node::Object(_) => Self::Data(node),
        }
    }

    pub(super) fn texts(texts: impl IntoIterator<Item = &'d str>) -> Self {
        Self::List(texts.into_iter().map(Self::from).collect())
    }

    pub(super) fn as_object(&self) -> Option<&Fields<'d>> {
        if let Self::Object(fields) = self { Some(fields) } else { None }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Whether this is the schema that allows anything.
    pub(super) fn is_anything(&self) -> bool {
        self.as_object().is_some_and(Fields::is_empty)
    }

    /// As text.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for Draft<'_> {
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

impl<'d> From<&'d str> for Draft<'d> {
    fn from(text: &'d str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Draft<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'d> From<Cow<'d, str>> for Draft<'d> {
    fn from(text: Cow<'d, str>) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Draft<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Draft<'_> {
    fn from(value: u64) -> Self {
        Self::Number(value.into())
    }
}

impl From<Number> for Draft<'_> {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl<'d> From<Vec<Draft<'d>>> for Draft<'d> {
    fn from(values: Vec<Draft<'d>>) -> Self {
        Self::List(values)
    }
}

impl<'d> From<Fields<'d>> for Draft<'d> {
    fn from(fields: Fields<'d>) -> Self {
        Self::Object(fields)
    }
}

/// Whether a value takes at most so many bytes as text; looks no further than that.
pub(super) fn weighs_at_most(value: &impl Serialize, most: usize) -> bool {
    serde_json::to_writer(Scales { left: most }, value).is_ok()
}

/// How many bytes a value takes as text.
pub(super) fn weight(value: &impl Serialize) -> usize {
    let mut scales = Scales { left: usize::MAX };
    // What cannot be written weighs as much as was written before: nothing here fails to be.
    let _ = serde_json::to_writer(&mut scales, value);
    usize::MAX - scales.left
}

/// Takes in texts to count them.
struct Scales {
    left: usize,
}

impl std::io::Write for Scales {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
