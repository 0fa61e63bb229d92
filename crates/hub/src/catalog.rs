//! The catalog: an immutable snapshot of everything that the yard offers, with all names resolved.
//! Everything that can be computed once per definition is computed here.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use self::entry::EntryDiff;
use self::source_entries::{EntryNamers, SourceEntries};
use self::uri_match::sort_by_specificity;
use crate::events::CatalogChange;
use crate::json;
use crate::name::{FullName, SourceName};
use crate::principal::Principal;
use crate::request::ClientEra;
use crate::source::Source;
use crate::visibility::CatalogEntry;

mod entry;
mod source_entries;
mod uri_match;
mod versions;

pub use self::entry::{NamedEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};

/// All entries at one point in time.
#[derive(Default)]
pub struct Catalog {
    tools: Vec<Arc<ToolEntry>>,
    resources: Vec<Arc<ResourceEntry>>,
    templates: Vec<Arc<TemplateEntry>>,
    /// The same templates, most specific first.
    by_specificity: Vec<Arc<TemplateEntry>>,
    prompts: Vec<Arc<PromptEntry>>,
    tool_by_name: HashMap<FullName, Arc<ToolEntry>>,
    tool_by_raw: HashMap<String, Vec<Arc<ToolEntry>>>,
    prompt_by_name: HashMap<FullName, Arc<PromptEntry>>,
    prompt_by_raw: HashMap<String, Vec<Arc<PromptEntry>>>,
    resource_by_uri: HashMap<String, Arc<ResourceEntry>>,
    hidden_resources: Vec<Arc<ResourceEntry>>,
    sources: HashMap<SourceName, Arc<dyn Source>>,
    parts: HashMap<SourceName, SourceEntries>,
    warnings: Vec<(SourceName, String)>,
    /// Warnings that mention another source, by their text.
    sources_in_warnings: HashMap<String, SourceName>,
    supports_completion: bool,
    has_permissions: bool,
}

/// The result of looking up a name.
#[derive(Debug)]
pub enum Lookup<T> {
    Found(Arc<T>),
    /// The bare name is ambiguous. Contains the full names of the candidates.
    Ambiguous(Vec<FullName>),
    Unknown,
}

impl Catalog {
    /// Builds the catalog. Names are assigned in source order, so the same sources always get the
    /// same names.
    pub fn build(sources: &[Arc<dyn Source>]) -> Self {
        Self::default().rebuild(sources, ClientEra::Newest)
    }

    /// Builds a catalog of these sources, reusing the entries of this catalog that have not
    /// changed.
    pub(crate) fn rebuild(&self, sources: &[Arc<dyn Source>], era: ClientEra) -> Self {
        let mut catalog = Self::default();
        let mut names = EntryNamers::default();
        for source in sources {
            let part = SourceEntries::load(source, era, self.parts.get(source.name()), &mut names);
            catalog.add(source, part);
        }
        catalog.by_specificity.clone_from(&catalog.templates);
        sort_by_specificity(&mut catalog.by_specificity);
        catalog
    }

    pub fn tools(&self) -> &[Arc<ToolEntry>] {
        &self.tools
    }

    pub fn resources(&self) -> &[Arc<ResourceEntry>] {
        &self.resources
    }

    pub fn templates(&self) -> &[Arc<TemplateEntry>] {
        &self.templates
    }

    pub fn prompts(&self) -> &[Arc<PromptEntry>] {
        &self.prompts
    }

    /// Returns whether any entry requires a permission, so that principals may see different lists.
    pub fn has_permissions(&self) -> bool {
        self.has_permissions
    }

    /// Returns whether any source supports argument completion.
    pub fn supports_completion(&self) -> bool {
        self.supports_completion
    }

    /// Problems found in the definitions, by source.
    pub fn warnings(&self) -> &[(SourceName, String)] {
        &self.warnings
    }

    /// Finds a tool by full name, or by bare name if it is unique.
    pub fn tool(&self, name: &str) -> Lookup<ToolEntry> {
        lookup(&self.tool_by_name, &self.tool_by_raw, name)
    }

    pub fn prompt(&self, name: &str) -> Lookup<PromptEntry> {
        lookup(&self.prompt_by_name, &self.prompt_by_raw, name)
    }

    /// Finds a tool by the raw name that a source gave it.
    pub fn tool_in_source(&self, source: &SourceName, raw: &str) -> Option<Arc<ToolEntry>> {
        find_in_source(&self.tool_by_raw, source, raw)
    }

    pub fn prompt_in_source(&self, source: &SourceName, raw: &str) -> Option<Arc<PromptEntry>> {
        find_in_source(&self.prompt_by_raw, source, raw)
    }

    pub fn resource(&self, uri: &str) -> Option<&Arc<ResourceEntry>> {
        self.resource_by_uri.get(uri)
    }

    /// Finds a tool by its exact full name.
    pub(crate) fn tool_by_full_name(&self, full_name: &str) -> Option<&Arc<ToolEntry>> {
        self.tool_by_name.get(full_name)
    }

    /// Returns the tools of one source.
    pub(crate) fn tools_in_source(&self, source: &SourceName) -> &[Arc<ToolEntry>] {
        self.parts.get(source).map_or(&[], |part| &part.tools)
    }

    /// Returns whether this principal sees any entry of the source in lists. `None` if the source
    /// has no entries.
    pub(crate) fn has_visible_entries(&self, source: &SourceName, principal: &Principal) -> Option<bool> {
        let part = self.parts.get(source).filter(|part| !part.is_empty())?;
        Some(
            part.tools.iter().any(|tool| tool.is_visible_to(principal))
                || part.resources.iter().any(|resource| resource.is_visible_to(principal))
                || part.templates.iter().any(|template| template.is_visible_to(principal))
                || part.prompts.iter().any(|prompt| prompt.is_visible_to(principal)),
        )
    }

    /// Returns the other source that a catalog warning mentions, if any.
    pub(crate) fn source_in_warning(&self, text: &str) -> Option<&SourceName> {
        self.sources_in_warnings.get(text)
    }

    /// Returns the resources whose URI an earlier source offers as well.
    pub(crate) fn hidden_resources(&self) -> &[Arc<ResourceEntry>] {
        &self.hidden_resources
    }

    pub(crate) fn source(&self, name: &SourceName) -> Option<&Arc<dyn Source>> {
        self.sources.get(name)
    }

    /// Returns the source whose prefix this full name starts with.
    pub(crate) fn source_by_prefix(&self, name: &str) -> Option<&Arc<dyn Source>> {
        let sources = self.sources.values().map(|source| (source.name().prefix(), source));
        // Prefer the longest prefix: one source may be named `a` and another `a__b`.
        let fitting = sources.filter(|(prefix, _)| name.starts_with(prefix));
        fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, source)| source)
    }

    /// Returns whether this source offers anything.
    pub(crate) fn has_entries_from(&self, source: &SourceName) -> bool {
        self.parts.get(source).is_some_and(|part| !part.is_empty())
    }

    /// Returns which lists changed since `before`.
    pub(crate) fn change_since(&self, before: &Self) -> CatalogChange {
        let resources = are_unchanged(&self.resources, &before.resources)
            && are_unchanged(&self.hidden_resources, &before.hidden_resources)
            && are_unchanged(&self.templates, &before.templates);
        CatalogChange {
            tools: !are_unchanged(&self.tools, &before.tools),
            resources: !resources,
            prompts: !are_unchanged(&self.prompts, &before.prompts),
        }
    }

    /// Returns the sources whose offer changed, or all sources if only their order changed.
    pub(crate) fn sources_changed_since(&self, before: &Self) -> Arc<[SourceName]> {
        let gone = before.parts.keys().filter(|name| !self.parts.contains_key(*name));
        let changed = self.parts.iter().filter(|(name, part)| match before.parts.get(*name) {
            None => !part.is_empty(),
            Some(before) => {
                !(are_unchanged(&part.tools, &before.tools)
                    && are_unchanged(&part.resources, &before.resources)
                    && are_unchanged(&part.templates, &before.templates)
                    && are_unchanged(&part.prompts, &before.prompts))
            }
        });
        let found: Vec<SourceName> = changed.map(|(name, _)| name).chain(gone).cloned().collect();
        if found.is_empty() { self.sources.keys().cloned().collect() } else { found.into() }
    }

    fn add(&mut self, source: &Arc<dyn Source>, part: SourceEntries) {
        let name = source.name();
        for tool in &part.tools {
            self.tool_by_name.insert(tool.full_name.clone(), Arc::clone(tool));
            self.tool_by_raw.entry(tool.raw_name.clone()).or_default().push(Arc::clone(tool));
        }
        for prompt in &part.prompts {
            self.prompt_by_name.insert(prompt.full_name.clone(), Arc::clone(prompt));
            self.prompt_by_raw.entry(prompt.raw_name.clone()).or_default().push(Arc::clone(prompt));
        }
        self.tools.extend_from_slice(&part.tools);
        self.prompts.extend_from_slice(&part.prompts);
        self.templates.extend_from_slice(&part.templates);
        self.warnings.extend(part.warnings.iter().map(|text| (name.clone(), text.clone())));
        for resource in &part.resources {
            self.add_resource(resource);
        }
        self.supports_completion |= part.supports_completion();
        self.has_permissions |= part.has_permissions();
        self.sources.insert(name.clone(), Arc::clone(source));
        self.parts.insert(name.clone(), part);
    }

    /// Adds resources under their own URIs. If two sources offer the same URI, the first source
    /// serves it.
    fn add_resource(&mut self, resource: &Arc<ResourceEntry>) {
        match self.resource_by_uri.entry(resource.uri.clone()) {
            Entry::Vacant(free) => {
                free.insert(Arc::clone(resource));
                self.resources.push(Arc::clone(resource));
            }
            Entry::Occupied(first) => {
                let first = &first.get().source;
                let text = format!(
                    "resource {} is already offered by {first}",
                    json::truncate_for_message(&resource.uri)
                );
                self.warnings.push((resource.source.clone(), text.clone()));
                if *first != resource.source {
                    self.sources_in_warnings.insert(text, first.clone());
                    self.hidden_resources.push(Arc::clone(resource));
                }
            }
        }
    }
}

fn lookup<T: NamedEntry>(
    by_name: &HashMap<FullName, Arc<T>>,
    by_raw: &HashMap<String, Vec<Arc<T>>>,
    name: &str,
) -> Lookup<T> {
    if let Some(found) = by_name.get(name) {
        return Lookup::Found(Arc::clone(found));
    }
    match by_raw.get(name).map(Vec::as_slice) {
        Some([only]) => Lookup::Found(Arc::clone(only)),
        Some([]) | None => Lookup::Unknown,
        Some(several) => Lookup::Ambiguous(several.iter().map(|t| t.full_name().clone()).collect()),
    }
}

fn find_in_source<T: NamedEntry>(
    by_raw: &HashMap<String, Vec<Arc<T>>>,
    source: &SourceName,
    raw: &str,
) -> Option<Arc<T>> {
    by_raw.get(raw)?.iter().find(|thing| thing.source() == source).cloned()
}

fn are_unchanged<T: EntryDiff>(now: &[Arc<T>], before: &[Arc<T>]) -> bool {
    let same = |(a, b): (&Arc<T>, &Arc<T>)| Arc::ptr_eq(a, b) || a.is_unchanged(b);
    now.len() == before.len() && now.iter().zip(before).all(same)
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog")
            .field("tools", &self.tools.len())
            .field("resources", &self.resources.len())
            .field("templates", &self.templates.len())
            .field("prompts", &self.prompts.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
