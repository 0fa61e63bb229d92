//! A snapshot of what a native source offers, in the order of registration.

use std::sync::Arc;

use toolyard_hub::SourceOffer;

use crate::prompt::Prompt;
use crate::resource::Resource;
use crate::template::ResourceTemplate;
use crate::tool::Tool;
use crate::values::Values;

#[derive(Debug, Clone, Default)]
pub(super) struct NativeRegistry {
    pub(super) tools: Vec<Arc<Tool>>,
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) templates: Vec<Arc<ResourceTemplate>>,
    pub(super) prompts: Vec<Arc<Prompt>>,
}

impl NativeRegistry {
    /// Returns the tool with this name and version. The yard has already chosen the version if
    /// there are several.
    pub(super) fn tool(&self, name: &str, version: Option<&str>) -> Option<&Tool> {
        let meant = |tool: &&Arc<Tool>| tool.name() == name && tool.declared_version() == version;
        let by_name = || self.tools.iter().find(|tool| tool.name() == name);
        self.tools.iter().find(meant).or_else(by_name).map(|tool| &**tool)
    }

    pub(super) fn resource(&self, uri: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.uri() == uri).map(|resource| &**resource)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.name() == name).map(|prompt| &**prompt)
    }

    /// Returns the template that matches the URI, and the values of its variables.
    pub(super) fn template_for(&self, uri: &str) -> Option<(&ResourceTemplate, Values)> {
        self.templates.iter().find_map(|template| Some((&**template, template.match_uri(uri)?)))
    }

    /// Returns a template by its text, or by a URI that it matches.
    pub(super) fn template(&self, uri: &str) -> Option<&ResourceTemplate> {
        let by_itself = self.templates.iter().find(|template| template.template() == uri);
        by_itself.map(|template| &**template).or_else(|| Some(self.template_for(uri)?.0))
    }

    pub(super) fn put_tool(&mut self, tool: Tool) {
        let another = |a: &Tool, b: &Tool| match (a.declared_version(), b.declared_version()) {
            (Some(a), Some(b)) => a != b,
            _ => false,
        };
        put(&mut self.tools, tool, |a, b| a.name() == b.name() && !another(a, b));
    }

    pub(super) fn put_resource(&mut self, resource: Resource) {
        put(&mut self.resources, resource, |a, b| a.uri() == b.uri());
    }

    pub(super) fn put_template(&mut self, template: ResourceTemplate) {
        put(&mut self.templates, template, |a, b| a.template() == b.template());
    }

    pub(super) fn put_prompt(&mut self, prompt: Prompt) {
        put(&mut self.prompts, prompt, |a, b| a.name() == b.name());
    }

    pub(super) fn to_offer(&self) -> SourceOffer {
        let completes = self.prompts.iter().any(|prompt| !prompt.completions.is_empty())
            || self.templates.iter().any(|template| !template.completions.is_empty());
        SourceOffer {
            tools: self.tools.iter().map(|tool| tool.to_offer()).collect(),
            resources: self.resources.iter().map(|resource| resource.to_offer()).collect(),
            templates: self.templates.iter().map(|template| template.to_offer()).collect(),
            prompts: self.prompts.iter().map(|prompt| prompt.to_offer()).collect(),
            supports_completion: completes,
            reserved: None,
        }
    }
}

/// Replaces an equal entry in place, or appends a new one.
fn put<T>(all: &mut Vec<Arc<T>>, new: T, same: impl Fn(&T, &T) -> bool) {
    match all.iter_mut().find(|known| same(known, &new)) {
        Some(known) => *known = Arc::new(new),
        None => all.push(Arc::new(new)),
    }
}
