//! JSON Schemas read for people: what a value should be, in words, and which members it has. Schemas come from
//! strangers: they may point at themselves, at nothing, or be no schema at all.

use serde_json::{Map, Value};

/// How many references are followed before a schema is taken to go round in circles.
const MOST_HOPS: usize = 16;

/// What a schema stands for once its references within the document are followed. What leads nowhere is anything.
pub(crate) fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MOST_HOPS {
        let Some(target) = schema.get("$ref").and_then(Value::as_str) else { return schema };
        let Some(pointer) = target.strip_prefix('#') else { return &Value::Bool(true) };
        match root.pointer(pointer) {
            Some(found) => schema = found,
            None => return &Value::Bool(true),
        }
    }
    &Value::Bool(true)
}

/// One member of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    pub(crate) schema: &'a Value,
}

/// The members that a schema names, those that are required first, otherwise in the order in which they are advertised.
pub(crate) fn members<'a>(root: &'a Value, schema: &'a Value) -> Vec<Member<'a>> {
    let schema = resolve(root, schema);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut members: Vec<Member<'_>> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Member { name, required: required.contains(&name.as_str()), schema })
        .collect();
    members.sort_by_key(|member| !member.required);
    members
}

/// What kind of value it is, in words.
pub(crate) fn word(root: &Value, schema: &Value) -> String {
    named(root, schema, 3)
}

fn named(root: &Value, schema: &Value, depth: usize) -> String {
    let schema = resolve(root, schema);
    if depth == 0 {
        return "…".to_owned();
    }
    for alternatives in ["anyOf", "oneOf"] {
        if let Some(list) = schema.get(alternatives).and_then(Value::as_array).filter(|list| !list.is_empty())
        {
            let mut words: Vec<String> = Vec::new();
            for word in list.iter().take(8).map(|one| named(root, one, depth - 1)) {
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            return words.join(" or ");
        }
    }
    match schema.get("type") {
        Some(Value::String(word)) if word == "array" => match schema.get("items") {
            Some(items) if items.is_object() => format!("array of {}", named(root, items, depth - 1)),
            _ => "array".to_owned(),
        },
        Some(Value::String(word)) => word.clone(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ => match schema.get("const").or_else(|| schema.get("enum")?.get(0)) {
            Some(Value::String(_)) => "string".to_owned(),
            Some(Value::Number(_)) => "number".to_owned(),
            _ => "any".to_owned(),
        },
    }
}

/// What else the schema says about the value, each in brackets of its own.
pub(crate) fn remarks(root: &Value, schema: &Value) -> Vec<String> {
    let schema = resolve(root, schema);
    let mut remarks = Vec::new();
    let Some(object) = schema.as_object() else { return remarks };
    if let Some(default) = object.get("default") {
        remarks.push(format!("[default: {default}]"));
    }
    if let Some(value) = object.get("const") {
        remarks.push(format!("[always: {value}]"));
    }
    let items = object.get("items").map(|items| resolve(root, items));
    let choices = object.get("enum").or_else(|| items?.get("enum")).and_then(Value::as_array);
    if let Some(choices) = choices {
        let shown: Vec<String> = choices.iter().take(20).map(Value::to_string).collect();
        let more = choices.len().saturating_sub(20);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        remarks.push(format!("[one of: {}{more}]", shown.join(", ")));
    }
    remarks.extend(range(object, "minimum", "maximum", ""));
    remarks.extend(range(object, "exclusiveMinimum", "exclusiveMaximum", "exclusive "));
    remarks.extend(range(object, "minLength", "maxLength", "length "));
    remarks.extend(range(object, "minItems", "maxItems", "items "));
    for (key, said) in [("format", "format"), ("pattern", "pattern"), ("multipleOf", "multiple of")] {
        match object.get(key) {
            Some(Value::String(text)) => remarks.push(format!("[{said}: {text}]")),
            Some(value @ Value::Number(_)) => remarks.push(format!("[{said}: {value}]")),
            _ => {}
        }
    }
    remarks
}

fn range(object: &Map<String, Value>, least: &str, most: &str, what: &str) -> Option<String> {
    let number = |key: &str| object.get(key).filter(|value| value.is_number());
    match (number(least), number(most)) {
        (Some(least), Some(most)) => Some(format!("[{what}{least} to {most}]")),
        (Some(least), None) => Some(format!("[{what}at least {least}]")),
        (None, Some(most)) => Some(format!("[{what}at most {most}]")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{members, remarks, resolve, word};

    #[test]
    fn values_are_told_in_words() {
        for (schema, expected) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"type": "array", "items": {"type": "integer"}}), "array of integer"),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "string"}]}),
                "string or number",
            ),
            (json!({"enum": ["a"]}), "string"),
            (json!({"$ref": "#/nowhere"}), "any"),
            (json!({"$ref": "http://elsewhere/schema"}), "any"),
            (json!(true), "any"),
            (json!(7), "any"),
        ] {
            assert_eq!(word(&schema, &schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_points_at_itself_ends() {
        let round = json!({"$ref": "#"});
        assert_eq!(resolve(&round, &round), &json!(true));
        let list = json!({"type": "array", "items": {"$ref": "#"}});
        assert_eq!(word(&list, &list), "array of array of array of …");
    }

    #[test]
    fn members_come_in_order_with_what_is_required_first() {
        let schema = json!({"properties": {"z": {}, "a": {}, "m": {}}, "required": ["m", 7, "gone"]});
        let names: Vec<_> = members(&schema, &schema).iter().map(|m| (m.name, m.required)).collect();
        assert_eq!(names, [("m", true), ("z", false), ("a", false)]);
        assert!(members(&json!({"properties": 7}), &json!({"properties": 7})).is_empty());
    }

    #[test]
    fn limits_are_told() {
        let schema = json!({"type": "integer", "default": 20, "minimum": 1, "maximum": 100});
        assert_eq!(remarks(&schema, &schema), ["[default: 20]", "[1 to 100]"]);
        let schema = json!({"enum": ["a", 1], "minLength": 2, "format": "date"});
        assert_eq!(
            remarks(&schema, &schema),
            [r#"[one of: "a", 1]"#, "[length at least 2]", "[format: date]"]
        );
    }
}
