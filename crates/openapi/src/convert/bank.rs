//! The schemas that others refer to. Each is converted once for requests and once for answers, kept as text, and put
//! into the `definitions` of every tool that needs it.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use toolyard_hub::Raw;
use toolyard_hub::json::to_raw;

use super::draft::Draft;
use super::keywords::cut;
use super::names::short_hash;
use super::schema::{Direction, Schemas};
use super::split::Split;
use super::spot::At;
use crate::document::{Document, Members, Node, Target};

/// One of the schemas that others refer to.
pub(super) type Key = usize;

#[derive(Debug, Default)]
pub(super) struct Bank<'d> {
    by_target: HashMap<Target, Key>,
    entries: Vec<Entry<'d>>,
    /// Where references lead, by file; none for those that lead nowhere.
    references: Vec<HashMap<String, Option<Key>>>,
    names: HashMap<String, Key>,
}

#[derive(Debug)]
struct Entry<'d> {
    target: Target,
    value: Option<&'d Node>,
    name: String,
    pieces: [Option<Rc<Piece<'d>>>; 2],
    /// What this one says about the very same value, by reference.
    beside: Option<Rc<Vec<Key>>>,
}

/// A converted schema, and what it refers to.
#[derive(Debug)]
pub(super) struct Piece<'d> {
    pub(super) value: Draft<'d>,
    pub(super) text: Raw,
    pub(super) needs: Vec<Key>,
    split: OnceCell<Rc<Split<'d>>>,
}

impl<'d> Piece<'d> {
    pub(super) fn split(&self) -> Rc<Split<'d>> {
        self.split.get_or_init(|| Rc::new(Split::of(&self.value))).clone()
    }
}

/// Why a reference is not one.
pub(super) enum Astray {
    Dangling(String),
    Cycle,
}

const MOST_HOPS: usize = 64;

impl<'d> Bank<'d> {
    pub(super) fn name(&self, key: Key) -> &str {
        self.entries.get(key).map_or("", |entry| &entry.name)
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Key> {
        self.names.get(name).copied()
    }

    /// The schema that a reference means: the end of the chain, if one reference leads to another.
    pub(super) fn look_up(
        &mut self,
        document: &'d Document,
        part: usize,
        reference: &str,
    ) -> Result<Key, Astray> {
        if let Some(Some(key)) = self.references.get(part).and_then(|known| known.get(reference)) {
            return Ok(*key);
        }
        let mut target = document.index.find(&document.parts, part, reference).map_err(Astray::Dangling)?;
        let mut hops = 0;
        while let Some(next) = only_a_reference(value_at(document, &target)) {
            hops += 1;
            if hops > MOST_HOPS {
                return Err(Astray::Cycle);
            }
            target = document.index.find(&document.parts, target.part, next).map_err(Astray::Dangling)?;
        }
        let key = self.enter(document, target);
        if self.references.len() <= part {
            self.references.resize_with(part + 1, HashMap::new);
        }
        if let Some(known) = self.references.get_mut(part) {
            known.insert(reference.to_owned(), Some(key));
        }
        Ok(key)
    }

    fn enter(&mut self, document: &'d Document, target: Target) -> Key {
        if let Some(key) = self.by_target.get(&target) {
            return *key;
        }
        let mut name = plain_name(document, &target);
        if self.names.contains_key(&name) {
            name = format!("{name}_{}", short_hash(&format!("{} {}", target.part, target.pointer)));
        }
        let key = self.entries.len();
        self.names.insert(name.clone(), key);
        self.by_target.insert(target.clone(), key);
        let value = value_at(document, &target);
        self.entries.push(Entry { target, value, name, pieces: [None, None], beside: None });
        key
    }

    pub(super) fn target(&self, key: Key) -> Option<&Target> {
        self.entries.get(key).map(|entry| &entry.target)
    }

    /// The file that it is in.
    pub(super) fn part(&self, key: Key) -> usize {
        self.target(key).map_or(0, |target| target.part)
    }

    /// The schema as the document has it.
    pub(super) fn value(&self, key: Key) -> Option<&'d Node> {
        self.entries.get(key)?.value
    }

    fn kept(&self, key: Key, direction: Direction) -> Option<Rc<Piece<'d>>> {
        self.entries.get(key).and_then(|entry| entry.pieces.get(direction as usize)).cloned().flatten()
    }

    fn keep(&mut self, key: Key, direction: Direction, piece: Rc<Piece<'d>>) {
        if let Some(place) =
            self.entries.get_mut(key).and_then(|entry| entry.pieces.get_mut(direction as usize))
        {
            *place = Some(piece);
        }
    }
}

impl<'d> Schemas<'d> {
    /// The converted schema behind a key.
    pub(super) fn piece(&mut self, key: Key, direction: Direction) -> Rc<Piece<'d>> {
        if let Some(piece) = self.bank.kept(key, direction) {
            return piece;
        }
        let target = self.bank.target(key).cloned().unwrap_or(Target { part: 0, pointer: String::new() });
        let found = self.bank.value(key);
        let before = std::mem::take(&mut self.needs);
        let value = match found {
            Some(value) => self.within(key, |schemas| schemas.schema(value, &At::of(&target), direction)),
            None => Draft::anything(),
        };
        let needs = std::mem::replace(&mut self.needs, before);
        let text = to_raw(&value);
        let piece = Rc::new(Piece { value, text, needs, split: OnceCell::new() });
        self.bank.keep(key, direction, piece.clone());
        piece
    }

    /// Whether a schema, by references alone, comes back to the same value: checking it would never end.
    pub(super) fn comes_back(&mut self, from: Key, to: Key) -> bool {
        let mut waiting = vec![from];
        let mut seen = HashSet::from([from]);
        while let Some(key) = waiting.pop() {
            if key == to {
                return true;
            }
            for next in self.beside(key).iter() {
                if seen.insert(*next) {
                    waiting.push(*next);
                }
            }
        }
        false
    }

    fn beside(&mut self, key: Key) -> Rc<Vec<Key>> {
        if let Some(known) = self.bank.entries.get(key).and_then(|entry| entry.beside.clone()) {
            return known;
        }
        let mut keys = Vec::new();
        if let Some(value) = self.bank.value(key) {
            self.beside_in(value, self.bank.part(key), &mut keys);
        }
        let keys = Rc::new(keys);
        if let Some(entry) = self.bank.entries.get_mut(key) {
            entry.beside = Some(keys.clone());
        }
        keys
    }

    fn beside_in(&mut self, value: &Node, part: usize, keys: &mut Vec<Key>) {
        let Some(members) = value.as_object() else { return };
        if let Some(reference) =
            members.get("$ref").or_else(|| members.get("$dynamicRef")).and_then(Node::as_str)
            && let Ok(key) = self.bank.look_up(self.document, part, reference)
        {
            keys.push(key);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in members.get(keyword).and_then(Node::as_array).into_iter().flatten() {
                self.beside_in(branch, part, keys);
            }
        }
        for keyword in ["not", "if", "then", "else"] {
            if let Some(branch) = members.get(keyword) {
                self.beside_in(branch, part, keys);
            }
        }
        for keyword in ["dependentSchemas", "dependencies"] {
            let branches = members.get(keyword).and_then(Node::as_object);
            for branch in branches.into_iter().flat_map(Members::values) {
                self.beside_in(branch, part, keys);
            }
        }
    }
}

pub(super) fn value_at<'d>(document: &'d Document, target: &Target) -> Option<&'d Node> {
    document.parts.get(target.part).and_then(|part| part.value.pointer(&target.pointer))
}

/// Where a schema leads that says nothing itself.
fn only_a_reference(value: Option<&Node>) -> Option<&str> {
    let members = value?.as_object()?;
    let reference = members.get("$ref")?.as_str()?;
    members.keys().all(|key| key == "$ref" || key.starts_with("x-")).then_some(reference)
}

/// A name for `definitions` that needs no encoding anywhere. A whole file is called after the file.
fn plain_name(document: &Document, target: &Target) -> String {
    let last = match target.pointer.rsplit('/').next() {
        Some(last) if !last.is_empty() => last.replace("~1", "/").replace("~0", "~"),
        _ => {
            let file = document.parts.get(target.part).map_or("", |part| &part.name);
            let file = file.rsplit(['/', '\\']).next().unwrap_or_default();
            file.split_once('.').map_or(file, |(stem, _)| stem).to_owned()
        }
    };
    let plain: String = last
        .chars()
        .map(
            |character| {
                if character.is_ascii_alphanumeric() || "._-".contains(character) { character } else { '_' }
            },
        )
        .collect();
    if plain.trim_matches('_').is_empty() {
        format!("schema_{}", short_hash(&target.pointer))
    } else {
        cut(&plain, 80).replace(" …", "_")
    }
}
