//! Names of tools: what clients refuse.

use super::rules::{NAME_CHARACTERS, NAME_LENGTH, NAME_LENGTH_WITH_PREFIX};
use super::{LintItem, Linter};

/// The limit of several model providers.
const LONGEST: usize = 64;

pub(super) fn check(linter: &mut Linter<'_>, item: &LintItem<'_>) {
    let refused = |letter: &char| !letter.is_ascii_alphanumeric() && !"_-".contains(*letter);
    if let Some(letter) = item.id.chars().find(refused) {
        let message = format!("the name contains {letter:?}; use only letters, digits, `_` and `-`");
        linter.report(&NAME_CHARACTERS, item, "/name", message);
    }
    let length = item.id.chars().count();
    let with_prefix = length + linter.server.chars().count() + "mcp____".len();
    if length > LONGEST {
        let message = format!("the name has {length} characters; the limit of many clients is {LONGEST}");
        linter.report(&NAME_LENGTH, item, "/name", message);
    } else if with_prefix > LONGEST {
        let message = format!(
            "with the prefix `mcp__{}__`, the name has {with_prefix} characters; the limit of many clients is {LONGEST}",
            linter.server
        );
        linter.report(&NAME_LENGTH_WITH_PREFIX, item, "/name", message);
    }
}
