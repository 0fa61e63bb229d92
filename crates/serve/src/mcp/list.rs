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
        let is_single = self.reach.single_source().is_some();
        // The endpoint of a single server lists all of its tools.
        let is_listed = |tool: &&Arc<ToolEntry>| is_single || tool.listing == ToolListing::Listed;
        let all = view.tools().filter(is_listed).map(|tool| match is_single {
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
            // If the list has changed, the item may be gone. The client starts again.
            if !all.by_ref().any(|(name, _)| name == last) {
                return Err(RpcError::invalid_params(
                    "invalid cursor: the list has changed; request it again without a cursor",
                ));
            }
        }
        let mut text = format!(r#"{{"{key}":["#);
        let mut last = None;
        for (index, (name, item)) in all.by_ref().take(self.settings.page).enumerate() {
            if index > 0 {
                text.push(',');
            }
            match item {
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
        // An incomplete list must not be cached.
        let ttl = if self.yard.is_startup_complete() { self.settings.list_ttl } else { Duration::ZERO };
        let cache = if private { CachePolicy::private(ttl) } else { CachePolicy::public(ttl) };
        Ok(cacheable(&self.info, &list, cache))
    }
}

/// A definition for the client. An edited definition lacks fields that the client's protocol
/// version forbids, or has additional metadata for a yard in front of this one.
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
    let compatible = |tool: &ToolEntry, definition: &RawValue| {
        strip_output_schema(tool, definition, version).unwrap_or_else(|| definition.to_owned())
    };
    // Each version has its own permissions in its metadata.
    let older = tool.older.iter().filter(|older| older.is_listed_for(&request.caller));
    let older: Vec<RawJson> = older
        .map(|older| {
            // Older versions appear under the same name as the newest one.
            let shown = if definition.get() == tool.shown.get() { &older.shown } else { &older.definition };
            meta::with_yard_metadata(&compatible(older, shown), &older.permissions, &[])
        })
        .collect();
    ListItem::Edited(meta::with_yard_metadata(&compatible(tool, definition), &tool.permissions, &older))
}

/// Removes an output schema that the client's version forbids. Returns `None` if nothing changes.
fn strip_output_schema(tool: &ToolEntry, definition: &RawValue, version: Version) -> Option<RawJson> {
    // Before the modern era, an output schema had to describe an object.
    if version.era() == Era::Modern || tool.output_schema.is_none() || tool.output_is_object {
        return None;
    }
    let mut members = Object::parse(definition).ok()?;
    members.remove("outputSchema");
    Some(members.to_raw())
}

/// Adds the required permissions to a definition, so that a yard in front of this one can enforce
/// them too.
fn item_with_permissions<'a>(definition: &'a RawValue, permissions: &[String]) -> ListItem<'a> {
    match permissions {
        [] => ListItem::Unchanged(definition),
        permissions => ListItem::Edited(meta::with_yard_metadata(definition, permissions, &[])),
    }
}

/// Encodes a cursor. It names the last item of the previous page, so that it stays valid when items
/// are added.
fn write_cursor(key: &str, last: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{key}\n{last}"))
}

fn read_cursor(key: &str, cursor: &str) -> Result<String, RpcError> {
    let invalid = || RpcError::invalid_params("invalid cursor");
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(invalid)?;
    let (cursor_key, last) = text.split_once('\n').ok_or_else(invalid)?;
    if cursor_key == key { Ok(last.to_owned()) } else { Err(invalid()) }
}
