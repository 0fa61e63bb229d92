//! Descriptions of tools and of their parameters.

use serde_json::Value;

use super::rules::{
    DESCRIPTION_IS_NAME, DESCRIPTION_LONG, DESCRIPTION_MISSING, DESCRIPTION_SHORT, OUTPUT_SCHEMA_MISSING,
    PARAMETER_DESCRIPTION_MISSING,
};
use super::{LintItem, Linter};

/// Phrases that announce structured results.
const STRUCTURED: [&str; 6] =
    ["returns json", "returns a json", "return json", "as json", "json object with", "returns structured"];

pub(super) fn check(linter: &mut Linter<'_>, item: &LintItem<'_>) {
    let description = item.text("description").unwrap_or_default().trim();
    let length = description.chars().count();
    let letters = |text: &str| -> String {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (min, max) = (linter.settings.description_min, linter.settings.description_max);
    if description.is_empty() {
        linter.report(&DESCRIPTION_MISSING, item, "/description", "the tool has no description");
    } else if !item.id.is_empty() && letters(description) == letters(&item.id) {
        linter.report(&DESCRIPTION_IS_NAME, item, "/description", "the description only repeats the name");
    } else if length < min {
        let message = format!("the description has {length} characters, fewer than {min}");
        linter.report(&DESCRIPTION_SHORT, item, "/description", message);
    } else if length > max {
        let message = format!("the description has {length} characters, more than {max}");
        linter.report(&DESCRIPTION_LONG, item, "/description", message);
    }
    let lower = description.to_lowercase();
    if let Some(phrase) = STRUCTURED.iter().find(|phrase| lower.contains(*phrase))
        && !item.members.contains_key("outputSchema")
    {
        let message = format!("the description says \"{phrase}\", but there is no output schema");
        linter.report(&OUTPUT_SCHEMA_MISSING, item, "", message);
    }
    let Some(schema) = item.members.get("inputSchema") else { return };
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if !is_described(property, schema) {
            let path = format!("/inputSchema/properties/{}", name.replace('~', "~0").replace('/', "~1"));
            let message = format!("parameter `{name}` has no description");
            linter.report(&PARAMETER_DESCRIPTION_MISSING, item, path, message);
        }
    }
}

/// A description can also be where a reference leads to. Of alternatives, one may have it.
fn is_described(property: &Value, root: &Value) -> bool {
    let branches = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| property.get(key)?.as_array());
    has_description(property, root) || branches.flatten().any(|branch| has_description(branch, root))
}

fn has_description(schema: &Value, root: &Value) -> bool {
    let has_text = |schema: &Value| {
        schema.get("description").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
    };
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    has_text(schema) || target.is_some_and(has_text)
}
