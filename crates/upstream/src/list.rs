//! Everything that a server offers, page by page to the end.

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

/// More than this of one kind is not read: a list without an end must not fill our memory.
const MOST: usize = 100_000;
/// More requests than this are not sent for one list: pages may be empty.
const MOST_PAGES: usize = 10_000;
/// How long the rest of a large list may take while other large lists wait.
const TURN: Duration = Duration::from_secs(30);

/// Reads every wanted list that the server says it has.
pub(crate) async fn fetch_offer(
    live: &LiveConnection,
    settings: &ServerSettings,
    wanted: &[ServerListKind],
) -> Result<SourceOffer, WireError> {
    #[derive(Deserialize)]
    struct ServerCapabilities {
        tools: Option<Raw>,
        prompts: Option<Raw>,
        resources: Option<Raw>,
        completions: Option<Raw>,
    }
    let has: ServerCapabilities = serde_json::from_str(live.server.capabilities.get())
        .map_err(|error| WireError::Protocol(format!("its capabilities make no sense: {error}")))?;
    let mut offer = SourceOffer { supports_completion: has.completions.is_some(), ..SourceOffer::default() };
    let mut reserved = live.definitions.reserve();
    if has.tools.is_some() && wanted.contains(&ServerListKind::Tools) {
        let tools = fetch_pages(live, ServerListKind::Tools, &mut reserved).await?.items;
        offer.tools = tools.into_iter().flat_map(|tool| build_tool_offers(settings, tool)).collect();
    }
    // What cannot be read of its requirements is left out: it must not be offered without them.
    let permissions = |what: &str, definition: &RawValue| match meta::permissions(definition) {
        Ok(more) => Some(merge_permissions(settings.permissions.clone(), more)),
        Err(why) => {
            tracing::warn!(server = %settings.name, what, why, "something was left out");
            None
        }
    };
    if has.prompts.is_some() && wanted.contains(&ServerListKind::Prompts) {
        let prompts = fetch_pages(live, ServerListKind::Prompts, &mut reserved).await?.items;
        let offered = |definition: Raw| {
            Some(PromptOffer { permissions: permissions("prompt", &definition)?, definition })
        };
        offer.prompts = prompts.into_iter().filter_map(offered).collect();
    }
    if has.resources.is_some() && wanted.contains(&ServerListKind::Resources) {
        let resources = fetch_pages(live, ServerListKind::Resources, &mut reserved).await?.items;
        let offered = |definition: Raw| {
            Some(ResourceOffer { permissions: permissions("resource", &definition)?, definition })
        };
        offer.resources = resources.into_iter().filter_map(offered).collect();
    }
    if has.resources.is_some() && wanted.contains(&ServerListKind::Templates) {
        // Templates came later than resources, and not every server that has the ones knows the others.
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

/// The tool as it is offered, and its older versions, unless the configuration leaves it out.
fn build_tool_offers(settings: &ServerSettings, definition: Raw) -> Vec<ToolOffer> {
    let (definition, older) = meta::split_versions(definition);
    let name = definition_name(&definition);
    // Another name would be another tool, which has not been listed.
    let older = older.into_iter().filter(|definition| definition_name(definition) == name);
    std::iter::once(definition)
        .chain(older)
        .filter_map(|definition| build_tool_offer(settings, &name, definition))
        .collect()
}

/// A tool without a name is the catalog's to complain about.
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
    let wanted = settings.enabled_tools.as_deref().is_none_or(any);
    if !wanted || any(&settings.disabled_tools) {
        return None;
    }
    let mut permissions = settings.permissions.clone();
    for (pattern, more) in &settings.tool_permissions {
        if Glob::from(pattern.as_str()).matches(name) {
            permissions.extend(more.iter().cloned());
        }
    }
    // The server knows best what its tools may do, so it can demand more than the configuration does, and never less.
    let permissions = match meta::permissions(&definition) {
        Ok(more) => merge_permissions(permissions, more),
        Err(why) => {
            tracing::warn!(server = %settings.name, tool = name, why, "a tool was left out");
            return None;
        }
    };
    let (metadata, hooks, listing) = (meta::metadata(&definition), Vec::new(), ToolListing::Listed);
    Some(ToolOffer { definition, permissions, metadata, hooks, listing })
}

fn merge_permissions(mut permissions: Vec<String>, more: Vec<String>) -> Vec<String> {
    for one in more {
        if !permissions.contains(&one) {
            permissions.push(one);
        }
    }
    permissions
}

/// The lists that a server has.
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

/// A list that was read to its end, or to where it was given up.
#[derive(Debug, Default)]
pub struct PagedList {
    /// As the server sent them.
    pub items: Vec<Raw>,
    /// How many requests it took.
    pub pages: usize,
    /// Why not everything was read, if it was not.
    pub truncated_reason: Option<String>,
    /// How many pages had no list at all.
    pub pages_without_list: usize,
    /// The bytes that the items take up, where they are not part of what a source offers. Whoever keeps the items, or
    /// parts of them, keeps this too.
    pub reserved: Option<Arc<DefinitionReservation>>,
}

/// Reads a list to its end. Every page is reserved before it is kept, so that a list without an end fails at the limit.
pub(crate) async fn fetch_pages(
    live: &LiveConnection,
    list: ServerListKind,
    reserved: &mut DefinitionReservation,
) -> Result<PagedList, WireError> {
    let (method, key) = (list.method(), list.key());
    let wrong = |error: serde_json::Error| {
        WireError::Protocol(format!("its answer to {method} makes no sense: {error}"))
    };
    let mut all = PagedList::default();
    // Cursors may be long, so only their hashes are kept.
    let (mut seen, hashing) = (HashSet::new(), RandomState::new());
    let mut cursor: Option<String> = None;
    let (turns, mut turn, other_lists) = (reserved.large_list_semaphore(), None, reserved.bytes());
    loop {
        if turn.is_none() && reserved.is_large() {
            let now = match turns.try_acquire() {
                Some(now) => now,
                // What waits holds nothing: the list is read again from its beginning when its turn comes.
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
        reserved.grow(page.get().len()).map_err(|over| WireError::TooLarge(over.to_string()))?;
        let ListPage { next, truncated: full, has_list: has } =
            page::read(&page, key, MOST, &mut all.items).map_err(wrong)?;
        all.pages += 1;
        all.pages_without_list += usize::from(!has);
        all.truncated_reason = match next {
            _ if full => Some(format!("not more than {MOST} are read")),
            None => return Ok(all),
            Some(_) if all.items.len() >= MOST => Some(format!("not more than {MOST} are read")),
            Some(_) if all.pages >= MOST_PAGES => Some(format!("not more than {MOST_PAGES} pages are read")),
            // The same cursor again would go on for ever.
            Some(next) if !seen.insert(hashing.hash_one(&next)) => {
                let start: String = next.chars().take(100).collect();
                Some(format!("the cursor {start:?} came twice"))
            }
            Some(next) => {
                cursor = Some(next);
                continue;
            }
        };
        return Ok(all);
    }
}

/// The schemas of the tools that demand that parameters are mirrored in headers, and do so in a way that can be met.
pub(crate) fn collect_header_schemas(definitions: &[Raw]) -> HeaderSchemas {
    let demanding = definitions.iter().filter_map(|definition| header_schema(definition));
    demanding.filter_map(|(name, schema)| Some((name, schema.ok()?))).collect()
}

/// The tool's name, and the schema whose parameters it wants mirrored or why they cannot be; nothing if it does not
/// ask for that.
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

/// Takes the tools out whose parameters cannot be mirrored in headers as they demand, as the protocol wants of a
/// client over HTTP, and gives back the schemas of those that demand it.
pub(crate) fn retain_mirrorable_tools(offer: &mut SourceOffer, server: &str) -> HeaderSchemas {
    let mut schemas = HeaderSchemas::new();
    offer.tools.retain(|tool| match header_schema(&tool.definition) {
        None => true,
        Some((name, Ok(schema))) => {
            // Older versions of a tool come after it.
            schemas.entry(name).or_insert(schema);
            true
        }
        Some((tool, Err(why))) => {
            tracing::warn!(server, tool, why, "a tool was left out");
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

    /// The name, the version and the permissions of what a definition becomes.
    fn become_of(definition: &Value) -> Vec<(String, Value, Vec<String>)> {
        let offers = build_tool_offers(&settings(), to_raw(definition));
        let told = offers.into_iter().map(|offer| {
            let definition: Value = serde_json::from_str(offer.definition.get()).unwrap();
            assert_eq!(definition["_meta"].get("dev.toolyard/versions"), None);
            let version = offer.metadata.get("version").cloned().unwrap_or_default();
            (definition["name"].as_str().unwrap().to_owned(), version, offer.permissions)
        });
        told.collect()
    }

    #[test]
    fn a_server_adds_permissions_to_those_of_the_configuration() {
        let demands = |said: Value| json!({"name": "t", "_meta": {"dev.toolyard/permissions": said}});
        let of = |permissions: &[&str]| {
            let permissions = permissions.iter().map(|one| (*one).to_owned()).collect();
            vec![("t".to_owned(), Value::Null, permissions)]
        };
        assert_eq!(become_of(&json!({"name": "t"})), of(&["staff"]));
        assert_eq!(become_of(&demands(json!([]))), of(&["staff"]));
        assert_eq!(become_of(&demands(json!(["admin", "staff"]))), of(&["staff", "admin"]));
        // What it wants to be protected by cannot be read, so that it is not offered at all.
        assert_eq!(become_of(&demands(json!("admin"))), []);
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
            become_of(&definition),
            [
                ("t".to_owned(), json!("2"), vec![staff()]),
                ("t".to_owned(), json!("1"), vec![staff(), "admin".to_owned()]),
            ]
        );
    }
}
