//! Lists as a whole: missing, duplicate and similar names, and sizes.

use std::collections::HashMap;

use serde_json::Value;

use super::rules::{
    LIST_TOO_LARGE, NAME_DUPLICATE, NAME_MISSING, NAME_SIMILAR, TOOL_TOO_LARGE, TOOLS_TOO_MANY,
};
use super::{LintItem, Linter};
use crate::offer::ItemKind;

pub(super) fn check(linter: &mut Linter<'_>, kind: ItemKind, items: &[LintItem<'_>]) {
    let key = kind.id_key();
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for item in items {
        *counts.entry((&item.id, version(item))).or_default() += 1;
    }
    for item in items {
        match counts.remove(&(item.id.as_str(), version(item))) {
            Some(_) if item.id.is_empty() => {
                let message = format!("a {} has no `{key}`", kind.as_str());
                linter.report(&NAME_MISSING, item, format!("/{key}"), message);
            }
            Some(count) if count > 1 => {
                let message = format!("{count} items of the list have this `{key}`");
                linter.report(&NAME_DUPLICATE, item, format!("/{key}"), message);
            }
            _ => {}
        }
    }
    if kind == ItemKind::Tool {
        check_similar(linter, items);
        check_sizes(linter, items);
    }
}

/// A yard offers older versions of a tool under the same name.
fn version<'i>(item: &'i LintItem<'_>) -> &'i str {
    let metadata = item.members.get("_meta").and_then(|meta| meta.get("dev.toolyard/metadata"));
    metadata.and_then(|metadata| metadata.get("version")).and_then(Value::as_str).unwrap_or_default()
}

fn check_similar(linter: &mut Linter<'_>, items: &[LintItem<'_>]) {
    let mut known: HashMap<String, &str> = HashMap::new();
    for item in items.iter().filter(|item| !item.id.is_empty()) {
        let folded: String =
            item.id.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        // A name of symbols alone says nothing.
        if folded.is_empty() {
            continue;
        }
        let other = *known.entry(folded).or_insert(&item.id);
        if other != item.id {
            let message = format!("the name differs from `{other}` only in case or in separators");
            linter.report(&NAME_SIMILAR, item, "/name", message);
        }
    }
}

fn check_sizes(linter: &mut Linter<'_>, items: &[LintItem<'_>]) {
    let settings = linter.settings;
    if items.len() > settings.tools_max {
        let message = format!("the server has {} tools, more than {}", items.len(), settings.tools_max);
        linter.report_server(&TOOLS_TOO_MANY, "", message);
    }
    let total: usize = items.iter().map(|item| item.raw.get().len()).sum();
    if total > settings.list_bytes_max {
        let message = format!("the tools have {total} bytes together, more than {}", settings.list_bytes_max);
        linter.report_server(&LIST_TOO_LARGE, "", message);
    }
    for item in items {
        let bytes = item.raw.get().len();
        if bytes > settings.tool_bytes_max {
            let message = format!("the definition has {bytes} bytes, more than {}", settings.tool_bytes_max);
            linter.report(&TOOL_TOO_LARGE, item, "", message);
        }
    }
}
