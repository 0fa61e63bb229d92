//! Lists, in pages with opaque cursors.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, from_text, to_raw};
use toolyard_hub::{Principal, ToolEntry, ToolListing, meta};
use toolyard_wire::{Era, InboundRequest, RawJson, RpcError, Version};

use super::response::{CachePolicy, cacheable};
use super::{McpFront, params};

#[derive(Deserialize)]
struct Paging {
    cursor: Option<String>,
}

impl McpFront {
    pub(super) fn list_tools(&self, request: &InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let view = self.view(request);
        let alone = self.reach.single_source().is_some();
        // Who looks at one server by itself sees it as it is.
        let on_it = |tool: &&Arc<ToolEntry>| alone || tool.listing == ToolListing::Listed;
        let all = view.tools().filter(on_it).map(|tool| match alone {
            false => (tool.full_name.as_str(), tool_item(tool, &tool.shown, request)),
            true => (tool.raw_name.as_str(), tool_item(tool, &tool.definition, request)),
        });
        self.page("tools", request, all, view.is_private())
    }

    pub(super) fn list_prompts(&self, request: &InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let view = self.view(request);
        let all = view.prompts().map(|prompt| match self.reach.single_source() {
            None => (prompt.full_name.as_str(), item_with_permissions(&prompt.shown, &prompt.permissions)),
            Some(_) => {
                (prompt.raw_name.as_str(), item_with_permissions(&prompt.definition, &prompt.permissions))
            }
        });
        self.page("prompts", request, all, view.is_private())
    }

    pub(super) fn list_resources(&self, request: &InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let view = self.view(request);
        let all = view.resources().map(|resource| {
            (resource.uri.as_str(), item_with_permissions(&resource.definition, &resource.permissions))
        });
        self.page("resources", request, all, view.is_private())
    }

    pub(super) fn list_templates(&self, request: &InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let view = self.view(request);
        let all = view.templates().map(|template| {
            (template.template.as_str(), item_with_permissions(&template.definition, &template.permissions))
        });
        self.page("resourceTemplates", request, all, view.is_private())
    }

    fn page<'a>(
        &self,
        key: &str,
        request: &InboundRequest<Principal>,
        all: impl Iterator<Item = (&'a str, ListItem<'a>)>,
        private: bool,
    ) -> Result<RawJson, RpcError> {
        let paging: Paging = params(&request.method, request.params.as_deref())?;
        let mut all = all.peekable();
        if let Some(cursor) = &paging.cursor {
            let last = read_cursor(key, cursor)?;
            // A list that changed meanwhile has no such place any more; the client starts again.
            if !all.by_ref().any(|(name, _)| name == last) {
                return Err(RpcError::invalid_params("this cursor is of a list that has changed"));
            }
        }
        let mut text = format!(r#"{{"{key}":["#);
        let mut last = None;
        for (at, (name, shown)) in all.by_ref().take(self.settings.page).enumerate() {
            if at > 0 {
                text.push(',');
            }
            match shown {
                ListItem::Unchanged(raw) => text.push_str(raw.get()),
                ListItem::Edited(raw) => text.push_str(raw.get()),
            }
            last = Some(name);
        }
        text.push(']');
        if let (Some(last), true) = (last, all.peek().is_some()) {
            text.push_str(&format!(r#","nextCursor":{}"#, to_raw(&write_cursor(key, last))));
        }
        text.push('}');
        let list = from_text(text);
        if request.version.era() == Era::Legacy {
            return Ok(list);
        }
        // A list that is not whole yet is not worth keeping.
        let ttl = if self.yard.is_startup_complete() { self.settings.list_ttl } else { Duration::ZERO };
        let cache = if private { CachePolicy::private(ttl) } else { CachePolicy::public(ttl) };
        Ok(cacheable(&self.info, &list, cache))
    }
}

/// A definition on its way out: as it is, or with what this client's version forbids left out, and what another yard must
/// know added.
enum ListItem<'a> {
    Unchanged(&'a RawValue),
    Edited(RawJson),
}

fn tool_item<'a>(
    tool: &ToolEntry,
    definition: &'a RawValue,
    request: &InboundRequest<Principal>,
) -> ListItem<'a> {
    let version = request.version;
    if tool.permissions.is_empty() && tool.older.is_empty() {
        return match strip_output_schema(tool, definition, version) {
            Some(edited) => ListItem::Edited(edited),
            None => ListItem::Unchanged(definition),
        };
    }
    let fitting = |tool: &ToolEntry, definition: &RawValue| {
        strip_output_schema(tool, definition, version).unwrap_or_else(|| definition.to_owned())
    };
    // Each version has permissions of its own, and says so.
    let older = tool.older.iter().filter(|older| older.is_listed_for(&request.caller));
    let older: Vec<RawJson> = older
        .map(|older| {
            // Under the name that the newest has here.
            let shown = if definition.get() == tool.shown.get() { &older.shown } else { &older.definition };
            meta::with_yard_metadata(&fitting(older, shown), &older.permissions, &[])
        })
        .collect();
    ListItem::Edited(meta::with_yard_metadata(&fitting(tool, definition), &tool.permissions, &older))
}

/// Without an output schema that this client's version forbids; nothing where there is none.
fn strip_output_schema(tool: &ToolEntry, definition: &RawValue, version: Version) -> Option<RawJson> {
    // Before the modern era an output schema had to be of an object.
    if version.era() == Era::Modern || tool.output_schema.is_none() || tool.output_is_object {
        return None;
    }
    let mut members = Object::parse(definition).ok()?;
    members.remove("outputSchema");
    Some(members.to_raw())
}

/// A definition that says which permissions it needs, so that a yard in front of this one can ask for them too.
fn item_with_permissions<'a>(definition: &'a RawValue, permissions: &[String]) -> ListItem<'a> {
    match permissions {
        [] => ListItem::Unchanged(definition),
        permissions => ListItem::Edited(meta::with_yard_metadata(definition, permissions, &[])),
    }
}

/// The cursor names the last thing of the page before, so that it stays right when things are added.
fn write_cursor(key: &str, last: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{key}\n{last}"))
}

fn read_cursor(key: &str, cursor: &str) -> Result<String, RpcError> {
    let wrong = || RpcError::invalid_params("this cursor is none of ours");
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(wrong)?;
    let (of, last) = text.split_once('\n').ok_or_else(wrong)?;
    if of == key { Ok(last.to_owned()) } else { Err(wrong()) }
}
