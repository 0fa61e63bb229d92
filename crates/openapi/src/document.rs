//! Reads a document and the files that it refers to into plain JSON values, whatever format the
//! files have. This module does not interpret them.

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

/// The location of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentLocation {
    File(PathBuf),
    Url(String),
    /// The text of the document, for example from standard input. `folder` is the folder for the
    /// relative files that it refers to.
    Text {
        text: String,
        folder: Option<PathBuf>,
    },
}

/// Fetches a URL. The caller provides the network access, this module has none. Called on a thread
/// that may block.
pub type FetchFn = dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync;

/// Settings for reading a document.
#[derive(Clone, Default)]
pub struct LoadSettings {
    pub limits: DocumentLimits,
    /// Fetches documents from URLs. Without it, only files can be read.
    pub fetch: Option<Arc<FetchFn>>,
    /// Whether `$ref`s may point to URLs as well. Requires `fetch`.
    pub follow_network_references: bool,
}

/// Limits beyond which a document is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Size of all files together.
    pub bytes: usize,
    /// Number of values in all files together. Each use of an alias counts.
    pub values: usize,
    /// Maximum nesting depth. Deeper parts are dropped and reported.
    pub depth: usize,
    /// Number of files, including the document itself.
    pub files: usize,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self { bytes: 128 << 20, values: 6_000_000, depth: 192, files: 1_000 }
    }
}

/// Why a document cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    #[error("cannot read {name}: {reason}")]
    Unreadable { name: String, reason: String },
    #[error("{name} exceeds the limit of {limit} bytes")]
    TooLarge { name: String, limit: usize },
    #[error("{name} exceeds the limit of {limit} values (each use of an alias counts)")]
    TooManyValues { name: String, limit: usize },
    #[error("{name} is neither JSON nor YAML: {reason}")]
    NotReadAsJsonOrYaml { name: String, reason: String },
    #[error("{name} is not an OpenAPI document: {found}")]
    NotOpenApi { name: String, found: String },
}

/// A document and the files that it refers to.
#[derive(Debug)]
pub struct SpecDocument {
    /// The files. The first one is the document itself.
    pub(crate) parts: Vec<SpecFile>,
    pub(crate) index: ReferenceIndex,
    pub(crate) diagnostics: Vec<Diagnostic>,
    origin: Option<String>,
    files: Vec<PathBuf>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct SpecFile {
    /// The name for diagnostics. Empty for the document itself.
    pub(crate) name: String,
    pub(crate) value: SpecNode,
}

impl SpecDocument {
    /// The URL that the file was fetched from, if any.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Returns the files that the document was read from, including referenced files that could not
    /// be read: a change to any of them changes the document.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the document as JSON.
    pub fn value(&self) -> Value {
        Value::from(self.root())
    }

    pub(crate) fn root(&self) -> &SpecNode {
        static NOTHING: SpecNode = SpecNode::Null;
        self.parts.first().map_or(&NOTHING, |part| &part.value)
    }

    /// Returns the version that the document declares, such as `3.1.0`.
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

/// Reads a document and the files that it refers to. An error means that there is nothing to
/// convert; problems in single parts are reported by the conversion. This may take seconds: call it
/// on a blocking thread.
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
