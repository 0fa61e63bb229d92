//! The schemas that other schemas refer to. Each is converted once for requests and once for
//! responses, stored as text, and copied into the `definitions` of every tool that needs it.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use toolyard_hub::Raw;
use toolyard_hub::json::to_raw;

use super::flatten::FlatSchema;
use super::keywords::truncate;
use super::location::SpecPath;
use super::names::short_hash;
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::SchemaNode;
use crate::document::{ReferenceTarget, SpecDocument, SpecNode, SpecObject};

/// Identifies a schema that others refer to.
pub(super) type SchemaId = usize;

#[derive(Debug, Default)]
pub(super) struct SchemaInterner<'d> {
    by_target: HashMap<ReferenceTarget, SchemaId>,
    entries: Vec<Entry<'d>>,
    /// Resolved references by file. `None` for dangling references.
    references: Vec<HashMap<String, Option<SchemaId>>>,
    names: HashMap<String, SchemaId>,
}

#[derive(Debug)]
struct Entry<'d> {
    target: ReferenceTarget,
    value: Option<&'d SpecNode>,
    name: String,
    pieces: [Option<Rc<ConvertedSchema<'d>>>; 2],
    /// The schemas that this one refers to for the same value.
    same_value_references: Option<Rc<Vec<SchemaId>>>,
}

/// A converted schema and the schemas that it refers to.
#[derive(Debug)]
pub(super) struct ConvertedSchema<'d> {
    pub(super) value: SchemaNode<'d>,
    pub(super) text: Raw,
    pub(super) needs: Vec<SchemaId>,
    flat: OnceCell<Rc<FlatSchema<'d>>>,
}

impl<'d> ConvertedSchema<'d> {
    pub(super) fn flattened(&self) -> Rc<FlatSchema<'d>> {
        self.flat.get_or_init(|| Rc::new(FlatSchema::flatten(&self.value))).clone()
    }
}

/// Why a reference cannot be used.
pub(super) enum ReferenceError {
    Dangling(String),
    Cycle,
}

const MOST_HOPS: usize = 64;

impl<'d> SchemaInterner<'d> {
    pub(super) fn name(&self, key: SchemaId) -> &str {
        self.entries.get(key).map_or("", |entry| &entry.name)
    }

    pub(super) fn by_name(&self, name: &str) -> Option<SchemaId> {
        self.names.get(name).copied()
    }

    /// Returns the schema that a reference resolves to, at the end of a chain of references.
    pub(super) fn look_up(
        &mut self,
        document: &'d SpecDocument,
        part: usize,
        reference: &str,
    ) -> Result<SchemaId, ReferenceError> {
        if let Some(Some(key)) = self.references.get(part).and_then(|known| known.get(reference)) {
            return Ok(*key);
        }
        let mut target =
            document.index.find(&document.parts, part, reference).map_err(ReferenceError::Dangling)?;
        let mut hops = 0;
        while let Some(next) = bare_reference(value_at(document, &target)) {
            hops += 1;
            if hops > MOST_HOPS {
                return Err(ReferenceError::Cycle);
            }
            target =
                document.index.find(&document.parts, target.part, next).map_err(ReferenceError::Dangling)?;
        }
        let key = self.intern(document, target);
        if self.references.len() <= part {
            self.references.resize_with(part + 1, HashMap::new);
        }
        if let Some(known) = self.references.get_mut(part) {
            known.insert(reference.to_owned(), Some(key));
        }
        Ok(key)
    }

    fn intern(&mut self, document: &'d SpecDocument, target: ReferenceTarget) -> SchemaId {
        if let Some(key) = self.by_target.get(&target) {
            return *key;
        }
        let mut name = safe_definition_name(document, &target);
        if self.names.contains_key(&name) {
            name = format!("{name}_{}", short_hash(&format!("{} {}", target.part, target.pointer)));
        }
        let key = self.entries.len();
        self.names.insert(name.clone(), key);
        self.by_target.insert(target.clone(), key);
        let value = value_at(document, &target);
        self.entries.push(Entry { target, value, name, pieces: [None, None], same_value_references: None });
        key
    }

    pub(super) fn target(&self, key: SchemaId) -> Option<&ReferenceTarget> {
        self.entries.get(key).map(|entry| &entry.target)
    }

    /// Returns the file that contains the schema.
    pub(super) fn part(&self, key: SchemaId) -> usize {
        self.target(key).map_or(0, |target| target.part)
    }

    /// Returns the schema of the document.
    pub(super) fn value(&self, key: SchemaId) -> Option<&'d SpecNode> {
        self.entries.get(key)?.value
    }

    fn cached(&self, key: SchemaId, direction: SchemaDirection) -> Option<Rc<ConvertedSchema<'d>>> {
        self.entries.get(key).and_then(|entry| entry.pieces.get(direction as usize)).cloned().flatten()
    }

    fn cache(&mut self, key: SchemaId, direction: SchemaDirection, piece: Rc<ConvertedSchema<'d>>) {
        if let Some(place) =
            self.entries.get_mut(key).and_then(|entry| entry.pieces.get_mut(direction as usize))
        {
            *place = Some(piece);
        }
    }
}

impl<'d> SchemaConverter<'d> {
    /// Returns the converted schema.
    pub(super) fn converted_schema(
        &mut self,
        key: SchemaId,
        direction: SchemaDirection,
    ) -> Rc<ConvertedSchema<'d>> {
        if let Some(piece) = self.interner.cached(key, direction) {
            return piece;
        }
        let target =
            self.interner.target(key).cloned().unwrap_or(ReferenceTarget { part: 0, pointer: String::new() });
        let found = self.interner.value(key);
        let before = std::mem::take(&mut self.needs);
        let value = match found {
            Some(value) => self.in_definition(key, |schemas| {
                schemas.convert_schema(value, &SpecPath::from_target(&target), direction)
            }),
            None => SchemaNode::anything(),
        };
        let needs = std::mem::replace(&mut self.needs, before);
        let text = to_raw(&value);
        let piece = Rc::new(ConvertedSchema { value, text, needs, flat: OnceCell::new() });
        self.interner.cache(key, direction, piece.clone());
        piece
    }

    /// Whether a schema leads back to the same value by references alone, so that validation would
    /// never end.
    pub(super) fn is_reference_cycle(&mut self, from: SchemaId, to: SchemaId) -> bool {
        let mut waiting = vec![from];
        let mut seen = HashSet::from([from]);
        while let Some(key) = waiting.pop() {
            if key == to {
                return true;
            }
            for next in self.same_value_references(key).iter() {
                if seen.insert(*next) {
                    waiting.push(*next);
                }
            }
        }
        false
    }

    fn same_value_references(&mut self, key: SchemaId) -> Rc<Vec<SchemaId>> {
        if let Some(known) =
            self.interner.entries.get(key).and_then(|entry| entry.same_value_references.clone())
        {
            return known;
        }
        let mut keys = Vec::new();
        if let Some(value) = self.interner.value(key) {
            self.collect_same_value_references(value, self.interner.part(key), &mut keys);
        }
        let keys = Rc::new(keys);
        if let Some(entry) = self.interner.entries.get_mut(key) {
            entry.same_value_references = Some(keys.clone());
        }
        keys
    }

    fn collect_same_value_references(&mut self, value: &SpecNode, part: usize, keys: &mut Vec<SchemaId>) {
        let Some(members) = value.as_object() else { return };
        if let Some(reference) =
            members.get("$ref").or_else(|| members.get("$dynamicRef")).and_then(SpecNode::as_str)
            && let Ok(key) = self.interner.look_up(self.document, part, reference)
        {
            keys.push(key);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in members.get(keyword).and_then(SpecNode::as_array).into_iter().flatten() {
                self.collect_same_value_references(branch, part, keys);
            }
        }
        for keyword in ["not", "if", "then", "else"] {
            if let Some(branch) = members.get(keyword) {
                self.collect_same_value_references(branch, part, keys);
            }
        }
        for keyword in ["dependentSchemas", "dependencies"] {
            let branches = members.get(keyword).and_then(SpecNode::as_object);
            for branch in branches.into_iter().flat_map(SpecObject::values) {
                self.collect_same_value_references(branch, part, keys);
            }
        }
    }
}

pub(super) fn value_at<'d>(document: &'d SpecDocument, target: &ReferenceTarget) -> Option<&'d SpecNode> {
    document.parts.get(target.part).and_then(|part| part.value.pointer(&target.pointer))
}

/// Returns the reference of a schema that contains nothing else.
fn bare_reference(value: Option<&SpecNode>) -> Option<&str> {
    let members = value?.as_object()?;
    let reference = members.get("$ref")?.as_str()?;
    members.keys().all(|key| key == "$ref" || key.starts_with("x-")).then_some(reference)
}

/// Returns a name for `definitions` that never needs encoding. A whole file is named after the
/// file.
fn safe_definition_name(document: &SpecDocument, target: &ReferenceTarget) -> String {
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
        truncate(&plain, 80).replace(" …", "_")
    }
}
