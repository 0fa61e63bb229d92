//! `list_tools`, `list_resources` and `list_prompts`: everything, as it was advertised.

use std::sync::Arc;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Raw, Schema};
use toolyard_upstream::{Lists, Pages};

use super::{Use, about};
use crate::answer::{Answer, Metadata, now};
use crate::connection::Connection;
use crate::definitions::{Verb, broken_promises};
use crate::fault::Fault;
use crate::offered::{Has, list};

/// What the contract says about one item of each list.
static TOOL: LazyLock<Schema> = LazyLock::new(|| Verb::ListTools.part(&["properties", "tools", "items"]));
static RESOURCE: LazyLock<Schema> =
    LazyLock::new(|| Verb::ListResources.part(&["properties", "resources", "items"]));
static PROMPT: LazyLock<Schema> =
    LazyLock::new(|| Verb::ListPrompts.part(&["properties", "prompts", "items"]));

impl Use<'_> {
    pub(super) async fn list_tools(&self) -> Result<Answer, Fault> {
        let connection = self.connection()?;
        let at = connection.link.changes();
        let (pages, has) = self.on(&connection, list(&connection.link, Lists::Tools)).await?;
        connection.offered.keep_tools(&pages, at);
        let named = connection.named();
        let mut metadata = Metadata::default().with("total_tools", pages.items.len());
        if let Some(name) = named.name {
            metadata = metadata.with("server_name", name);
        }
        if let Some(version) = named.version {
            metadata = metadata.with("server_version", version);
        }
        noted(&mut metadata, &connection, "tools", &pages, has);
        let metadata = metadata.with("retrieved_at", now()).with("pages", pages.pages);
        let items = pages.items.into_iter().map(|tool| with_input_schema(&tool).unwrap_or(tool)).collect();
        Ok(sorted(about(&connection), "tools", items, &TOOL).metadata(metadata))
    }

    pub(super) async fn list_resources(&self) -> Result<Answer, Fault> {
        let connection = self.connection()?;
        let (pages, has) = self.on(&connection, list(&connection.link, Lists::Resources)).await?;
        let (templates, _) = self.on(&connection, list(&connection.link, Lists::Templates)).await?;
        let mut metadata = Metadata::default().with("total_resources", pages.items.len());
        noted(&mut metadata, &connection, "resources", &pages, has);
        let metadata = metadata
            .with("total_resource_templates", templates.items.len())
            .with("retrieved_at", now())
            .with("pages", pages.pages);
        let answer = sorted(about(&connection), "resources", pages.items, &RESOURCE);
        Ok(answer.with("resource_templates", to_raw(&templates.items)).metadata(metadata))
    }

    pub(super) async fn list_prompts(&self) -> Result<Answer, Fault> {
        let connection = self.connection()?;
        let (pages, has) = self.on(&connection, list(&connection.link, Lists::Prompts)).await?;
        let mut metadata = Metadata::default().with("total_prompts", pages.items.len());
        noted(&mut metadata, &connection, "prompts", &pages, has);
        let metadata = metadata.with("retrieved_at", now()).with("pages", pages.pages);
        Ok(sorted(about(&connection), "prompts", pages.items, &PROMPT).metadata(metadata))
    }
}

/// The definition with the contract's `input_schema` beside what the server sent. One without a schema that could
/// stand there stays as it is.
fn with_input_schema(tool: &Raw) -> Option<Raw> {
    let mut members = Object::parse(tool).ok()?;
    let schema = members.get("inputSchema")?.to_owned();
    if members.contains("input_schema") || !schema.get().starts_with('{') {
        return None;
    }
    members.set("input_schema", schema);
    Some(members.to_raw())
}

/// Puts the items under their key. Those that the contract's own schema does not allow there are told beside, as they
/// came: leaving them in would make the whole answer unreadable for clients that check it.
fn sorted(answer: Answer, key: &str, items: Vec<Raw>, contract: &Schema) -> Answer {
    let mut malformed = Vec::new();
    let mut wellformed = Vec::new();
    for item in items {
        let violations = broken_promises(contract, &item);
        if violations.is_empty() {
            wellformed.push(item);
        } else {
            let problems: Vec<_> = violations
                .iter()
                .map(|violation| json!({"pointer": violation.pointer, "reason": violation.reason}))
                .collect();
            let mut told = Object::default();
            told.set("definition", item);
            told.set("problems", to_raw(&problems));
            malformed.push(told.to_raw());
        }
    }
    let answer = answer.with(key, to_raw(&wellformed));
    if malformed.is_empty() { answer } else { answer.with("malformed", to_raw(&malformed)) }
}

/// Notes what does not fit together about a list.
fn noted(metadata: &mut Metadata, connection: &Arc<Connection>, key: &str, pages: &Pages, has: Has) {
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
        (true, Has::Nothing) => {
            metadata.note(format!("the server declares {key} and does not know how to list them"));
        }
        (false, Has::Nothing) => metadata.note(format!("the server has no {key}")),
        (false, Has::Method) if !pages.items.is_empty() => {
            metadata.note(format!("the server lists {key} without declaring that it has them"));
        }
        (false, Has::Method) => metadata.note(format!("the server does not declare that it has {key}")),
        (true, Has::Method) => {}
    }
    if let Some(cut) = &pages.cut {
        metadata.note(format!("the list is not complete: {cut}"));
    }
}
