//! Cuts a schema down to its budget. What does not fit is left out breadth first, so that what is near the root stays, and
//! the schema only ever allows more than it did.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::rc::Rc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use toolyard_hub::json::to_raw;

use super::draft::{Draft, Fields};
use super::pack::Packed;
use super::schema::{Direction, Schemas};
use super::split::{MAPS, Part, Slot, Split};

const COMMENT: &str = "Parts of this schema were left out to keep it small; they allow anything.";

impl<'d> Schemas<'d> {
    /// Takes in schema after schema, nearest first, until the budget is used up.
    pub(super) fn cut_down(&mut self, root: &Draft<'d>, direction: Direction, budget: usize) -> Packed {
        let mut tree = Tree::default();
        let root = Rc::new(Split::of(root));
        let mut waiting = VecDeque::from([Waiting { split: root, number: 0, under: Under::Root }]);
        let mut left = budget.saturating_sub(COMMENT.len() + 60);
        while let Some(Waiting { split, number, under }) = waiting.pop_front() {
            let Some(part) = split.part(number) else { continue };
            let root = matches!(under, Under::Root);
            if !root && part.cost > left {
                tree.elided.push(tree.label(&under));
                continue;
            }
            left = left.saturating_sub(part.cost);
            let node = tree.nodes.len();
            match &under {
                Under::Root => {}
                Under::Node(parent, place) => {
                    if let Some(slot) =
                        tree.nodes.get_mut(*parent).and_then(|parent| parent.below.get_mut(*place))
                    {
                        *slot = Some(node);
                    }
                }
                Under::Definition(name) => drop(tree.definitions.insert(name.clone(), node)),
            }
            if let Some(name) = &part.refers_to
                && !tree.met.contains(name)
            {
                tree.met.insert(name.clone());
                if let Some(key) = self.bank.by_name(name) {
                    let split = self.piece(key, direction).split();
                    left = left.saturating_sub(name.len() + 4);
                    waiting.push_back(Waiting { split, number: 0, under: Under::Definition(name.clone()) });
                }
            }
            for (place, (_, number)) in part.below.iter().enumerate() {
                let under = Under::Node(node, place);
                waiting.push_back(Waiting { split: split.clone(), number: *number, under });
            }
            let below = vec![None; part.below.len()];
            tree.nodes.push(Node { split, number, under, below });
        }
        let text = to_raw(&Rendered { tree: &tree, node: Some(0) });
        Packed { text, elided: tree.elided }
    }
}

struct Waiting<'d> {
    split: Rc<Split<'d>>,
    number: usize,
    under: Under,
}

enum Under {
    Root,
    Node(usize, usize),
    Definition(String),
}

/// What was taken in.
#[derive(Default)]
struct Tree<'d> {
    nodes: Vec<Node<'d>>,
    definitions: BTreeMap<String, usize>,
    met: HashSet<String>,
    elided: Vec<String>,
}

struct Node<'d> {
    split: Rc<Split<'d>>,
    number: usize,
    under: Under,
    /// Those of the part's places that were taken in.
    below: Vec<Option<usize>>,
}

impl<'d> Node<'d> {
    fn part(&self) -> Option<&Part<'d>> {
        self.split.part(self.number)
    }

    /// The places of the part, and what was taken in there.
    fn places(&self) -> impl Iterator<Item = (&Slot<'d>, Option<usize>)> {
        let slots = self.part().into_iter().flat_map(|part| &part.below).map(|(slot, _)| slot);
        slots.zip(self.below.iter().copied())
    }
}

impl Tree<'_> {
    /// The way to a place, from the root or from the definition that it is in.
    fn label(&self, under: &Under) -> String {
        let (mut steps, mut here) = (Vec::new(), under);
        loop {
            match here {
                Under::Root => break,
                Under::Definition(name) => {
                    steps.push(name.as_str());
                    break;
                }
                Under::Node(parent, place) => {
                    let Some(parent) = self.nodes.get(*parent) else { break };
                    let slot = parent.part().and_then(|part| part.below.get(*place));
                    steps.extend(slot.map(|(slot, _)| slot.step()));
                    here = &parent.under;
                }
            }
        }
        steps.reverse();
        steps.join(".")
    }
}

/// A schema as far as it was taken in; what was not allows anything.
struct Rendered<'t, 'd> {
    tree: &'t Tree<'d>,
    node: Option<usize>,
}

impl<'t, 'd> Rendered<'t, 'd> {
    fn below(&self, node: Option<usize>) -> Rendered<'t, 'd> {
        Rendered { tree: self.tree, node }
    }

    /// What was taken in here, unless it only refers to a definition that was not.
    fn node(&self) -> Option<(&'t Node<'d>, &'t Part<'d>)> {
        let node = self.tree.nodes.get(self.node?)?;
        let part = node.part()?;
        let lost = part.refers_to.as_ref().is_some_and(|name| !self.tree.definitions.contains_key(name));
        (!lost).then_some((node, part))
    }
}

impl Serialize for Rendered<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some((node, part)) = self.node() {
            for (key, value) in part.own.iter() {
                match value {
                    Draft::Object(lists) if MAPS.contains(&key) => {
                        map.serialize_entry(key, &Entries { of: self, node, key, lists })?;
                    }
                    _ => map.serialize_entry(key, value)?,
                }
            }
            let mut lists = Vec::new();
            for (slot, below) in node.places() {
                match slot {
                    Slot::One(key) => map.serialize_entry(key, &self.below(below))?,
                    Slot::List(key) if !lists.contains(key) => {
                        lists.push(*key);
                        map.serialize_entry(key, &Branches { of: self, node, key })?;
                    }
                    Slot::List(_) | Slot::Map(..) => {}
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
    of: &'a Rendered<'t, 'd>,
    node: &'t Node<'d>,
    key: &'a str,
}

impl Serialize for Branches<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.node.places().filter_map(|(slot, below)| match slot {
            Slot::List(key) if *key == self.key => Some(self.of.below(below)),
            _ => None,
        }))
    }
}

/// Schemas by name, such as those of `properties`; `lists` are those of them that are none.
struct Entries<'a, 't, 'd> {
    of: &'a Rendered<'t, 'd>,
    node: &'t Node<'d>,
    key: &'a str,
    lists: &'t Fields<'d>,
}

impl Serialize for Entries<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, list) in self.lists.iter() {
            map.serialize_entry(name, list)?;
        }
        for (slot, below) in self.node.places() {
            if let Slot::Map(key, name) = slot
                && *key == self.key
            {
                map.serialize_entry(name, &self.of.below(below))?;
            }
        }
        map.end()
    }
}

struct Definitions<'t, 'd>(&'t Tree<'d>);

impl Serialize for Definitions<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rendered = |node: &usize| Rendered { tree: self.0, node: Some(*node) };
        serializer.collect_map(self.0.definitions.iter().map(|(name, node)| (name, rendered(node))))
    }
}
