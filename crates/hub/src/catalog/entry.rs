//! The entries of the catalog: tools, resources, templates and prompts, with their names.
//! `source_entries.rs` creates them from the definitions of a source.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::HubError;
use crate::hooks::Hooks;
use crate::json::{Object, Raw};
use crate::name::{FullName, SourceName};
use crate::principal::Principal;
use crate::schema::CompiledSchema;
use crate::source::ToolListing;
use crate::uri_template::UriTemplate;
use crate::visibility::CatalogEntry;

/// A tool of the yard.
pub struct ToolEntry {
    pub full_name: FullName,
    pub raw_name: String,
    pub source: SourceName,
    /// The definition as advertised by the source, byte for byte.
    pub definition: Raw,
    /// The definition under its full name.
    pub shown: Raw,
    pub input_schema: Raw,
    pub output_schema: Option<Raw>,
    /// Whether the output schema describes an object, which versions before the modern era require.
    pub output_is_object: bool,
    /// `title`, or else `annotations.title`, or else the raw name.
    pub title: String,
    pub description: Option<String>,
    pub permissions: Vec<String>,
    pub metadata: Map<String, Value>,
    pub listing: ToolListing,
    /// The version that replaces this one, if any.
    pub deprecated_by: Option<String>,
    /// Older versions with the same name, newest first. They are not listed, but can be requested
    /// by version.
    pub older: Vec<Arc<ToolEntry>>,
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    /// Shared with the tool of the same name and schema in later catalogs, so that it is compiled
    /// once.
    pub(super) compiled: Arc<CompiledSchema>,
    pub(super) compiled_output: Arc<CompiledSchema>,
}

pub struct ResourceEntry {
    pub uri: String,
    pub source: SourceName,
    pub definition: Raw,
    pub permissions: Vec<String>,
}

pub struct TemplateEntry {
    pub template: String,
    pub source: SourceName,
    pub definition: Raw,
    pub permissions: Vec<String>,
    pub(super) matcher: UriTemplate,
}

pub struct PromptEntry {
    pub full_name: FullName,
    pub raw_name: String,
    pub source: SourceName,
    pub definition: Raw,
    pub shown: Raw,
    pub permissions: Vec<String>,
}

impl ToolEntry {
    /// The version that the author declared.
    pub fn version(&self) -> Option<&str> {
        self.metadata.get("version")?.as_str()
    }

    /// Returns whether lists show the tool to this principal.
    pub fn is_listed_for(&self, principal: &Principal) -> bool {
        self.is_visible_to(principal)
    }

    /// Checks arguments against the input schema. A schema that cannot be compiled accepts
    /// everything.
    pub async fn check(&self, arguments: &RawValue) -> Result<(), HubError> {
        self.compiled.check(self.full_name.as_str(), &self.input_schema, arguments).await
    }

    /// Returns the violations of the output schema. A schema that cannot be compiled accepts
    /// everything.
    pub async fn result_violations(&self, body: &RawValue) -> Vec<String> {
        let Some(schema) = &self.output_schema else { return Vec::new() };
        let members = Object::parse(body).unwrap_or_default();
        match members.get("structuredContent") {
            Some(result) => self.compiled_output.result_violations(schema, result).await,
            None => {
                vec!["structuredContent is missing, but the tool declares an output schema".to_owned()]
            }
        }
    }

    /// Why the input schema cannot be used, or why some arguments were not checked against it.
    pub fn schema_problem(&self) -> Option<&str> {
        self.compiled.problem(&self.input_schema)
    }

    /// Why the output schema cannot be used, if there is one, or why some results were not checked.
    pub fn output_schema_problem(&self) -> Option<&str> {
        self.compiled_output.problem(self.output_schema.as_ref()?)
    }
}

/// An entry with a full name and a bare name.
pub trait NamedEntry {
    fn full_name(&self) -> &FullName;
    fn raw_name(&self) -> &str;
    fn source(&self) -> &SourceName;
    /// All of these are required to see and to use the entry.
    fn permissions(&self) -> &[String];
}

macro_rules! bare {
    ($($kind:ty),*) => {$(
        impl NamedEntry for $kind {
            fn full_name(&self) -> &FullName {
                &self.full_name
            }
            fn raw_name(&self) -> &str {
                &self.raw_name
            }
            fn source(&self) -> &SourceName {
                &self.source
            }
            fn permissions(&self) -> &[String] {
                &self.permissions
            }
        }
    )*};
}
bare!(ToolEntry, PromptEntry);

/// Compares an entry with its predecessor: unchanged if it looks the same in every list, for every
/// principal and front.
pub(super) trait EntryDiff {
    fn is_unchanged(&self, before: &Self) -> bool;
}

/// Two tools are equal if they look the same in every list.
impl PartialEq for ToolEntry {
    fn eq(&self, other: &Self) -> bool {
        self.is_unchanged(other)
    }
}

macro_rules! unchanged {
    ($($kind:ty => $($field:ident),*;)*) => {$(
        impl EntryDiff for $kind {
            fn is_unchanged(&self, before: &Self) -> bool {
                self.definition.get() == before.definition.get() $(&& self.$field == before.$field)*
            }
        }
    )*};
}
unchanged! {
    ToolEntry => full_name, source, permissions, metadata, deprecated_by, older;
    PromptEntry => full_name, source, permissions;
    ResourceEntry => source, permissions;
    TemplateEntry => source, permissions;
}

macro_rules! debug_by {
    ($($kind:ty => $field:ident),*) => {$(
        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($kind), "({:?} of {})"), self.$field, self.source)
            }
        }
    )*};
}
debug_by!(ToolEntry => full_name, ResourceEntry => uri, TemplateEntry => template, PromptEntry => full_name);
