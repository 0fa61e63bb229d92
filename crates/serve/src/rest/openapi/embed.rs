//! Embeds a tool's schema into the OpenAPI document. There, references to the schema's root have to
//! be rebased, and the dialect is always 2020-12. A schema that cannot be embedded is replaced by
//! one that accepts everything.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Larger schemas are not embedded, because they are traversed and validated while a request waits.
const LARGEST: usize = 256 * 1024;

/// A schema that is valid inside the document.
#[derive(Debug, PartialEq)]
pub(in crate::rest) struct EmbeddedSchema {
    pub(super) schema: Value,
    /// Whether the schema has required properties.
    pub(super) has_required: bool,
}

/// Rewrites a schema for its location `base` in the document. Returns `anything` if that is not
/// possible.
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

/// The dialect of a schema.
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

/// The schema has identifiers that would have a different meaning in the document.
struct UnportableSchema;

struct SchemaEmbedder<'a> {
    base: &'a str,
    dialect: Dialect,
    /// Targets of the references inside the schema.
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

/// Converts keywords of older drafts to 2020-12.
fn modernize(members: &mut Map<String, Value>) {
    if members.contains_key("$ref") {
        // Older drafts ignore siblings of `$ref`. Keep only the definitions and the annotations.
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
    fn only_references_are_rebased() {
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
    fn older_drafts_are_converted_to_2020_12() {
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
    fn a_schema_that_cannot_be_embedded_accepts_everything() {
        let anything = json!({"type": "object"});
        assert_eq!(carried(&json!({"properties": {"a": {"$anchor": "a"}, "b": {"$ref": "#a"}}})), anything);
        assert_eq!(carried(&json!({"$ref": "https://example.com/schema.json"})), anything);
        assert_eq!(carried(&json!({"$defs": {"a": {"$id": "other", "$ref": "#"}}})), anything);
        assert_eq!(carried(&json!({"type": 7})), anything);
        assert_eq!(carried(&json!({"$ref": "#/$defs/missing"})), anything);
        assert_eq!(carried(&json!({"description": "x".repeat(super::LARGEST)})), anything);
    }

    #[test]
    fn required_properties_are_detected() {
        let needs = |schema: &Value| embed(&to_raw(schema), "#/x", json!({"type": "object"})).has_required;
        assert!(needs(&json!({"required": ["a"]})));
        assert!(!needs(&json!({"required": []})) && !needs(&json!({})));
    }
}
