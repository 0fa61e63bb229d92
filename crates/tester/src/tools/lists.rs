//! `list_tools`, `list_resources` and `list_prompts`: everything, exactly as advertised.

use std::sync::Arc;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Raw, Schema};
use toolyard_upstream::{PagedList, ServerListKind};

use super::{ToolInvocation, connection_answer};
use crate::answer::{AnswerMetadata, TesterAnswer, now};
use crate::connection::TesterConnection;
use crate::definitions::{TesterTool, contract_violations};
use crate::error::TesterError;
use crate::rules;
use crate::tool_schemas::{ListSupport, read_list};

/// The contract's schemas for the items of each list.
static TOOL: LazyLock<Schema> =
    LazyLock::new(|| TesterTool::ListTools.output_schema_part(&["properties", "tools", "items"]));
static RESOURCE: LazyLock<Schema> =
    LazyLock::new(|| TesterTool::ListResources.output_schema_part(&["properties", "resources", "items"]));
static PROMPT: LazyLock<Schema> =
    LazyLock::new(|| TesterTool::ListPrompts.output_schema_part(&["properties", "prompts", "items"]));

impl ToolInvocation<'_> {
    pub(super) async fn list_tools(&self) -> Result<TesterAnswer, TesterError> {
        let connection = self.connection()?;
        let at = connection.link.list_change_count();
        let (pages, has) =
            self.run_on_connection(&connection, read_list(&connection.link, ServerListKind::Tools)).await?;
        connection.tool_schemas.store_tools(&pages, at);
        let named = connection.server_info();
        let mut metadata = AnswerMetadata::default().with("total_tools", pages.items.len());
        if let Some(name) = named.name {
            metadata = metadata.with("server_name", name);
        }
        if let Some(version) = named.version {
            metadata = metadata.with("server_version", version);
        }
        add_list_notes(&mut metadata, &connection, "tools", &pages, has);
        record_list_violations(&connection, ServerListKind::Tools, &pages);
        let metadata = metadata.with("retrieved_at", now()).with("pages", pages.pages);
        Ok(add_items(connection_answer(&connection), "tools", pages.items, &TOOL, rename_input_schema)
            .with_metadata(metadata))
    }

    pub(super) async fn list_resources(&self) -> Result<TesterAnswer, TesterError> {
        let connection = self.connection()?;
        let (pages, has) = self
            .run_on_connection(&connection, read_list(&connection.link, ServerListKind::Resources))
            .await?;
        let (templates, _) = self
            .run_on_connection(&connection, read_list(&connection.link, ServerListKind::Templates))
            .await?;
        let mut metadata = AnswerMetadata::default().with("total_resources", pages.items.len());
        add_list_notes(&mut metadata, &connection, "resources", &pages, has);
        record_list_violations(&connection, ServerListKind::Resources, &pages);
        record_list_violations(&connection, ServerListKind::Templates, &templates);
        let metadata = metadata
            .with("total_resource_templates", templates.items.len())
            .with("retrieved_at", now())
            .with("pages", pages.pages);
        let answer = add_items(connection_answer(&connection), "resources", pages.items, &RESOURCE, |_| None);
        Ok(answer.with("resource_templates", to_raw(&templates.items)).with_metadata(metadata))
    }

    pub(super) async fn list_prompts(&self) -> Result<TesterAnswer, TesterError> {
        let connection = self.connection()?;
        let (pages, has) =
            self.run_on_connection(&connection, read_list(&connection.link, ServerListKind::Prompts)).await?;
        let mut metadata = AnswerMetadata::default().with("total_prompts", pages.items.len());
        add_list_notes(&mut metadata, &connection, "prompts", &pages, has);
        record_list_violations(&connection, ServerListKind::Prompts, &pages);
        let metadata = metadata.with("retrieved_at", now()).with("pages", pages.pages);
        Ok(add_items(connection_answer(&connection), "prompts", pages.items, &PROMPT, |_| None)
            .with_metadata(metadata))
    }
}

/// Returns the definition with its schema under the contract's name, `input_schema`, and otherwise
/// byte for byte as the server sent it. Returns `None`, which leaves it unchanged, if it has no
/// valid schema.
fn rename_input_schema(tool: &RawValue) -> Option<Raw> {
    let members = Object::parse(tool).ok()?;
    let is_schema = members.get("inputSchema")?.get().starts_with('{');
    if members.contains("input_schema") || !is_schema {
        return None;
    }
    let text = tool.get();
    let (mut depth, mut at, mut is_key) = (0_usize, 0, false);
    let bytes = text.as_bytes();
    let mut keys = Vec::new();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = end_of_string(bytes, at)?;
                if depth == 1 && is_key && &text[at..end] == r#""inputSchema""# {
                    keys.push(at);
                }
                (is_key, at) = (false, end);
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                is_key = bytes[at] == b'{';
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => is_key = depth == 1,
            _ => {}
        }
        at += 1;
    }
    // The key is written with escapes.
    let [key] = keys.as_slice() else { return None };
    let rest = &text[key + r#""inputSchema""#.len()..];
    RawValue::from_string(format!(r#"{}"input_schema"{rest}"#, &text[..*key])).ok()
}

/// Returns the end of a string that starts here, after its closing quote.
fn end_of_string(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Adds the items under their key, converted by `shown`. Items that violate the contract's schema
/// are listed separately and unmodified: clients that validate the answer would otherwise reject
/// all of it.
fn add_items(
    answer: TesterAnswer,
    key: &str,
    items: Vec<Raw>,
    contract: &Schema,
    shown: impl Fn(&RawValue) -> Option<Raw>,
) -> TesterAnswer {
    let mut malformed = Vec::new();
    let mut wellformed = Vec::new();
    for item in items {
        let shown = shown(&item);
        let violations = contract_violations(contract, shown.as_ref().unwrap_or(&item));
        if violations.is_empty() {
            wellformed.push(shown.unwrap_or(item));
        } else {
            let problems: Vec<_> = violations
                .iter()
                .map(|violation| json!({"pointer": violation.pointer, "reason": violation.reason}))
                .collect();
            let mut entry = Object::default();
            entry.set("definition", item);
            entry.set("problems", to_raw(&problems));
            malformed.push(entry.to_raw());
        }
    }
    let answer = answer.with(key, to_raw(&wellformed));
    if malformed.is_empty() { answer } else { answer.with("malformed", to_raw(&malformed)) }
}

/// Records the protocol violations of a list.
fn record_list_violations(connection: &TesterConnection, which: ServerListKind, pages: &PagedList) {
    if pages.pages_without_list > 0 {
        let (method, key) = match which {
            ServerListKind::Tools => ("tools/list", "tools"),
            ServerListKind::Resources => ("resources/list", "resources"),
            ServerListKind::Templates => ("resources/templates/list", "resourceTemplates"),
            ServerListKind::Prompts => ("prompts/list", "prompts"),
        };
        connection.record_violations(&[format!("the result of {method} has no `{key}`")]);
    }
    connection.record_violations(&rules::check_list(which, &pages.items));
}

/// Adds notes about inconsistencies of a list.
fn add_list_notes(
    metadata: &mut AnswerMetadata,
    connection: &Arc<TesterConnection>,
    key: &str,
    pages: &PagedList,
    has: ListSupport,
) {
    #[derive(Deserialize)]
    struct Capabilities {
        tools: Option<Raw>,
        resources: Option<Raw>,
        prompts: Option<Raw>,
    }
    let read = serde_json::from_str::<Capabilities>(connection.link.capabilities().get());
    let declared = read.is_ok_and(|has| match key {
        "tools" => has.tools.is_some(),
        "resources" => has.resources.is_some(),
        _ => has.prompts.is_some(),
    });
    match (declared, has) {
        (true, ListSupport::Unsupported) => {
            metadata.add_note(format!("the server declares {key}, but cannot list them"));
        }
        (false, ListSupport::Unsupported) => metadata.add_note(format!("the server has no {key}")),
        (false, ListSupport::Supported) if !pages.items.is_empty() => {
            metadata.add_note(format!("the server lists {key} without declaring the capability"));
        }
        (false, ListSupport::Supported) => {
            metadata.add_note(format!("the server does not declare the capability {key}"))
        }
        (true, ListSupport::Supported) => {}
    }
    if let Some(cut) = &pages.truncated_reason {
        metadata.add_note(format!("the list is incomplete: {cut}"));
    }
}

#[cfg(test)]
mod tests {
    use super::rename_input_schema;
    use toolyard_hub::json::from_text;

    #[test]
    fn only_the_key_of_the_input_schema_changes() {
        let of =
            |text: &str| rename_input_schema(&from_text(text.to_owned())).map(|raw| raw.get().to_owned());
        let text = r#"{ "name" : "inputSchema", "a":["inputSchema",{"inputSchema":1e400}], "inputSchema" :{"inputSchema":0.10},"z":"\"inputSchema\":" }"#;
        let expected = text.replacen(r#""inputSchema" :"#, r#""input_schema" :"#, 1);
        assert_eq!(of(text).unwrap(), expected);
        for same in
            [r#"{"name":"x"}"#, r#"{"inputSchema":null}"#, r#"{"inputSchema":{},"input_schema":{}}"#, "7"]
        {
            assert_eq!(of(same), None, "{same}");
        }
    }
}
