//! Creates the catalog entries of one source from its definitions. An invalid definition is skipped
//! with a warning and does not affect the others.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::entry::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use super::versions::{ToolVersions, group_versions};
use crate::json::{self, Object, Raw};
use crate::name::{FullName, Namer, Prefix, SourceName};
use crate::request::ClientEra;
use crate::schema::CompiledSchema;
use crate::source::{PromptOffer, Source, SourceOffer, ToolOffer};
use crate::uri_template::UriTemplate;

/// All entries of one source, parsed and named.
pub(super) struct SourceEntries {
    pub(super) tools: Vec<Arc<ToolEntry>>,
    pub(super) prompts: Vec<Arc<PromptEntry>>,
    pub(super) resources: Vec<Arc<ResourceEntry>>,
    pub(super) templates: Vec<Arc<TemplateEntry>>,
    pub(super) warnings: Vec<String>,
    offer: Arc<SourceOffer>,
    prefix: Prefix,
}

/// The names that are already taken.
#[derive(Default)]
pub(super) struct EntryNamers {
    tools: Namer,
    prompts: Namer,
}

impl SourceEntries {
    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
            && self.prompts.is_empty()
            && self.resources.is_empty()
            && self.templates.is_empty()
    }

    /// Reads the current offer of the source. Definitions that are unchanged since `before` are not
    /// parsed again.
    pub(super) fn load(
        source: &Arc<dyn Source>,
        era: ClientEra,
        before: Option<&Self>,
        names: &mut EntryNamers,
    ) -> Self {
        let offered = || match era {
            ClientEra::Newest => source.offer(),
            ClientEra::Legacy => source.legacy_offer().unwrap_or_else(|| source.offer()),
        };
        let Ok((offer, prefix)) = catch_unwind(AssertUnwindSafe(|| (offered(), source.prefix()))) else {
            // A source that panics here offers nothing. The other sources are not affected.
            return Self {
                warnings: vec!["it panicked while listing its entries".to_owned()],
                ..Self::empty(Arc::default(), Prefix::Source)
            };
        };
        match before {
            Some(known) if Arc::ptr_eq(&known.offer, &offer) && known.prefix == prefix => {
                known.with_new_names(names)
            }
            _ => Self::read(source.name(), &offer, prefix, before, names),
        }
    }

    pub(super) fn supports_completion(&self) -> bool {
        self.offer.supports_completion
    }

    pub(super) fn has_permissions(&self) -> bool {
        self.tools.iter().any(|tool| !tool.permissions.is_empty())
            || self.prompts.iter().any(|prompt| !prompt.permissions.is_empty())
            || self.resources.iter().any(|resource| !resource.permissions.is_empty())
            || self.templates.iter().any(|template| !template.permissions.is_empty())
    }

    fn empty(offer: Arc<SourceOffer>, prefix: Prefix) -> Self {
        Self {
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            warnings: Vec::new(),
            offer,
            prefix,
        }
    }

    /// Returns the same entries. Their names may differ if another source has taken the old ones.
    fn with_new_names(&self, names: &mut EntryNamers) -> Self {
        let tool = |tool: &Arc<ToolEntry>| {
            let name = names.tools.assign(self.prefix, &tool.source, &tool.raw_name);
            if name == tool.full_name { Arc::clone(tool) } else { Arc::new(tool.with_full_name(name)) }
        };
        let tools = self.tools.iter().map(tool).collect();
        let prompt = |prompt: &Arc<PromptEntry>| {
            let name = names.prompts.assign(self.prefix, &prompt.source, &prompt.raw_name);
            if name == prompt.full_name { Arc::clone(prompt) } else { Arc::new(prompt.with_full_name(name)) }
        };
        Self {
            tools,
            prompts: self.prompts.iter().map(prompt).collect(),
            resources: self.resources.clone(),
            templates: self.templates.clone(),
            warnings: self.warnings.clone(),
            offer: Arc::clone(&self.offer),
            prefix: self.prefix,
        }
    }

    fn read(
        source: &SourceName,
        offer: &Arc<SourceOffer>,
        prefix: Prefix,
        before: Option<&Self>,
        names: &mut EntryNamers,
    ) -> Self {
        let mut part = Self::empty(Arc::clone(offer), prefix);
        let known = before.into_iter().flat_map(|part| &part.tools);
        let known: HashMap<&str, &Arc<ToolEntry>> =
            known.map(|tool| (tool.raw_name.as_str(), tool)).collect();
        let (families, problems) = group_versions(&offer.tools);
        for problem in &problems {
            part.warn_skipped("a tool", problem);
        }
        for family in &families {
            let full_name = names.tools.assign(prefix, source, &family.name);
            let known = known.get(family.name.as_str()).copied();
            let tool = part.build_versioned_tool(source, family, &full_name, known);
            part.tools.push(Arc::new(tool));
        }
        let mut seen = HashSet::new();
        for prompt in &offer.prompts {
            match parse_definition(&prompt.definition) {
                Ok((_, raw_name)) if !seen.insert(raw_name.clone()) => {
                    part.warn_skipped("a prompt", &duplicate_name_message(&raw_name));
                }
                Ok((members, raw_name)) => {
                    let full_name = names.prompts.assign(prefix, source, &raw_name);
                    part.prompts
                        .push(Arc::new(PromptEntry::new(source, prompt, members, raw_name, full_name)));
                }
                Err(problem) => part.warn_skipped("a prompt", &problem),
            }
        }
        for resource in &offer.resources {
            match member(&resource.definition, "uri") {
                Ok(uri) => part.resources.push(Arc::new(ResourceEntry {
                    uri,
                    source: source.clone(),
                    definition: resource.definition.clone(),
                    permissions: resource.permissions.clone(),
                })),
                Err(problem) => part.warn_skipped("a resource", &problem),
            }
        }
        for template in &offer.templates {
            match member(&template.definition, "uriTemplate") {
                Ok(uri_template) => {
                    let matcher = UriTemplate::parse(&uri_template);
                    let warning = |problem| {
                        format!("resource template {}: {problem}", json::truncate_for_message(&uri_template))
                    };
                    part.warnings.extend(matcher.problem().map(warning));
                    part.templates.push(Arc::new(TemplateEntry {
                        matcher,
                        template: uri_template,
                        source: source.clone(),
                        definition: template.definition.clone(),
                        permissions: template.permissions.clone(),
                    }));
                }
                Err(problem) => part.warn_skipped("a resource template", &problem),
            }
        }
        part
    }

    /// The newest of a family, followed by the older ones.
    fn build_versioned_tool(
        &mut self,
        source: &SourceName,
        family: &ToolVersions<'_>,
        full_name: &FullName,
        known: Option<&Arc<ToolEntry>>,
    ) -> ToolEntry {
        let mut tools = Vec::new();
        for (index, (offer, members)) in family.versions.iter().enumerate() {
            let same = |known: &&Arc<ToolEntry>| known.version() == offer.metadata_text("version");
            let known =
                known.into_iter().flat_map(|known| std::iter::once(known).chain(&known.older)).find(same);
            let mut tool = self.build_tool(source, offer, members, &family.name, full_name, known);
            tool.deprecated_by = family.deprecated_by(index);
            tools.push(tool);
        }
        let older = tools.split_off(1).into_iter().map(Arc::new).collect();
        // A family has at least one version, which is the remaining one.
        tools.remove(0).with_older(older)
    }

    fn build_tool(
        &mut self,
        source: &SourceName,
        offer: &ToolOffer,
        members: &Object,
        raw_name: &str,
        full_name: &FullName,
        known: Option<&Arc<ToolEntry>>,
    ) -> ToolEntry {
        let annotated = |raw: &RawValue| text(&Object::parse(raw).ok()?, "title");
        let title = text(members, "title")
            .or_else(|| members.get("annotations").and_then(annotated))
            .unwrap_or_else(|| raw_name.to_owned());
        let input_schema = match members.get("inputSchema") {
            Some(schema) if is_object_schema(schema) => schema.to_owned(),
            _ => {
                let name = json::truncate_for_message(raw_name);
                self.warnings.push(format!("the input schema of tool {name} is not an object schema"));
                json::from_text(r#"{"type":"object"}"#.to_owned())
            }
        };
        let compiled = match known {
            Some(known) if known.input_schema.get() == input_schema.get() => Arc::clone(&known.compiled),
            _ => Arc::new(CompiledSchema::default()),
        };
        let output_schema = members.get("outputSchema").map(ToOwned::to_owned);
        let same_output = |known: &&Arc<ToolEntry>| match (&known.output_schema, &output_schema) {
            (Some(before), Some(now)) => before.get() == now.get(),
            (before, now) => before.is_none() && now.is_none(),
        };
        let compiled_output =
            known.filter(same_output).map(|known| Arc::clone(&known.compiled_output)).unwrap_or_default();
        ToolEntry {
            source: source.clone(),
            definition: offer.definition.clone(),
            shown: render_definition(members.clone(), full_name, Some(&input_schema)),
            input_schema,
            output_schema,
            output_is_object: members.get("outputSchema").is_some_and(is_object_schema),
            title,
            description: text(members, "description"),
            permissions: offer.permissions.clone(),
            metadata: offer.metadata.clone(),
            listing: offer.listing,
            hooks: offer.hooks.clone(),
            compiled,
            compiled_output,
            raw_name: raw_name.to_owned(),
            full_name: full_name.clone(),
            deprecated_by: None,
            older: Vec::new(),
        }
    }

    fn warn_skipped(&mut self, entry: &str, problem: &str) {
        self.warnings.push(format!("{entry} was skipped: {problem}"));
    }
}

impl ToolEntry {
    fn with_older(self, older: Vec<Arc<Self>>) -> Self {
        Self { older, ..self }
    }

    fn with_full_name(&self, full_name: FullName) -> Self {
        let members = Object::parse(&self.definition).unwrap_or_default();
        Self {
            shown: render_definition(members, &full_name, Some(&self.input_schema)),
            older: self.older.iter().map(|tool| Arc::new(tool.with_full_name(full_name.clone()))).collect(),
            deprecated_by: self.deprecated_by.clone(),
            full_name,
            raw_name: self.raw_name.clone(),
            source: self.source.clone(),
            definition: self.definition.clone(),
            input_schema: self.input_schema.clone(),
            output_schema: self.output_schema.clone(),
            output_is_object: self.output_is_object,
            title: self.title.clone(),
            description: self.description.clone(),
            permissions: self.permissions.clone(),
            metadata: self.metadata.clone(),
            listing: self.listing,
            hooks: self.hooks.clone(),
            compiled: Arc::clone(&self.compiled),
            compiled_output: Arc::clone(&self.compiled_output),
        }
    }
}

impl PromptEntry {
    fn new(
        source: &SourceName,
        offer: &PromptOffer,
        members: Object,
        raw_name: String,
        full_name: FullName,
    ) -> Self {
        Self {
            source: source.clone(),
            definition: offer.definition.clone(),
            shown: render_definition(members, &full_name, None),
            permissions: offer.permissions.clone(),
            raw_name,
            full_name,
        }
    }

    fn with_full_name(&self, full_name: FullName) -> Self {
        let members = Object::parse(&self.definition).unwrap_or_default();
        Self {
            shown: render_definition(members, &full_name, None),
            full_name,
            raw_name: self.raw_name.clone(),
            source: self.source.clone(),
            definition: self.definition.clone(),
            permissions: self.permissions.clone(),
        }
    }
}

/// Renders a definition as shown by the yard: under its full name, with a schema that clients
/// accept.
fn render_definition(mut members: Object, full_name: &FullName, input_schema: Option<&Raw>) -> Raw {
    members.set("name", json::to_raw(full_name.as_str()));
    if let Some(schema) = input_schema {
        members.set("inputSchema", schema.clone());
    }
    members.to_raw()
}

/// Returns whether clients accept it as the input schema of a tool: an object whose `type` is
/// `object`.
fn is_object_schema(schema: &RawValue) -> bool {
    let kind = Object::parse(schema).ok().and_then(|members| text(&members, "type"));
    kind.is_some_and(|kind| kind == "object")
}

/// Returns the members and the name of a definition.
pub(super) fn parse_definition(definition: &RawValue) -> Result<(Object, String), String> {
    let members = Object::parse(definition).map_err(|error| error.to_string())?;
    let name = text(&members, "name").ok_or("it has no name")?;
    Ok((members, name))
}

/// The warning for a duplicate name. The source would resolve both to the same entry, and clients
/// reject a list that contains a name twice.
pub(super) fn duplicate_name_message(name: &str) -> String {
    format!("the source offers {} more than once", json::truncate_for_message(name))
}

fn member(definition: &RawValue, key: &str) -> Result<String, String> {
    let members = Object::parse(definition).map_err(|error| error.to_string())?;
    text(&members, key).ok_or_else(|| format!("it has no {key}"))
}

fn text(members: &Object, key: &str) -> Option<String> {
    serde_json::from_str(members.get(key)?.get()).ok()
}
