//! Puts a schema and the definitions that it needs together, within a budget. What does not fit is left out breadth first,
//! so that what is near the root stays, and the schema only ever allows more than it did.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::bank::{Key, Piece};
use super::schema::{Direction, Schemas};
use super::split::{Part, Slot, Split};

type Members = Map<String, Value>;

/// A schema with its definitions, as text.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) text: String,
    /// What was left out, by name, in the order in which it was met.
    pub(super) elided: Vec<String>,
}

const COMMENT: &str = "Parts of this schema were left out to keep it small; they allow anything.";
impl Schemas<'_> {
    /// `root` has no definitions yet; `needs` is what it refers to.
    pub(super) fn pack(
        &mut self,
        root: &Members,
        needs: &[Key],
        direction: Direction,
        budget: usize,
    ) -> Packed {
        let root = Value::Object(root.clone());
        let mut text = root.to_string();
        let mut order: Vec<(Key, Rc<Piece>)> = Vec::new();
        let mut seen: HashSet<Key> = HashSet::new();
        let mut waiting: VecDeque<Key> = needs.iter().copied().collect();
        let mut size = text.len();
        while let Some(key) = waiting.pop_front() {
            if !seen.insert(key) {
                continue;
            }
            let piece = self.piece(key, direction);
            size += piece.text.len() + self.bank.name(key).len() + 4;
            if size > budget {
                return self.cut_down(&root, direction, budget);
            }
            waiting.extend(piece.needs.iter().copied());
            order.push((key, piece));
        }
        if size > budget {
            return self.cut_down(&root, direction, budget);
        }
        if !order.is_empty() {
            text.pop();
            text.push_str(",\"definitions\":{");
            for (n, (key, piece)) in order.iter().enumerate() {
                if n > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(self.bank.name(*key)).to_string());
                text.push(':');
                text.push_str(&piece.text);
            }
            text.push_str("}}");
        }
        Packed { text, elided: Vec::new() }
    }

    /// Takes in schema after schema, nearest first, until the budget is used up.
    fn cut_down(&mut self, root: &Value, direction: Direction, budget: usize) -> Packed {
        let mut tree = Tree::default();
        let root = Rc::new(Split::of(root));
        let mut waiting =
            VecDeque::from([Waiting { split: root, number: 0, under: Under::Root, label: String::new() }]);
        let mut left = budget.saturating_sub(COMMENT.len() + 60);
        while let Some(Waiting { split, number, under, label }) = waiting.pop_front() {
            let Some(part) = split.part(number) else { continue };
            let root = matches!(under, Under::Root);
            if !root && part.cost > left {
                tree.elided.push(label);
                continue;
            }
            left = left.saturating_sub(part.cost);
            let node = tree.nodes.len();
            match under {
                Under::Root => {}
                Under::Node(parent, place) => {
                    if let Some(slot) =
                        tree.nodes.get_mut(parent).and_then(|parent| parent.below.get_mut(place))
                    {
                        *slot = Some(node);
                    }
                }
                Under::Definition(name) => drop(tree.definitions.insert(name, node)),
            }
            if let Some(name) = &part.refers_to
                && !tree.met.contains(name)
            {
                tree.met.insert(name.clone());
                if let Some(key) = self.bank.by_name(name) {
                    let split = self.piece(key, direction).split();
                    left = left.saturating_sub(name.len() + 4);
                    let under = Under::Definition(name.clone());
                    waiting.push_back(Waiting { split, number: 0, label: name.clone(), under });
                }
            }
            for (place, (slot, number)) in part.below.iter().enumerate() {
                let step = slot.step();
                let label = if label.is_empty() { step.to_owned() } else { format!("{label}.{step}") };
                let under = Under::Node(node, place);
                waiting.push_back(Waiting { split: split.clone(), number: *number, under, label });
            }
            let below = vec![None; part.below.len()];
            tree.nodes.push(Node { split, number, below });
        }
        tree.finish()
    }
}

struct Waiting {
    split: Rc<Split>,
    number: usize,
    under: Under,
    label: String,
}

enum Under {
    Root,
    Node(usize, usize),
    Definition(String),
}

/// What was taken in.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    definitions: BTreeMap<String, usize>,
    met: HashSet<String>,
    elided: Vec<String>,
}

struct Node {
    split: Rc<Split>,
    number: usize,
    /// Those of the part's places that were taken in.
    below: Vec<Option<usize>>,
}

impl Node {
    fn part(&self) -> Option<&Part> {
        self.split.part(self.number)
    }
}

impl Tree {
    fn finish(self) -> Packed {
        let Value::Object(mut root) = self.render(0) else {
            return Packed { text: "{\"type\":\"object\"}".to_owned(), elided: self.elided };
        };
        root.insert("$comment".to_owned(), Value::from(COMMENT));
        let definitions: Members =
            self.definitions.iter().map(|(name, node)| (name.clone(), self.render(*node))).collect();
        if !definitions.is_empty() {
            root.insert("definitions".to_owned(), Value::Object(definitions));
        }
        Packed { text: Value::Object(root).to_string(), elided: self.elided }
    }

    /// The schema as far as it was taken in; what was not allows anything.
    fn render(&self, node: usize) -> Value {
        let nothing = || Value::Object(Members::new());
        let Some((node, part)) = self.nodes.get(node).and_then(|node| Some((node, node.part()?))) else {
            return nothing();
        };
        if part.refers_to.as_ref().is_some_and(|name| !self.definitions.contains_key(name)) {
            return nothing();
        }
        let mut out = part.own.clone();
        for ((slot, _), below) in part.below.iter().zip(&node.below) {
            let value = below.map_or_else(nothing, |below| self.render(below));
            match slot {
                Slot::One(key) => drop(out.insert((*key).to_owned(), value)),
                Slot::List(key) => {
                    if let Value::Array(list) = out.entry(*key).or_insert_with(|| Value::Array(Vec::new())) {
                        list.push(value);
                    }
                }
                Slot::Map(key, name) => {
                    if let Value::Object(map) =
                        out.entry(*key).or_insert_with(|| Value::Object(Members::new()))
                    {
                        map.insert(name.clone(), value);
                    }
                }
            }
        }
        Value::Object(out)
    }
}
