//! A document becomes operations, each with its tool. Every sound operation of a document comes out; what does not, and
//! what was changed on the way, is reported.

use std::collections::BTreeMap;

use crate::document::Document;
use crate::operation::{Diagnostic, Operation, Scheme};

/// How a document becomes tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvertSettings {
    pub filters: Filters,
    /// Tools' names, by operationId, by `METHOD /path`, or by the name that the tool would have.
    pub renames: BTreeMap<String, String>,
    /// Tools' descriptions, by the same keys.
    pub descriptions: BTreeMap<String, String>,
    pub budgets: Budgets,
    pub output_schemas: OutputSchemas,
}

/// Which operations become tools. Every list is of patterns in which `*` stands for anything; an empty `include` is all,
/// and what any `exclude` names is out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    pub include_tags: Vec<String>,
    pub exclude_tags: Vec<String>,
    pub include_methods: Vec<String>,
    pub exclude_methods: Vec<String>,
    pub include_paths: Vec<String>,
    pub exclude_paths: Vec<String>,
    pub include_operations: Vec<String>,
    pub exclude_operations: Vec<String>,
}

/// Bytes that one tool may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    pub input_bytes: usize,
    pub output_bytes: usize,
    pub description_characters: usize,
    /// A list of tools beyond this many bytes is reported as heavy.
    pub heavy_bytes: usize,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            input_bytes: 64 << 10,
            output_bytes: 16 << 10,
            description_characters: 2_000,
            heavy_bytes: 256 << 10,
        }
    }
}

/// Whether tools say what they answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputSchemas {
    #[default]
    Shown,
    LeftOut,
}

/// What became of a document.
#[derive(Debug)]
pub struct Conversion {
    pub title: String,
    pub version: String,
    pub operations: Vec<Operation>,
    pub schemes: Vec<Scheme>,
    pub diagnostics: Vec<Diagnostic>,
    /// Bytes of the whole list of tools.
    pub weight: usize,
}

/// Turns every operation of a document into a tool and the table behind it.
pub fn convert(document: &Document, settings: &ConvertSettings) -> Conversion {
    let _ = settings;
    Conversion {
        title: String::new(),
        version: String::new(),
        operations: Vec::new(),
        schemes: Vec::new(),
        diagnostics: document.diagnostics.clone(),
        weight: 0,
    }
}
