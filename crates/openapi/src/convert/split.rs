//! Takes a schema apart: what each schema in it says itself, what that weighs, and which ones stand inside it. A schema that
//! is cut down for many tools is taken apart once.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::draft::{Draft, Fields, weight};

const ONE: [&str; 5] = ["additionalItems", "contains", "additionalProperties", "propertyNames", "items"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "items"];
pub(super) const MAPS: [&str; 3] = ["properties", "patternProperties", "dependencies"];

/// A schema and all those inside it, breadth first; the first is the whole.
#[derive(Debug)]
pub(super) struct Split<'d> {
    parts: Vec<Part<'d>>,
}

/// A schema without those inside it.
#[derive(Debug, Default)]
pub(super) struct Part<'d> {
    pub(super) own: Fields<'d>,
    /// The places of those inside it, and which parts they are.
    pub(super) below: Vec<(Slot<'d>, usize)>,
    pub(super) cost: usize,
    pub(super) refers_to: Option<String>,
}

/// The place of a schema in the one around it.
#[derive(Debug)]
pub(super) enum Slot<'d> {
    One(&'static str),
    List(&'static str),
    Map(&'static str, Cow<'d, str>),
}

impl Slot<'_> {
    pub(super) fn step(&self) -> &str {
        match self {
            Self::One(key) | Self::List(key) => key,
            Self::Map(_, name) => name,
        }
    }
}

impl<'d> Split<'d> {
    pub(super) fn of(schema: &Draft<'d>) -> Self {
        let mut parts = Vec::new();
        let mut waiting = VecDeque::from([schema]);
        // The order in which they begin to wait is that in which they become parts.
        let mut met = 1;
        while let Some(schema) = waiting.pop_front() {
            let mut part = Part { cost: 2, ..Part::default() };
            for (key, value) in schema.as_object().into_iter().flat_map(Fields::entries) {
                part.take(key.clone(), value, |inside| {
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

    pub(super) fn part(&self, number: usize) -> Option<&Part<'d>> {
        self.parts.get(number)
    }
}

impl<'d> Part<'d> {
    /// Takes in one member; `leave` gives the number of a schema that is to become a part of its own.
    fn take<'v>(
        &mut self,
        key: Cow<'d, str>,
        value: &'v Draft<'d>,
        mut leave: impl FnMut(&'v Draft<'d>) -> usize,
    ) {
        // Examples go first. What forbids must go too: once a part of it allows more, the whole would allow less.
        if ["examples", "not", "if", "then", "else"].contains(&&*key) {
            return;
        }
        let known = |keys: &[&'static str]| {
            let key = if key == "oneOf" { "anyOf" } else { &*key };
            keys.iter().copied().find(|known| *known == key)
        };
        match (value, known(&ONE), known(&LISTS), known(&MAPS)) {
            (Draft::Object(_), Some(key), _, _) => {
                self.cost += key.len() + 6;
                self.below.push((Slot::One(key), leave(value)));
            }
            (Draft::List(values), _, Some(key), _) => {
                self.cost += key.len() + 6 + 3 * values.len();
                self.below.extend(values.iter().map(|value| (Slot::List(key), leave(value))));
            }
            (Draft::Object(values), _, _, Some(key)) => {
                self.cost += key.len() + 6;
                let mut lists = Fields::new();
                for (name, value) in values.entries() {
                    self.cost += name.len() + 8;
                    if value.as_object().is_some() {
                        self.below.push((Slot::Map(key, name.clone()), leave(value)));
                    } else {
                        self.cost += weight(value);
                        lists.put(name.clone(), value.clone());
                    }
                }
                self.own.put(key, lists);
            }
            _ => {
                self.cost += key.len() + 4 + weight(value);
                self.own.put(key, value.clone());
            }
        }
    }
}

fn referred<'f>(own: &'f Fields<'_>) -> Option<&'f str> {
    own.text("$ref")?.strip_prefix("#/definitions/")
}
