//! Takes a schema apart: what each schema in it says itself, what that weighs, and which ones stand inside it. A schema that
//! is cut down for many tools is taken apart once.

use std::collections::VecDeque;

use serde_json::{Map, Value};

type Members = Map<String, Value>;

const ONE: [&str; 5] = ["additionalItems", "contains", "additionalProperties", "propertyNames", "items"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "items"];
const MAPS: [&str; 3] = ["properties", "patternProperties", "dependencies"];

/// A schema and all those inside it, breadth first; the first is the whole.
#[derive(Debug)]
pub(super) struct Split {
    parts: Vec<Part>,
}

/// A schema without those inside it.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) own: Members,
    /// The places of those inside it, and which parts they are.
    pub(super) below: Vec<(Slot, usize)>,
    pub(super) cost: usize,
    pub(super) refers_to: Option<String>,
}

/// The place of a schema in the one around it.
#[derive(Debug)]
pub(super) enum Slot {
    One(&'static str),
    List(&'static str),
    Map(&'static str, String),
}

impl Slot {
    pub(super) fn step(&self) -> &str {
        match self {
            Self::One(key) | Self::List(key) => key,
            Self::Map(_, name) => name,
        }
    }
}

impl Split {
    pub(super) fn of(schema: &Value) -> Self {
        let mut parts = Vec::new();
        let mut waiting = VecDeque::from([schema]);
        // The order in which they begin to wait is that in which they become parts.
        let mut met = 1;
        while let Some(schema) = waiting.pop_front() {
            let mut part = Part { cost: 2, ..Part::default() };
            for (key, value) in schema.as_object().into_iter().flatten() {
                part.take(key, value, |inside| {
                    waiting.push_back(inside);
                    met += 1;
                    met - 1
                });
            }
            part.refers_to = referred(&part.own).map(str::to_owned);
            parts.push(part);
        }
        Self { parts }
    }

    pub(super) fn part(&self, number: usize) -> Option<&Part> {
        self.parts.get(number)
    }
}

impl Part {
    /// Takes in one member; `leave` gives the number of a schema that is to become a part of its own.
    fn take<'v>(&mut self, key: &'v str, value: &'v Value, mut leave: impl FnMut(&'v Value) -> usize) {
        // Examples go first. What forbids must go too: once a part of it allows more, the whole would allow less.
        if ["examples", "not", "if", "then", "else"].contains(&key) {
            return;
        }
        let key = if key == "oneOf" { "anyOf" } else { key };
        let known = |keys: &[&'static str]| keys.iter().copied().find(|known| *known == key);
        match (value, known(&ONE), known(&LISTS), known(&MAPS)) {
            (Value::Object(_), Some(key), _, _) => {
                self.cost += key.len() + 6;
                self.below.push((Slot::One(key), leave(value)));
            }
            (Value::Array(values), _, Some(key), _) => {
                self.cost += key.len() + 6 + 3 * values.len();
                self.below.extend(values.iter().map(|value| (Slot::List(key), leave(value))));
            }
            (Value::Object(values), _, _, Some(key)) => {
                self.cost += key.len() + 6;
                let mut lists = Members::new();
                for (name, value) in values {
                    self.cost += name.len() + 8;
                    if value.is_object() {
                        self.below.push((Slot::Map(key, name.clone()), leave(value)));
                    } else {
                        self.cost += value.to_string().len();
                        lists.insert(name.clone(), value.clone());
                    }
                }
                self.own.insert(key.to_owned(), Value::Object(lists));
            }
            _ => {
                self.cost += key.len() + 4 + value.to_string().len();
                self.own.insert(key.to_owned(), value.clone());
            }
        }
    }
}

fn referred(own: &Members) -> Option<&str> {
    own.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix("#/definitions/"))
}
