//! Compares the keywords for which containment can often not be shown: `not`, `if`, `contains` and
//! others. What did not change is the same; the rest is shown where that is easy.

use super::node::{Located, Node};
use super::{Comparison, Relation, SchemaChange, SchemaEffect, change, undecided, verb};

/// Keywords with one schema.
const SCHEMAS: [&str; 4] = ["not", "contains", "unevaluatedItems", "contentSchema"];
/// Keywords that are compared by their text.
const TEXTS: [&str; 5] = ["minContains", "maxContains", "$dynamicRef", "$recursiveRef", "dependentSchemas"];
const CONDITION: [&str; 3] = ["if", "then", "else"];

impl<'a> Comparison<'a, '_> {
    pub(super) fn compare_opaque(
        &mut self,
        old: &Node<'a>,
        new: &Node<'a>,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        for key in SCHEMAS {
            self.compare_inner(key, old.keyword(key), new.keyword(key), changes);
        }
        self.compare_inner("unevaluatedProperties", old.unevaluated(), new.unevaluated(), changes);
        for key in TEXTS {
            let (before, after) = (old.keyword(key), new.keyword(key));
            if !is_equal(&before, &after) {
                push_difference(key, &before, &after, changes);
            }
        }
        self.compare_conditions(old, new, changes);
        // Draft 7 has schemas among the lists of names.
        let schemas = |node: &Node<'a>| -> Vec<Located<'a>> {
            let entries = node.keyword("dependencies").into_iter().filter_map(|entry| {
                let object = entry.value.as_object()?;
                Some(
                    object
                        .iter()
                        .filter(|(_, value)| !value.is_array())
                        .map(move |(name, value)| Located {
                            value,
                            pointer: format!("{}/{}", entry.pointer, super::document::escape(name)),
                        })
                        .collect::<Vec<_>>(),
                )
            });
            entries.flatten().collect()
        };
        let (before, after) = (schemas(old), schemas(new));
        if !is_equal(&before, &after) {
            push_difference("dependencies", &before, &after, changes);
        }
    }

    /// Compares a keyword with one schema.
    fn compare_inner(
        &mut self,
        key: &str,
        before: Vec<Located<'a>>,
        after: Vec<Located<'a>>,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        if before.is_empty() && after.is_empty() {
            return;
        }
        let ([_], [place]) = (before.as_slice(), after.as_slice()) else {
            if !is_equal(&before, &after) {
                push_difference(key, &before, &after, changes);
            }
            return;
        };
        let pointer = place.pointer.clone();
        let (old, new) = (self.old_node(before, &pointer), self.new_node(after, &pointer));
        let relation = self.probe(&old, &new);
        let relation = match key {
            // What is excluded now was allowed before.
            "not" => Relation { narrowed: relation.widened, widened: relation.narrowed },
            // With an upper limit, more matching items can be too many.
            "contains" if !relation.is_equal() => Relation { narrowed: true, widened: true },
            _ => relation,
        };
        let effect = match relation {
            Relation { narrowed: false, widened: false } => return,
            Relation { narrowed: true, widened: false } => SchemaEffect::Narrowed,
            Relation { narrowed: false, widened: true } => SchemaEffect::Widened,
            Relation { narrowed: true, widened: true } => SchemaEffect::Undecided,
        };
        changes.push(change(effect, pointer, &format!("`{key}` changed")));
    }

    fn compare_conditions(&mut self, old: &Node<'a>, new: &Node<'a>, changes: &mut Vec<SchemaChange<'a>>) {
        let lists = |node: &Node<'a>| CONDITION.map(|key| node.keyword(key));
        let (before, after) = (lists(old), lists(new));
        let (had, has) = (!before[0].is_empty(), !after[0].is_empty());
        if !had && !has {
            return;
        }
        if had != has {
            let (before, after) = (before.concat(), after.concat());
            return push_difference("if", &before, &after, changes);
        }
        for ((key, before), after) in CONDITION.into_iter().zip(before).zip(after) {
            let same_text = is_equal(&before, &after);
            if before.len() > 1 || after.len() > 1 || before.len() != after.len() {
                if !same_text {
                    let place = after.first().or(before.first());
                    let pointer = place.map(|place| place.pointer.clone()).unwrap_or_default();
                    changes.push(undecided(pointer, &format!("`{key}` changed")));
                }
                continue;
            }
            let Some(pointer) = after.first().map(|place| place.pointer.clone()) else { continue };
            let (old, new) = (self.old_node(before, &pointer), self.new_node(after, &pointer));
            let relation = self.probe(&old, &new);
            let effect = match relation {
                Relation { narrowed: false, widened: false } => continue,
                Relation { narrowed: true, widened: false } if key != "if" => SchemaEffect::Narrowed,
                Relation { narrowed: false, widened: true } if key != "if" => SchemaEffect::Widened,
                _ => SchemaEffect::Undecided,
            };
            changes.push(change(effect, pointer, &format!("`{key}` changed")));
        }
    }

    /// Compares references that lead out of the document, and values that are not schemas.
    pub(super) fn compare_unresolved(
        &mut self,
        old: &Node<'a>,
        new: &Node<'a>,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        if !is_equal(&old.unresolved, &new.unresolved) {
            let place = new.unresolved.first().or(old.unresolved.first());
            let pointer = place.map(|place| place.pointer.clone()).unwrap_or_default();
            changes.push(undecided(
                pointer,
                "a reference that cannot be followed, or an invalid schema, changed",
            ));
        }
    }
}

fn is_equal(before: &[Located<'_>], after: &[Located<'_>]) -> bool {
    before.iter().map(|entry| entry.value).eq(after.iter().map(|entry| entry.value))
}

/// Reports a constraint that was added, removed or changed.
fn push_difference<'a>(
    key: &str,
    before: &[Located<'a>],
    after: &[Located<'a>],
    changes: &mut Vec<SchemaChange<'a>>,
) {
    let effect = match (before.is_empty(), after.is_empty()) {
        (true, _) => SchemaEffect::Narrowed,
        (false, true) => SchemaEffect::Widened,
        (false, false) => SchemaEffect::Undecided,
    };
    let Some(place) = after.first().or(before.first()) else { return };
    let what = format!("`{key}` {}", verb(!before.is_empty(), !after.is_empty()));
    changes.push(change(effect, place.pointer.clone(), &what));
}
