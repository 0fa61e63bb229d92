//! Compares what servers say about themselves: name and version, capabilities and instructions.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolyard_hub::Raw;

use super::{ChangeClass, ItemChange};
use crate::offer::{OfferProfile, read_value};

/// Deeper capabilities are compared as a whole.
const DEEPEST: usize = 6;

pub(super) fn compare_profiles(old: &OfferProfile, new: &OfferProfile) -> Vec<ItemChange> {
    let mut changes = Vec::new();
    let value = |raw: &Option<Raw>| raw.as_deref().and_then(read_value);
    let (before, after) = (value(&old.info), value(&new.info));
    if before != after {
        compare_info(before.as_ref(), after.as_ref(), &mut changes);
    }
    let (before, after) = (value(&old.capabilities), value(&new.capabilities));
    let nothing = Value::Object(Map::new());
    let (before, after) = (before.unwrap_or_else(|| nothing.clone()), after.unwrap_or(nothing));
    compare_capabilities(&before, &after, "/capabilities", 0, &mut changes);
    if old.instructions != new.instructions {
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let (before, after) = (text(&old.instructions), text(&new.instructions));
        let change = ItemChange::new(ChangeClass::Wording, "/instructions", "the instructions changed");
        changes.push(change.with_values(before.as_ref(), after.as_ref()));
    }
    changes
}

fn compare_info(before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<ItemChange>) {
    let keys = |value: Option<&Value>| -> BTreeSet<String> {
        value.and_then(Value::as_object).map(|info| info.keys().cloned().collect()).unwrap_or_default()
    };
    for key in keys(before).union(&keys(after)) {
        let member = |value: Option<&Value>| value.and_then(|value| value.get(key).cloned());
        let (was, is) = (member(before), member(after));
        if was != is {
            let change = ItemChange::new(
                ChangeClass::Wording,
                format!("/serverInfo/{key}"),
                format!("the server reports another `{key}`"),
            );
            changes.push(change.with_values(was.as_ref(), is.as_ref()));
        }
    }
}

/// Compares capabilities: one that is missing breaks clients that use it.
fn compare_capabilities(
    before: &Value,
    after: &Value,
    path: &str,
    depth: usize,
    changes: &mut Vec<ItemChange>,
) {
    if before == after {
        return;
    }
    if let (Value::Object(old), Value::Object(new), true) = (before, after, depth < DEEPEST) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
            // An absent switch is off.
            let absent = |other: Option<&Value>| match other {
                Some(Value::Bool(_)) => Some(Value::Bool(false)),
                _ => None,
            };
            let was = old.get(key).cloned().or_else(|| absent(new.get(key)));
            let is = new.get(key).cloned().or_else(|| absent(old.get(key)));
            match (was, is) {
                (Some(was), Some(is)) => compare_capabilities(&was, &is, &path, depth + 1, changes),
                (was, is) => {
                    let (class, what) = match was.is_some() {
                        true => (ChangeClass::Breaking, "was removed: clients that use it fail"),
                        false => (ChangeClass::Compatible, "was added"),
                    };
                    let change = ItemChange::new(class, path, format!("the capability `{key}` {what}"));
                    changes.push(change.with_values(was.as_ref(), is.as_ref()));
                }
            }
        }
        return;
    }
    let (class, reason) = match (before, after) {
        (Value::Bool(true), Value::Bool(false)) => {
            (ChangeClass::Breaking, "the capability was removed: clients that use it fail")
        }
        (Value::Bool(false), Value::Bool(true)) => (ChangeClass::Compatible, "the capability was added"),
        _ => (ChangeClass::Breaking, "the capability changed, which cannot be shown to be compatible"),
    };
    let undecided = !before.is_boolean() || !after.is_boolean();
    let change = ItemChange { undecided, ..ItemChange::new(class, path, reason) };
    changes.push(change.with_values(Some(before), Some(after)));
}
