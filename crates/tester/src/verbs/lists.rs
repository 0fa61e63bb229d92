//! `list_tools`, `list_resources` and `list_prompts`: everything, as it was advertised.

use std::sync::Arc;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Raw, Schema};
use toolyard_upstream::{Lists, Pages};

use super::{Use, about};
use crate::answer::{Answer, Metadata, now};
use crate::connection::Connection;
use crate::definitions::{Verb, broken_promises};
use crate::fault::Fault;
use crate::offered::{Has, list};
use crate::rules;

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
        ruled(&connection, Lists::Tools, &pages);
        let metadata = metadata.with("retrieved_at", now()).with("pages", pages.pages);
        Ok(sorted(about(&connection), "tools", pages.items, &TOOL, renamed).metadata(metadata))
    }

    pub(super) async fn list_resources(&self) -> Result<Answer, Fault> {
        let connection = self.connection()?;
        let (pages, has) = self.on(&connection, list(&connection.link, Lists::Resources)).await?;
        let (templates, _) = self.on(&connection, list(&connection.link, Lists::Templates)).await?;
        let mut metadata = Metadata::default().with("total_resources", pages.items.len());
        noted(&mut metadata, &connection, "resources", &pages, has);
        ruled(&connection, Lists::Resources, &pages);
        ruled(&connection, Lists::Templates, &templates);
        let metadata = metadata
            .with("total_resource_templates", templates.items.len())
            .with("retrieved_at", now())
            .with("pages", pages.pages);
        let answer = sorted(about(&connection), "resources", pages.items, &RESOURCE, |_| None);
        Ok(answer.with("resource_templates", to_raw(&templates.items)).metadata(metadata))
    }

    pub(super) async fn list_prompts(&self) -> Result<Answer, Fault> {
        let connection = self.connection()?;
        let (pages, has) = self.on(&connection, list(&connection.link, Lists::Prompts)).await?;
        let mut metadata = Metadata::default().with("total_prompts", pages.items.len());
        noted(&mut metadata, &connection, "prompts", &pages, has);
        ruled(&connection, Lists::Prompts, &pages);
        let metadata = metadata.with("retrieved_at", now()).with("pages", pages.pages);
        Ok(sorted(about(&connection), "prompts", pages.items, &PROMPT, |_| None).metadata(metadata))
    }
}

/// The definition with its schema under the contract's name, `input_schema`, and otherwise byte for byte as the server sent
/// it. One without a schema that could stand there stays as it is.
fn renamed(tool: &RawValue) -> Option<Raw> {
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
    // Spelled in another way, with escapes.
    let [key] = keys.as_slice() else { return None };
    let rest = &text[key + r#""inputSchema""#.len()..];
    RawValue::from_string(format!(r#"{}"input_schema"{rest}"#, &text[..*key])).ok()
}

/// Where a string that begins here ends, behind its second quote.
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

/// Puts the items under their key, as `shown` shows them. Those that the contract's own schema does not allow there are
/// told beside, as they came: leaving them in would make the whole answer unreadable for clients that check it.
fn sorted(
    answer: Answer,
    key: &str,
    items: Vec<Raw>,
    contract: &Schema,
    shown: impl Fn(&RawValue) -> Option<Raw>,
) -> Answer {
    let mut malformed = Vec::new();
    let mut wellformed = Vec::new();
    for item in items {
        let shown = shown(&item);
        let violations = broken_promises(contract, shown.as_ref().unwrap_or(&item));
        if violations.is_empty() {
            wellformed.push(shown.unwrap_or(item));
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

/// Puts down the rules of the protocol that a list breaks.
fn ruled(connection: &Connection, which: Lists, pages: &Pages) {
    if pages.without > 0 {
        let (method, key) = match which {
            Lists::Tools => ("tools/list", "tools"),
            Lists::Resources => ("resources/list", "resources"),
            Lists::Templates => ("resources/templates/list", "resourceTemplates"),
            Lists::Prompts => ("prompts/list", "prompts"),
        };
        connection.broke(&[format!("the result of {method} has no `{key}`")]);
    }
    connection.broke(&rules::of_list(which, &pages.items));
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

#[cfg(test)]
mod tests {
    use super::renamed;
    use toolyard_hub::json::from_text;

    #[test]
    fn only_the_key_of_the_input_schema_changes() {
        let of = |text: &str| renamed(&from_text(text.to_owned())).map(|raw| raw.get().to_owned());
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
