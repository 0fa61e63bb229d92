//! Combines a schema with the definitions that it needs, within a size budget.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use toolyard_hub::Raw;
use toolyard_hub::json::to_raw;

use super::interner::{ConvertedSchema, SchemaId};
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::{SchemaFields, SchemaNode, json_size};

/// A schema with its definitions, as text.
#[derive(Debug)]
pub(super) struct SchemaBundle {
    pub(super) text: Raw,
    /// The labels of the parts that were omitted, in the order in which they were met.
    pub(super) elided: Vec<String>,
}

impl<'d> SchemaConverter<'d> {
    /// Bundles a schema. `root` has no definitions yet; `needs` lists those that it refers to.
    pub(super) fn bundle(
        &mut self,
        root: SchemaFields<'d>,
        needs: &[SchemaId],
        direction: SchemaDirection,
        budget: usize,
    ) -> SchemaBundle {
        let mut order: Vec<(SchemaId, Rc<ConvertedSchema<'d>>)> = Vec::new();
        let mut seen: HashSet<SchemaId> = HashSet::new();
        let mut waiting: VecDeque<SchemaId> = needs.iter().copied().collect();
        let mut size = json_size(&root);
        while let Some(key) = waiting.pop_front() {
            if !seen.insert(key) {
                continue;
            }
            let piece = self.converted_schema(key, direction);
            size += piece.text.get().len() + self.interner.name(key).len() + 4;
            if size > budget {
                break;
            }
            waiting.extend(piece.needs.iter().copied());
            order.push((key, piece));
        }
        if size > budget {
            return self.prune_to_budget(&SchemaNode::Object(root), direction, budget);
        }
        let definitions = order.iter().map(|(key, piece)| (self.interner.name(*key), &piece.text)).collect();
        SchemaBundle { text: to_raw(&CompleteSchema { root: &root, definitions }), elided: Vec::new() }
    }
}

/// Serializes a schema that fits with all its definitions.
struct CompleteSchema<'a, 'd> {
    root: &'a SchemaFields<'d>,
    definitions: Vec<(&'a str, &'a Raw)>,
}

impl Serialize for CompleteSchema<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.root.iter() {
            map.serialize_entry(key, value)?;
        }
        if !self.definitions.is_empty() {
            map.serialize_entry("definitions", &PairMap(&self.definitions))?;
        }
        map.end()
    }
}

/// Serializes names and values as an object.
struct PairMap<'a, V>(&'a [(&'a str, V)]);

impl<V: Serialize> Serialize for PairMap<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
