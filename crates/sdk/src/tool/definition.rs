//! The definition of a tool: the JSON that clients list, and the metadata for the yard.

use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;
use toolyard_hub::meta::{METADATA, metadata};
use toolyard_hub::{Raw, ToolListing, ToolOffer};

use super::Tool;
use crate::definition::DefinitionBuilder;

impl Tool {
    /// Returns the definition as clients see it.
    pub fn to_definition(&self) -> Raw {
        if let Some(by_hand) = &self.custom_definition {
            return by_hand.clone();
        }
        let mut definition = DefinitionBuilder::default();
        definition.put("name", &self.name);
        definition.put_some("title", self.title.as_ref());
        definition.put_some("description", self.description.as_ref());
        definition.put("inputSchema", &self.input_schema);
        definition.put_some("outputSchema", self.output_schema.schema());
        if !self.annotations.is_empty() {
            definition.put("annotations", &self.annotations.to_raw());
        }
        definition.put_all("icons", &self.icons);
        if !self.metadata.is_empty() {
            definition.put("_meta", &json!({METADATA: self.metadata}));
        }
        definition.put_overrides(&self.overrides);
        definition.into_raw()
    }

    pub(crate) fn to_offer(&self) -> ToolOffer {
        let definition = self.to_definition();
        // A custom definition may contain its own metadata.
        let metadata = if self.metadata.is_empty() { metadata(&definition) } else { self.metadata.clone() };
        ToolOffer {
            definition,
            permissions: self.permissions.clone(),
            metadata,
            hooks: self.hooks.clone(),
            listing: ToolListing::Listed,
        }
    }
}

/// Returns the name in a definition.
pub(super) fn definition_name(definition: &RawValue) -> Option<String> {
    let members = Object::parse(definition).ok()?;
    serde_json::from_str(members.get("name")?.get()).ok()
}
