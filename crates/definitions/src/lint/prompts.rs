//! Prompts and their arguments.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{PROMPT_ARGUMENT_DUPLICATE, PROMPT_DESCRIPTION_MISSING};
use super::{LintItem, Linter};

pub(super) fn check(linter: &mut Linter<'_>, item: &LintItem<'_>) {
    if item.text("description").unwrap_or_default().trim().is_empty() {
        linter.report(&PROMPT_DESCRIPTION_MISSING, item, "/description", "the prompt has no description");
    }
    let mut seen = HashSet::new();
    let arguments = item.members.get("arguments").and_then(Value::as_array).into_iter().flatten();
    for (index, argument) in arguments.enumerate() {
        let Some(name) = argument.get("name").and_then(Value::as_str) else { continue };
        if !seen.insert(name) {
            let message = format!("there is more than one argument `{name}`");
            linter.report(&PROMPT_ARGUMENT_DUPLICATE, item, format!("/arguments/{index}"), message);
        }
    }
}
