//! Converts a document into operations, each with its tool. Every valid operation becomes a tool.
//! Skipped operations and changes made on the way are reported as diagnostics.

mod allowed_types;
mod applicators;
mod body;
mod bundle;
mod describe;
mod files;
mod filter;
mod flatten;
mod hidden_properties;
mod interner;
mod keyword_view;
mod keywords;
mod location;
mod names;
mod parameters;
mod paths;
mod pattern;
mod prune;
mod response;
mod schema;
mod schema_node;
mod servers;
mod tool;
mod transliterate;

use std::collections::{BTreeMap, HashSet};

use crate::document::{SpecDocument, SpecNode, SpecObject};
use crate::operation::{Diagnostic, Operation, SecurityScheme};
use filter::{Candidate, FilterDecision};
use location::SpecPath;
use names::ToolNameInput;
use schema::SchemaConverter;
use tool::SpecOperation;

/// The dialect of every generated schema.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// Settings of the conversion.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvertSettings {
    pub filters: Filters,
    /// Tool names, by operationId, by `METHOD /path` or by the default tool name.
    pub renames: BTreeMap<String, String>,
    /// Tool descriptions, by the same keys.
    pub descriptions: BTreeMap<String, String>,
    pub budgets: Budgets,
    pub output_schemas: OutputSchemaMode,
}

/// Selects the operations that become tools. Each list contains patterns in which `*` matches
/// anything. An empty `include` list selects everything, and `exclude` lists take precedence.
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

/// Size limits of a tool, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    pub input_bytes: usize,
    pub output_bytes: usize,
    pub description_characters: usize,
    /// A tool list above this size, in bytes, is reported.
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

/// Which output schemas the tools get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputSchemaMode {
    #[default]
    Exact,
    /// The output schema only requires an object, so that any response matches.
    Lenient,
    Omit,
}

/// The result of a conversion.
#[derive(Debug)]
pub struct Conversion {
    pub title: String,
    pub version: String,
    pub operations: Vec<Operation>,
    pub schemes: Vec<SecurityScheme>,
    pub diagnostics: Vec<Diagnostic>,
    /// Size of the whole tool list in bytes.
    pub weight: usize,
}

/// Converts every operation of a document into a tool and the mapping from its arguments to the
/// request. This takes a while for large documents: call it on a blocking thread.
pub fn convert(document: &SpecDocument, settings: &ConvertSettings) -> Conversion {
    let mut schemas = SchemaConverter::new(document);
    let empty = SpecObject::new();
    let root = document.root().as_object().unwrap_or(&empty);
    let schemes = schemas.security_schemes();
    let sources = schemas.collect_operations();
    let named: Vec<ToolNameInput<'_>> = sources
        .iter()
        .map(|source| ToolNameInput { id: source.id, method: source.method.as_str(), path: source.path })
        .collect();
    let given = names::unique_names(&named);
    let shared: Vec<Option<usize>> = given.iter().map(|name| name.shared_by).collect();
    let names = apply_renames(&sources, given.into_iter().map(|name| name.text).collect(), settings);
    let mut operations = Vec::with_capacity(sources.len());
    for ((source, name), shared_by) in sources.iter().zip(names).zip(shared) {
        schemas.report.operation = Some(source.label());
        let candidate = Candidate {
            method: source.method.as_str(),
            path: source.path,
            id: source.id,
            tags: &source.tags,
            operation: source.members,
            item: source.item,
        };
        match filter::decide(&settings.filters, &candidate) {
            FilterDecision::Include => {
                if let Some(count) = shared_by {
                    let id = source.id.unwrap_or("no operationId");
                    let message =
                        format!("{count} operations share the name `{id}`; this one becomes `{name}`");
                    schemas.report.warn(&SpecPath::from_target(&source.target), "shared-name", message);
                }
                operations.push(schemas.convert_operation(source, name, &schemes, settings));
            }
            FilterDecision::Exclude => {}
            FilterDecision::Hidden(extension) => {
                let message = format!("`{extension}` hides this operation; skipped");
                schemas.report.note(&SpecPath::from_target(&source.target), "hidden", message);
            }
        }
    }
    schemas.report.operation = None;
    let weight = operations.iter().map(|operation| operation.definition.get().len() + 1).sum::<usize>() + 1;
    if weight > settings.budgets.heavy_bytes {
        let message = format!(
            "the list of {} tools takes {} KiB; use filters or tool search to keep a model's context small",
            operations.len(),
            weight >> 10
        );
        schemas.report.warn(&SpecPath::new(0, ""), "heavy", message);
    }
    if operations.is_empty() {
        schemas.report.warn(&SpecPath::new(0, "/paths"), "no-tools", "no operation became a tool");
    }
    let info = |key: &str| match root.get("info").and_then(|info| info.get(key)) {
        Some(SpecNode::String(text)) => text.to_string(),
        Some(SpecNode::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    Conversion {
        title: info("title"),
        version: info("version"),
        operations,
        schemes,
        diagnostics: schemas.report.into_diagnostics(),
        weight,
    }
}

/// Applies the names from the settings. A name that is taken or invalid is adjusted.
fn apply_renames(
    sources: &[SpecOperation<'_>],
    names: Vec<String>,
    settings: &ConvertSettings,
) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let mut settled = Vec::with_capacity(names.len());
    for (source, name) in sources.iter().zip(names) {
        let Some(renamed) = settings.override_for(source, &name, &settings.renames) else {
            settled.push(name);
            continue;
        };
        let fine = |character: char| {
            if character.is_ascii_alphanumeric() || "_-".contains(character) { character } else { '_' }
        };
        let renamed = names::shorten(&renamed.chars().map(fine).collect::<String>());
        let hashed = names::shorten(&format!("{renamed}_{}", names::short_hash(&source.label())));
        taken.remove(&name);
        let chosen =
            [renamed, hashed, name].into_iter().find(|name| !name.is_empty() && taken.insert(name.clone()));
        settled.push(chosen.unwrap_or_default());
    }
    settled
}
