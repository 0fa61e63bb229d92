//! Puts a schema and the definitions that it needs together, within a budget.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use toolyard_hub::Raw;
use toolyard_hub::json::to_raw;

use super::bank::{Key, Piece};
use super::draft::{Draft, Fields, weight};
use super::schema::{Direction, Schemas};

/// A schema with its definitions, as text.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) text: Raw,
    /// What was left out, by name, in the order in which it was met.
    pub(super) elided: Vec<String>,
}

impl<'d> Schemas<'d> {
    /// `root` has no definitions yet; `needs` is what it refers to.
    pub(super) fn pack(
        &mut self,
        root: Fields<'d>,
        needs: &[Key],
        direction: Direction,
        budget: usize,
    ) -> Packed {
        let mut order: Vec<(Key, Rc<Piece<'d>>)> = Vec::new();
        let mut seen: HashSet<Key> = HashSet::new();
        let mut waiting: VecDeque<Key> = needs.iter().copied().collect();
        let mut size = weight(&root);
        while let Some(key) = waiting.pop_front() {
            if !seen.insert(key) {
                continue;
            }
            let piece = self.piece(key, direction);
            size += piece.text.get().len() + self.bank.name(key).len() + 4;
            if size > budget {
                break;
            }
            waiting.extend(piece.needs.iter().copied());
            order.push((key, piece));
        }
        if size > budget {
            return self.cut_down(&Draft::Object(root), direction, budget);
        }
        let definitions = order.iter().map(|(key, piece)| (self.bank.name(*key), &piece.text)).collect();
        Packed { text: to_raw(&Whole { root: &root, definitions }), elided: Vec::new() }
    }
}

/// A schema that fits, with all its definitions.
struct Whole<'a, 'd> {
    root: &'a Fields<'d>,
    definitions: Vec<(&'a str, &'a Raw)>,
}

impl Serialize for Whole<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.root.iter() {
            map.serialize_entry(key, value)?;
        }
        if !self.definitions.is_empty() {
            map.serialize_entry("definitions", &Listed(&self.definitions))?;
        }
        map.end()
    }
}

/// Names with their values, as an object.
struct Listed<'a, V>(&'a [(&'a str, V)]);

impl<V: Serialize> Serialize for Listed<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
