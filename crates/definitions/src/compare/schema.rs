//! Compares two JSON Schemas: where the new one accepts less than the old one, where it accepts
//! more, and where only words differ. What this means for a client is decided elsewhere, because it
//! depends on the direction of the data.
//!
//! A schema is read as a conjunction of constraints, so each keyword is compared on its own: if no
//! constraint got stricter, everything that was valid still is. Where containment cannot be shown,
//! the change is *undecided*. Untrusted schemas cost a limited amount of work.

mod accepts;
mod array;
mod document;
mod kinds;
mod node;
mod object;
mod opaque;
mod scalar;
mod union;

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use self::accepts::FiniteComparison;
use self::document::SchemaDocument;
use self::node::{Located, Node};

/// Steps of one comparison. A schema of 1 MB without references needs fewer.
const BUDGET: u64 = 1_000_000;
/// Deeper subschemas are not compared. References allow more depth than the JSON text has.
const DEEPEST: usize = 48;
/// Further changes in one schema are not reported one by one.
const MOST_CHANGES: usize = 500;

/// Keywords that describe a value and constrain nothing.
const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$schema",
];

/// How the set of accepted values changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaEffect {
    /// Values that were valid are invalid now.
    Narrowed,
    /// Values that were invalid are valid now.
    Widened,
    /// Both.
    Replaced,
    /// Containment can be shown in neither direction.
    Undecided,
    /// An optional property was declared. Clients send only properties that are declared, so this
    /// rejects none of their values, although a strict reading of an open object does.
    PropertyAdded,
    /// A property is no longer declared.
    PropertyRemoved,
    Wording,
}

/// One difference between two schemas.
#[derive(Debug, Clone)]
pub(crate) struct SchemaChange<'a> {
    pub(crate) effect: SchemaEffect,
    /// A JSON pointer into the definition: into the new one, unless the place is only in the old.
    pub(crate) pointer: String,
    pub(crate) before: Option<Cow<'a, Value>>,
    pub(crate) after: Option<Cow<'a, Value>>,
    /// What changed, as a clause.
    pub(crate) what: String,
}

/// Compares two schemas. `pointer` is where they are in the definition.
pub(crate) fn compare_schemas<'a>(old: &'a Value, new: &'a Value, pointer: &'a str) -> Vec<SchemaChange<'a>> {
    let (old_document, new_document) = (SchemaDocument::new(old, pointer), SchemaDocument::new(new, pointer));
    let mut comparison = Comparison {
        old: &old_document,
        new: &new_document,
        budget: BUDGET,
        active: HashSet::new(),
        depth: 0,
    };
    let (old, new) = (old_document.root(), new_document.root());
    let mut changes = Vec::new();
    let old = comparison.old_node(vec![old], pointer);
    let new = comparison.new_node(vec![new], pointer);
    comparison.compare(&old, &new, &mut changes);
    if comparison.budget == 0 {
        changes.push(SchemaChange {
            effect: SchemaEffect::Undecided,
            pointer: pointer.to_owned(),
            before: None,
            after: None,
            what: "the schemas are too large to compare completely".to_owned(),
        });
    }
    deduplicate(changes, pointer)
}

/// Removes changes that several branches of a union report.
fn deduplicate<'a>(changes: Vec<SchemaChange<'a>>, pointer: &str) -> Vec<SchemaChange<'a>> {
    let mut seen = HashSet::new();
    let mut unique: Vec<SchemaChange<'a>> = changes
        .into_iter()
        .filter(|change| seen.insert((change.pointer.clone(), change.effect as u8, change.what.clone())))
        .collect();
    if unique.len() > MOST_CHANGES {
        let more = unique.len() - MOST_CHANGES;
        unique.truncate(MOST_CHANGES);
        unique.push(SchemaChange {
            effect: SchemaEffect::Undecided,
            pointer: pointer.to_owned(),
            before: None,
            after: None,
            what: format!("{more} further changes are not listed"),
        });
    }
    unique
}

/// One comparison with its limits.
struct Comparison<'a, 'd> {
    old: &'d SchemaDocument<'a>,
    new: &'d SchemaDocument<'a>,
    budget: u64,
    /// Pairs of subschemas that are being compared. To meet one again inside itself means that they
    /// differ nowhere else.
    active: HashSet<(Vec<usize>, Vec<usize>)>,
    depth: usize,
}

impl<'a> Comparison<'a, '_> {
    fn old_node(&mut self, schemas: Vec<Located<'a>>, fallback: &str) -> Node<'a> {
        Node::flatten(self.old, schemas, fallback, &mut self.budget)
    }

    fn new_node(&mut self, schemas: Vec<Located<'a>>, fallback: &str) -> Node<'a> {
        Node::flatten(self.new, schemas, fallback, &mut self.budget)
    }

    /// Compares the conjunctions of two lists of schemas.
    fn compare_lists(
        &mut self,
        old: Vec<Located<'a>>,
        new: Vec<Located<'a>>,
        fallback: &str,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        let old = self.old_node(old, fallback);
        let new = self.new_node(new, fallback);
        self.compare(&old, &new, changes);
    }

    fn compare(&mut self, old: &Node<'a>, new: &Node<'a>, changes: &mut Vec<SchemaChange<'a>>) {
        if self.budget == 0 || changes.len() > 4 * MOST_CHANGES {
            return;
        }
        if self.depth >= DEEPEST {
            // Equal text at this depth was equal text before: only references lead here.
            changes.push(undecided(
                new.pointer.clone(),
                "the schemas refer to each other too deeply to compare",
            ));
            return;
        }
        let pair = (old.identity(), new.identity());
        if !self.active.insert(pair.clone()) {
            return;
        }
        self.depth += 1;
        self.compare_here(old, new, changes);
        self.depth -= 1;
        self.active.remove(&pair);
    }

    fn compare_here(&mut self, old: &Node<'a>, new: &Node<'a>, changes: &mut Vec<SchemaChange<'a>>) {
        compare_annotations(old, new, changes);
        match (&old.rejects, &new.rejects) {
            (Some(_), Some(_)) => return,
            (Some(_), None) => {
                let pointer = new.pointer.clone();
                changes.push(change(SchemaEffect::Widened, pointer, "no value was allowed before"));
                return;
            }
            (None, Some(pointer)) => {
                changes.push(change(SchemaEffect::Narrowed, pointer.clone(), "no value is allowed any more"));
                return;
            }
            (None, None) => {}
        }
        self.compare_unresolved(old, new, changes);
        let is_listed = old.listed_values().is_some() && new.listed_values().is_some();
        if self.compare_finite(old, new, changes) == FiniteComparison::Complete {
            return;
        }
        if old.alternatives().is_some() || new.alternatives().is_some() {
            return self.compare_unions(old, new, changes);
        }
        // The types of listed values have been compared with the values.
        let shared = match is_listed {
            true => old.kinds() & new.kinds(),
            false => scalar::compare_kinds(old, new, changes),
        };
        if shared.is_empty() {
            return;
        }
        scalar::compare_scalars(old, new, shared, changes);
        self.compare_objects(old, new, shared, changes);
        self.compare_arrays(old, new, shared, changes);
        self.compare_opaque(old, new, changes);
    }

    /// Compares without reporting.
    fn probe(&mut self, old: &Node<'a>, new: &Node<'a>) -> Relation {
        let mut changes = Vec::new();
        self.compare(old, new, &mut changes);
        let mut relation = Relation { narrowed: self.budget == 0, widened: self.budget == 0 };
        for change in &changes {
            match change.effect {
                SchemaEffect::Narrowed | SchemaEffect::PropertyRemoved => relation.narrowed = true,
                SchemaEffect::Widened | SchemaEffect::PropertyAdded => relation.widened = true,
                SchemaEffect::Replaced | SchemaEffect::Undecided => {
                    (relation.narrowed, relation.widened) = (true, true);
                }
                SchemaEffect::Wording => {}
            }
        }
        relation
    }
}

/// Whether a schema may have become stricter, and whether it may accept more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Relation {
    narrowed: bool,
    widened: bool,
}

impl Relation {
    fn is_equal(self) -> bool {
        !self.narrowed && !self.widened
    }
}

fn compare_annotations<'a>(old: &Node<'a>, new: &Node<'a>, changes: &mut Vec<SchemaChange<'a>>) {
    let names: HashSet<&str> = old.annotation_names().chain(new.annotation_names()).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    for name in names {
        let (before, after) = (old.keyword(name), new.keyword(name));
        if before.iter().map(|one| one.value).eq(after.iter().map(|one| one.value)) {
            continue;
        }
        let first_difference = |one: &[Located<'a>], other: &[Located<'a>]| {
            one.iter()
                .enumerate()
                .find(|(index, entry)| other.get(*index).is_none_or(|it| it.value != entry.value))
                .map(|(_, entry)| entry.clone())
        };
        let (before, after) = (first_difference(&before, &after), first_difference(&after, &before));
        let Some(place) = after.as_ref().or(before.as_ref()) else { continue };
        changes.push(SchemaChange {
            effect: SchemaEffect::Wording,
            pointer: place.pointer.clone(),
            before: before.as_ref().map(|entry| Cow::Borrowed(entry.value)),
            after: after.as_ref().map(|entry| Cow::Borrowed(entry.value)),
            what: format!("`{name}` {}", verb(before.is_some(), after.is_some())),
        });
    }
}

/// What happened to something, given whether it was there and whether it is there.
fn verb(before: bool, after: bool) -> &'static str {
    match (before, after) {
        (false, _) => "was added",
        (true, false) => "was removed",
        (true, true) => "changed",
    }
}

fn change<'a>(effect: SchemaEffect, pointer: String, what: &str) -> SchemaChange<'a> {
    SchemaChange { effect, pointer, before: None, after: None, what: what.to_owned() }
}

fn undecided<'a>(pointer: String, what: &str) -> SchemaChange<'a> {
    change(SchemaEffect::Undecided, pointer, what)
}
