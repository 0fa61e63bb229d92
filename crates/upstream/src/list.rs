//! Reading the lists of a server, page by page.

mod page;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{
    DefinitionReservation, Glob, PromptOffer, Raw, ResourceOffer, SourceOffer, TemplateOffer, ToolListing,
    ToolOffer, meta,
};
use toolyard_wire::{WireError, check_annotations, code};

use crate::connection::{HeaderSchemas, LiveConnection};
use crate::settings::ServerSettings;
use page::ListPage;

/// Entry limit of one list, because an endless list must not exhaust memory.
const MOST: usize = 100_000;
/// Page limit of one list, because pages may be empty.
const MOST_PAGES: usize = 10_000;
/// Time limit for the rest of a large list, while other large lists wait.
const TURN: Duration = Duration::from_secs(30);

/// Reads the requested lists, as far as the server declares them.
pub(crate) async fn fetch_offer(
    live: &LiveConnection,
    settings: &ServerSettings,
    lists: &[ServerListKind],
) -> Result<SourceOffer, WireError> {
    #[derive(Deserialize)]
    struct ServerCapabilities {
        tools: Option<Raw>,
        prompts: Option<Raw>,
        resources: Option<Raw>,
        completions: Option<Raw>,
    }
    let declared: ServerCapabilities = serde_json::from_str(live.server.capabilities.get())
        .map_err(|error| WireError::Protocol(format!("invalid capabilities: {error}")))?;
    let mut offer =
        SourceOffer { supports_completion: declared.completions.is_some(), ..SourceOffer::default() };
    let mut reserved = live.definitions.reserve();
    if declared.tools.is_some() && lists.contains(&ServerListKind::Tools) {
        let tools = fetch_pages(live, ServerListKind::Tools, &mut reserved).await?.items;
        offer.tools = tools.into_iter().flat_map(|tool| build_tool_offers(settings, tool)).collect();
    }
    // An entry with invalid permission requirements is skipped, because it must not be offered
    // without them.
    let permissions = |kind: &str, definition: &RawValue| match meta::permissions(definition) {
        Ok(more) => Some(merge_permissions(settings.permissions.clone(), more)),
        Err(reason) => {
            tracing::warn!(server = %settings.name, kind, reason, "entry skipped");
            None
        }
    };
    if declared.prompts.is_some() && lists.contains(&ServerListKind::Prompts) {
        let prompts = fetch_pages(live, ServerListKind::Prompts, &mut reserved).await?.items;
        let offered = |definition: Raw| {
            Some(PromptOffer { permissions: permissions("prompt", &definition)?, definition })
        };
        offer.prompts = prompts.into_iter().filter_map(offered).collect();
    }
    if declared.resources.is_some() && lists.contains(&ServerListKind::Resources) {
        let resources = fetch_pages(live, ServerListKind::Resources, &mut reserved).await?.items;
        let offered = |definition: Raw| {
            Some(ResourceOffer { permissions: permissions("resource", &definition)?, definition })
        };
        offer.resources = resources.into_iter().filter_map(offered).collect();
    }
    if declared.resources.is_some() && lists.contains(&ServerListKind::Templates) {
        // Templates were added later than resources, and not every server with resources has them.
        let templates = match fetch_pages(live, ServerListKind::Templates, &mut reserved).await {
            Err(WireError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => Vec::new(),
            templates => templates?.items,
        };
        let offered = |definition: Raw| {
            Some(TemplateOffer { permissions: permissions("template", &definition)?, definition })
        };
        offer.templates = templates.into_iter().filter_map(offered).collect();
    }
    offer.reserved = Some(reserved);
    Ok(offer)
}

/// Returns the tool and its older versions, unless the configuration excludes them.
fn build_tool_offers(settings: &ServerSettings, definition: Raw) -> Vec<ToolOffer> {
    let (definition, older) = meta::split_versions(definition);
    let name = definition_name(&definition);
    // A definition with another name would be a different tool, which is not listed.
    let older = older.into_iter().filter(|definition| definition_name(definition) == name);
    std::iter::once(definition)
        .chain(older)
        .filter_map(|definition| build_tool_offer(settings, &name, definition))
        .collect()
}

/// Returns the name of a definition, or an empty string. The catalog reports a missing name.
fn definition_name(definition: &RawValue) -> String {
    #[derive(Deserialize)]
    struct NamedDefinition {
        name: Option<String>,
    }
    let named = serde_json::from_str::<NamedDefinition>(definition.get()).ok();
    named.and_then(|named| named.name).unwrap_or_default()
}

fn build_tool_offer(settings: &ServerSettings, name: &str, definition: Raw) -> Option<ToolOffer> {
    let any = |globs: &[String]| globs.iter().any(|pattern| Glob::from(pattern.as_str()).matches(name));
    let is_enabled = settings.enabled_tools.as_deref().is_none_or(any);
    if !is_enabled || any(&settings.disabled_tools) {
        return None;
    }
    let mut permissions = settings.permissions.clone();
    for (pattern, more) in &settings.tool_permissions {
        if Glob::from(pattern.as_str()).matches(name) {
            permissions.extend(more.iter().cloned());
        }
    }
    // A server may require more permissions than the configuration, but never fewer.
    let permissions = match meta::permissions(&definition) {
        Ok(more) => merge_permissions(permissions, more),
        Err(reason) => {
            tracing::warn!(server = %settings.name, tool = name, reason, "tool skipped");
            return None;
        }
    };
    let (metadata, hooks, listing) = (meta::metadata(&definition), Vec::new(), ToolListing::Listed);
    Some(ToolOffer { definition, permissions, metadata, hooks, listing })
}

fn merge_permissions(mut permissions: Vec<String>, more: Vec<String>) -> Vec<String> {
    for permission in more {
        if !permissions.contains(&permission) {
            permissions.push(permission);
        }
    }
    permissions
}

/// The lists of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ServerListKind {
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

/// A list, read to its end or to a limit.
#[derive(Debug, Default)]
pub struct PagedList {
    /// As the server sent them.
    pub items: Vec<Raw>,
    /// The number of pages that were read.
    pub pages: usize,
    /// Why the list was not read to its end.
    pub truncated_reason: Option<String>,
    /// The number of pages that contained no list.
    pub pages_without_list: usize,
    /// The reservation for the items, if they are not part of an offer. Keep it as long as the
    /// items or parts of them.
    pub reserved: Option<Arc<DefinitionReservation>>,
}

/// Reads a list to its end. Each page is charged to the reservation before it is stored, so an
/// endless list fails at the limit.
pub(crate) async fn fetch_pages(
    live: &LiveConnection,
    list: ServerListKind,
    reserved: &mut DefinitionReservation,
) -> Result<PagedList, WireError> {
    let (method, key) = (list.method(), list.key());
    let invalid =
        |error: serde_json::Error| WireError::Protocol(format!("invalid response to {method}: {error}"));
    let mut all = PagedList::default();
    // Cursors may be long, so only their hashes are stored.
    let (mut seen, hashing) = (HashSet::new(), RandomState::new());
    let mut cursor: Option<String> = None;
    let (turns, mut turn, other_lists) = (reserved.large_list_semaphore(), None, reserved.bytes());
    loop {
        if turn.is_none() && reserved.is_large() {
            let now = match turns.try_acquire() {
                Some(now) => now,
                // A waiting list holds no memory: it is read from the beginning when its turn
                // comes.
                None => {
                    (all, seen, cursor) = (PagedList::default(), HashSet::new(), None);
                    reserved.shrink_to(other_lists);
                    turns.acquire().await
                }
            };
            turn = Some((now, Instant::now()));
        }
        if turn.as_ref().is_some_and(|(_, since)| since.elapsed() > TURN) {
            let limit = TURN.as_secs();
            return Err(WireError::TooLarge(format!(
                "takes more than {limit} s to send the rest of a large list"
            )));
        }
        let mut params = Object::default();
        if let Some(cursor) = &cursor {
            params.set("cursor", to_raw(cursor));
        }
        let page = live.request(method, params).await?;
        reserved.grow(page.get().len()).map_err(|error| WireError::TooLarge(error.to_string()))?;
        let ListPage { next, truncated, has_list } =
            page::read(&page, key, MOST, &mut all.items).map_err(invalid)?;
        all.pages += 1;
        all.pages_without_list += usize::from(!has_list);
        all.truncated_reason = match next {
            _ if truncated => Some(format!("only the first {MOST} entries are read")),
            None => return Ok(all),
            Some(_) if all.items.len() >= MOST => Some(format!("only the first {MOST} entries are read")),
            Some(_) if all.pages >= MOST_PAGES => Some(format!("only the first {MOST_PAGES} pages are read")),
            // A repeated cursor would loop forever.
            Some(next) if !seen.insert(hashing.hash_one(&next)) => {
                let start: String = next.chars().take(100).collect();
                Some(format!("the server returned the cursor {start:?} twice"))
            }
            Some(next) => {
                cursor = Some(next);
                continue;
            }
        };
        return Ok(all);
    }
}

/// Returns the schemas of the tools that require parameters to be mirrored in headers, if their
/// annotations are valid.
pub(crate) fn collect_header_schemas(definitions: &[Raw]) -> HeaderSchemas {
    let schemas = definitions.iter().filter_map(|definition| header_schema(definition));
    schemas.filter_map(|(name, schema)| Some((name, schema.ok()?))).collect()
}

/// Returns the name of a tool and its schema, or why its annotations are invalid. Returns `None` if
/// the tool does not require parameters to be mirrored.
fn header_schema(definition: &RawValue) -> Option<(String, Result<Raw, String>)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tool {
        name: String,
        input_schema: Raw,
    }
    if !definition.get().contains("x-mcp-header") {
        return None;
    }
    let tool: Tool = serde_json::from_str(definition.get()).ok()?;
    let checked = check_annotations(&tool.input_schema);
    Some((tool.name, checked.map(|()| tool.input_schema)))
}

/// Removes tools whose parameters cannot be mirrored in headers as required, as the protocol
/// demands of HTTP clients. Returns the schemas of the other tools that require it.
pub(crate) fn retain_mirrorable_tools(offer: &mut SourceOffer, server: &str) -> HeaderSchemas {
    let mut schemas = HeaderSchemas::new();
    offer.tools.retain(|tool| match header_schema(&tool.definition) {
        None => true,
        Some((name, Ok(schema))) => {
            // Older versions of a tool come after it.
            schemas.entry(name).or_insert(schema);
            true
        }
        Some((tool, Err(reason))) => {
            tracing::warn!(server, tool, reason, "tool skipped");
            false
        }
    });
    schemas
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use toolyard_hub::SourceName;
    use toolyard_hub::json::to_raw;

    use super::build_tool_offers;
    use crate::settings::{CommandSettings, EnvInheritance, ServerSettings, TransportSettings};

    fn settings() -> ServerSettings {
        let command = CommandSettings {
            program: "server".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            inherit: EnvInheritance::AllowList,
        };
        let mut settings = ServerSettings::new(SourceName::new("s"), TransportSettings::Command(command));
        settings.permissions = vec!["staff".to_owned()];
        settings
    }

    /// Returns the name, version and permissions of each offer that a definition results in.
    fn offers(definition: &Value) -> Vec<(String, Value, Vec<String>)> {
        let offers = build_tool_offers(&settings(), to_raw(definition));
        let summaries = offers.into_iter().map(|offer| {
            let definition: Value = serde_json::from_str(offer.definition.get()).unwrap();
            assert_eq!(definition["_meta"].get("dev.toolyard/versions"), None);
            let version = offer.metadata.get("version").cloned().unwrap_or_default();
            (definition["name"].as_str().unwrap().to_owned(), version, offer.permissions)
        });
        summaries.collect()
    }

    #[test]
    fn a_server_adds_permissions_to_those_of_the_configuration() {
        let tool =
            |permissions: Value| json!({"name": "t", "_meta": {"dev.toolyard/permissions": permissions}});
        let offer = |permissions: &[&str]| {
            let permissions = permissions.iter().map(|name| (*name).to_owned()).collect();
            vec![("t".to_owned(), Value::Null, permissions)]
        };
        assert_eq!(offers(&json!({"name": "t"})), offer(&["staff"]));
        assert_eq!(offers(&tool(json!([]))), offer(&["staff"]));
        assert_eq!(offers(&tool(json!(["admin", "staff"]))), offer(&["staff", "admin"]));
        // The required permissions are invalid, so the tool is not offered.
        assert_eq!(offers(&tool(json!("admin"))), []);
    }

    #[test]
    fn older_versions_of_a_tool_are_offered_with_it_and_other_tools_are_not() {
        let old = |name: &str, permissions: Value| {
            json!({"name": name, "_meta": {
                "dev.toolyard/metadata": {"version": "1"},
                "dev.toolyard/permissions": permissions,
            }})
        };
        let definition = json!({"name": "t", "_meta": {
            "dev.toolyard/metadata": {"version": "2"},
            "dev.toolyard/versions": [old("t", json!(["admin"])), old("hidden", json!([])), old("t", json!(7)), 7],
        }});
        let staff = || "staff".to_owned();
        assert_eq!(
            offers(&definition),
            [
                ("t".to_owned(), json!("2"), vec![staff()]),
                ("t".to_owned(), json!("1"), vec![staff(), "admin".to_owned()]),
            ]
        );
    }
}
