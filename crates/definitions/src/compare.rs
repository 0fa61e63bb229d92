//! Compares what servers offer: every difference, whether it breaks clients, and why.
//!
//! Arguments flow to the server, so a tool that accepts more is compatible. Results flow to the
//! client, so a tool that returns more than it promised breaks clients.

mod describe;
mod item;
mod profile;
mod report;
mod schema;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::canonical::canonical_text;
use crate::offer::{Item, ItemKind, ServerOffer, identify};

pub use report::{render_changes_as_markdown, render_changes_as_text};

/// What a change means for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeClass {
    /// Only text that people and models read.
    Wording,
    /// Everything that worked still works.
    Compatible,
    /// Something that worked can fail, or cannot be shown to still work.
    Breaking,
}

impl ChangeClass {
    pub const ALL: [Self; 3] = [Self::Breaking, Self::Compatible, Self::Wording];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Breaking => "breaking",
            Self::Compatible => "compatible",
            Self::Wording => "wording",
        }
    }
}

/// What a change is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedItem {
    /// The server. Empty if there is only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The kind of the item. `None` for the server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ItemKind>,
    /// The name or URI. Empty for the server itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// One difference between two offers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferChange {
    pub class: ChangeClass,
    #[serde(flatten)]
    pub item: ChangedItem,
    /// A JSON pointer into the definition. Empty for the item as a whole.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// What changed, and why it has this class, as one sentence.
    pub reason: String,
    /// Whether compatibility could not be decided.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

/// A change before its item is known.
#[derive(Debug)]
struct ItemChange {
    class: ChangeClass,
    path: String,
    before: Option<Value>,
    after: Option<Value>,
    reason: String,
    undecided: bool,
}

impl ItemChange {
    fn new(class: ChangeClass, path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { class, path: path.into(), before: None, after: None, reason: reason.into(), undecided: false }
    }

    fn with_values(self, before: Option<&Value>, after: Option<&Value>) -> Self {
        Self { before: before.cloned(), after: after.cloned(), ..self }
    }

    fn about(self, item: &ChangedItem) -> OfferChange {
        let Self { class, path, before, after, reason, undecided } = self;
        OfferChange { class, item: item.clone(), path, before, after, reason, undecided }
    }
}

/// Compares two lists of offers. Servers are matched by name, except if each side has only one.
pub fn compare_offers(old: &[ServerOffer], new: &[ServerOffer]) -> Vec<OfferChange> {
    let mut changes = Vec::new();
    if let ([old], [new]) = (old, new) {
        compare_servers(old, new, "", &mut changes);
    } else {
        compare_named_servers(old, new, &mut changes);
    }
    changes.sort_by(|one, other| {
        (&one.item.server, one.item.kind, &one.item.name)
            .cmp(&(&other.item.server, other.item.kind, &other.item.name))
            .then(other.class.cmp(&one.class))
            .then_with(|| one.path.cmp(&other.path))
    });
    changes
}

/// Compares two lists of offers, and names the server of each change.
pub fn compare_named_offers(old: &[ServerOffer], new: &[ServerOffer]) -> Vec<OfferChange> {
    let mut changes = Vec::new();
    compare_named_servers(old, new, &mut changes);
    changes
}

fn compare_named_servers(old: &[ServerOffer], new: &[ServerOffer], changes: &mut Vec<OfferChange>) {
    let by_name = |offers: &[ServerOffer]| -> BTreeMap<String, usize> {
        offers.iter().enumerate().map(|(index, offer)| (offer.name.clone(), index)).collect()
    };
    let (before, after) = (by_name(old), by_name(new));
    for (name, index) in &before {
        match after.get(name) {
            Some(other) => compare_servers(&old[*index], &new[*other], name, changes),
            None => changes.push(server_change(name, ChangeClass::Breaking, "the server was removed")),
        }
    }
    for name in after.keys().filter(|name| !before.contains_key(*name)) {
        changes.push(server_change(name, ChangeClass::Compatible, "the server was added"));
    }
}

fn server_change(server: &str, class: ChangeClass, reason: &str) -> OfferChange {
    let item = ChangedItem { server: server.to_owned(), kind: None, name: String::new() };
    ItemChange::new(class, "", reason).about(&item)
}

fn compare_servers(old: &ServerOffer, new: &ServerOffer, server: &str, changes: &mut Vec<OfferChange>) {
    if let (Some(before), Some(after)) = (&old.profile, &new.profile) {
        let item = ChangedItem { server: server.to_owned(), kind: None, name: String::new() };
        changes
            .extend(profile::compare_profiles(before, after).into_iter().map(|change| change.about(&item)));
    }
    for kind in ItemKind::ALL {
        if let (Some(before), Some(after)) = (old.items(kind), new.items(kind)) {
            compare_lists(kind, &identify(kind, before), &identify(kind, after), server, changes);
        }
    }
}

fn compare_lists(
    kind: ItemKind,
    old: &[(String, Item<'_>)],
    new: &[(String, Item<'_>)],
    server: &str,
    changes: &mut Vec<OfferChange>,
) {
    type ByIdentity<'l, 'i> = BTreeMap<(&'l str, usize), Item<'i>>;
    fn index<'l, 'i>(list: &'l [(String, Item<'i>)]) -> ByIdentity<'l, 'i> {
        list.iter().map(|(id, item)| ((id.as_str(), item.repetition), *item)).collect()
    }
    let (before, after) = (index(old), index(new));
    let about =
        |name: &str| ChangedItem { server: server.to_owned(), kind: Some(kind), name: name.to_owned() };
    let removed: Vec<_> = before.iter().filter(|(id, _)| !after.contains_key(*id)).collect();
    let added: Vec<_> = after.iter().filter(|(id, _)| !before.contains_key(*id)).collect();
    // The items of the new list by what they are apart from their name.
    let mut renamed: BTreeMap<String, &str> = BTreeMap::new();
    for ((name, _), item) in &added {
        if let Some(essence) = item::essence(kind, item.definition) {
            renamed.entry(essence).or_insert(name);
        }
    }
    let mut origins: BTreeMap<&str, &str> = BTreeMap::new();
    for ((name, _), item) in removed {
        let essence = item::essence(kind, item.definition);
        let target = essence.and_then(|essence| renamed.get(&essence).copied());
        let note =
            target.map(|target| format!("; `{target}` has the same definition, so it may be a rename"));
        origins.extend(target.map(|target| (target, *name)));
        let reason = format!("the {} was removed{}", kind.as_str(), note.unwrap_or_default());
        changes.push(ItemChange::new(ChangeClass::Breaking, "", reason).about(&about(name)));
    }
    for ((name, _), _) in added {
        let note = origins
            .get(name)
            .map(|origin| format!("; it has the definition of `{origin}`, which was removed"));
        let reason = format!("the {} was added{}", kind.as_str(), note.unwrap_or_default());
        changes.push(ItemChange::new(ChangeClass::Compatible, "", reason).about(&about(name)));
    }
    for (id, old) in &before {
        let Some(new) = after.get(id) else { continue };
        if old.definition.get() == new.definition.get()
            || canonical_text(old.definition) == canonical_text(new.definition)
        {
            continue;
        }
        let found = item::compare_items(kind, old.definition, new.definition);
        changes.extend(found.into_iter().map(|change| change.about(&about(id.0))));
    }
}

#[cfg(test)]
mod tests;
