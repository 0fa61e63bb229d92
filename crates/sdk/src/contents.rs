//! Contents of resources: text or bytes, each with its URI.

use toolyard_hub::json::{self, Object};
use toolyard_hub::{HubError, Outcome, Raw};

use crate::content;
use crate::definition::DefinitionBuilder;
use crate::error::ToolError;
use crate::resource_metadata::ResourceMetadata;

/// The contents of a resource: text or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    uri: Option<String>,
    mime_type: Option<String>,
    body: ContentsBody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ContentsBody {
    Text(String),
    Bytes(Vec<u8>),
}

impl Contents {
    /// Creates text contents.
    pub fn text(text: impl Into<String>) -> Self {
        Self { uri: None, mime_type: None, body: ContentsBody::Text(text.into()) }
    }

    /// Creates binary contents.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { uri: None, mime_type: None, body: ContentsBody::Bytes(bytes.into()) }
    }

    /// Sets the MIME type. Default: the MIME type of the resource.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the URI. Default: the requested URI. Set it if reading one resource returns several,
    /// for example the files of a directory.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Returns the contents as they are sent to the client.
    pub(crate) fn to_raw(&self, asked: &str) -> Raw {
        let mut members = DefinitionBuilder::default();
        members.put("uri", self.uri.as_deref().unwrap_or(asked));
        members.put_some("mimeType", self.mime_type.as_ref());
        match &self.body {
            ContentsBody::Text(text) => members.put("text", text),
            ContentsBody::Bytes(bytes) => members.put("blob", &content::encode_base64(bytes)),
        }
        members.into_raw()
    }
}

impl From<String> for Contents {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Contents {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Vec<u8>> for Contents {
    fn from(bytes: Vec<u8>) -> Self {
        Self::bytes(bytes)
    }
}

/// Types that a resource handler can return.
pub trait IntoContents {
    /// Converts the value into a list of contents.
    fn into_contents(self) -> Vec<Contents>;
}

impl<C: Into<Contents>> IntoContents for C {
    fn into_contents(self) -> Vec<Contents> {
        vec![self.into()]
    }
}

impl IntoContents for Vec<Contents> {
    fn into_contents(self) -> Vec<Contents> {
        self
    }
}

/// Builds the result of `resources/read`. Contents without a MIME type get the one of the
/// definition.
pub(crate) fn read_result(
    contents: Result<Vec<Contents>, ToolError>,
    uri: &str,
    about: &ResourceMetadata,
) -> Result<Outcome, HubError> {
    let contents = contents.map_err(|error| error.into_resource_error(uri))?;
    let typed = |mut contents: Contents| {
        contents.mime_type = contents.mime_type.or_else(|| about.mime_type.clone());
        contents.to_raw(uri)
    };
    let mut result = Object::default();
    result.set("contents", json::to_raw(&contents.into_iter().map(typed).collect::<Vec<_>>()));
    Ok(Outcome::success(result.to_raw()))
}
