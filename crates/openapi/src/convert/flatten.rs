//! Takes a schema apart: what each schema in it says itself, what that weighs, and which ones stand inside it. A schema that
//! is cut down for many tools is taken apart once.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::schema_node::{SchemaFields, SchemaNode, json_size};

const ONE: [&str; 5] = ["additionalItems", "contains", "additionalProperties", "propertyNames", "items"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "items"];
pub(super) const MAPS: [&str; 3] = ["properties", "patternProperties", "dependencies"];

/// A schema and all those inside it, breadth first; the first is the whole.
#[derive(Debug)]
pub(super) struct FlatSchema<'d> {
    parts: Vec<Subschema<'d>>,
}

/// A schema without those inside it.
#[derive(Debug, Default)]
pub(super) struct Subschema<'d> {
    pub(super) own: SchemaFields<'d>,
    /// The places of those inside it, and which parts they are.
    pub(super) below: Vec<(SubschemaPosition<'d>, usize)>,
    pub(super) cost: usize,
    pub(super) refers_to: Option<String>,
}

/// The place of a schema in the one around it.
#[derive(Debug)]
pub(super) enum SubschemaPosition<'d> {
    One(&'static str),
    List(&'static str),
    Map(&'static str, Cow<'d, str>),
}

impl SubschemaPosition<'_> {
    pub(super) fn step(&self) -> &str {
        match self {
            Self::One(key) | Self::List(key) => key,
            Self::Map(_, name) => name,
        }
    }
}

impl<'d> FlatSchema<'d> {
    pub(super) fn flatten(schema: &SchemaNode<'d>) -> Self {
        let mut parts = Vec::new();
        let mut waiting = VecDeque::from([schema]);
        // The order in which they begin to wait is that in which they become parts.
        let mut met = 1;
        while let Some(schema) = waiting.pop_front() {
            let mut part = Subschema { cost: 2, ..Subschema::default() };
            for (key, value) in schema.as_object().into_iter().flat_map(SchemaFields::entries) {
                part.add_member(key.clone(), value, |inside| {
                    waiting.push_back(inside);
                    met += 1;
                    met - 1
                });
            }
            part.refers_to = definition_name(&part.own).map(str::to_owned);
            parts.push(part);
        }
        Self { parts }
    }

    pub(super) fn part(&self, number: usize) -> Option<&Subschema<'d>> {
        self.parts.get(number)
    }
}

impl<'d> Subschema<'d> {
    /// Takes in one member; `leave` gives the number of a schema that is to become a part of its own.
    fn add_member<'v>(
        &mut self,
        key: Cow<'d, str>,
        value: &'v SchemaNode<'d>,
        mut leave: impl FnMut(&'v SchemaNode<'d>) -> usize,
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
            (SchemaNode::Object(_), Some(key), _, _) => {
                self.cost += key.len() + 6;
                self.below.push((SubschemaPosition::One(key), leave(value)));
            }
            (SchemaNode::List(values), _, Some(key), _) => {
                self.cost += key.len() + 6 + 3 * values.len();
                self.below.extend(values.iter().map(|value| (SubschemaPosition::List(key), leave(value))));
            }
            (SchemaNode::Object(values), _, _, Some(key)) => {
                self.cost += key.len() + 6;
                let mut lists = SchemaFields::new();
                for (name, value) in values.entries() {
                    self.cost += name.len() + 8;
                    if value.as_object().is_some() {
                        self.below.push((SubschemaPosition::Map(key, name.clone()), leave(value)));
                    } else {
                        self.cost += json_size(value);
                        lists.put(name.clone(), value.clone());
                    }
                }
                self.own.put(key, lists);
            }
            _ => {
                self.cost += key.len() + 4 + json_size(value);
                self.own.put(key, value.clone());
            }
        }
    }
}

fn definition_name<'f>(own: &'f SchemaFields<'_>) -> Option<&'f str> {
    own.text("$ref")?.strip_prefix("#/definitions/")
}
