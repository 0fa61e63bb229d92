//! Readable values and differences for reports.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Longer values are shortened in reports, in characters.
const LONGEST: usize = 2_000;
/// How many lines of a difference are shown.
const MOST_LINES: usize = 60;
/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// How long a difference may take to compute before a coarser one is used.
const PATIENCE: Duration = Duration::from_millis(200);

/// Renders a value: texts as they are, others as indented JSON.
pub(crate) fn render(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => {
            serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
        }
        scalar => scalar.to_string(),
    }
}

/// Renders a value for one line or a short block. Texts are quoted, so that they differ from numbers.
pub(crate) fn render_short(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') => shorten(text),
        Value::String(_) => shorten(&value.to_string()),
        Value::Array(_) | Value::Object(_) => {
            let line = value.to_string();
            if line.chars().count() <= 100 { line } else { shorten(&render(value)) }
        }
        scalar => scalar.to_string(),
    }
}

pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Returns the changed lines with some context, if both texts together have several lines.
pub(crate) fn diff(expected: &str, actual: &str) -> Option<String> {
    if !expected.trim_end().contains('\n') && !actual.trim_end().contains('\n') {
        return None;
    }
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(expected, actual);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push("  …".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            let text = change.value();
            lines.push(format!("{sign} {}", shorten(text.trim_end_matches(['\n', '\r']))));
        }
    }
    let hidden = lines.len().saturating_sub(MOST_LINES);
    if hidden > 0 {
        lines.truncate(MOST_LINES);
        lines.push(format!("  … {hidden} more lines"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{diff, render_short};

    #[test]
    fn a_difference_shows_the_changed_lines() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\ne\nX\ng\nh\n");
        assert_eq!(diff(old, new).unwrap(), "  c\n  d\n  e\n- f\n+ X\n  g\n  h");
        assert_eq!(diff("a", "b"), None);
        assert_eq!(diff("a\nb", "a\nb"), None);
    }

    #[test]
    fn long_values_are_shortened() {
        assert_eq!(render_short(&json!("5")), "\"5\"");
        assert_eq!(render_short(&json!({"a": 1})), "{\"a\":1}");
        assert!(render_short(&json!("x".repeat(5000))).ends_with("… (5002 bytes)"));
    }
}
