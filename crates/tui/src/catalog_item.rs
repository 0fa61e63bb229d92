//! One item that the yard offers: a tool, a resource, a template or a prompt.

use std::sync::Arc;

use serde_json::Value;
use toolyard_hub::json::Object;
use toolyard_hub::{
    CatalogView, Lookup, PromptEntry, Raw, ResourceEntry, SourceName, TemplateEntry, ToolEntry,
};

#[derive(Debug, Clone)]
pub(crate) enum CatalogItem {
    Tool(Arc<ToolEntry>),
    Resource(Arc<ResourceEntry>),
    Template(Arc<TemplateEntry>),
    Prompt(Arc<PromptEntry>),
}

impl CatalogItem {
    pub(crate) fn source(&self) -> &SourceName {
        match self {
            Self::Tool(tool) => &tool.source,
            Self::Resource(resource) => &resource.source,
            Self::Template(template) => &template.source,
            Self::Prompt(prompt) => &prompt.source,
        }
    }

    /// The name by which clients call the item.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Tool(tool) => tool.full_name.as_str(),
            Self::Resource(resource) => &resource.uri,
            Self::Template(template) => &template.template,
            Self::Prompt(prompt) => prompt.full_name.as_str(),
        }
    }

    /// The name that the source gave the item.
    pub(crate) fn raw_name(&self) -> &str {
        match self {
            Self::Tool(tool) => &tool.raw_name,
            Self::Prompt(prompt) => &prompt.raw_name,
            Self::Resource(_) | Self::Template(_) => self.key(),
        }
    }

    pub(crate) fn raw_definition(&self) -> &Raw {
        match self {
            Self::Tool(tool) => &tool.definition,
            Self::Resource(resource) => &resource.definition,
            Self::Template(template) => &template.definition,
            Self::Prompt(prompt) => &prompt.definition,
        }
    }

    pub(crate) fn definition(&self) -> Value {
        serde_json::from_str(self.raw_definition().get()).unwrap_or_default()
    }

    /// The schema of the arguments as the source advertised it, even where the yard shows clients
    /// another one.
    pub(crate) fn input_schema(&self) -> Option<Raw> {
        let Self::Tool(tool) = self else { return None };
        let definition = Object::parse(&tool.definition).unwrap_or_default();
        Some(definition.get("inputSchema").map_or_else(|| tool.input_schema.clone(), ToOwned::to_owned))
    }

    /// Whether the server annotates the item as read-only. Reading a resource and getting a prompt
    /// always are.
    pub(crate) fn is_hinted_read_only(&self) -> bool {
        match self {
            Self::Tool(_) => {
                let definition = self.definition();
                let annotations = definition.get("annotations");
                annotations.and_then(|hints| hints.get("readOnlyHint")).and_then(Value::as_bool) == Some(true)
            }
            Self::Resource(_) | Self::Template(_) | Self::Prompt(_) => true,
        }
    }

    /// Returns the current version of the same item, if the source still offers it.
    pub(crate) fn current(&self, view: &CatalogView) -> Option<Self> {
        let catalog = view.catalog();
        match self {
            Self::Tool(tool) => match catalog.tool(tool.full_name.as_str()) {
                Lookup::Found(now) => Some(Self::Tool(now)),
                Lookup::Ambiguous(_) | Lookup::Unknown => None,
            },
            Self::Prompt(prompt) => match catalog.prompt(prompt.full_name.as_str()) {
                Lookup::Found(now) => Some(Self::Prompt(now)),
                Lookup::Ambiguous(_) | Lookup::Unknown => None,
            },
            Self::Resource(resource) => {
                catalog.resource_in_source(&resource.source, &resource.uri).cloned().map(Self::Resource)
            }
            Self::Template(template) => {
                let same = |now: &&Arc<TemplateEntry>| now.template == template.template;
                catalog
                    .template_in_source(&template.source, &template.template)
                    .filter(same)
                    .cloned()
                    .map(Self::Template)
            }
        }
    }
}
