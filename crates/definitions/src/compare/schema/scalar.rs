//! Compares types, and the keywords that constrain numbers, strings and counts.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::Value;

use super::kinds::Kinds;
use super::node::{Located, Node};
use super::{SchemaChange, SchemaEffect, verb};

/// Keywords for the minimum of a count, with the kind they apply to.
const LEAST_COUNTS: [(&str, Kinds); 3] =
    [("minLength", Kinds::STRING), ("minItems", Kinds::ARRAY), ("minProperties", Kinds::OBJECT)];
const MOST_COUNTS: [(&str, Kinds); 3] =
    [("maxLength", Kinds::STRING), ("maxItems", Kinds::ARRAY), ("maxProperties", Kinds::OBJECT)];

/// Keywords whose value is a language of its own, so that two values can only be equal or not.
const FORMATS: [(&str, Kinds); 4] = [
    ("pattern", Kinds::STRING),
    ("format", Kinds::ALL),
    ("contentEncoding", Kinds::STRING),
    ("contentMediaType", Kinds::STRING),
];

/// Compares `type`, and returns the kinds that both schemas allow.
pub(super) fn compare_kinds<'a>(
    old: &Node<'a>,
    new: &Node<'a>,
    changes: &mut Vec<SchemaChange<'a>>,
) -> Kinds {
    let (before, after) = (old.kinds(), new.kinds());
    let (removed, added) = (before - after, after - before);
    let effect = effect(!removed.is_empty(), !added.is_empty());
    if let Some(effect) = effect {
        let place = new.keyword("type").pop().or_else(|| old.keyword("type").pop());
        let mut what = Vec::new();
        if !removed.is_empty() {
            what.push(format!("{} no longer allowed", enumerate(removed, before)));
        }
        if !added.is_empty() {
            what.push(format!("{} now allowed", enumerate(added, after)));
        }
        changes.push(SchemaChange {
            effect,
            pointer: place.map_or_else(|| format!("{}/type", new.pointer), |place| place.pointer),
            before: type_value(old),
            after: type_value(new),
            what: what.join(", "),
        });
    }
    before & after
}

/// Names the kinds that were added or removed, out of `all` that the schema allows.
fn enumerate(kinds: Kinds, all: Kinds) -> String {
    let fractions = kinds.contains(Kinds::FRACTION) && !kinds.contains(Kinds::INTEGER);
    let names: Vec<String> = kinds
        .names()
        .into_iter()
        .map(|name| match name {
            "number" if fractions => "numbers that are not integers".to_owned(),
            name => format!("`{name}`"),
        })
        .collect();
    let is_plural = fractions || names.len() > 1;
    let list =
        if kinds == Kinds::ALL && all == Kinds::ALL { "any value".to_owned() } else { names.join(", ") };
    format!("{list} {}", if is_plural { "are" } else { "is" })
}

fn type_value<'a>(node: &Node<'a>) -> Option<Cow<'a, Value>> {
    match node.keyword("type").as_slice() {
        [] => None,
        [one] => Some(Cow::Borrowed(one.value)),
        _ => Some(Cow::Owned(Value::from(node.kinds().names()))),
    }
}

/// The effect of a change that removes and adds values.
pub(super) fn effect(removes: bool, adds: bool) -> Option<SchemaEffect> {
    match (removes, adds) {
        (false, false) => None,
        (true, false) => Some(SchemaEffect::Narrowed),
        (false, true) => Some(SchemaEffect::Widened),
        (true, true) => Some(SchemaEffect::Replaced),
    }
}

/// Compares the keywords of numbers and strings, and the counts of items and properties.
pub(super) fn compare_scalars<'a>(
    old: &Node<'a>,
    new: &Node<'a>,
    shared: Kinds,
    changes: &mut Vec<SchemaChange<'a>>,
) {
    if shared.intersects(Kinds::NUMBER) {
        let integers = !shared.intersects(Kinds::FRACTION);
        for side in [Side::Lower, Side::Upper] {
            compare_bounds(old, new, side, integers, changes);
        }
        compare_multiples(old, new, integers, changes);
    }
    for (counts, side) in [(LEAST_COUNTS, Side::Lower), (MOST_COUNTS, Side::Upper)] {
        for (key, kind) in counts {
            if shared.intersects(kind) {
                compare_counts(old, new, key, side, changes);
            }
        }
    }
    if shared.intersects(Kinds::ARRAY) {
        let unique = |node: &Node<'a>| {
            node.keyword("uniqueItems").into_iter().find(|entry| entry.value == &Value::Bool(true))
        };
        report(unique(old), unique(new), old, new, "uniqueItems", Ordering::Equal, changes);
    }
    for (key, kind) in FORMATS {
        if shared.intersects(kind) {
            compare_languages(old, new, key, changes);
        }
    }
}

/// The end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

/// A bound, normalized so that bounds can be compared.
struct Bound<'a> {
    place: Located<'a>,
    number: Number,
    /// Whether the number itself is outside the range.
    exclusive: bool,
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Integer(i128),
    Real(f64),
}

impl Number {
    fn read(value: &Value) -> Option<Self> {
        let integer = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        integer.map(Self::Integer).or_else(|| value.as_f64().map(Self::Real))
    }

    fn real(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Real(real) => real,
        }
    }

    fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            _ => self.real().total_cmp(&other.real()),
        }
    }
}

impl Bound<'_> {
    /// Orders bounds by how much they exclude.
    fn strictness(&self, other: &Self, side: Side) -> Ordering {
        let by_number = match side {
            Side::Lower => self.number.order(other.number),
            Side::Upper => other.number.order(self.number),
        };
        by_number.then(self.exclusive.cmp(&other.exclusive))
    }
}

/// The strictest of the bounds on one side.
fn strictest_bound<'a>(node: &Node<'a>, side: Side, integers: bool) -> Option<Bound<'a>> {
    let (inclusive, exclusive) = match side {
        Side::Lower => ("minimum", "exclusiveMinimum"),
        Side::Upper => ("maximum", "exclusiveMaximum"),
    };
    // Up to draft 4, `exclusiveMinimum` is a switch next to `minimum`.
    let switched = node.keyword(exclusive).iter().any(|entry| entry.value == &Value::Bool(true));
    let bounds = node.keyword(inclusive).into_iter().map(|place| (place, switched));
    let bounds = bounds.chain(node.keyword(exclusive).into_iter().map(|place| (place, true)));
    let bounds = bounds.filter_map(|(place, exclusive)| {
        let number = Number::read(place.value)?;
        Some(normalize(Bound { place, number, exclusive }, side, integers))
    });
    bounds.max_by(|one, other| one.strictness(other, side))
}

/// For integers, the bound as the last integer inside the range.
fn normalize(bound: Bound<'_>, side: Side, integers: bool) -> Bound<'_> {
    if !integers {
        return bound;
    }
    let step = match side {
        Side::Lower => 1,
        Side::Upper => -1,
    };
    let (integer, exclusive) = match bound.number {
        Number::Integer(integer) => (integer, bound.exclusive),
        Number::Real(real) if real.abs() < 1e18 => {
            let inside = if side == Side::Lower { real.ceil() } else { real.floor() };
            (inside as i128, bound.exclusive && real.fract() == 0.0)
        }
        Number::Real(_) => return bound,
    };
    Bound { number: Number::Integer(integer + if exclusive { step } else { 0 }), exclusive: false, ..bound }
}

fn compare_bounds<'a>(
    old: &Node<'a>,
    new: &Node<'a>,
    side: Side,
    integers: bool,
    changes: &mut Vec<SchemaChange<'a>>,
) {
    let (before, after) = (strictest_bound(old, side, integers), strictest_bound(new, side, integers));
    let order = match (&before, &after) {
        (Some(before), Some(after)) => after.strictness(before, side),
        _ => Ordering::Equal,
    };
    let key = if side == Side::Lower { "minimum" } else { "maximum" };
    report(before.map(|bound| bound.place), after.map(|bound| bound.place), old, new, key, order, changes);
}

fn compare_counts<'a>(
    old: &Node<'a>,
    new: &Node<'a>,
    key: &'static str,
    side: Side,
    changes: &mut Vec<SchemaChange<'a>>,
) {
    let bound = |node: &Node<'a>| {
        let bounds = node.keyword(key).into_iter().filter_map(|place| {
            let number = Number::read(place.value)?;
            Some(Bound { place, number, exclusive: false })
        });
        // A minimum of 0 excludes nothing.
        let bounds = bounds.filter(|bound| side == Side::Upper || bound.number.real() > 0.0);
        bounds.max_by(|one, other| one.strictness(other, side))
    };
    let (before, after) = (bound(old), bound(new));
    let order = match (&before, &after) {
        (Some(before), Some(after)) => after.strictness(before, side),
        _ => Ordering::Equal,
    };
    report(before.map(|bound| bound.place), after.map(|bound| bound.place), old, new, key, order, changes);
}

/// Reports a constraint that was added or removed, or that became stricter (`Greater`) or less
/// strict.
fn report<'a>(
    before: Option<Located<'a>>,
    after: Option<Located<'a>>,
    old: &Node<'a>,
    new: &Node<'a>,
    key: &str,
    order: Ordering,
    changes: &mut Vec<SchemaChange<'a>>,
) {
    let effect = match (&before, &after, order) {
        (None, Some(_), _) | (Some(_), Some(_), Ordering::Greater) => SchemaEffect::Narrowed,
        (Some(_), None, _) | (Some(_), Some(_), Ordering::Less) => SchemaEffect::Widened,
        (None, None, _) | (Some(_), Some(_), Ordering::Equal) => return,
    };
    let pointer = match (&after, &before) {
        (Some(place), _) | (None, Some(place)) => place.pointer.clone(),
        (None, None) => format!("{}/{key}", if new.pointer.is_empty() { &old.pointer } else { &new.pointer }),
    };
    let key = pointer.rsplit('/').next().unwrap_or(key).to_owned();
    let text = |place: &Option<Located<'a>>| place.as_ref().map(|place| place.value.to_string());
    let what = match (text(&before), text(&after)) {
        (Some(before), Some(after)) => format!("`{key}` changed from {before} to {after}"),
        (before, after) => {
            let value = after.as_ref().or(before.as_ref()).cloned().unwrap_or_default();
            format!("`{key}` {value} {}", verb(before.is_some(), after.is_some()))
        }
    };
    changes.push(SchemaChange {
        effect,
        pointer,
        before: before.map(|place| Cow::Borrowed(place.value)),
        after: after.map(|place| Cow::Borrowed(place.value)),
        what,
    });
}

fn compare_multiples<'a>(
    old: &Node<'a>,
    new: &Node<'a>,
    integers: bool,
    changes: &mut Vec<SchemaChange<'a>>,
) {
    let factors = |node: &Node<'a>| -> Vec<(Located<'a>, f64)> {
        let factors = node.keyword("multipleOf").into_iter();
        let factors = factors.filter_map(|place| Some((place.clone(), place.value.as_f64()?)));
        factors.filter(|(_, factor)| *factor > 0.0 && !(integers && 1.0 % *factor == 0.0)).collect()
    };
    let (before, after) = (factors(old), factors(new));
    // A multiple of 6 is a multiple of 3.
    let implied = |factor: f64, by: &[(Located<'a>, f64)]| by.iter().any(|(_, other)| other % factor == 0.0);
    let stricter = after.iter().find(|(_, factor)| !implied(*factor, &before));
    let looser = before.iter().find(|(_, factor)| !implied(*factor, &after));
    let Some(effect) = effect(stricter.is_some(), looser.is_some()) else { return };
    let (one, other) = (before.first().map(|(place, _)| place), after.first().map(|(place, _)| place));
    changes.push(SchemaChange {
        effect,
        pointer: other.or(one).map(|place| place.pointer.clone()).unwrap_or_default(),
        before: one.map(|place| Cow::Borrowed(place.value)),
        after: other.map(|place| Cow::Borrowed(place.value)),
        what: format!("`multipleOf` {}", verb(one.is_some(), other.is_some())),
    });
}

/// Compares keywords like `pattern`.
fn compare_languages<'a>(old: &Node<'a>, new: &Node<'a>, key: &str, changes: &mut Vec<SchemaChange<'a>>) {
    let (before, after) = (old.keyword(key), new.keyword(key));
    let texts = |entries: &[Located<'a>]| -> BTreeSet<String> {
        entries.iter().map(|entry| entry.value.to_string()).collect()
    };
    let (had, has) = (texts(&before), texts(&after));
    let effect = match (had.is_subset(&has), has.is_subset(&had)) {
        (true, true) => return,
        (true, false) => SchemaEffect::Narrowed,
        (false, true) => SchemaEffect::Widened,
        (false, false) => SchemaEffect::Undecided,
    };
    let differing = |entries: &[Located<'a>], other: &BTreeSet<String>| {
        entries.iter().find(|entry| !other.contains(&entry.value.to_string())).cloned()
    };
    let (before, after) = (differing(&before, &has), differing(&after, &had));
    let what = format!("`{key}` {}", verb(before.is_some(), after.is_some()));
    changes.push(SchemaChange {
        effect,
        pointer: after.as_ref().or(before.as_ref()).map(|place| place.pointer.clone()).unwrap_or_default(),
        before: before.map(|place| Cow::Borrowed(place.value)),
        after: after.map(|place| Cow::Borrowed(place.value)),
        what,
    });
}
