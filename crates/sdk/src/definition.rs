//! What definitions of tools, resources and prompts share: members in a fixed order, icons and annotations.

use serde::Serialize;
use toolyard_hub::Raw;
use toolyard_hub::json::{self, Object};

/// A picture that stands for a thing in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    src: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<String>,
}

impl Icon {
    /// An icon at this address, which may be a `data:` URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: Vec::new() }
    }

    /// Says what kind of picture it is.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size at which it looks right, as `48x48` or `any`.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }
}

/// Who a resource or a block of content is for, and how much it matters.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Who it is for; empty means anybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// From 0 (can be left out) to 1 (must be seen).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it last changed, as an ISO 8601 time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A side of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A definition that is being written, member by member. What is absent is left out.
#[derive(Debug, Default)]
pub(crate) struct DefinitionBuilder {
    members: Object,
}

impl DefinitionBuilder {
    pub(crate) fn put<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.members.set(key, json::to_raw(value));
    }

    pub(crate) fn put_some<T: Serialize>(&mut self, key: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    pub(crate) fn put_all<T: Serialize>(&mut self, key: &str, values: &[T]) {
        if !values.is_empty() {
            self.put(key, values);
        }
    }

    /// Members that the author set by hand: they replace what was there, or come last.
    pub(crate) fn put_overrides(&mut self, by_hand: &Object) {
        for (key, value) in by_hand.members() {
            self.members.set(key, value.to_owned());
        }
    }

    pub(crate) fn into_raw(self) -> Raw {
        self.members.to_raw()
    }
}
