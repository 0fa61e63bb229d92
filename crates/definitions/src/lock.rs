//! `toolyard.lock`: what the servers of a configuration offered when it was written. The format is
//! JSON, because definitions are JSON and can contain `null`, which TOML cannot express. The same
//! offers always give the same bytes.

use std::collections::BTreeMap;

use toolyard_hub::Raw;
use toolyard_hub::json::{Object, parse_untrusted, to_raw};

use crate::canonical::{canonical_text, end_lines, start_line, write_members, write_string};
use crate::offer::{ItemKind, ServerOffer, text_member};
use crate::saved_list::{read_items, read_profile};

/// The only version of the format so far.
const VERSION: u64 = 1;

/// Why a lock file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("not a lock file: expected a JSON object with `version` and `servers`")]
    NotALock,
    #[error("the lock file has version {0}, but only version 1 is supported")]
    UnsupportedVersion(String),
    #[error("the entry of server `{0}` is invalid: {1}")]
    InvalidServer(String, String),
}

/// The content of a lock file.
#[derive(Debug, Clone, Default)]
pub struct LockFile {
    servers: BTreeMap<String, ServerOffer>,
}

/// Whether an object looks like a lock file.
pub(crate) fn is_lock(object: &Object) -> bool {
    object.contains("version") && object.contains("servers")
}

impl LockFile {
    pub fn parse(text: &str) -> Result<Self, LockError> {
        let raw = parse_untrusted(text.trim()).ok_or(LockError::NotALock)?;
        let object = Object::parse(&raw).map_err(|_| LockError::NotALock)?;
        let version = object.get("version").ok_or(LockError::NotALock)?;
        if version.get() != VERSION.to_string() {
            return Err(LockError::UnsupportedVersion(version.get().chars().take(40).collect()));
        }
        let servers: BTreeMap<String, Raw> = object
            .get("servers")
            .and_then(|servers| serde_json::from_str(servers.get()).ok())
            .ok_or(LockError::NotALock)?;
        let mut lock = Self::default();
        for (name, entry) in servers {
            let invalid = |why: String| LockError::InvalidServer(name.clone(), why);
            let entry = Object::parse(&entry).map_err(|_| invalid("expected an object".to_owned()))?;
            let mut offer = ServerOffer { name: name.clone(), ..ServerOffer::default() };
            for kind in ItemKind::ALL {
                let Some(list) = entry.get(kind.list_key()) else { continue };
                let items = read_items(list, kind.list_key()).map_err(|error| invalid(error.to_string()))?;
                *offer.items_mut(kind) = Some(items);
            }
            offer.profile = read_profile(&entry);
            lock.servers.insert(name, offer);
        }
        Ok(lock)
    }

    /// Adds the offer of a server, or replaces it.
    pub fn set(&mut self, offer: ServerOffer) {
        self.servers.insert(offer.name.clone(), offer);
    }

    pub fn get(&self, server: &str) -> Option<&ServerOffer> {
        self.servers.get(server)
    }

    pub fn servers(&self) -> impl Iterator<Item = &ServerOffer> {
        self.servers.values()
    }

    pub fn into_offers(self) -> Vec<ServerOffer> {
        self.servers.into_values().collect()
    }

    /// The text of the file.
    pub fn render(&self) -> String {
        let mut out = format!("{{\n  \"version\": {VERSION},\n  \"servers\": {{");
        for (index, offer) in self.servers.values().enumerate() {
            start_line(index, 2, &mut out);
            write_string(&offer.name, &mut out);
            out.push_str(": ");
            write_offer(offer, 2, &mut out);
        }
        if !self.servers.is_empty() {
            end_lines(1, &mut out);
        }
        out.push_str("}\n}\n");
        out
    }
}

fn write_offer(offer: &ServerOffer, depth: usize, out: &mut String) {
    let mut profile: Vec<(&str, Raw)> = Vec::new();
    if let Some(about) = &offer.profile {
        let or_null = |raw: &Option<Raw>| raw.clone().unwrap_or_else(|| to_raw(&()));
        profile.push(("serverInfo", or_null(&about.info)));
        profile.push(("capabilities", or_null(&about.capabilities)));
        profile.push(("instructions", to_raw(&about.instructions)));
    }
    let lists: Vec<(&str, Raw)> = ItemKind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind.list_key(), to_raw(&sort_items(kind, offer.items(kind)?)))))
        .collect();
    let members: Vec<_> = profile.iter().chain(&lists).map(|(key, value)| (*key, &**value)).collect();
    write_members(&members, depth, out);
}

/// The items of a list, sorted by what identifies them.
fn sort_items(kind: ItemKind, items: &[Raw]) -> Vec<&Raw> {
    let mut sorted: Vec<(String, String, &Raw)> = items
        .iter()
        .map(|item| (text_member(item, kind.id_key()).unwrap_or_default(), canonical_text(item), item))
        .collect();
    sorted.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    sorted.into_iter().map(|(_, _, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use toolyard_hub::json::from_text;

    use super::{LockError, LockFile};
    use crate::offer::{OfferProfile, ServerOffer};

    fn offer(name: &str, tools: &[&str]) -> ServerOffer {
        let raw = |text: &&str| from_text((*text).to_owned());
        ServerOffer {
            name: name.to_owned(),
            profile: Some(OfferProfile {
                instructions: Some("Two\nlines.".to_owned()),
                ..OfferProfile::default()
            }),
            tools: Some(tools.iter().map(raw).collect()),
            prompts: Some(Vec::new()),
            resources: Some(Vec::new()),
            templates: Some(Vec::new()),
        }
    }

    #[test]
    fn the_order_of_the_server_does_not_matter() {
        let (one, other) = (r#"{"name":"b","x":1}"#, r#"{"name":"a","y":[1,2]}"#);
        let mut first = LockFile::default();
        first.set(offer("s", &[one, other]));
        first.set(offer("r", &[]));
        let mut second = LockFile::default();
        second.set(offer("r", &[]));
        second.set(offer("s", &[other, r#"{ "x" : 1, "name" : "b" }"#]));
        assert_eq!(first.render(), second.render());
        insta::assert_snapshot!(first.render());
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut lock = LockFile::default();
        lock.set(offer("s", &[r#"{"name":"b","n":12345678901234567890123,"e":1e400}"#]));
        let text = lock.render();
        let read = LockFile::parse(&text).unwrap();
        assert_eq!(read.render(), text);
        assert!(text.contains("12345678901234567890123") && text.contains("1e400"));
        assert_eq!(LockFile::parse(&LockFile::default().render()).unwrap().servers().count(), 0);
    }

    #[test]
    fn a_bad_file_is_refused_with_the_reason() {
        let error = |text: &str| LockFile::parse(text).unwrap_err();
        assert!(matches!(error(""), LockError::NotALock));
        assert!(matches!(error("<<<<<<< HEAD\n{}"), LockError::NotALock));
        assert!(matches!(error(r#"{"servers":{}}"#), LockError::NotALock));
        assert!(matches!(error(r#"{"version":1,"servers":[]}"#), LockError::NotALock));
        assert!(matches!(error(r#"{"version":2,"servers":{}}"#), LockError::UnsupportedVersion(_)));
        assert!(matches!(error(r#"{"version":"1","servers":{}}"#), LockError::UnsupportedVersion(_)));
        let wrong = error(r#"{"version":1,"servers":{"a":{"tools":[1]}}}"#);
        assert_eq!(wrong.to_string(), "the entry of server `a` is invalid: `tools` is not a list of objects");
    }
}
