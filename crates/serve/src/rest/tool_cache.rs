//! The JSON of every tool, built once per catalog. Lists and their ETags are assembled from these
//! parts.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Catalog, Principal, Raw, ToolEntry, Yard};

use super::openapi::EmbeddedSchema;

#[derive(Debug, Default)]
pub(super) struct RestToolCache {
    current: Mutex<Option<CachedTools>>,
}

#[derive(Debug)]
struct CachedTools {
    catalog: Arc<Catalog>,
    shown: Arc<[RestTool]>,
}

/// A tool as REST returns it.
#[derive(Debug)]
pub(super) struct RestTool {
    pub(super) tool: Arc<ToolEntry>,
    pub(super) json: Raw,
    pub(super) digest: [u8; 32],
    pub(super) category: Option<String>,
    pub(super) tags: Vec<String>,
    /// The text that `q` searches, in lowercase.
    pub(super) search_text: String,
    embedded: OnceLock<(EmbeddedSchema, Option<Value>)>,
}

impl RestToolCache {
    /// Returns the current tools of the yard in order.
    pub(super) fn tools(&self, yard: &Yard) -> Arc<[RestTool]> {
        let catalog = yard.catalog();
        let mut current = self.current.lock();
        if let Some(known) = &*current
            && Arc::ptr_eq(&known.catalog, &catalog)
        {
            return Arc::clone(&known.shown);
        }
        let shown: Arc<[RestTool]> = catalog.tools().iter().map(RestTool::new).collect();
        *current = Some(CachedTools { catalog, shown: Arc::clone(&shown) });
        shown
    }
}

impl RestTool {
    fn new(tool: &Arc<ToolEntry>) -> Self {
        let advertised = Object::parse(&tool.shown).unwrap_or_default();
        let metadata = &tool.metadata;
        let mut members = Object::default();
        members.set("name", to_raw(tool.full_name.as_str()));
        put(&mut members, &advertised, "title");
        members.set("description", to_raw(tool.description.as_deref().unwrap_or_default()));
        members.set("inputSchema", tool.input_schema.clone());
        for key in ["outputSchema", "annotations"] {
            put(&mut members, &advertised, key);
        }
        members.set("server", to_raw(tool.source.as_str()));
        if !metadata.is_empty() {
            members.set("metadata", to_raw(metadata));
        }
        let json = members.to_raw();
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let tags: Vec<String> = match metadata.get("tags") {
            Some(Value::Array(tags)) => {
                tags.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let search_text = [tool.full_name.as_str(), &tool.raw_name, &tool.title, tool.source.as_str()]
            .into_iter()
            .chain(tool.description.as_deref())
            .chain(tags.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("\n")
            .to_lowercase();
        let digest = Sha256::digest(json.get().as_bytes()).into();
        Self {
            tool: Arc::clone(tool),
            category: text("category"),
            tags,
            search_text,
            digest,
            json,
            embedded: OnceLock::new(),
        }
    }

    /// Returns the schemas as parts of the OpenAPI document, built on first use.
    pub(super) fn embedded_schemas(
        &self,
        make: impl FnOnce(&ToolEntry) -> (EmbeddedSchema, Option<Value>),
    ) -> &(EmbeddedSchema, Option<Value>) {
        self.embedded.get_or_init(|| make(&self.tool))
    }

    /// Returns all details that this principal may see.
    pub(super) fn details(&self, principal: &Principal) -> Raw {
        let mut members = Object::parse(&self.json).unwrap_or_default();
        let advertised = Object::parse(&self.tool.shown).unwrap_or_default();
        for (key, value) in advertised.members() {
            if !members.contains(key) {
                members.set(key, value.to_owned());
            }
        }
        members.set("rawName", to_raw(&self.tool.raw_name));
        members.set("displayName", to_raw(&self.tool.title));
        members.set("permissions", to_raw(&self.tool.permissions));
        let older = self.tool.older.iter().filter(|older| older.is_listed_for(principal));
        let versions: Vec<Value> = std::iter::once(&self.tool).chain(older).map(version).collect();
        if versions.len() > 1 {
            members.set("versions", to_raw(&versions));
        }
        if let Some(problem) = self.tool.schema_problem() {
            members.set("schemaProblem", to_raw(problem));
        }
        if let Some(problem) = self.tool.output_schema_problem() {
            members.set("outputSchemaProblem", to_raw(problem));
        }
        members.to_raw()
    }
}

/// Describes one version of a tool.
fn version(tool: &Arc<ToolEntry>) -> Value {
    match &tool.deprecated_by {
        Some(newer) => json!({"version": tool.version(), "deprecatedBy": newer}),
        None => json!({"version": tool.version()}),
    }
}

fn put(members: &mut Object, advertised: &Object, key: &str) {
    if let Some(value) = advertised.get(key) {
        members.set(key, value.to_owned());
    }
}
