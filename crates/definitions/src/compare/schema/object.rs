//! Compares the properties of objects.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::kinds::Kinds;
use super::node::{Located, Node, Rest};
use super::scalar::effect;
use super::{Comparison, SchemaChange, SchemaEffect, change, verb};

impl<'a> Comparison<'a, '_> {
    pub(super) fn compare_objects(
        &mut self,
        old: &Node<'a>,
        new: &Node<'a>,
        shared: Kinds,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        if !shared.intersects(Kinds::OBJECT) {
            return;
        }
        let (before, after) = (old.property_names(), new.property_names());
        let (must_before, must_after) = (old.required(), new.required());
        for name in before.union(&after) {
            let (was, is) = (before.contains(name), after.contains(name));
            match (was, is) {
                (true, true) => {
                    self.compare_lists(old.property(name), new.property(name), &new.pointer, changes);
                }
                (false, _) => {
                    let is_new_duty = must_after.contains(name) && !must_before.contains(name);
                    self.compare_added(old, new, name, is_new_duty, changes);
                }
                (true, false) => changes.push(property_removed(old, name)),
            }
        }
        compare_required((old, &must_before), (new, &must_after), &before, changes);
        self.compare_rest(old, new, changes);
        self.compare_patterns(old, new, changes);
        compare_dependent_names(old, new, changes);
        let names = |node: &Node<'a>| node.keyword("propertyNames");
        if !names(old).is_empty() || !names(new).is_empty() {
            self.compare_lists(names(old), names(new), &format!("{}/propertyNames", new.pointer), changes);
        }
    }

    fn compare_added(
        &mut self,
        old: &Node<'a>,
        new: &Node<'a>,
        name: &str,
        is_new_duty: bool,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        let schemas = new.property(name);
        let Some(place) = schemas.first() else { return };
        let (pointer, after) = (place.pointer.clone(), place.value);
        let mut push = |effect, what: String| {
            changes.push(SchemaChange {
                effect,
                pointer: pointer.clone(),
                before: None,
                after: Some(Cow::Borrowed(after)),
                what,
            });
        };
        let closed = matches!(old.rest(), Rest::Closed(_)) && !old.has("patternProperties");
        match (is_new_duty, closed) {
            (true, true) => {
                return push(
                    SchemaEffect::Replaced,
                    format!("required `{name}` was added, which was not allowed before"),
                );
            }
            (true, false) => push(SchemaEffect::Narrowed, format!("required `{name}` was added")),
            (false, true) => {
                return push(
                    SchemaEffect::Widened,
                    format!("`{name}` was added, which was not allowed before"),
                );
            }
            (false, false) => push(SchemaEffect::PropertyAdded, format!("optional `{name}` was added")),
        }
        if old.has("patternProperties") {
            let what = format!("`{name}` may match one of the earlier `patternProperties`");
            changes.push(change(SchemaEffect::Undecided, pointer, &what));
        } else if let Rest::Schemas(rest) = old.rest() {
            // The name was explicitly free for other values.
            self.compare_lists(rest, schemas, &new.pointer, changes);
        }
    }

    /// Compares what holds for properties that are not declared.
    fn compare_rest(&mut self, old: &Node<'a>, new: &Node<'a>, changes: &mut Vec<SchemaChange<'a>>) {
        let mut push = |effect, place: &Located<'a>, what: &str| {
            changes.push(change(effect, place.pointer.clone(), what));
        };
        match (old.rest(), new.rest()) {
            (Rest::Closed(_), Rest::Closed(_)) | (Rest::Open, Rest::Open) => {}
            (Rest::Closed(place), Rest::Open | Rest::Schemas(_)) => {
                push(SchemaEffect::Widened, &place, "undeclared properties are allowed now");
            }
            (Rest::Open | Rest::Schemas(_), Rest::Closed(place)) => {
                push(SchemaEffect::Narrowed, &place, "undeclared properties are no longer allowed");
            }
            (Rest::Open, Rest::Schemas(list)) => self.compare_lists(Vec::new(), list, &new.pointer, changes),
            (Rest::Schemas(list), Rest::Open) => self.compare_lists(list, Vec::new(), &new.pointer, changes),
            (Rest::Schemas(before), Rest::Schemas(after)) => {
                self.compare_lists(before, after, &new.pointer, changes);
            }
        }
    }

    fn compare_patterns(&mut self, old: &Node<'a>, new: &Node<'a>, changes: &mut Vec<SchemaChange<'a>>) {
        let (before, after) = (patterns(old), patterns(new));
        let keys: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        for key in keys {
            match (before.get(key), after.get(key)) {
                (Some(before), Some(after)) => {
                    self.compare_lists(before.clone(), after.clone(), &new.pointer, changes);
                }
                (Some(place), None) | (None, Some(place)) => {
                    let was = before.contains_key(key);
                    let rest = if was { new.rest() } else { old.rest() };
                    let effect = match (rest, was) {
                        (Rest::Closed(_), true) | (Rest::Open, false) => SchemaEffect::Narrowed,
                        (Rest::Closed(_), false) | (Rest::Open, true) => SchemaEffect::Widened,
                        (Rest::Schemas(_), _) => SchemaEffect::Undecided,
                    };
                    let what = format!("the pattern `{key}` {}", verb(was, !was));
                    changes.extend(place.first().map(|place| change(effect, place.pointer.clone(), &what)));
                }
                (None, None) => {}
            }
        }
    }
}

fn property_removed<'a>(old: &Node<'a>, name: &str) -> SchemaChange<'a> {
    let place = old.property(name).into_iter().next();
    SchemaChange {
        effect: SchemaEffect::PropertyRemoved,
        pointer: place.as_ref().map(|place| place.pointer.clone()).unwrap_or_default(),
        before: place.map(|place| Cow::Borrowed(place.value)),
        after: None,
        what: format!("`{name}` was removed"),
    }
}

/// Compares `required` for properties that were known before. New properties are reported as such.
fn compare_required<'a>(
    (old, before): (&Node<'a>, &BTreeSet<&'a str>),
    (new, after): (&Node<'a>, &BTreeSet<&'a str>),
    known: &BTreeSet<&str>,
    changes: &mut Vec<SchemaChange<'a>>,
) {
    let place = |node: &Node<'a>| node.keyword("required").pop().map(|entry| entry.pointer);
    let pointer = place(new).or_else(|| place(old)).unwrap_or_else(|| format!("{}/required", new.pointer));
    let declared = new.property_names();
    let duties = after.difference(before).filter(|name| known.contains(*name) || !declared.contains(*name));
    for name in duties {
        let what = format!("`{name}` is now required");
        changes.push(change(SchemaEffect::Narrowed, pointer.clone(), &what));
    }
    // A property that was removed as a whole is reported as such.
    for name in before.difference(after).filter(|name| declared.contains(*name) || !known.contains(*name)) {
        let what = format!("`{name}` is no longer required");
        changes.push(change(SchemaEffect::Widened, pointer.clone(), &what));
    }
}

/// The schemas of `patternProperties`, by pattern.
fn patterns<'a>(node: &Node<'a>) -> BTreeMap<&'a str, Vec<Located<'a>>> {
    let mut patterns: BTreeMap<&str, Vec<Located<'a>>> = BTreeMap::new();
    for entry in node.keyword("patternProperties") {
        for (pattern, value) in entry.value.as_object().into_iter().flatten() {
            let pointer = format!("{}/{}", entry.pointer, super::document::escape(pattern));
            patterns.entry(pattern).or_default().push(Located { value, pointer });
        }
    }
    patterns
}

/// Compares which properties require others.
fn compare_dependent_names<'a>(old: &Node<'a>, new: &Node<'a>, changes: &mut Vec<SchemaChange<'a>>) {
    let pairs = |node: &Node<'a>| -> BTreeSet<(&'a str, &'a str)> {
        let entries = node.keyword("dependentRequired").into_iter().chain(node.keyword("dependencies"));
        let lists = entries.filter_map(|entry| entry.value.as_object()).flatten();
        let lists = lists.filter_map(|(name, names)| Some((name.as_str(), names.as_array()?)));
        lists
            .flat_map(|(name, names)| names.iter().filter_map(Value::as_str).map(move |other| (name, other)))
            .collect()
    };
    let (before, after) = (pairs(old), pairs(new));
    let (stricter, looser) = (after.difference(&before).next(), before.difference(&after).next());
    let Some(effect) = effect(stricter.is_some(), looser.is_some()) else { return };
    let place = |node: &Node<'a>| {
        node.keyword("dependentRequired").into_iter().chain(node.keyword("dependencies")).next()
    };
    let Some(pointer) = place(new).or_else(|| place(old)).map(|place| place.pointer) else { return };
    let what = match (stricter, looser) {
        (Some((name, other)), _) => format!("`{name}` now requires `{other}`"),
        (None, Some((name, other))) => format!("`{name}` no longer requires `{other}`"),
        (None, None) => return,
    };
    changes.push(change(effect, pointer, &what));
}
