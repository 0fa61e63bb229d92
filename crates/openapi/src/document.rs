//! Reads a document and whatever other files it refers to. What comes out is plain JSON values, however the files were
//! written: what they mean is none of this room's business.

mod file_set;
mod json;
mod node;
mod parse;
mod references;
mod scalar;
mod yaml;
mod yaml_repair;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::operation::Diagnostic;
pub(crate) use node::{SpecNode, SpecObject};
pub(crate) use parse::describe_kind;
pub(crate) use references::{ReferenceIndex, ReferenceTarget, push_segment};
pub(crate) use scalar::parse_number;

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentLocation {
    File(PathBuf),
    Url(String),
    /// The document itself, such as from standard input; `folder` is where other files that it names may be.
    Text {
        text: String,
        folder: Option<PathBuf>,
    },
}

/// Brings what is at an address; the caller has a network, this room has none. It is called from a thread that may wait.
pub type FetchFn = dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync;

/// What may be read, and how much of it.
#[derive(Clone, Default)]
pub struct LoadSettings {
    pub limits: DocumentLimits,
    /// Without this no document is read from an address, whatever the location says.
    pub fetch: Option<Arc<FetchFn>>,
    /// Whether `$ref`s may lead to addresses as well; needs `fetch`.
    pub follow_network_references: bool,
}

/// How much is read before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Of all files together.
    pub bytes: usize,
    /// Values of all files together, with each alias counted as often as it is used.
    pub values: usize,
    /// Deeper parts of a document are left out and reported.
    pub depth: usize,
    /// The document and the files that it refers to.
    pub files: usize,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self { bytes: 128 << 20, values: 6_000_000, depth: 192, files: 1_000 }
    }
}

/// Why there is no document.
#[derive(Debug, Error)]
pub enum LoadError {
    #[error("cannot read {name}: {reason}")]
    Unreadable { name: String, reason: String },
    #[error("{name} is larger than the {limit} bytes that are allowed")]
    TooLarge { name: String, limit: usize },
    #[error(
        "{name} has more than the {limit} values that are allowed, aliases counted as often as they are used"
    )]
    TooManyValues { name: String, limit: usize },
    #[error("{name} is neither JSON nor YAML: {reason}")]
    NotReadAsJsonOrYaml { name: String, reason: String },
    #[error("{name} is not an OpenAPI document: {found}")]
    NotOpenApi { name: String, found: String },
}

/// A document with the files that it refers to.
#[derive(Debug)]
pub struct SpecDocument {
    /// The document itself is the first.
    pub(crate) parts: Vec<SpecFile>,
    pub(crate) index: ReferenceIndex,
    pub(crate) diagnostics: Vec<Diagnostic>,
    origin: Option<String>,
    files: Vec<PathBuf>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct SpecFile {
    /// As people may read it in a diagnostic; empty for the document itself.
    pub(crate) name: String,
    pub(crate) value: SpecNode,
}

impl SpecDocument {
    /// The address that it came from, if it came from one.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// The files that it was read from, those included that it names and that could not be read: a change of any of them
    /// changes the document.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The document as JSON.
    pub fn value(&self) -> Value {
        Value::from(self.root())
    }

    pub(crate) fn root(&self) -> &SpecNode {
        static NOTHING: SpecNode = SpecNode::Null;
        self.parts.first().map_or(&NOTHING, |part| &part.value)
    }

    /// The version that it says it follows, such as `3.1.0`.
    pub fn dialect(&self) -> String {
        parse::stated_version(self.root()).unwrap_or_default()
    }
}

impl std::fmt::Debug for LoadSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadSettings")
            .field("limits", &self.limits)
            .field("fetch", &self.fetch.is_some())
            .field("follow_network_references", &self.follow_network_references)
            .finish()
    }
}

/// Reads a document and the files that it refers to. What is wrong with single parts of it is reported by the
/// conversion; an error means that there is nothing to convert. This may take seconds: not for a thread that others wait
/// for.
pub fn load(location: &DocumentLocation, settings: &LoadSettings) -> Result<SpecDocument, LoadError> {
    let gathered = file_set::collect_files(location, settings)?;
    let index = ReferenceIndex::new(gathered.addresses);
    let origin = match location {
        DocumentLocation::Url(url) => Some(url.clone()),
        DocumentLocation::File(_) | DocumentLocation::Text { .. } => None,
    };
    let (diagnostics, files) = (gathered.diagnostics, gathered.files);
    Ok(SpecDocument { parts: gathered.parts, index, diagnostics, origin, files })
}

#[cfg(test)]
mod tests;
