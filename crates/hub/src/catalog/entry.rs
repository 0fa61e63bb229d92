//! One thing of the catalog: a tool, a resource, a template or a prompt, with its names. How they are read out
//! of what a source said is next door.

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
    /// As the source advertised it, byte for byte.
    pub definition: Raw,
    /// The same under its full name.
    pub shown: Raw,
    pub input_schema: Raw,
    pub output_schema: Option<Raw>,
    /// Whether the output schema is of an object, as versions before the modern era demand.
    pub output_is_object: bool,
    /// `title`, else `annotations.title`, else the raw name.
    pub title: String,
    pub description: Option<String>,
    pub permissions: Vec<String>,
    pub metadata: Map<String, Value>,
    pub listing: ToolListing,
    /// The version that took the place of this one, if one did.
    pub deprecated_by: Option<String>,
    /// Older versions under the same name, newest first. No list shows them; they are reached by their version.
    pub older: Vec<Arc<ToolEntry>>,
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    /// Shared with the tool of the same name and schema in later catalogs, so that it is compiled once.
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
    /// The version that its author wrote down.
    pub fn version(&self) -> Option<&str> {
        self.metadata.get("version")?.as_str()
    }

    /// Whether lists show it to this principal.
    pub fn is_listed_for(&self, principal: &Principal) -> bool {
        self.is_visible_to(principal)
    }

    /// Checks arguments against the input schema; a schema that cannot be compiled lets everything pass.
    pub async fn check(&self, arguments: &RawValue) -> Result<(), HubError> {
        self.compiled.check(self.full_name.as_str(), &self.input_schema, arguments).await
    }

    /// In what a result does not fit the output schema; a schema that cannot be compiled lets everything pass.
    pub async fn result_violations(&self, body: &RawValue) -> Vec<String> {
        let Some(schema) = &self.output_schema else { return Vec::new() };
        let members = Object::parse(body).unwrap_or_default();
        match members.get("structuredContent") {
            Some(result) => self.compiled_output.result_violations(schema, result).await,
            None => {
                vec!["structuredContent is missing, though the tool declares an output schema".to_owned()]
            }
        }
    }

    /// Why the input schema cannot be used, if it cannot, or why some arguments were not checked against it.
    pub fn schema_problem(&self) -> Option<&str> {
        self.compiled.problem(&self.input_schema)
    }

    /// The same of the output schema, if there is one.
    pub fn output_schema_problem(&self) -> Option<&str> {
        self.compiled_output.problem(self.output_schema.as_ref()?)
    }
}

/// Anything with a full name and a bare one.
pub trait NamedEntry {
    fn full_name(&self) -> &FullName;
    fn raw_name(&self) -> &str;
    fn source(&self) -> &SourceName;
    /// All of these are needed to see and to use it.
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

/// Whether a list that shows the one can go on showing the other: to everybody, on every front.
pub(super) trait EntryDiff {
    fn is_unchanged(&self, before: &Self) -> bool;
}

/// Two that are the same to whoever reads lists.
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
