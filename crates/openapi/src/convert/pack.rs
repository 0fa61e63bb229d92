//! Puts a schema and the definitions that it needs together, within a budget. What does not fit is left out breadth first,
//! so that what is near the root stays, and the schema only ever allows more than it did.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::bank::{Key, Piece};
use super::schema::{Direction, Schemas};

type Members = Map<String, Value>;

/// A schema with its definitions, as text.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) text: String,
    /// What was left out, by name, in the order in which it was met.
    pub(super) elided: Vec<String>,
}

const COMMENT: &str = "Parts of this schema were left out to keep it small; they allow anything.";
const ONE: [&str; 5] = ["additionalItems", "contains", "additionalProperties", "propertyNames", "items"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "items"];
const MAPS: [&str; 3] = ["properties", "patternProperties", "dependencies"];

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
                return self.cut_down(root, direction, budget);
            }
            waiting.extend(piece.needs.iter().copied());
            order.push((key, piece));
        }
        if size > budget {
            return self.cut_down(root, direction, budget);
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
    fn cut_down(&mut self, root: Value, direction: Direction, budget: usize) -> Packed {
        let mut tree = Tree::default();
        let mut waiting = VecDeque::from([Waiting { value: root, under: Under::Root, label: String::new() }]);
        let mut left = budget.saturating_sub(COMMENT.len() + 60);
        while let Some(Waiting { value, under, label }) = waiting.pop_front() {
            let apart = take_apart(value, &label);
            let root = matches!(under, Under::Root);
            if !root && apart.cost > left {
                tree.elide(label);
                continue;
            }
            left = left.saturating_sub(apart.cost);
            let node = tree.nodes.len();
            match under {
                Under::Root => {}
                Under::Node(parent, place) => {
                    if let Some(slot) =
                        tree.nodes.get_mut(parent).and_then(|parent| parent.below.get_mut(place))
                    {
                        slot.1 = Some(node);
                    }
                }
                Under::Definition(name) => drop(tree.definitions.insert(name, node)),
            }
            if let Some(name) = apart.refers_to
                && tree.met.insert(name.clone())
                && let Some(key) = self.bank.by_name(&name)
            {
                let value = self.piece(key, direction).value.clone();
                let room = name.len() + 4;
                left = left.saturating_sub(room);
                waiting.push_back(Waiting { value, label: name.clone(), under: Under::Definition(name) });
            }
            let mut below = Vec::with_capacity(apart.children.len());
            for (place, (slot, value, label)) in apart.children.into_iter().enumerate() {
                below.push((slot, None));
                waiting.push_back(Waiting { value, under: Under::Node(node, place), label });
            }
            tree.nodes.push(Node { own: apart.own, below });
        }
        tree.finish()
    }
}

struct Waiting {
    value: Value,
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
    own: Members,
    below: Vec<(Slot, Option<usize>)>,
}

/// The place of a schema in the one around it.
enum Slot {
    One(&'static str),
    List(&'static str),
    Map(&'static str, String),
}

impl Tree {
    fn elide(&mut self, label: String) {
        self.elided.push(label);
    }

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
        let Some(node) = self.nodes.get(node) else { return Value::Object(Members::new()) };
        if let Some(name) = referred(&node.own)
            && !self.definitions.contains_key(name)
        {
            return Value::Object(Members::new());
        }
        let mut out = node.own.clone();
        for (slot, below) in &node.below {
            let value = below.map_or_else(|| Value::Object(Members::new()), |below| self.render(below));
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

/// A schema without those inside it.
struct Apart {
    own: Members,
    children: Vec<(Slot, Value, String)>,
    cost: usize,
    refers_to: Option<String>,
}

fn take_apart(value: Value, label: &str) -> Apart {
    let mut own = Members::new();
    let mut children = Vec::new();
    let mut cost = 2;
    let Value::Object(members) = value else {
        return Apart { own, children, cost, refers_to: None };
    };
    let named = |step: &str| if label.is_empty() { step.to_owned() } else { format!("{label}.{step}") };
    for (key, value) in members {
        // Examples go first. What forbids must go too: once a part of it allows more, the whole would allow less.
        if ["examples", "not", "if", "then", "else"].contains(&key.as_str()) {
            continue;
        }
        let key = if key == "oneOf" { "anyOf".to_owned() } else { key };
        let one = ONE.iter().copied().find(|known| *known == key);
        let list = LISTS.iter().copied().find(|known| *known == key);
        let map = MAPS.iter().copied().find(|known| *known == key);
        match (value, one, list, map) {
            (value @ Value::Object(_), Some(key), _, _) => {
                cost += key.len() + 6;
                children.push((Slot::One(key), value, named(key)));
            }
            (Value::Array(values), _, Some(key), _) => {
                cost += key.len() + 6;
                for value in values {
                    cost += 3;
                    children.push((Slot::List(key), value, named(key)));
                }
            }
            (Value::Object(values), _, _, Some(key)) => {
                cost += key.len() + 6;
                let mut lists = Members::new();
                for (name, value) in values {
                    cost += name.len() + 8;
                    if value.is_object() {
                        let label = named(&name);
                        children.push((Slot::Map(key, name), value, label));
                    } else {
                        cost += value.to_string().len();
                        lists.insert(name, value);
                    }
                }
                own.insert(key.to_owned(), Value::Object(lists));
            }
            (value, ..) => {
                cost += key.len() + 4 + value.to_string().len();
                own.insert(key, value);
            }
        }
    }
    let refers_to = referred(&own).map(str::to_owned);
    Apart { own, children, cost, refers_to }
}

fn referred(own: &Members) -> Option<&str> {
    own.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix("#/definitions/"))
}
