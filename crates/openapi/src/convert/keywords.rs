//! Keywords that do not contain schemas: bounds, lengths, formats and annotations.

use std::borrow::Cow;

use serde_json::Number;

use super::keyword_view::KeywordView;
use super::location::{ConversionReport, SpecPath};
use super::pattern;
use super::schema::SchemaDirection;
use super::schema_node::{SchemaFields, SchemaNode, fits_json_size};
use crate::document::SpecNode;

/// Maximum number of characters of a description inside a schema.
const LONGEST_DESCRIPTION: usize = 1_000;

/// Writes the title and the description. Remarks describe what Draft 07 has no keyword for.
pub(super) fn write_annotations<'d>(source: KeywordView<'d>, remarks: &[String], out: &mut SchemaFields<'d>) {
    if let Some(title) = source.get("title").and_then(SpecNode::as_str).filter(|title| !title.is_empty()) {
        out.put("title", truncate(title, LONGEST_DESCRIPTION));
    }
    let description = source.get("description").and_then(SpecNode::as_str).unwrap_or_default().trim();
    let mut text = if source.is_true("deprecated") {
        let whole = format!("Deprecated. {description}");
        Cow::Owned(truncate(whole.trim(), LONGEST_DESCRIPTION).into_owned())
    } else {
        truncate(description, LONGEST_DESCRIPTION)
    };
    for remark in remarks {
        let text = text.to_mut();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(remark);
    }
    if !text.is_empty() {
        out.put("description", text);
    }
}

/// Maximum depth of a default, an example or an enum value.
pub(super) const DEEPEST_DATA: usize = 16;

pub(super) fn is_shallow(value: &SpecNode, levels: usize) -> bool {
    match value {
        SpecNode::Array(values) => levels > 0 && values.iter().all(|value| is_shallow(value, levels - 1)),
        SpecNode::Object(members) => {
            levels > 0 && members.values().all(|value| is_shallow(value, levels - 1))
        }
        _ => true,
    }
}

/// Truncates a text to a number of characters and marks the cut.
pub(super) fn truncate(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let mut short: String = text.chars().take(most.saturating_sub(2)).collect();
    short.truncate(short.trim_end().len());
    short.push_str(" …");
    Cow::Owned(short)
}

/// Formats that only some clients check. Responses often deviate from them in harmless ways, such
/// as a time without a zone, and a strict client would discard the whole response.
const CHECKED_FORMATS: [&str; 24] = [
    "byte",
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "iso-date-time",
    "iso-time",
    "json-pointer",
    "regex",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "url",
    "uuid",
];

fn is_checked_format(format: &str) -> bool {
    CHECKED_FORMATS.contains(&format) || format.contains("json-pointer")
}

/// A fractional `multipleOf` is subject to rounding errors.
fn is_fractional(source: KeywordView<'_>) -> bool {
    let step = source.get("multipleOf").and_then(|step| match step {
        SpecNode::Number(step) => step.as_f64(),
        _ => None,
    });
    step.is_some_and(|step| step.fract() != 0.0)
}

/// Describes constraints of responses as text, because clients check them differently.
pub(super) fn add_output_remarks(source: KeywordView<'_>, remarks: &mut Vec<String>) {
    if let Some(format) =
        source.get("format").and_then(SpecNode::as_str).filter(|format| is_checked_format(format))
    {
        remarks.push(format!("Format: {format}"));
    }
    if let Some(SpecNode::Number(step)) = source.get("multipleOf").filter(|_| is_fractional(source)) {
        remarks.push(format!("A multiple of {step}"));
    }
}

/// Writes `format`, `default` and examples.
pub(super) fn write_format_and_default<'d>(
    source: KeywordView<'d>,
    at: &SpecPath<'_>,
    direction: SchemaDirection,
    report: &mut ConversionReport<'_>,
    out: &mut SchemaFields<'d>,
) {
    match source.get("format") {
        Some(SpecNode::String(format))
            if direction == SchemaDirection::Output && is_checked_format(format) => {}
        Some(SpecNode::String(format)) if !format.is_empty() => out.put("format", &**format),
        None | Some(SpecNode::Null | SpecNode::String(_)) => {}
        Some(_) => report.warn(&at.key("format"), "wrong-type", "the format is not a string; ignored"),
    }
    for key in ["contentEncoding", "contentMediaType"] {
        if let Some(SpecNode::String(text)) = source.get(key) {
            out.put(key, &**text);
        }
    }
    if let Some(value) = source.get("default").filter(|value| is_shallow(value, DEEPEST_DATA)) {
        out.put("default", SchemaNode::from_data(value));
    }
    write_examples(source, out);
}

/// Size limit of one example, in bytes.
const LONGEST_EXAMPLE: usize = 1_000;

/// Writes `example` and `examples` in any form: at most three, and no long ones.
pub(super) fn write_examples<'d>(source: KeywordView<'d>, out: &mut SchemaFields<'d>) {
    let short =
        |example: &&SpecNode| is_shallow(example, DEEPEST_DATA) && fits_json_size(*example, LONGEST_EXAMPLE);
    let examples: Vec<SchemaNode<'d>> = match (source.get("examples"), source.get("example")) {
        (Some(SpecNode::Array(examples)), _) => {
            examples.iter().filter(short).take(3).map(SchemaNode::from_data).collect()
        }
        // Named examples, as in parameters.
        (Some(SpecNode::Object(examples)), _) => {
            let values = examples
                .values()
                .filter_map(|example| example.get("value").or_else(|| example.get("dataValue")));
            values.filter(short).take(3).map(SchemaNode::from_data).collect()
        }
        (_, Some(example)) => Some(example).filter(short).map(SchemaNode::from_data).into_iter().collect(),
        _ => return,
    };
    if !examples.is_empty() {
        out.put("examples", examples);
    }
}

/// Writes the bounds of numbers. The boolean `exclusive…` keywords of Swagger 2.0 and OpenAPI 3.0
/// become numeric.
pub(super) fn write_number_bounds(
    source: KeywordView<'_>,
    at: &SpecPath<'_>,
    direction: SchemaDirection,
    report: &mut ConversionReport<'_>,
    out: &mut SchemaFields<'_>,
) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let limit = read_number(source, bound, at, report);
        match source.get(exclusive) {
            Some(SpecNode::Bool(true)) => match limit {
                Some(limit) => out.put(exclusive, limit),
                None => {
                    report.warn(&at.key(exclusive), "no-bound", format!("it has no effect without `{bound}`"))
                }
            },
            None | Some(SpecNode::Bool(false) | SpecNode::Null) => {
                if let Some(limit) = limit {
                    out.put(bound, limit);
                }
            }
            Some(_) => {
                let exclusive_limit = read_number(source, exclusive, at, report);
                for (key, limit) in [(bound, limit), (exclusive, exclusive_limit)] {
                    if let Some(limit) = limit {
                        out.put(key, limit);
                    }
                }
            }
        }
    }
    if direction == SchemaDirection::Output && is_fractional(source) {
        return;
    }
    if let Some(step) = read_number(source, "multipleOf", at, report) {
        if step.as_f64().is_some_and(|step| step > 0.0) {
            out.put("multipleOf", step);
        } else {
            report.warn(
                &at.key("multipleOf"),
                "wrong-value",
                format!("{step} is not greater than zero; ignored"),
            );
        }
    }
}

fn read_number(
    source: KeywordView<'_>,
    key: &str,
    at: &SpecPath<'_>,
    report: &mut ConversionReport<'_>,
) -> Option<Number> {
    match source.get(key)? {
        SpecNode::Number(number) => Some(number.clone()),
        SpecNode::String(text) if crate::document::parse_number(text).is_some() => {
            report.note(&at.key(key), "odd-number", format!("`{key}` is a string; treated as a number"));
            crate::document::parse_number(text)
        }
        SpecNode::Null => None,
        other => {
            let message =
                format!("`{key}` is {}, not a number; ignored", crate::document::describe_kind(other));
            report.warn(&at.key(key), "wrong-type", message);
            None
        }
    }
}

/// Writes size limits: lengths, items, properties.
pub(super) fn write_size_limits(
    source: KeywordView<'_>,
    at: &SpecPath<'_>,
    report: &mut ConversionReport<'_>,
    out: &mut SchemaFields<'_>,
) {
    for key in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        let Some(count) = read_number(source, key, at, report) else { continue };
        let whole = count.as_u64().or_else(|| {
            let count = count.as_f64().filter(|count| *count >= 0.0 && count.fract() == 0.0)?;
            // A maximum beyond any possible length has no effect.
            format!("{count:.0}").parse::<u64>().ok()
        });
        match whole {
            // Some validators store these in 63 bits.
            Some(whole) if i64::try_from(whole).is_ok() => out.put(key, whole),
            _ => report.warn(&at.key(key), "wrong-value", format!("{count} is not a valid count; ignored")),
        }
    }
    if let Some(SpecNode::Bool(unique)) = source.get("uniqueItems") {
        out.put("uniqueItems", *unique);
    }
}

/// Writes `pattern`, or a remark if not every validator supports it.
pub(super) fn write_pattern(
    source: KeywordView<'_>,
    at: &SpecPath<'_>,
    report: &mut ConversionReport<'_>,
    out: &mut SchemaFields<'_>,
    remarks: &mut Vec<String>,
) {
    match source.get("pattern") {
        Some(SpecNode::String(text)) => match pattern::to_portable_pattern(text) {
            Some(pattern) => out.put("pattern", pattern),
            None => {
                report.note(
                    &at.key("pattern"),
                    "odd-pattern",
                    "not every validator supports this pattern; moved to the description",
                );
                remarks.push(format!("Pattern: {}", truncate(text, 200)));
            }
        },
        None | Some(SpecNode::Null) => {}
        Some(_) => report.warn(&at.key("pattern"), "wrong-type", "the pattern is not a string; ignored"),
    }
}
