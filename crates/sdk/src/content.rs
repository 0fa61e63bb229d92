//! The blocks that results and messages are made of: text, images, audio, links and embedded resources.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use toolyard_hub::Raw;
use toolyard_hub::json::{self, Object};

use crate::contents::Contents;
use crate::definition::Annotations;

/// One block of content.
#[derive(Debug, Clone)]
pub struct Content {
    members: Object,
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of_type("text").with("text", &text.into())
    }

    /// A picture, in its encoded form (PNG, JPEG and the like).
    pub fn image(data: &[u8], mime_type: impl Into<String>) -> Self {
        Self::of_type("image").with("data", &encode_base64(data)).with("mimeType", &mime_type.into())
    }

    /// A sound, in its encoded form (WAV, MP3 and the like).
    pub fn audio(data: &[u8], mime_type: impl Into<String>) -> Self {
        Self::of_type("audio").with("data", &encode_base64(data)).with("mimeType", &mime_type.into())
    }

    /// A link to a resource that the caller can read; `with` adds a title, a MIME type and the like.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::of_type("resource_link").with("uri", &uri.into()).with("name", &name.into())
    }

    /// A resource with its contents.
    pub fn resource(uri: impl Into<String>, contents: impl Into<Contents>) -> Self {
        Self::of_type("resource").with("resource", &contents.into().to_raw(&uri.into()))
    }

    /// Says who the block is for and how much it matters.
    #[must_use]
    pub fn annotations(self, annotations: &Annotations) -> Self {
        self.with("annotations", annotations)
    }

    /// Sets any member of the block, as the protocol spells it.
    #[must_use]
    pub fn with<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        self.members.set(key, json::to_raw(value));
        self
    }

    /// The text, if this is a block of text.
    pub fn as_text(&self) -> Option<String> {
        serde_json::from_str(self.members.get("text")?.get()).ok()
    }

    /// The block as it goes to the caller.
    pub fn to_raw(&self) -> Raw {
        self.members.to_raw()
    }

    fn of_type(kind: &str) -> Self {
        Self { members: Object::default() }.with("type", kind)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// Whether a result says that the tool failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultStatus {
    Success,
    Failed,
}

/// A result object around these blocks.
pub(crate) fn tool_result(content: &[Content], verdict: ResultStatus) -> Raw {
    let mut result = Object::default();
    result.set("content", blocks(content));
    if verdict == ResultStatus::Failed {
        result.set("isError", json::to_raw(&true));
    }
    result.to_raw()
}

/// The blocks as one array.
pub(crate) fn blocks(content: &[Content]) -> Raw {
    json::to_raw(&content.iter().map(Content::to_raw).collect::<Vec<_>>())
}

/// Bytes as the protocol writes them.
pub(crate) fn encode_base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}
