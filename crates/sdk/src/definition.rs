//! Parts shared by the definitions of tools, resources and prompts: members in a fixed order, icons
//! and annotations.

use serde::Serialize;
use toolyard_hub::Raw;
use toolyard_hub::json::{self, Object};

/// An icon of a tool, a resource or a prompt.
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
    /// Creates an icon from a URL, which may be a `data:` URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: Vec::new() }
    }

    /// Sets the MIME type of the image.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size the icon is designed for, such as `48x48` or `any`.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }
}

/// The audience and the priority of a resource or a content block.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The intended audience. Empty means everyone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// The importance, from 0 (optional) to 1 (required).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// The time of the last change, in ISO 8601 format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A participant of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Writes a definition member by member. Absent values are omitted.
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

    /// Applies members set by the author. An existing member is replaced in place, a new one is
    /// appended.
    pub(crate) fn put_overrides(&mut self, by_hand: &Object) {
        for (key, value) in by_hand.members() {
            self.members.set(key, value.to_owned());
        }
    }

    pub(crate) fn into_raw(self) -> Raw {
        self.members.to_raw()
    }
}
