//! Everything that one server offers, as far as it is known.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;
use toolyard_hub::{Raw, SourceOffer};

use crate::canonical::mask_text;

/// The kinds of items that a server lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl ItemKind {
    pub const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::Template];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
        }
    }

    /// The member that identifies an item of this kind.
    pub(crate) fn id_key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }

    /// The member of a list result, and of a lock file, that holds the items.
    pub(crate) fn list_key(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
        }
    }
}

/// Everything that one server offers. A list that is `None` is unknown, which is not the same as
/// empty: a saved `tools/list` says nothing about prompts.
#[derive(Debug, Clone, Default)]
pub struct ServerOffer {
    pub name: String,
    pub profile: Option<OfferProfile>,
    pub tools: Option<Vec<Raw>>,
    pub prompts: Option<Vec<Raw>>,
    pub resources: Option<Vec<Raw>>,
    pub templates: Option<Vec<Raw>>,
}

/// What a server declares about itself.
#[derive(Debug, Clone, Default)]
pub struct OfferProfile {
    pub info: Option<Raw>,
    pub capabilities: Option<Raw>,
    pub instructions: Option<String>,
}

impl ServerOffer {
    /// The complete offer of a source.
    pub fn from_source(name: &str, offer: &SourceOffer, profile: OfferProfile) -> Self {
        Self {
            name: name.to_owned(),
            profile: Some(profile),
            tools: Some(offer.tools.iter().map(|tool| tool.definition.clone()).collect()),
            prompts: Some(offer.prompts.iter().map(|prompt| prompt.definition.clone()).collect()),
            resources: Some(offer.resources.iter().map(|resource| resource.definition.clone()).collect()),
            templates: Some(offer.templates.iter().map(|template| template.definition.clone()).collect()),
        }
    }

    pub fn items(&self, kind: ItemKind) -> Option<&[Raw]> {
        match kind {
            ItemKind::Tool => self.tools.as_deref(),
            ItemKind::Prompt => self.prompts.as_deref(),
            ItemKind::Resource => self.resources.as_deref(),
            ItemKind::Template => self.templates.as_deref(),
        }
    }

    pub(crate) fn items_mut(&mut self, kind: ItemKind) -> &mut Option<Vec<Raw>> {
        match kind {
            ItemKind::Tool => &mut self.tools,
            ItemKind::Prompt => &mut self.prompts,
            ItemKind::Resource => &mut self.resources,
            ItemKind::Template => &mut self.templates,
        }
    }

    /// Replaces every occurrence of these texts, such as the values of tokens that the server was
    /// started with, by their labels.
    #[must_use]
    pub fn masked(mut self, secrets: &[(String, String)]) -> Self {
        if secrets.is_empty() {
            return self;
        }
        let mask = |raw: &mut Raw| {
            if let Some(masked) = mask_text(raw, secrets) {
                *raw = masked;
            }
        };
        for kind in ItemKind::ALL {
            self.items_mut(kind).iter_mut().flatten().for_each(mask);
        }
        if let Some(profile) = &mut self.profile {
            profile.info.iter_mut().for_each(mask);
            profile.capabilities.iter_mut().for_each(mask);
            if let Some(text) = &mut profile.instructions {
                for (secret, label) in secrets {
                    *text = text.replace(secret.as_str(), label);
                }
            }
        }
        self
    }
}

/// An item of a list with its identity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) definition: &'a RawValue,
    /// The position among the items with the same identity.
    pub(crate) repetition: usize,
}

/// The items of a list by identity, in the order of the list. Items without an identity have an
/// empty one.
pub(crate) fn identify(kind: ItemKind, items: &[Raw]) -> Vec<(String, Item<'_>)> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut identified = Vec::with_capacity(items.len());
    for definition in items {
        let id = text_member(definition, kind.id_key()).unwrap_or_default();
        let count = seen.entry(id.clone()).or_default();
        identified.push((id, Item { definition, repetition: *count }));
        *count += 1;
    }
    identified
}

/// Returns a member of an object if it is a string.
pub(crate) fn text_member(raw: &RawValue, key: &str) -> Option<String> {
    let object = Object::parse(raw).ok()?;
    serde_json::from_str(object.get(key)?.get()).ok()
}

/// Reads a definition as a JSON value. Numbers that do not fit into 64 bits and nesting deeper than
/// 127 levels cannot be read.
pub(crate) fn read_value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}
