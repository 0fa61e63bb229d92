//! Content blocks of results and messages: text, images, audio, links and embedded resources.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use toolyard_hub::Raw;
use toolyard_hub::json::{self, Object};

use crate::contents::Contents;
use crate::definition::Annotations;

/// One content block of a result or a message.
///
/// ```
/// use toolyard_sdk::{Content, ToolError, tool};
///
/// /// Renders a chart.
/// #[tool]
/// async fn chart() -> Result<Vec<Content>, ToolError> {
///     let png = [0x89, 0x50, 0x4e, 0x47];
///     Ok(vec![Content::text("Sales per month:"), Content::image(&png, "image/png")])
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Content {
    members: Object,
}

impl Content {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of_type("text").with("text", &text.into())
    }

    /// Creates an image block from encoded bytes, such as PNG or JPEG.
    pub fn image(data: &[u8], mime_type: impl Into<String>) -> Self {
        Self::of_type("image").with("data", &encode_base64(data)).with("mimeType", &mime_type.into())
    }

    /// Creates an audio block from encoded bytes, such as WAV or MP3.
    pub fn audio(data: &[u8], mime_type: impl Into<String>) -> Self {
        Self::of_type("audio").with("data", &encode_base64(data)).with("mimeType", &mime_type.into())
    }

    /// Creates a link to a resource that the client can read. Use [`Content::with`] to add a title,
    /// a MIME type and other members.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::of_type("resource_link").with("uri", &uri.into()).with("name", &name.into())
    }

    /// Creates an embedded resource with its contents.
    pub fn resource(uri: impl Into<String>, contents: impl Into<Contents>) -> Self {
        Self::of_type("resource").with("resource", &contents.into().to_raw(&uri.into()))
    }

    /// Sets the audience and the priority of the block.
    #[must_use]
    pub fn annotations(self, annotations: &Annotations) -> Self {
        self.with("annotations", annotations)
    }

    /// Sets any member of the block by its protocol name.
    #[must_use]
    pub fn with<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        self.members.set(key, json::to_raw(value));
        self
    }

    /// Returns the text if this is a text block.
    pub fn as_text(&self) -> Option<String> {
        serde_json::from_str(self.members.get("text")?.get()).ok()
    }

    /// Returns the block as it is sent to the client.
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

/// Whether a result reports success or failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultStatus {
    Success,
    Failed,
}

/// Builds a tool result from content blocks.
pub(crate) fn tool_result(content: &[Content], status: ResultStatus) -> Raw {
    let mut result = Object::default();
    result.set("content", blocks(content));
    if status == ResultStatus::Failed {
        result.set("isError", json::to_raw(&true));
    }
    result.to_raw()
}

/// Serializes the blocks as one array.
pub(crate) fn blocks(content: &[Content]) -> Raw {
    json::to_raw(&content.iter().map(Content::to_raw).collect::<Vec<_>>())
}

/// Encodes bytes as base64, as the protocol requires.
pub(crate) fn encode_base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}
