//! Renders changes as text for a terminal and as Markdown for a pull request. Text of servers is
//! untrusted: it is cleaned, cut, and escaped.

use std::fmt::Write;

use serde_json::Value;
use toolyard_hub::printable::{clean_line, clean_name, escape_json};

use super::{ChangeClass, ChangedItem, OfferChange};

/// Longer values are cut.
const LONGEST: usize = 160;

/// Renders changes for people. `style` may color a word of a class.
pub fn render_changes_as_text(
    changes: &[OfferChange],
    style: &dyn Fn(ChangeClass, &str) -> String,
) -> String {
    let mut text = String::new();
    for group in changes.chunk_by(|one, other| one.item == other.item) {
        let Some(first) = group.first() else { continue };
        let _ = writeln!(text, "{}", title(&first.item, clean_name));
        for change in group {
            let word = style(change.class, &format!("{:<10}", change.class.as_str()));
            let path = if change.path.is_empty() {
                String::new()
            } else {
                format!("{}  ", clean_name(&change.path))
            };
            let _ = writeln!(text, "  {word}  {path}{}", clean_line(&change.reason));
            for (sign, value) in [('-', &change.before), ('+', &change.after)] {
                if let Some(value) = value {
                    let _ = writeln!(text, "              {sign} {}", excerpt(value));
                }
            }
        }
    }
    let _ = writeln!(text, "{}", summary(changes));
    text
}

/// Renders changes as Markdown.
pub fn render_changes_as_markdown(changes: &[OfferChange]) -> String {
    let mut text = format!("**{}**\n", summary(changes));
    for class in ChangeClass::ALL {
        let of_class: Vec<&OfferChange> = changes.iter().filter(|change| change.class == class).collect();
        if of_class.is_empty() {
            continue;
        }
        let heading = match class {
            ChangeClass::Breaking => "Breaking",
            ChangeClass::Compatible => "Compatible",
            ChangeClass::Wording => "Wording",
        };
        let _ = write!(
            text,
            "\n### {heading}\n\n| item | path | change | before | after |\n|---|---|---|---|---|\n"
        );
        for change in of_class {
            let value =
                |value: &Option<Value>| value.as_ref().map(|value| code(&excerpt(value))).unwrap_or_default();
            let path = if change.path.is_empty() { String::new() } else { code(&change.path) };
            let _ = writeln!(
                text,
                "| {} | {path} | {} | {} | {} |",
                title(&change.item, |name| code(name).into()),
                prose(&change.reason),
                value(&change.before),
                value(&change.after),
            );
        }
    }
    text
}

fn title<'n>(item: &'n ChangedItem, name: impl Fn(&'n str) -> std::borrow::Cow<'n, str>) -> String {
    let server =
        if item.server.is_empty() { String::new() } else { format!("server {}", name(&item.server)) };
    match (item.kind, server.is_empty()) {
        (Some(kind), true) => format!("{} {}", kind.as_str(), name(&item.name)),
        (Some(kind), false) => format!("{server}, {} {}", kind.as_str(), name(&item.name)),
        (None, true) => "server".to_owned(),
        (None, false) => server,
    }
}

/// Counts the changes of each class.
fn summary(changes: &[OfferChange]) -> String {
    if changes.is_empty() {
        return "no changes".to_owned();
    }
    let counts = ChangeClass::ALL.map(|class| {
        let count = changes.iter().filter(|change| change.class == class).count();
        format!("{count} {}", class.as_str())
    });
    format!(
        "{} {}: {}",
        changes.len(),
        if changes.len() == 1 { "change" } else { "changes" },
        counts.join(", ")
    )
}

/// The start of a value on one line.
fn excerpt(value: &Value) -> String {
    let json = value.to_string();
    let text = escape_json(&json);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Text in backticks inside a table cell.
fn code(text: &str) -> String {
    let text = clean_name(text).replace('|', "\\|");
    let fence = "`".repeat(1 + text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0));
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A sentence inside a table cell. What stands in backticks may come from a server, so the text is
/// escaped outside of them, and backticks that do not match are as well.
fn prose(text: &str) -> String {
    let text = clean_line(text).replace('|', "\\|");
    let escape = |part: &str| part.replace('<', "&lt;").replace('[', "\\[").replace('@', "&#64;");
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escape(&text.replace('`', "\\`"));
    }
    let parts = parts.iter().enumerate();
    let parts = parts.map(|(index, part)| if index % 2 == 1 { (*part).to_owned() } else { escape(part) });
    parts.collect::<Vec<_>>().join("`")
}
