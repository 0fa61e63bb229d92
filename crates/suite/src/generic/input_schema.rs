//! Reads input schemas for the generator: follows references and merges what applies together. It
//! need not be exact, because every generated value is checked against the schema afterwards.

use serde_json::{Map, Value};

use crate::expect::JsonType;

/// How many alternatives of a schema are used.
const MOST_VARIANTS: usize = 16;
/// How deep references and alternatives are followed.
const DEEPEST: usize = 12;

/// The keywords that apply to a value.
pub(crate) type Keywords = Map<String, Value>;

/// Returns the alternatives of a schema, each with its references followed and `allOf` merged.
pub(crate) fn variants(root: &Value, schema: &Value) -> Vec<Keywords> {
    let mut found = expand(root, schema, 0);
    found.truncate(MOST_VARIANTS);
    found
}

fn expand(root: &Value, schema: &Value, depth: usize) -> Vec<Keywords> {
    let Value::Object(keywords) = schema else { return vec![Map::new()] };
    if depth > DEEPEST {
        return vec![Map::new()];
    }
    let mut base = keywords.clone();
    if let Some(Value::String(reference)) = base.shift_remove("$ref") {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let first = target.and_then(|target| expand(root, target, depth + 1).into_iter().next());
        base = merge(first.unwrap_or_default(), &base);
    }
    if let Some(Value::Array(parts)) = base.shift_remove("allOf") {
        for part in &parts {
            let first = expand(root, part, depth + 1).into_iter().next().unwrap_or_default();
            base = merge(base, &first);
        }
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(alternatives)) = base.shift_remove(key) else { continue };
        let mut all = Vec::new();
        for alternative in alternatives.iter().take(MOST_VARIANTS) {
            all.extend(expand(root, alternative, depth + 1).iter().map(|each| merge(base.clone(), each)));
        }
        if !all.is_empty() {
            return all;
        }
    }
    vec![base]
}

/// Returns the keywords of both. Properties and required names add up; otherwise `more` wins.
fn merge(mut base: Keywords, more: &Keywords) -> Keywords {
    for (key, value) in more {
        match (base.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(properties)) if key == "properties" => {
                known.extend(properties.clone());
            }
            (Some(Value::Array(known)), Value::Array(names)) if key == "required" => {
                known.extend(names.iter().filter(|name| !known.contains(name)).cloned().collect::<Vec<_>>());
            }
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
    base
}

/// Returns the types that a value can have. Empty if any is possible.
pub(crate) fn types(keywords: &Keywords) -> Vec<JsonType> {
    match keywords.get("type") {
        Some(Value::String(name)) => return JsonType::parse(name).into_iter().collect(),
        Some(Value::Array(names)) => {
            return names.iter().filter_map(Value::as_str).filter_map(JsonType::parse).collect();
        }
        _ => {}
    }
    let has = |keys: &[&str]| keys.iter().any(|key| keywords.contains_key(*key));
    if let Some(value) = keywords.get("const") {
        return vec![JsonType::classify(value)];
    }
    if let Some(Value::Array(values)) = keywords.get("enum") {
        let mut all = Vec::new();
        for value in values {
            let kind = JsonType::classify(value);
            if !all.contains(&kind) {
                all.push(kind);
            }
        }
        return all;
    }
    if has(&["properties", "required", "additionalProperties"]) {
        vec![JsonType::Object]
    } else if has(&["items", "minItems", "maxItems", "prefixItems"]) {
        vec![JsonType::Array]
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        vec![JsonType::String]
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        vec![JsonType::Number]
    } else {
        Vec::new()
    }
}

/// Returns the properties of an object, in the order of the schema.
pub(crate) fn properties(keywords: &Keywords) -> Vec<(&String, &Value)> {
    keywords.get("properties").and_then(Value::as_object).into_iter().flatten().collect()
}

pub(crate) fn required(keywords: &Keywords) -> Vec<&str> {
    let names = keywords.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn count(keywords: &Keywords, key: &str) -> Option<usize> {
    keywords.get(key)?.as_u64().and_then(|count| usize::try_from(count).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{types, variants};
    use crate::expect::JsonType;

    #[test]
    fn references_and_parts_are_merged_and_alternatives_are_separate() {
        let schema = json!({
            "$defs": {"size": {"type": "integer", "minimum": 1}},
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"$ref": "#/$defs/size", "maximum": 5}},
            "allOf": [{"required": ["a", "b"], "properties": {"b": {"type": "null"}}}],
        });
        let merged = &variants(&schema, &schema)[0];
        assert_eq!(merged["required"], json!(["a", "b"]));
        let a = variants(&schema, &schema["properties"]["a"]);
        assert_eq!(Value::from(a[0].clone()), json!({"type": "integer", "minimum": 1, "maximum": 5}));
        let either = json!({"anyOf": [{"type": "string"}, {"type": "null"}], "title": "x"});
        let found = variants(&either, &either);
        assert_eq!((found.len(), types(&found[1])), (2, vec![JsonType::Null]));
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let schema = json!({"$ref": "#"});
        assert_eq!(variants(&schema, &schema).len(), 1);
        let tree = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "null"}]});
        assert!(variants(&tree, &tree).len() <= super::MOST_VARIANTS);
    }
}
