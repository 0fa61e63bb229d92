//! Compares `anyOf` and `oneOf`: which alternative of one schema is contained in which of the
//! other.

use super::accepts::ComparedSide;
use super::kinds::Kinds;
use super::node::{Alternatives, Node};
use super::{Comparison, SchemaChange, SchemaEffect, change, undecided};

/// Larger unions are compared only position by position.
const MOST_BRANCHES: usize = 40;

impl<'a> Comparison<'a, '_> {
    pub(super) fn compare_unions(
        &mut self,
        old: &Node<'a>,
        new: &Node<'a>,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        let (old_union, new_union) = (old.alternatives(), new.alternatives());
        let mut before = self.expand(old, ComparedSide::Old);
        let mut after = self.expand(new, ComparedSide::New);
        let pointer = match (&new_union, &old_union) {
            (Some(union), _) | (None, Some(union)) => union.pointer.clone(),
            (None, None) => new.pointer.clone(),
        };
        if self.is_ambiguous(old_union.as_ref(), &before, ComparedSide::Old)
            || self.is_ambiguous(new_union.as_ref(), &after, ComparedSide::New)
        {
            return self.compare_ambiguous(&before, &after, pointer, changes);
        }
        // A schema for several types is a union, too.
        if old_union.is_none() {
            before = split_kinds(old);
        }
        if new_union.is_none() {
            after = split_kinds(new);
        }
        if before.len().max(after.len()) > MOST_BRANCHES && before.len() != after.len() {
            changes.push(undecided(pointer, "the alternatives are too many to compare"));
            return;
        }
        self.match_branches(before, after, changes);
    }

    fn match_branches(
        &mut self,
        before: Vec<Node<'a>>,
        after: Vec<Node<'a>>,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        let mut before: Vec<Option<Node<'a>>> = before.into_iter().map(Some).collect();
        let mut after: Vec<Option<Node<'a>>> = after.into_iter().map(Some).collect();
        let all = (before.clone(), after.clone());
        let mut pairs = Vec::new();
        let equal = |relation: super::Relation| relation.is_equal();
        let contained = |relation: super::Relation| !relation.narrowed || !relation.widened;
        self.pair_up(&mut before, &mut after, &mut pairs, equal);
        self.pair_up(&mut before, &mut after, &mut pairs, contained);
        // What is left is paired by its types, or else by position if the numbers are the same.
        pair_by_kind(&mut before, &mut after, &mut pairs);
        if before.iter().flatten().count() == after.iter().flatten().count() && before.len() == after.len() {
            let (left, right): (Vec<_>, Vec<_>) = (drain(&mut before), drain(&mut after));
            pairs.extend(left.into_iter().zip(right));
        }
        for (old, new) in &pairs {
            self.compare(old, new, changes);
        }
        for old in before.iter().flatten() {
            let is_covered = all.1.iter().flatten().any(|new| !self.probe(old, new).narrowed);
            if !is_covered {
                changes.push(change(
                    SchemaEffect::Narrowed,
                    old.pointer.clone(),
                    "an alternative was removed",
                ));
            }
        }
        for new in after.iter().flatten() {
            let is_covered = all.0.iter().flatten().any(|old| !self.probe(old, new).widened);
            if !is_covered {
                changes.push(change(SchemaEffect::Widened, new.pointer.clone(), "an alternative was added"));
            }
        }
    }

    /// Pairs branches whose relation suits, the same position first.
    fn pair_up(
        &mut self,
        before: &mut [Option<Node<'a>>],
        after: &mut [Option<Node<'a>>],
        pairs: &mut Vec<(Node<'a>, Node<'a>)>,
        suits: impl Fn(super::Relation) -> bool,
    ) {
        let crosses = before.len().max(after.len()) <= MOST_BRANCHES;
        for (index, old) in before.iter_mut().enumerate() {
            let Some(branch) = old.clone() else { continue };
            let positions =
                std::iter::once(index).chain((0..after.len()).filter(|at| crosses && *at != index));
            let mut open = positions.filter(|at| after.get(*at).is_some_and(Option::is_some));
            let partner = open.find(|at| {
                let new = after.get(*at).and_then(Option::as_ref);
                new.is_some_and(|new| suits(self.probe(&branch, new)))
            });
            if let Some(new) = partner.and_then(|at| after[at].take()) {
                *old = None;
                pairs.push((branch, new));
            }
        }
    }

    /// Whether a value can match several branches of `oneOf`, so that a wider branch can make
    /// values invalid.
    fn is_ambiguous(
        &mut self,
        union: Option<&Alternatives<'a>>,
        branches: &[Node<'a>],
        side: ComparedSide,
    ) -> bool {
        union.is_some_and(|union| union.key == "oneOf")
            && (branches.len() > MOST_BRANCHES
                || branches.iter().enumerate().any(|(index, one)| {
                    branches[..index].iter().any(|other| !self.are_disjoint(one, other, side, 0))
                }))
    }

    /// Whether no value matches both schemas: their types or their listed values differ, or those
    /// of a property that both require.
    fn are_disjoint(&mut self, one: &Node<'a>, other: &Node<'a>, side: ComparedSide, level: usize) -> bool {
        self.budget = self.budget.saturating_sub(4);
        let shared = one.kinds() & other.kinds();
        if shared.is_empty() {
            return true;
        }
        if let (Some(left), Some(right)) = (one.listed_values(), other.listed_values()) {
            return !left.iter().any(|value| right.iter().any(|it| super::node::is_same(value, it)));
        }
        if shared != Kinds::OBJECT || level > 2 || self.budget == 0 {
            return false;
        }
        let required = one.required();
        let names: Vec<&str> = required.intersection(&other.required()).copied().collect();
        names.into_iter().any(|name| {
            let (left, right) = (one.property(name), other.property(name));
            if left.is_empty() || right.is_empty() {
                return false;
            }
            let (left, right) = match side {
                ComparedSide::Old => (self.old_node(left, ""), self.old_node(right, "")),
                ComparedSide::New => (self.new_node(left, ""), self.new_node(right, "")),
            };
            self.are_disjoint(&left, &right, side, level + 1)
        })
    }

    /// Compares unions whose branches can overlap: they are the same if all branches are.
    fn compare_ambiguous(
        &mut self,
        before: &[Node<'a>],
        after: &[Node<'a>],
        pointer: String,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        let mut scratch = Vec::new();
        for (old, new) in before.iter().zip(after) {
            self.compare(old, new, &mut scratch);
        }
        let (wording, others): (Vec<_>, Vec<_>) =
            scratch.into_iter().partition(|change| change.effect == SchemaEffect::Wording);
        changes.extend(wording);
        if before.len() != after.len() || !others.is_empty() {
            let what = "exactly one alternative must match, and the alternatives changed and may overlap";
            changes.push(undecided(pointer, what));
        }
    }
}

fn split_kinds<'a>(node: &Node<'a>) -> Vec<Node<'a>> {
    let kinds = node.kinds();
    if kinds == Kinds::ALL || kinds.each().count() < 2 {
        return vec![node.clone()];
    }
    kinds.each().map(|kind| node.limited_to(kind)).collect()
}

fn drain<'a>(nodes: &mut [Option<Node<'a>>]) -> Vec<Node<'a>> {
    nodes.iter_mut().filter_map(Option::take).collect()
}

/// Pairs branches that are the only ones of their types.
fn pair_by_kind<'a>(
    before: &mut [Option<Node<'a>>],
    after: &mut [Option<Node<'a>>],
    pairs: &mut Vec<(Node<'a>, Node<'a>)>,
) {
    let only = |nodes: &[Option<Node<'a>>], kinds: Kinds| {
        let mut matching = nodes.iter().enumerate().filter(|(_, node)| {
            node.as_ref().is_some_and(|node| node.kinds().intersects(kinds) && node.kinds() != Kinds::ALL)
        });
        match (matching.next(), matching.next()) {
            (Some((index, _)), None) => Some(index),
            _ => None,
        }
    };
    for kind in Kinds::ALL.each() {
        if let (Some(left), Some(right)) = (only(before, kind), only(after, kind))
            && let (Some(old), Some(new)) = (before[left].take(), after[right].take())
        {
            pairs.push((old, new));
        }
    }
}
