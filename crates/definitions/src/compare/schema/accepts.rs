//! Decides whether a schema accepts a value, for the values of `enum` and `const`.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::kinds::Kinds;
use super::node::{Node, is_same, value_key};
use super::scalar::effect;
use super::{Comparison, SchemaChange, SchemaEffect, change, undecided};

/// Keywords that are not evaluated here.
const UNKNOWN: [&str; 24] = [
    "format",
    "pattern",
    "patternProperties",
    "not",
    "if",
    "contains",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "$dynamicRef",
    "$recursiveRef",
];

/// The values that a schema lists.
struct FiniteValues<'a> {
    values: Vec<Cow<'a, Value>>,
    /// Whether the rest of the schema accepts all of them for certain.
    certain: bool,
}

/// Whether a comparison of listed values says everything about two schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FiniteComparison {
    /// Neither schema lists its values, or the other constraints matter, too.
    Incomplete,
    Complete,
}

/// The side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedSide {
    Old,
    New,
}

impl<'a> Comparison<'a, '_> {
    /// Returns the branches of the first union, each with everything else that must hold.
    pub(super) fn expand(&mut self, node: &Node<'a>, side: ComparedSide) -> Vec<Node<'a>> {
        let Some(union) = node.alternatives() else { return vec![node.clone()] };
        let document = match side {
            ComparedSide::Old => self.old,
            ComparedSide::New => self.new,
        };
        let branch = |branch| node.with_branch(document, &union, branch, &mut self.budget);
        union.branches.iter().map(branch).collect()
    }

    /// All values that a schema accepts, if they are listed.
    fn finite_values(&mut self, node: &Node<'a>, side: ComparedSide) -> Option<FiniteValues<'a>> {
        self.budget = self.budget.saturating_sub(2);
        if self.budget == 0 || self.depth >= super::DEEPEST {
            return None;
        }
        let listed: Vec<Cow<'a, Value>> = match node.listed_values() {
            Some(values) => values.into_iter().map(Cow::Borrowed).collect(),
            None => match node.kinds() {
                kinds if kinds == Kinds::NULL => vec![Cow::Owned(Value::Null)],
                kinds if kinds == Kinds::BOOLEAN => {
                    vec![Cow::Owned(Value::Bool(false)), Cow::Owned(Value::Bool(true))]
                }
                _ => {
                    self.depth += 1;
                    let values = self.union_values(node, side);
                    self.depth -= 1;
                    return values;
                }
            },
        };
        self.budget = self.budget.saturating_sub(listed.len() as u64);
        // What the rest of the schema rejects is not a value of it.
        let mut finite = FiniteValues { values: Vec::new(), certain: true };
        for value in listed {
            match self.accepts_listed(node, &value, side) {
                Some(false) => {}
                verdict => {
                    finite.certain &= verdict.is_some();
                    finite.values.push(value);
                }
            }
        }
        Some(finite)
    }

    /// The values of a union whose branches all list theirs.
    fn union_values(&mut self, node: &Node<'a>, side: ComparedSide) -> Option<FiniteValues<'a>> {
        let union = node.alternatives()?;
        let branches = self.expand(node, side);
        let mut values: Vec<Cow<'a, Value>> = Vec::new();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for branch in &branches {
            let finite = self.finite_values(branch, side).filter(|finite| finite.certain)?;
            let mut seen = HashSet::new();
            for value in finite.values {
                let key = value_key(&value);
                if seen.insert(key.clone()) {
                    *counts.entry(key).or_default() += 1;
                    values.push(value);
                }
            }
        }
        // A value of two branches of `oneOf` is not valid.
        if union.key == "oneOf" {
            values.retain(|value| counts.get(&value_key(value)) == Some(&1));
        }
        Some(FiniteValues { values, certain: true })
    }

    /// Compares two schemas if at least one of them lists its values.
    pub(super) fn compare_finite(
        &mut self,
        old: &Node<'a>,
        new: &Node<'a>,
        changes: &mut Vec<SchemaChange<'a>>,
    ) -> FiniteComparison {
        let before = self.finite_values(old, ComparedSide::Old);
        let after = self.finite_values(new, ComparedSide::New);
        let (removed, added) = match (&before, &after) {
            (None, None) => return FiniteComparison::Incomplete,
            (Some(before), Some(after)) => {
                (missing(&before.values, &after.values), missing(&after.values, &before.values))
            }
            (Some(before), None) => {
                let verdicts: Vec<_> =
                    before.values.iter().map(|value| self.accepts(new, value, ComparedSide::New)).collect();
                if verdicts.contains(&None) && !verdicts.contains(&Some(false)) {
                    changes
                        .push(undecided(place(old, new), "listed values were replaced by other constraints"));
                    return FiniteComparison::Complete;
                }
                let removed = verdicts.contains(&Some(false));
                let effect = if removed { SchemaEffect::Replaced } else { SchemaEffect::Widened };
                let what = "the list of allowed values was replaced by other constraints";
                changes.push(values_change(effect, old, new, what));
                return FiniteComparison::Complete;
            }
            (None, Some(after)) => {
                let verdicts: Vec<_> =
                    after.values.iter().map(|value| self.accepts(old, value, ComparedSide::Old)).collect();
                let added = verdicts.iter().any(|verdict| *verdict != Some(true));
                let effect = if added { SchemaEffect::Replaced } else { SchemaEffect::Narrowed };
                changes.push(values_change(effect, old, new, "only listed values are allowed now"));
                return FiniteComparison::Complete;
            }
        };
        if let Some(effect) = effect(!removed.is_empty(), !added.is_empty()) {
            let mut what = Vec::new();
            if !removed.is_empty() {
                what.push(format!("{} no longer allowed", enumerate(&removed)));
            }
            if !added.is_empty() {
                what.push(format!("{} now allowed", enumerate(&added)));
            }
            changes.push(values_change(effect, old, new, &what.join(", ")));
        }
        let is_certain = |finite: &Option<FiniteValues<'a>>| finite.as_ref().is_some_and(|it| it.certain);
        // The other constraints may reject some of the values.
        match is_certain(&before) && is_certain(&after) {
            true => FiniteComparison::Complete,
            false => FiniteComparison::Incomplete,
        }
    }

    /// Whether a schema accepts a value. `None` if this cannot be told here.
    pub(super) fn accepts(&mut self, node: &Node<'a>, value: &Value, side: ComparedSide) -> Option<bool> {
        self.budget = self.budget.saturating_sub(2);
        if self.budget == 0 || self.depth >= super::DEEPEST {
            return None;
        }
        if let Some(listed) = node.listed_values() {
            self.budget = self.budget.saturating_sub(listed.len() as u64 / 8);
            if !listed.iter().any(|one| is_same(one, value)) {
                return Some(false);
            }
        }
        self.accepts_listed(node, value, side)
    }

    /// Like [`Self::accepts`], for a value that is known to be listed if values are.
    fn accepts_listed(&mut self, node: &Node<'a>, value: &Value, side: ComparedSide) -> Option<bool> {
        if node.rejects.is_some() || !node.kinds().contains(Kinds::from_value(value)) {
            return Some(false);
        }
        let length = value.as_str().map(|text| text.chars().count() as u64);
        if let Some(length) = length {
            let limits = |key: &str| -> Vec<u64> {
                node.keyword(key).iter().filter_map(|entry| entry.value.as_u64()).collect()
            };
            if limits("minLength").iter().any(|least| length < *least)
                || limits("maxLength").iter().any(|most| length > *most)
            {
                return Some(false);
            }
        }
        let is_unclear = match value {
            Value::Null | Value::Bool(_) => node.has("not") || node.has("if") || node.has("$dynamicRef"),
            Value::String(_) => ["format", "pattern", "not", "if", "$dynamicRef", "$recursiveRef"]
                .iter()
                .any(|key| node.has(key)),
            Value::Object(_) | Value::Array(_) => true,
            Value::Number(_) => UNKNOWN.iter().any(|key| node.has(key)),
        };
        if !node.unresolved.is_empty() || is_unclear {
            return None;
        }
        let Some(union) = node.alternatives() else { return Some(true) };
        self.depth += 1;
        let branches = self.expand(node, side);
        let verdicts: Vec<_> = branches.iter().map(|branch| self.accepts(branch, value, side)).collect();
        self.depth -= 1;
        let accepting = verdicts.iter().filter(|verdict| **verdict == Some(true)).count();
        match (verdicts.contains(&None), union.key) {
            (false, "oneOf") => Some(accepting == 1),
            (true, "oneOf") => None,
            (_, _) if accepting > 0 => Some(true),
            (unclear, _) => (!unclear).then_some(false),
        }
    }
}

/// The values of `all` that are not in `other`.
fn missing<'v>(all: &'v [Cow<'_, Value>], other: &[Cow<'_, Value>]) -> Vec<&'v Value> {
    let known: HashSet<String> = other.iter().map(|value| value_key(value)).collect();
    all.iter().map(AsRef::as_ref).filter(|value| !known.contains(&value_key(value))).collect()
}

fn enumerate(values: &[&Value]) -> String {
    const SHOWN: usize = 5;
    let texts: Vec<String> = values.iter().take(SHOWN).map(|value| value.to_string()).collect();
    let more =
        if values.len() > SHOWN { format!(" and {} more", values.len() - SHOWN) } else { String::new() };
    let verb = if values.len() == 1 { "is" } else { "are" };
    format!("{}{more} {verb}", texts.join(", "))
}

/// Where the values of a schema are listed.
fn place(old: &Node<'_>, new: &Node<'_>) -> String {
    let listed = |node: &Node<'_>| {
        let keys = ["enum", "const"].into_iter().find_map(|key| node.keyword(key).pop());
        keys.map(|entry| entry.pointer).or_else(|| node.alternatives().map(|union| union.pointer))
    };
    let kind = |node: &Node<'_>| node.keyword("type").pop().map(|entry| entry.pointer);
    let places = [listed(new), listed(old), kind(new), kind(old)];
    places.into_iter().flatten().next().unwrap_or_else(|| new.pointer.clone())
}

fn values_change<'a>(effect: SchemaEffect, old: &Node<'a>, new: &Node<'a>, what: &str) -> SchemaChange<'a> {
    let listed = |node: &Node<'a>| {
        let keys = ["enum", "const", "type"].into_iter().find_map(|key| node.keyword(key).pop());
        keys.map(|entry| Cow::Borrowed(entry.value))
    };
    let (before, after) = (listed(old), listed(new));
    SchemaChange { before, after, ..change(effect, place(old, new), what) }
}
