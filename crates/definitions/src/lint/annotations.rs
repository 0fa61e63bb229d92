//! The hints of tools: missing, contradicting each other, or contradicting the name.

use serde_json::Value;

use super::rules::{ANNOTATIONS_AGAINST_NAME, ANNOTATIONS_CONTRADICTORY, ANNOTATIONS_MISSING};
use super::{LintItem, Linter};

/// First words of names of tools that change something.
const CHANGING: [&str; 10] =
    ["delete", "destroy", "erase", "kill", "overwrite", "purge", "rename", "uninstall", "update", "wipe"];
/// First words of names of tools that only read.
const READING: [&str; 7] = ["count", "describe", "find", "get", "list", "read", "search"];

pub(super) fn check(linter: &mut Linter<'_>, item: &LintItem<'_>) {
    let hint =
        |key: &str| item.members.get("annotations").and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    let (read_only, destructive) = (hint("readOnlyHint"), hint("destructiveHint"));
    if read_only.is_none() && destructive.is_none() {
        let message = "neither `readOnlyHint` nor `destructiveHint` is set, so clients assume that the tool is destructive";
        return linter.report(&ANNOTATIONS_MISSING, item, "/annotations", message);
    }
    if read_only == Some(true) && destructive == Some(true) {
        let message = "the tool says that it is read-only and destructive";
        return linter.report(&ANNOTATIONS_CONTRADICTORY, item, "/annotations", message);
    }
    let words = split_words(&item.id);
    let first = words.first().map(String::as_str).unwrap_or_default();
    if read_only == Some(true) && CHANGING.contains(&first) {
        let message = format!("the name starts with `{first}`, but the tool says that it is read-only");
        linter.report(&ANNOTATIONS_AGAINST_NAME, item, "/annotations/readOnlyHint", message);
    }
    // `get_and_delete` reads, and more.
    let changes = words.iter().any(|word| CHANGING.contains(&word.as_str()) || word == "and" || word == "or");
    if destructive == Some(true) && READING.contains(&first) && !changes {
        let message = format!("the name starts with `{first}`, but the tool says that it is destructive");
        linter.report(&ANNOTATIONS_AGAINST_NAME, item, "/annotations/destructiveHint", message);
    }
}

/// The words of a name in snake case, kebab case or camel case.
fn split_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        let is_boundary = !letter.is_alphanumeric() || letter.is_uppercase() && before.is_lowercase();
        if is_boundary {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}
