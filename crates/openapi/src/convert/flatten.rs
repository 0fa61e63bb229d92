//! Flattens a schema into parts: the keywords of each subschema, their size, and the subschemas
//! below it. A schema that is pruned for many tools is flattened once.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::schema_node::{SchemaFields, SchemaNode, json_size};

const ONE: [&str; 5] = ["additionalItems", "contains", "additionalProperties", "propertyNames", "items"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "items"];
pub(super) const MAPS: [&str; 3] = ["properties", "patternProperties", "dependencies"];

/// A schema and its subschemas in breadth-first order. The first part is the root.
#[derive(Debug)]
pub(super) struct FlatSchema<'d> {
    parts: Vec<Subschema<'d>>,
}

/// A schema without its subschemas.
#[derive(Debug, Default)]
pub(super) struct Subschema<'d> {
    pub(super) own: SchemaFields<'d>,
    /// The positions of its subschemas and their part numbers.
    pub(super) below: Vec<(SubschemaPosition<'d>, usize)>,
    pub(super) cost: usize,
    pub(super) refers_to: Option<String>,
}

/// The position of a schema in its parent.
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
        // Part numbers follow the order in which schemas are queued.
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
    /// Adds one member. `leave` queues a subschema and returns its part number.
    fn add_member<'v>(
        &mut self,
        key: Cow<'d, str>,
        value: &'v SchemaNode<'d>,
        mut leave: impl FnMut(&'v SchemaNode<'d>) -> usize,
    ) {
        // Examples are dropped first. Negations and conditions are dropped too: if a part below
        // them accepted more, the whole schema would accept less.
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
