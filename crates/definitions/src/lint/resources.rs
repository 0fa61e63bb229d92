//! Addresses and types of resources and templates.

use toolyard_hub::UriTemplate;
use url::Url;

use super::rules::{RESOURCE_MIME_TYPE, RESOURCE_URI_INVALID};
use super::{LintItem, Linter};
use crate::offer::ItemKind;

pub(super) fn check(linter: &mut Linter<'_>, item: &LintItem<'_>) {
    let key = format!("/{}", item.kind.id_key());
    match item.kind {
        _ if item.id.is_empty() => {}
        ItemKind::Template => {
            let problem = if has_stray_brace(&item.id) {
                Some("a brace has no counterpart")
            } else {
                UriTemplate::parse(&item.id).problem()
            };
            if let Some(problem) = problem {
                let message = format!("the URI template is invalid: {problem}");
                linter.report(&RESOURCE_URI_INVALID, item, key, message);
            }
        }
        _ => {
            if let Err(error) = Url::parse(&item.id) {
                linter.report(&RESOURCE_URI_INVALID, item, key, format!("the URI is invalid: {error}"));
            }
        }
    }
    if let Some(kind) = item.text("mimeType").filter(|kind| !is_mime_type(kind)) {
        let shown = toolyard_hub::json::truncate_for_message(kind);
        let message = format!("`{shown}` is not of the form `type/subtype`");
        linter.report(&RESOURCE_MIME_TYPE, item, "/mimeType", message);
    }
}

fn has_stray_brace(template: &str) -> bool {
    let mut is_open = false;
    for letter in template.chars().filter(|letter| "{}".contains(*letter)) {
        if is_open == (letter == '{') {
            return true;
        }
        is_open = !is_open;
    }
    is_open
}

fn is_mime_type(text: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty()
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "!#$&^_.+-*'`|~%".contains(letter))
    };
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}
