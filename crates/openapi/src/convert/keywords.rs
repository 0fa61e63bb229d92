//! Keywords that have no schemas in them: bounds, lengths, formats, and the words about a schema.

use serde_json::{Map, Number, Value};

use super::pattern;
use super::spot::{At, Report};

type Members = Map<String, Value>;

/// Characters of one description inside a schema.
const LONGEST_DESCRIPTION: usize = 1_000;

/// Title and description, with what Draft 07 has no word for told in words.
pub(super) fn words(source: &Members, remarks: &[String], out: &mut Members) {
    if let Some(title) = source.get("title").and_then(Value::as_str).filter(|title| !title.is_empty()) {
        out.insert("title".to_owned(), Value::from(cut(title, LONGEST_DESCRIPTION)));
    }
    let mut said = String::new();
    if source.get("deprecated") == Some(&Value::Bool(true)) {
        said.push_str("Deprecated. ");
    }
    said.push_str(source.get("description").and_then(Value::as_str).unwrap_or_default().trim());
    let mut said = cut(said.trim(), LONGEST_DESCRIPTION);
    for remark in remarks {
        if !said.is_empty() {
            said.push('\n');
        }
        said.push_str(remark);
    }
    if !said.is_empty() {
        out.insert("description".to_owned(), Value::String(said));
    }
}

/// Levels of a default, an example or a choice.
pub(super) const DEEPEST_DATA: usize = 16;

pub(super) fn is_shallow(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(values) => levels > 0 && values.iter().all(|value| is_shallow(value, levels - 1)),
        Value::Object(members) => levels > 0 && members.values().all(|value| is_shallow(value, levels - 1)),
        _ => true,
    }
}

/// A text of at most so many characters, with a mark where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(2)).collect();
    short.truncate(short.trim_end().len());
    short.push_str(" …");
    short
}

/// `format`, `default` and examples.
pub(super) fn hints(source: &Members, at: &At<'_>, report: &mut Report<'_>, out: &mut Members) {
    match source.get("format") {
        Some(Value::String(format)) if !format.is_empty() => {
            out.insert("format".to_owned(), Value::String(format.clone()));
        }
        None | Some(Value::Null | Value::String(_)) => {}
        Some(_) => {
            report.warn(&at.key("format"), "wrong-type", "the format is not a string; it was left out")
        }
    }
    for key in ["contentEncoding", "contentMediaType"] {
        if let Some(Value::String(text)) = source.get(key) {
            out.insert(key.to_owned(), Value::String(text.clone()));
        }
    }
    if let Some(value) = source.get("default").filter(|value| is_shallow(value, DEEPEST_DATA)) {
        out.insert("default".to_owned(), value.clone());
    }
    examples(source, out);
}

/// `example` and `examples` in all their forms: at most three, and none that is long.
pub(super) fn examples(source: &Members, out: &mut Members) {
    let examples = match (source.get("examples"), source.get("example")) {
        (Some(Value::Array(examples)), _) => examples.clone(),
        // Named examples, as parameters have them.
        (Some(Value::Object(examples)), _) => {
            let values = examples
                .values()
                .filter_map(|example| example.get("value").or_else(|| example.get("dataValue")));
            values.cloned().collect()
        }
        (_, Some(example)) => vec![example.clone()],
        _ => return,
    };
    let examples: Vec<Value> = examples
        .into_iter()
        .filter(|example| is_shallow(example, DEEPEST_DATA) && example.to_string().len() <= 1_000)
        .collect();
    if !examples.is_empty() {
        out.insert("examples".to_owned(), Value::Array(examples.into_iter().take(3).collect()));
    }
}

/// Bounds of numbers, with 3.0's and Swagger's boolean `exclusive…` put into one keyword.
pub(super) fn numbers(source: &Members, at: &At<'_>, report: &mut Report<'_>, out: &mut Members) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let limit = number(source, bound, at, report);
        match source.get(exclusive) {
            Some(Value::Bool(true)) => match limit {
                Some(limit) => drop(out.insert(exclusive.to_owned(), Value::Number(limit))),
                None => {
                    report.warn(&at.key(exclusive), "no-bound", format!("there is no `{bound}` beside it"))
                }
            },
            None | Some(Value::Bool(false) | Value::Null) => {
                limit.map(|limit| out.insert(bound.to_owned(), Value::Number(limit)));
            }
            Some(_) => {
                limit.map(|limit| out.insert(bound.to_owned(), Value::Number(limit)));
                number(source, exclusive, at, report)
                    .map(|limit| out.insert(exclusive.to_owned(), Value::Number(limit)));
            }
        }
    }
    if let Some(step) = number(source, "multipleOf", at, report) {
        if step.as_f64().is_some_and(|step| step > 0.0) {
            out.insert("multipleOf".to_owned(), Value::Number(step));
        } else {
            report.warn(
                &at.key("multipleOf"),
                "wrong-value",
                format!("{step} is not above zero; it was left out"),
            );
        }
    }
}

fn number(source: &Members, key: &str, at: &At<'_>, report: &mut Report<'_>) -> Option<Number> {
    match source.get(key)? {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) if crate::document::number(text).is_some() => {
            report.note(&at.key(key), "odd-number", format!("`{key}` is a string; it was read as a number"));
            crate::document::number(text)
        }
        Value::Null => None,
        other => {
            let message =
                format!("`{key}` is {}, not a number; it was left out", crate::document::kind(other));
            report.warn(&at.key(key), "wrong-type", message);
            None
        }
    }
}

/// Counts: lengths, items, properties.
pub(super) fn counts(source: &Members, at: &At<'_>, report: &mut Report<'_>, out: &mut Members) {
    for key in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        let Some(count) = number(source, key, at, report) else { continue };
        let whole = count.as_u64().or_else(|| {
            let count = count.as_f64().filter(|count| *count >= 0.0 && count.fract() == 0.0)?;
            // A maximum beyond all texts is no maximum.
            format!("{count:.0}").parse::<u64>().ok()
        });
        match whole {
            // Some checkers keep these in 63 bits.
            Some(whole) if i64::try_from(whole).is_ok() => {
                drop(out.insert(key.to_owned(), Value::from(whole)))
            }
            _ => report.warn(
                &at.key(key),
                "wrong-value",
                format!("{count} cannot be a count; it was left out"),
            ),
        }
    }
    if let Some(Value::Bool(unique)) = source.get("uniqueItems") {
        out.insert("uniqueItems".to_owned(), Value::Bool(*unique));
    }
}

/// `pattern`, or a remark about it where not everybody could read it.
pub(super) fn pattern(
    source: &Members,
    at: &At<'_>,
    report: &mut Report<'_>,
    out: &mut Members,
    remarks: &mut Vec<String>,
) {
    match source.get("pattern") {
        Some(Value::String(text)) => match pattern::portable(text) {
            Some(pattern) => drop(out.insert("pattern".to_owned(), Value::String(pattern))),
            None => {
                report.note(
                    &at.key("pattern"),
                    "odd-pattern",
                    "not every checker reads this pattern; it is told in words",
                );
                remarks.push(format!("Pattern: {}", cut(text, 200)));
            }
        },
        None | Some(Value::Null) => {}
        Some(_) => {
            report.warn(&at.key("pattern"), "wrong-type", "the pattern is not a string; it was left out")
        }
    }
}
