//! A tool's schema as a part of a larger document. There, references that begin at the schema's own root lead elsewhere,
//! and the dialect is 2020-12 whatever the schema was written in. What cannot be carried over lets everything pass.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Larger schemas are not carried over: they are walked and validated while a request waits.
const LARGEST: usize = 256 * 1024;

/// A schema that fits into the document.
#[derive(Debug, PartialEq)]
pub(in crate::rest) struct EmbeddedSchema {
    pub(super) schema: Value,
    /// Whether an empty object is not enough.
    pub(super) has_required: bool,
}

/// Carries a schema over to its place in the document, which `base` names. `anything` stands in for one that cannot be.
pub(super) fn embed(schema: &RawValue, base: &str, anything: Value) -> EmbeddedSchema {
    match rewrite_schema(schema, base) {
        Some(schema) => {
            let required = schema.get("required").and_then(Value::as_array);
            let needs_something = required.is_some_and(|required| !required.is_empty());
            EmbeddedSchema { schema, has_required: needs_something }
        }
        None => EmbeddedSchema { schema: anything, has_required: false },
    }
}

fn rewrite_schema(schema: &RawValue, base: &str) -> Option<Value> {
    if schema.get().len() > LARGEST {
        return None;
    }
    let mut schema: Value = serde_json::from_str(schema.get()).ok()?;
    let dialect = schema.get("$schema").and_then(Value::as_str).map_or(Dialect::Modern, Dialect::read);
    if let Some(members) = schema.as_object_mut() {
        for key in ["$schema", "$id", "id"] {
            if members.get(key).is_some_and(Value::is_string) {
                members.remove(key);
            }
        }
    }
    let mut carry = SchemaEmbedder { base, dialect, references: Vec::new() };
    carry.rewrite(&mut schema).ok()?;
    let whole = carry.references.iter().all(|inside| schema.pointer(inside).is_some());
    (whole && jsonschema::draft202012::meta::is_valid(&schema)).then_some(schema)
}

/// What the schema was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// 2019-09 and later.
    Modern,
    /// Draft 04 to 07.
    Old,
}

impl Dialect {
    fn read(named: &str) -> Self {
        if named.contains("draft-0") { Self::Old } else { Self::Modern }
    }
}

/// The schema names its parts in a way that means something else elsewhere.
struct UnportableSchema;

struct SchemaEmbedder<'a> {
    base: &'a str,
    dialect: Dialect,
    /// Where references of the schema lead, within itself.
    references: Vec<String>,
}

impl SchemaEmbedder<'_> {
    fn rewrite(&mut self, schema: &mut Value) -> Result<(), UnportableSchema> {
        let Value::Object(members) = schema else { return Ok(()) };
        for key in ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"] {
            if members.contains_key(key) {
                return Err(UnportableSchema);
            }
        }
        if self.dialect == Dialect::Old {
            modernize(members);
        }
        if let Some(Value::String(reference)) = members.get_mut("$ref") {
            match reference.strip_prefix('#') {
                Some(inside) if inside.is_empty() || inside.starts_with('/') => {
                    let inside = inside.to_owned();
                    *reference = format!("{}{inside}", self.base);
                    self.references.push(inside);
                }
                _ => return Err(UnportableSchema),
            }
        }
        for (key, value) in members.iter_mut() {
            match key.as_str() {
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    let parts = value.as_object_mut().into_iter().flat_map(Map::values_mut);
                    parts.into_iter().try_for_each(|part| self.rewrite(part))?;
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    let parts = value.as_array_mut().into_iter().flatten();
                    parts.into_iter().try_for_each(|part| self.rewrite(part))?;
                }
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "contains"
                | "additionalProperties"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema" => {
                    self.rewrite(value)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Says in 2020-12 what older drafts said otherwise.
fn modernize(members: &mut Map<String, Value>) {
    if members.contains_key("$ref") {
        // Beside a reference, older drafts look at nothing else; only what is referred to may stay.
        members.retain(|key, _| {
            matches!(key.as_str(), "$ref" | "definitions" | "$defs" | "description" | "title")
        });
    }
    let after = members.remove("additionalItems");
    if members.get("items").is_some_and(Value::is_array) {
        if let Some(items) = members.remove("items") {
            members.insert("prefixItems".to_owned(), items);
        }
        members.extend(after.map(|after| ("items".to_owned(), after)));
    }
    if let Some(Value::Object(dependencies)) = members.remove("dependencies") {
        let (keys, schemas): (Map<_, _>, Map<_, _>) =
            dependencies.into_iter().partition(|(_, of)| of.is_array());
        for (name, part) in [("dependentRequired", keys), ("dependentSchemas", schemas)] {
            if !part.is_empty() {
                members.insert(name.to_owned(), Value::Object(part));
            }
        }
    }
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match members.get(exclusive) {
            Some(Value::Bool(true)) => {
                let limit = members.remove(limit);
                members.remove(exclusive);
                members.extend(limit.map(|limit| (exclusive.to_owned(), limit)));
            }
            Some(Value::Bool(false)) => drop(members.remove(exclusive)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolyard_hub::json::to_raw;

    use super::embed;

    fn carried(schema: &Value) -> Value {
        embed(&to_raw(schema), "#/x", json!({"type": "object"})).schema
    }

    #[test]
    fn references_are_rebased_where_they_are_references_and_nowhere_else() {
        assert_eq!(
            carried(&json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$id": "https://example.com/tool",
                "$defs": {"a": {"$ref": "#"}},
                "properties": {
                    "$ref": {"type": "string"},
                    "$id": {"$ref": "#/$defs/a"},
                    "list": {"items": {"anyOf": [{"$ref": "#/$defs/a", "description": "x"}]}},
                    "data": {"default": {"$ref": "#/$defs/a"}, "enum": [{"$ref": "#"}]},
                },
            })),
            json!({
                "$defs": {"a": {"$ref": "#/x"}},
                "properties": {
                    "$ref": {"type": "string"},
                    "$id": {"$ref": "#/x/$defs/a"},
                    "list": {"items": {"anyOf": [{"$ref": "#/x/$defs/a", "description": "x"}]}},
                    "data": {"default": {"$ref": "#/$defs/a"}, "enum": [{"$ref": "#"}]},
                },
            })
        );
    }

    #[test]
    fn older_drafts_are_said_in_the_words_of_the_document() {
        assert_eq!(
            carried(&json!({
                "$schema": "http://json-schema.org/draft-04/schema#",
                "definitions": {"n": {"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}},
                "properties": {
                    "pair": {"items": [{"$ref": "#/definitions/n", "minimum": 100}], "additionalItems": false},
                    "list": {"items": {"type": "string"}, "additionalItems": false},
                },
                "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
            })),
            json!({
                "definitions": {"n": {"exclusiveMinimum": 1, "maximum": 9}},
                "properties": {
                    "pair": {"prefixItems": [{"$ref": "#/x/definitions/n"}], "items": false},
                    "list": {"items": {"type": "string"}},
                },
                "dependentRequired": {"a": ["b"]},
                "dependentSchemas": {"c": {"required": ["d"]}},
            })
        );
    }

    #[test]
    fn what_cannot_be_carried_over_lets_everything_pass() {
        let anything = json!({"type": "object"});
        assert_eq!(carried(&json!({"properties": {"a": {"$anchor": "a"}, "b": {"$ref": "#a"}}})), anything);
        assert_eq!(carried(&json!({"$ref": "https://example.com/schema.json"})), anything);
        assert_eq!(carried(&json!({"$defs": {"a": {"$id": "other", "$ref": "#"}}})), anything);
        assert_eq!(carried(&json!({"type": 7})), anything);
        assert_eq!(carried(&json!({"$ref": "#/$defs/missing"})), anything);
        assert_eq!(carried(&json!({"description": "x".repeat(super::LARGEST)})), anything);
    }

    #[test]
    fn whether_an_empty_object_is_enough_is_known() {
        let needs = |schema: &Value| embed(&to_raw(schema), "#/x", json!({"type": "object"})).has_required;
        assert!(needs(&json!({"required": ["a"]})));
        assert!(!needs(&json!({"required": []})) && !needs(&json!({})));
    }
}
