//! Saved definitions in the forms that people have: `toolyard list --json`, `toolyard inspect
//! --json`, the result of `tools/list` and its siblings, and lock files.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolyard_hub::Raw;
use toolyard_hub::json::{Object, parse_untrusted};

use crate::lock::{LockError, LockFile, is_lock};
use crate::offer::{ItemKind, OfferProfile, ServerOffer};

/// Why a text cannot be used as definitions.
#[derive(Debug, thiserror::Error)]
pub enum SavedListError {
    #[error("invalid JSON, or nested too deeply")]
    NotJson,
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("expected a list of tools, resources or prompts, or a lock file")]
    Unrecognized,
    #[error("item {0} of the list has no definition")]
    NoDefinition(usize),
    #[error("the list is only one page of several: it has a `nextCursor`")]
    OnePage,
    #[error("`{0}` is not a list of objects")]
    NotAList(&'static str),
}

/// One row of `toolyard list --json`.
#[derive(Deserialize)]
struct ListedRow {
    #[serde(default)]
    server: String,
    definition: Option<Raw>,
}

/// Reads saved definitions. `name` is the name of the server if the text does not contain one.
pub fn parse_saved_definitions(text: &str, name: &str) -> Result<Vec<ServerOffer>, SavedListError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let raw = parse_untrusted(text).ok_or(SavedListError::NotJson)?;
    if raw.get().starts_with('[') {
        return read_rows(&raw, name);
    }
    let object = Object::parse(&raw).map_err(|_| SavedListError::Unrecognized)?;
    if is_lock(&object) {
        return Ok(LockFile::parse(raw.get())?.into_offers());
    }
    // A complete response.
    if let Some(result) = object.get("result")
        && object.contains("jsonrpc")
    {
        return parse_saved_definitions(result.get(), name);
    }
    if object.contains("inputSchema") {
        return Ok(vec![ServerOffer {
            name: name.to_owned(),
            tools: Some(vec![raw]),
            ..ServerOffer::default()
        }]);
    }
    read_results(&object, name).map(|offer| vec![offer])
}

/// Reads one or several list results in one object.
fn read_results(object: &Object, name: &str) -> Result<ServerOffer, SavedListError> {
    if object.get("nextCursor").is_some_and(|cursor| cursor.get() != "null") {
        return Err(SavedListError::OnePage);
    }
    let mut offer = ServerOffer { name: name.to_owned(), ..ServerOffer::default() };
    let mut is_known = false;
    for kind in ItemKind::ALL {
        let Some(list) = object.get(kind.list_key()) else { continue };
        *offer.items_mut(kind) = Some(read_items(list, kind.list_key())?);
        is_known = true;
    }
    offer.profile = read_profile(object);
    match is_known || offer.profile.is_some() {
        true => Ok(offer),
        false => Err(SavedListError::Unrecognized),
    }
}

/// Reads a list of objects.
pub(crate) fn read_items(list: &RawValue, key: &'static str) -> Result<Vec<Raw>, SavedListError> {
    let items: Vec<Raw> = serde_json::from_str(list.get()).map_err(|_| SavedListError::NotAList(key))?;
    match items.iter().all(|item| item.get().starts_with('{')) {
        true => Ok(items),
        false => Err(SavedListError::NotAList(key)),
    }
}

/// Reads what the server says about itself, if the object contains any of it.
pub(crate) fn read_profile(object: &Object) -> Option<OfferProfile> {
    let is_known = ["serverInfo", "capabilities", "instructions"].iter().any(|key| object.contains(key));
    let member = |key: &str| object.get(key).filter(|value| value.get() != "null").map(ToOwned::to_owned);
    is_known.then(|| OfferProfile {
        info: member("serverInfo"),
        capabilities: member("capabilities"),
        instructions: member("instructions").and_then(|text| serde_json::from_str(text.get()).ok()),
    })
}

/// Reads an array: rows of `toolyard list --json`, or plain definitions.
fn read_rows(raw: &RawValue, name: &str) -> Result<Vec<ServerOffer>, SavedListError> {
    let rows: Vec<Raw> = serde_json::from_str(raw.get()).map_err(|_| SavedListError::Unrecognized)?;
    let mut offers: BTreeMap<String, ServerOffer> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let missing = || SavedListError::NoDefinition(index);
        let object = Object::parse(row).map_err(|_| missing())?;
        let (server, definition) = match kind_of(&object) {
            Some(_) if !object.contains("definition") => (name.to_owned(), row.clone()),
            _ => {
                let row: ListedRow = serde_json::from_str(row.get()).map_err(|_| missing())?;
                let server = if row.server.is_empty() { name.to_owned() } else { row.server };
                (server, row.definition.ok_or_else(missing)?)
            }
        };
        let inside = Object::parse(&definition).map_err(|_| missing())?;
        let kind = kind_of(&inside).ok_or_else(missing)?;
        let offer = offers.entry(server.clone()).or_default();
        offer.name = server;
        offer.items_mut(kind).get_or_insert_default().push(definition);
    }
    if offers.is_empty() {
        // `toolyard list --json` of a server without tools. The kind is unknown; tools are listed
        // by default.
        let offer = ServerOffer { name: name.to_owned(), tools: Some(Vec::new()), ..ServerOffer::default() };
        return Ok(vec![offer]);
    }
    Ok(offers.into_values().collect())
}

/// The kind of a definition, from its members.
fn kind_of(definition: &Object) -> Option<ItemKind> {
    match () {
        () if definition.contains("inputSchema") => Some(ItemKind::Tool),
        () if definition.contains("uriTemplate") => Some(ItemKind::Template),
        () if definition.contains("uri") => Some(ItemKind::Resource),
        // A row of `toolyard list servers --json` has a name, too.
        () if definition.contains("name") && !definition.contains("state") => Some(ItemKind::Prompt),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{SavedListError, parse_saved_definitions};
    use crate::offer::{ItemKind, ServerOffer};

    fn read(text: &str) -> Vec<ServerOffer> {
        parse_saved_definitions(text, "saved").unwrap()
    }

    fn counts(offer: &ServerOffer) -> [Option<usize>; 4] {
        ItemKind::ALL.map(|kind| offer.items(kind).map(<[_]>::len))
    }

    #[test]
    fn every_form_of_a_saved_list_is_read() {
        let tool = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
        for text in [
            format!(r#"{{"tools":[{tool}]}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}],"nextCursor":null}}}}"#),
            format!("\u{feff}[{tool}]\n"),
            tool.to_owned(),
            format!(r#"[{{"server":"saved","name":"mcp__saved__a","rawName":"a","definition":{tool}}}]"#),
        ] {
            let offers = read(&text);
            assert_eq!(offers.len(), 1, "{text}");
            assert_eq!((offers[0].name.as_str(), counts(&offers[0])), ("saved", [Some(1), None, None, None]));
        }
    }

    #[test]
    fn rows_of_several_servers_and_kinds_are_kept_apart() {
        let offers = read(
            r#"[{"server":"x","name":"p","definition":{"name":"p"}},
                {"server":"y","uri":"u:1","definition":{"uri":"u:1","name":"r"}},
                {"server":"y","uriTemplate":"u:{a}","definition":{"uriTemplate":"u:{a}","name":"t"}}]"#,
        );
        let seen: Vec<_> = offers.iter().map(|offer| (offer.name.as_str(), counts(offer))).collect();
        assert_eq!(seen, [("x", [None, Some(1), None, None]), ("y", [None, None, Some(1), Some(1)])]);
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_reason() {
        let error = |text: &str| parse_saved_definitions(text, "saved").unwrap_err();
        assert!(matches!(error("{"), SavedListError::NotJson));
        assert!(matches!(error(&"[".repeat(4000)), SavedListError::NotJson));
        assert!(matches!(error("3"), SavedListError::Unrecognized));
        assert!(matches!(error("{}"), SavedListError::Unrecognized));
        assert!(matches!(error(r#"{"tools":[],"nextCursor":"2"}"#), SavedListError::OnePage));
        assert!(matches!(error(r#"{"tools":{}}"#), SavedListError::NotAList("tools")));
        assert!(matches!(error(r#"{"tools":[1]}"#), SavedListError::NotAList("tools")));
        assert!(matches!(error(r#"[{"name":"greet"},1]"#), SavedListError::NoDefinition(1)));
        let servers = r#"[{"name":"files","state":"ready","tools":3}]"#;
        assert!(matches!(error(servers), SavedListError::NoDefinition(0)));
    }
}
