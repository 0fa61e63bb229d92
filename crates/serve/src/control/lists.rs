//! The lists: servers, tools, prompts, and everything at once. Definitions are passed on unchanged,
//! as the text that the server sent.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::permission::missing_message;
use toolyard_hub::{
    Catalog, CatalogView, ErrorKind, Principal, Raw, SourceName, SourceStatus, ToolEntry, Yard, YardScope,
    nearest,
};

use super::errors::ControlError;
use super::{ControlFront, render};

/// All tools in the format of the control socket, rendered once per catalog.
#[derive(Debug, Default)]
pub(super) struct ControlToolCache {
    current: Mutex<Option<(Arc<Catalog>, Tools)>>,
}

type Tools = Arc<[(Arc<ToolEntry>, Raw)]>;

impl ControlToolCache {
    fn tools(&self, catalog: &Arc<Catalog>) -> Tools {
        let mut current = self.current.lock();
        match &*current {
            Some((known, tools)) if Arc::ptr_eq(known, catalog) => Arc::clone(tools),
            _ => {
                let render = |tool: &Arc<ToolEntry>| (Arc::clone(tool), show(tool));
                let tools: Tools = catalog.tools().iter().map(render).collect();
                *current = Some((Arc::clone(catalog), Arc::clone(&tools)));
                tools
            }
        }
    }
}

/// Renders a tool with everything that a user needs to try it.
fn show(tool: &ToolEntry) -> Raw {
    let advertised = Object::parse(&tool.definition).unwrap_or_default();
    let metadata = &tool.metadata;
    let mut shown = Object::default();
    shown.set("name", to_raw(&tool.raw_name));
    shown.set("fullName", to_raw(tool.full_name.as_str()));
    shown.set("serverName", to_raw(tool.source.as_str()));
    // A title elsewhere than in `title` is a hint, which is in the annotations.
    if let Some(title) = text(&advertised, "title") {
        shown.set("title", to_raw(&title));
    }
    shown.set("description", to_raw(tool.description.as_deref().unwrap_or_default()));
    shown.set("inputSchema", tool.input_schema.clone());
    for key in ["outputSchema", "annotations"] {
        if let Some(value) = advertised.get(key).filter(|value| value.get().starts_with('{')) {
            shown.set(key, value.to_owned());
        }
    }
    let tags = match metadata.get("tags") {
        Some(Value::Array(tags)) => tags.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    shown.set("tags", to_raw(&tags));
    shown.set("permissions", to_raw(&tool.permissions));
    if let Some(version) = metadata.get("version").and_then(Value::as_str) {
        shown.set("version", to_raw(version));
    }
    shown.set("definition", tool.definition.clone());
    shown.to_raw()
}

fn text(members: &Object, key: &str) -> Option<String> {
    serde_json::from_str(members.get(key)?.get()).ok()
}

impl ControlFront {
    pub(super) fn servers(&self, principal: &Principal) -> String {
        let catalog = self.yard.catalog();
        let servers = visible_servers(&self.yard, &catalog, principal);
        let shown = servers.iter().map(|(name, status, view)| {
            render::server(name, status, view, &self.journal.servers_elsewhere(name))
        });
        format!(r#"{{"servers":{}}}"#, list(shown))
    }

    pub(super) fn tools(&self, principal: &Principal, server: Option<&str>) -> Result<String, ControlError> {
        let source = server.map(|name| self.visible_source(principal, name)).transpose()?;
        let tools = self.tool_cache.tools(&self.yard.catalog());
        let listed = tools.iter().filter(|(tool, _)| {
            source.as_ref().is_none_or(|source| tool.source == *source) && tool.is_listed_for(principal)
        });
        Ok(render_counted_list(server, "tools", listed.map(|(_, shown)| shown.get())))
    }

    /// Renders one tool with the problems of its schemas. To find them, the schemas must be
    /// compiled, which is too expensive for lists.
    pub(super) fn tool(&self, principal: &Principal, name: &str) -> Result<String, ControlError> {
        let tool =
            self.yard.find_tool(name, principal).map_err(|error| ControlError::from_hub_error(&error, ""))?;
        if let Some(missing) = principal.first_missing_permission(&tool.permissions) {
            let message = missing_message(&tool.full_name, missing);
            return Err(ControlError::new(ErrorKind::Forbidden, message));
        }
        let mut shown = Object::parse(&show(&tool)).unwrap_or_default();
        if let Some(problem) = tool.schema_problem() {
            shown.set("schemaProblem", to_raw(problem));
        }
        if let Some(problem) = tool.output_schema_problem() {
            shown.set("outputSchemaProblem", to_raw(problem));
        }
        Ok(format!(r#"{{"tool":{}}}"#, shown.to_raw()))
    }

    pub(super) fn prompts(
        &self,
        principal: &Principal,
        server: Option<&str>,
    ) -> Result<String, ControlError> {
        let source = server.map(|name| self.visible_source(principal, name)).transpose()?;
        let view = self.yard.view(principal);
        let view = source.into_iter().fold(view, |view, source| view.with_scope(YardScope::Source(source)));
        let prompts: Vec<Raw> = view
            .prompts()
            .map(|prompt| {
                let mut shown = Object::parse(&prompt.definition).unwrap_or_default();
                shown.set("fullName", to_raw(prompt.full_name.as_str()));
                shown.set("serverName", to_raw(prompt.source.as_str()));
                shown.to_raw()
            })
            .collect();
        Ok(render_counted_list(server, "prompts", prompts.iter().map(|prompt| prompt.get())))
    }

    /// Renders everything at once, in the structure that command-line assistants use.
    pub(super) fn list(&self, principal: &Principal) -> String {
        let catalog = self.yard.catalog();
        let all = CatalogView::new(Arc::clone(&catalog), principal.clone());
        let mut text = r#"{"tools":{"#.to_owned();
        object(&mut text, all.tools().map(|tool| (tool.full_name.as_str(), tool_definition(tool))));
        let servers = visible_servers(&self.yard, &catalog, principal);
        text.push_str(r#"},"resources":{"#);
        let resources =
            |view: &CatalogView| list(view.resources().map(|resource| resource.definition.clone()));
        object(&mut text, servers.iter().map(|(name, _, view)| (name.as_str(), resources(view))));
        text.push_str(r#"},"resource_templates":{"#);
        let templates =
            |view: &CatalogView| list(view.templates().map(|template| template.definition.clone()));
        object(&mut text, servers.iter().map(|(name, _, view)| (name.as_str(), templates(view))));
        text.push_str(r#"},"auth_statuses":{"#);
        let auth = |status: &SourceStatus| to_raw(status.authorization.as_str()).get().to_owned();
        object(&mut text, servers.iter().map(|(name, status, _)| (name.as_str(), auth(status))));
        text.push_str("}}");
        text
    }

    /// Renders the current state of one server.
    pub(super) fn render_server(&self, principal: &Principal, name: &str) -> Result<Raw, ControlError> {
        let source = SourceName::new(name);
        let status = self.yard.status_for(principal, &source);
        let status = status.ok_or_else(|| unknown_server_error(&self.yard, principal, name))?;
        let view = self.yard.view(principal).with_scope(YardScope::Source(source.clone()));
        Ok(render::server(&source, &status, &view, &self.journal.servers_elsewhere(&source)))
    }

    fn visible_source(&self, principal: &Principal, name: &str) -> Result<SourceName, ControlError> {
        let source = SourceName::new(name);
        match self.yard.has_source(&source) && self.yard.visibility(principal).sees_source(&source) {
            true => Ok(source),
            false => Err(unknown_server_error(&self.yard, principal, name)),
        }
    }
}

/// Returns the error for an unknown server, with the most similar visible name as a suggestion.
pub(super) fn unknown_server_error(yard: &Yard, principal: &Principal, name: &str) -> ControlError {
    let names: Vec<SourceName> = yard.statuses_for(principal).into_iter().map(|(name, _)| name).collect();
    ControlError::unknown_server(name, nearest(name, names.iter().map(SourceName::as_str)))
}

/// Returns the servers that the principal sees, each with a view of its visible entries.
fn visible_servers(
    yard: &Yard,
    catalog: &Arc<Catalog>,
    principal: &Principal,
) -> Vec<(SourceName, SourceStatus, CatalogView)> {
    let with_view = |(name, status): (SourceName, SourceStatus)| {
        let view = CatalogView::new(Arc::clone(catalog), principal.clone())
            .with_scope(YardScope::Source(name.clone()));
        (name, status, view)
    };
    yard.statuses_for(principal).into_iter().map(with_view).collect()
}

/// Returns the definition that the server sent. An input schema that clients could not parse is
/// replaced.
fn tool_definition(tool: &ToolEntry) -> String {
    let mut definition = match Object::parse(&tool.definition) {
        Ok(definition) => definition,
        Err(_) => return tool.shown.get().to_owned(),
    };
    match definition.get("inputSchema") {
        Some(schema) if schema.get() == tool.input_schema.get() => tool.definition.get().to_owned(),
        _ => {
            definition.set("inputSchema", tool.input_schema.clone());
            definition.to_raw().get().to_owned()
        }
    }
}

fn render_counted_list<'a>(server: Option<&str>, key: &str, items: impl Iterator<Item = &'a str>) -> String {
    let mut text = format!(r#"{{"serverName":{},"{key}":["#, to_raw(&server));
    let mut count = 0;
    for item in items {
        if count > 0 {
            text.push(',');
        }
        text.push_str(item);
        count += 1;
    }
    text.push_str(&format!(r#"],"count":{count}}}"#));
    text
}

fn list(items: impl Iterator<Item = Raw>) -> String {
    let items: Vec<Raw> = items.collect();
    let texts: Vec<&str> = items.iter().map(|item| item.get()).collect();
    format!("[{}]", texts.join(","))
}

/// Appends members of an object. Their values are JSON text.
fn object<'a>(text: &mut String, members: impl Iterator<Item = (&'a str, String)>) {
    for (at, (key, value)) in members.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(to_raw(key).get());
        text.push(':');
        text.push_str(&value);
    }
}
