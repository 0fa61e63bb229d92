//! Prunes a schema to its budget. Parts are kept breadth first, so that those near the root stay.
//! The result accepts every value that the full schema accepts.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::rc::Rc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use toolyard_hub::json::to_raw;

use super::bundle::SchemaBundle;
use super::flatten::{FlatSchema, MAPS, Subschema, SubschemaPosition};
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::{SchemaFields, SchemaNode};

const COMMENT: &str = "Parts of this schema were omitted to limit its size; they accept any value.";

impl<'d> SchemaConverter<'d> {
    /// Keeps subschemas, nearest first, until the budget is used up.
    pub(super) fn prune_to_budget(
        &mut self,
        root: &SchemaNode<'d>,
        direction: SchemaDirection,
        budget: usize,
    ) -> SchemaBundle {
        let mut tree = PrunedTree::default();
        let root = Rc::new(FlatSchema::flatten(root));
        let mut waiting =
            VecDeque::from([QueuedSubschema { split: root, number: 0, under: PrunedParent::Root }]);
        let mut left = budget.saturating_sub(COMMENT.len() + 60);
        while let Some(QueuedSubschema { split, number, under }) = waiting.pop_front() {
            let Some(part) = split.part(number) else { continue };
            let root = matches!(under, PrunedParent::Root);
            if !root && part.cost > left {
                tree.elided.push(tree.label(&under));
                continue;
            }
            left = left.saturating_sub(part.cost);
            let node = tree.nodes.len();
            match &under {
                PrunedParent::Root => {}
                PrunedParent::Node(parent, place) => {
                    if let Some(slot) =
                        tree.nodes.get_mut(*parent).and_then(|parent| parent.below.get_mut(*place))
                    {
                        *slot = Some(node);
                    }
                }
                PrunedParent::Definition(name) => drop(tree.definitions.insert(name.clone(), node)),
            }
            if let Some(name) = &part.refers_to
                && !tree.visited.contains(name)
            {
                tree.visited.insert(name.clone());
                if let Some(key) = self.interner.by_name(name) {
                    let split = self.converted_schema(key, direction).flattened();
                    left = left.saturating_sub(name.len() + 4);
                    waiting.push_back(QueuedSubschema {
                        split,
                        number: 0,
                        under: PrunedParent::Definition(name.clone()),
                    });
                }
            }
            for (place, (_, number)) in part.below.iter().enumerate() {
                let under = PrunedParent::Node(node, place);
                waiting.push_back(QueuedSubschema { split: split.clone(), number: *number, under });
            }
            let below = vec![None; part.below.len()];
            tree.nodes.push(PrunedNode { split, number, under, below });
        }
        let text = to_raw(&PrunedSchema { tree: &tree, node: Some(0) });
        SchemaBundle { text, elided: tree.elided }
    }
}

struct QueuedSubschema<'d> {
    split: Rc<FlatSchema<'d>>,
    number: usize,
    under: PrunedParent,
}

enum PrunedParent {
    Root,
    Node(usize, usize),
    Definition(String),
}

/// The subschemas that are kept.
#[derive(Default)]
struct PrunedTree<'d> {
    nodes: Vec<PrunedNode<'d>>,
    definitions: BTreeMap<String, usize>,
    visited: HashSet<String>,
    elided: Vec<String>,
}

struct PrunedNode<'d> {
    split: Rc<FlatSchema<'d>>,
    number: usize,
    under: PrunedParent,
    /// The nodes of the kept children, by position.
    below: Vec<Option<usize>>,
}

impl<'d> PrunedNode<'d> {
    fn part(&self) -> Option<&Subschema<'d>> {
        self.split.part(self.number)
    }

    /// Returns the positions of the part and the nodes that are kept there.
    fn positions(&self) -> impl Iterator<Item = (&SubschemaPosition<'d>, Option<usize>)> {
        let slots = self.part().into_iter().flat_map(|part| &part.below).map(|(slot, _)| slot);
        slots.zip(self.below.iter().copied())
    }
}

impl PrunedTree<'_> {
    /// Returns the path to a position, from the root or from its definition.
    fn label(&self, under: &PrunedParent) -> String {
        let (mut steps, mut position) = (Vec::new(), under);
        loop {
            match position {
                PrunedParent::Root => break,
                PrunedParent::Definition(name) => {
                    steps.push(name.as_str());
                    break;
                }
                PrunedParent::Node(parent, place) => {
                    let Some(parent) = self.nodes.get(*parent) else { break };
                    let slot = parent.part().and_then(|part| part.below.get(*place));
                    steps.extend(slot.map(|(slot, _)| slot.step()));
                    position = &parent.under;
                }
            }
        }
        steps.reverse();
        steps.join(".")
    }
}

/// Serializes the kept part of a schema. Omitted parts accept any value.
struct PrunedSchema<'t, 'd> {
    tree: &'t PrunedTree<'d>,
    node: Option<usize>,
}

impl<'t, 'd> PrunedSchema<'t, 'd> {
    fn child(&self, node: Option<usize>) -> PrunedSchema<'t, 'd> {
        PrunedSchema { tree: self.tree, node }
    }

    /// Returns the kept node, unless it only refers to a definition that was omitted.
    fn node(&self) -> Option<(&'t PrunedNode<'d>, &'t Subschema<'d>)> {
        let node = self.tree.nodes.get(self.node?)?;
        let part = node.part()?;
        let lost = part.refers_to.as_ref().is_some_and(|name| !self.tree.definitions.contains_key(name));
        (!lost).then_some((node, part))
    }
}

impl Serialize for PrunedSchema<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some((node, part)) = self.node() {
            for (key, value) in part.own.iter() {
                match value {
                    SchemaNode::Object(lists) if MAPS.contains(&key) => {
                        map.serialize_entry(key, &Entries { schema: self, node, key, lists })?;
                    }
                    _ => map.serialize_entry(key, value)?,
                }
            }
            let mut lists = Vec::new();
            for (slot, below) in node.positions() {
                match slot {
                    SubschemaPosition::One(key) => map.serialize_entry(key, &self.child(below))?,
                    SubschemaPosition::List(key) if !lists.contains(key) => {
                        lists.push(*key);
                        map.serialize_entry(key, &Branches { schema: self, node, key })?;
                    }
                    SubschemaPosition::List(_) | SubschemaPosition::Map(..) => {}
                }
            }
        }
        if self.node == Some(0) {
            map.serialize_entry("$comment", COMMENT)?;
            if !self.tree.definitions.is_empty() {
                map.serialize_entry("definitions", &Definitions(self.tree))?;
            }
        }
        map.end()
    }
}

/// A list of schemas, such as those of `anyOf`.
struct Branches<'a, 't, 'd> {
    schema: &'a PrunedSchema<'t, 'd>,
    node: &'t PrunedNode<'d>,
    key: &'a str,
}

impl Serialize for Branches<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.node.positions().filter_map(|(slot, below)| match slot {
            SubschemaPosition::List(key) if *key == self.key => Some(self.schema.child(below)),
            _ => None,
        }))
    }
}

/// Schemas by name, such as those of `properties`. `lists` holds the entries that are not schemas.
struct Entries<'a, 't, 'd> {
    schema: &'a PrunedSchema<'t, 'd>,
    node: &'t PrunedNode<'d>,
    key: &'a str,
    lists: &'t SchemaFields<'d>,
}

impl Serialize for Entries<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, list) in self.lists.iter() {
            map.serialize_entry(name, list)?;
        }
        for (slot, below) in self.node.positions() {
            if let SubschemaPosition::Map(key, name) = slot
                && *key == self.key
            {
                map.serialize_entry(name, &self.schema.child(below))?;
            }
        }
        map.end()
    }
}

struct Definitions<'t, 'd>(&'t PrunedTree<'d>);

impl Serialize for Definitions<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rendered = |node: &usize| PrunedSchema { tree: self.0, node: Some(*node) };
        serializer.collect_map(self.0.definitions.iter().map(|(name, node)| (name, rendered(node))))
    }
}
