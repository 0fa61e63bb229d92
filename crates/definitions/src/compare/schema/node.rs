//! A schema read as a conjunction: the schema itself, everything that its `$ref`s lead to, and the
//! branches of its `allOf`s.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::ANNOTATIONS;
use super::document::{SchemaDocument, escape};
use super::kinds::Kinds;

/// Further parts of one conjunction are not read.
const MOST_PARTS: usize = 500;

/// Keywords in the same schema that evaluate properties, too.
const APPLICATORS: [&str; 8] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "not"];

/// A value and its JSON pointer.
#[derive(Debug, Clone)]
pub(super) struct Located<'a> {
    pub(super) value: &'a Value,
    pub(super) pointer: String,
}

/// One of the schemas that must all hold.
#[derive(Debug, Clone)]
struct Part<'a> {
    schema: &'a Map<String, Value>,
    pointer: String,
    /// A union in this schema that has been replaced by one of its branches.
    expanded: Option<&'static str>,
}

/// A conjunction of schemas.
#[derive(Debug, Clone, Default)]
pub(super) struct Node<'a> {
    parts: Vec<Part<'a>>,
    /// Where the schema says that it accepts nothing.
    pub(super) rejects: Option<String>,
    /// References that lead out of the document, and values that are not schemas.
    pub(super) unresolved: Vec<Located<'a>>,
    pub(super) pointer: String,
    /// Only values of these kinds are considered.
    limited_to: Option<Kinds>,
}

/// A union of schemas.
#[derive(Debug, Clone)]
pub(super) struct Alternatives<'a> {
    part: usize,
    pub(super) key: &'static str,
    pub(super) branches: Vec<Located<'a>>,
    pub(super) pointer: String,
}

/// What holds for properties without a name of their own.
pub(super) enum Rest<'a> {
    /// No keyword: any property may be present, but clients send only those that are declared.
    Open,
    Closed(Located<'a>),
    Schemas(Vec<Located<'a>>),
}

impl<'a> Node<'a> {
    /// Reads the conjunction of these schemas.
    pub(super) fn flatten(
        document: &SchemaDocument<'a>,
        schemas: Vec<Located<'a>>,
        fallback: &str,
        budget: &mut u64,
    ) -> Self {
        let pointer = schemas.first().map_or_else(|| fallback.to_owned(), |first| first.pointer.clone());
        let mut node = Self { pointer, ..Self::default() };
        node.add(document, schemas, budget);
        node
    }

    fn add(&mut self, document: &SchemaDocument<'a>, mut waiting: Vec<Located<'a>>, budget: &mut u64) {
        let mut seen: BTreeSet<usize> = self.parts.iter().map(|part| address(part.schema)).collect();
        waiting.reverse();
        while let Some(Located { value, pointer }) = waiting.pop() {
            let cost = 4 + pointer.len() as u64 / 32;
            *budget = budget.saturating_sub(cost);
            if *budget == 0 {
                return;
            }
            let schema = match value {
                Value::Bool(true) => continue,
                Value::Bool(false) => {
                    self.rejects.get_or_insert(pointer);
                    continue;
                }
                Value::Object(schema) => schema,
                _ => {
                    self.unresolved.push(Located { value, pointer });
                    continue;
                }
            };
            if !seen.insert(address(schema)) {
                continue;
            }
            if self.parts.len() >= MOST_PARTS {
                self.unresolved.push(Located { value, pointer });
                continue;
            }
            let mut hides_siblings = false;
            if let Some(reference) = schema.get("$ref") {
                hides_siblings = document.ignores_siblings_of_ref;
                match reference.as_str().and_then(|text| document.resolve(text)) {
                    Some(target) => waiting.push(target),
                    None => {
                        let pointer = format!("{pointer}/$ref");
                        self.unresolved.push(Located { value: reference, pointer });
                    }
                }
            }
            if hides_siblings {
                continue;
            }
            let branches = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
            for (index, branch) in branches.enumerate() {
                waiting.push(Located { value: branch, pointer: format!("{pointer}/allOf/{index}") });
            }
            self.parts.push(Part { schema, pointer, expanded: None });
        }
    }

    /// What tells this conjunction from others.
    pub(super) fn identity(&self) -> Vec<usize> {
        let unions = self.parts.iter().map(|part| {
            address(part.schema) + part.expanded.map_or(0, |key| if key == "anyOf" { 1 } else { 2 })
        });
        let limits = self.limited_to.map(Kinds::bits);
        let mut identity: Vec<usize> = unions.chain(limits).collect();
        identity.extend(self.unresolved.iter().map(|entry| std::ptr::from_ref(entry.value).addr()));
        identity
    }

    /// All values of a keyword.
    pub(super) fn keyword(&self, key: &str) -> Vec<Located<'a>> {
        let values = self.parts.iter().filter(|part| part.expanded != Some(key)).filter_map(|part| {
            let value = part.schema.get(key)?;
            Some(Located { value, pointer: format!("{}/{}", part.pointer, escape(key)) })
        });
        values.collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.parts.iter().any(|part| part.schema.contains_key(key))
    }

    /// Annotations, including keywords that are not part of JSON Schema.
    pub(super) fn annotation_names(&self) -> impl Iterator<Item = &'a str> {
        let keys = self.parts.iter().flat_map(|part| part.schema.keys());
        keys.map(String::as_str).filter(|key| ANNOTATIONS.contains(key) || !is_known(key))
    }

    /// The kinds of values that `type` allows.
    pub(super) fn kinds(&self) -> Kinds {
        let mut kinds = self.limited_to.unwrap_or(Kinds::ALL);
        for entry in self.keyword("type") {
            kinds = kinds & Kinds::from_keyword(entry.value);
        }
        if self.parts.iter().any(|part| part.schema.get("nullable") == Some(&Value::Bool(true))) {
            kinds = kinds | (Kinds::NULL & self.limited_to.unwrap_or(Kinds::ALL));
        }
        kinds
    }

    /// The values that `enum` and `const` list, if there are any.
    pub(super) fn listed_values(&self) -> Option<Vec<&'a Value>> {
        let mut listed: Option<Vec<&'a Value>> = None;
        let lists = self.keyword("enum").into_iter().map(|entry| match entry.value {
            Value::Array(values) => values.iter().collect(),
            single => vec![single],
        });
        let constants = self.keyword("const").into_iter().map(|entry| vec![entry.value]);
        for values in lists.chain(constants) {
            listed = Some(match listed {
                None => values,
                Some(before) => {
                    let keys: HashSet<String> = values.iter().map(|value| value_key(value)).collect();
                    before.into_iter().filter(|value| keys.contains(&value_key(value))).collect()
                }
            });
        }
        listed
    }

    /// The first union that has not been replaced by a branch.
    pub(super) fn alternatives(&self) -> Option<Alternatives<'a>> {
        self.parts.iter().enumerate().find_map(|(index, part)| {
            ["anyOf", "oneOf"].into_iter().find_map(|key| {
                let list = part.schema.get(key)?.as_array().filter(|_| part.expanded != Some(key))?;
                // Both unions in one schema: the second is compared as a whole.
                if part.expanded.is_some() {
                    return None;
                }
                let pointer = format!("{}/{key}", part.pointer);
                let branches = list.iter().enumerate();
                let branches = branches
                    .map(|(at, value)| Located { value, pointer: format!("{pointer}/{at}") })
                    .collect();
                Some(Alternatives { part: index, key, branches, pointer })
            })
        })
    }

    /// The conjunction with one branch of a union instead of the union.
    pub(super) fn with_branch(
        &self,
        document: &SchemaDocument<'a>,
        union: &Alternatives<'a>,
        branch: &Located<'a>,
        budget: &mut u64,
    ) -> Self {
        let mut node = self.clone();
        *budget = budget.saturating_sub(self.parts.len() as u64);
        node.pointer.clone_from(&branch.pointer);
        if let Some(part) = node.parts.get_mut(union.part) {
            part.expanded = Some(union.key);
        }
        node.add(document, vec![branch.clone()], budget);
        node
    }

    /// The conjunction for values of these kinds only.
    pub(super) fn limited_to(&self, kinds: Kinds) -> Self {
        Self { limited_to: Some(kinds), ..self.clone() }
    }

    /// The names that `properties` declares.
    pub(super) fn property_names(&self) -> BTreeSet<&'a str> {
        let objects = self.parts.iter().filter_map(|part| part.schema.get("properties")?.as_object());
        objects.flat_map(|properties| properties.keys().map(String::as_str)).collect()
    }

    /// What must hold for a property that at least one part declares.
    pub(super) fn property(&self, name: &str) -> Vec<Located<'a>> {
        let mut schemas = Vec::new();
        for part in &self.parts {
            let declared = part.schema.get("properties").and_then(|properties| properties.get(name));
            match declared {
                Some(value) => {
                    let pointer = format!("{}/properties/{}", part.pointer, escape(name));
                    schemas.insert(0, Located { value, pointer });
                }
                None if !part.schema.contains_key("patternProperties") => schemas.extend(part.rest()),
                None => {}
            }
        }
        // The place where the property is declared comes first.
        schemas.sort_by_key(|schema| !schema.pointer.contains("/properties/"));
        schemas
    }

    /// What holds for properties that are not declared.
    pub(super) fn rest(&self) -> Rest<'a> {
        let schemas: Vec<Located<'a>> = self.parts.iter().filter_map(Part::rest).collect();
        match schemas.iter().find(|entry| entry.value == &Value::Bool(false)) {
            Some(closed) => Rest::Closed(closed.clone()),
            None if schemas.is_empty() => Rest::Open,
            None => Rest::Schemas(schemas),
        }
    }

    /// Names that `required` lists.
    pub(super) fn required(&self) -> BTreeSet<&'a str> {
        let lists = self.keyword("required").into_iter().filter_map(|entry| entry.value.as_array());
        lists.flatten().filter_map(Value::as_str).collect()
    }

    /// The largest number of positions that a part describes one by one.
    pub(super) fn prefix_length(&self) -> usize {
        self.parts.iter().map(|part| part.prefix().map_or(0, |(_, list)| list.len())).max().unwrap_or(0)
    }

    /// What must hold for the item at this position, or for all items after the last position.
    pub(super) fn item(&self, position: Option<usize>) -> Vec<Located<'a>> {
        let items = self.parts.iter().filter_map(|part| {
            let prefix = part.prefix();
            if let (Some((key, list)), Some(index)) = (prefix, position)
                && let Some(value) = list.get(index)
            {
                return Some(Located { value, pointer: format!("{}/{key}/{index}", part.pointer) });
            }
            let key = match prefix {
                Some(("items", _)) => "additionalItems",
                _ => "items",
            };
            let value = part.schema.get(key).filter(|value| !value.is_array())?;
            Some(Located { value, pointer: format!("{}/{key}", part.pointer) })
        });
        items.collect()
    }

    /// `unevaluatedProperties` that cannot be read as `additionalProperties`.
    pub(super) fn unevaluated(&self) -> Vec<Located<'a>> {
        let parts = self.parts.iter().filter(|part| part.evaluates_elsewhere());
        let values = parts.filter_map(|part| {
            let value = part.schema.get("unevaluatedProperties")?;
            Some(Located { value, pointer: format!("{}/unevaluatedProperties", part.pointer) })
        });
        values.collect()
    }
}

impl<'a> Part<'a> {
    fn rest(&self) -> Option<Located<'a>> {
        let at = |key: &str| {
            let value = self.schema.get(key)?;
            Some(Located { value, pointer: format!("{}/{key}", self.pointer) })
        };
        at("additionalProperties").or_else(|| match self.evaluates_elsewhere() {
            true => None,
            false => at("unevaluatedProperties"),
        })
    }

    fn evaluates_elsewhere(&self) -> bool {
        APPLICATORS.iter().any(|key| self.schema.contains_key(*key))
    }

    /// The list of schemas by position, with its keyword.
    fn prefix(&self) -> Option<(&'static str, &'a Vec<Value>)> {
        let list = |key: &'static str| Some((key, self.schema.get(key)?.as_array()?));
        list("prefixItems").or_else(|| list("items"))
    }
}

/// JSON Schema's equality: 1 and 1.0 are the same number.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && value_key(one) == value_key(other)
}

/// A text that is the same for values that JSON Schema considers equal.
pub(super) fn value_key(value: &Value) -> String {
    // Floats up to here have no more digits than integers.
    const EXACT: f64 = 9e15;
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        Value::Array(items) => {
            let keys: Vec<String> = items.iter().map(value_key).collect();
            format!("[{}]", keys.join(","))
        }
        Value::Object(members) => {
            let mut keys: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value_key(value)))
                .collect();
            keys.sort();
            format!("{{{}}}", keys.join(","))
        }
        other => other.to_string(),
    }
}

fn address(schema: &Map<String, Value>) -> usize {
    std::ptr::from_ref(schema).addr()
}

/// Whether a keyword constrains values, identifies a schema, or holds others.
fn is_known(key: &str) -> bool {
    const KNOWN: [&str; 56] = [
        "$anchor",
        "$defs",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$recursiveAnchor",
        "$recursiveRef",
        "$ref",
        "$vocabulary",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "definitions",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "id",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "nullable",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "required",
        "then",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "x-nullable",
    ];
    KNOWN.binary_search(&key).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_known, is_same};

    #[test]
    fn known_keywords_are_found() {
        for key in ["$anchor", "type", "uniqueItems", "$ref", "minItems"] {
            assert!(is_known(key), "{key}");
        }
        assert!(!is_known("x-order") && !is_known("title"));
    }

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(is_same(&json!([1, {"a": 2.0}]), &json!([1.0, {"a": 2}])));
        assert!(!is_same(&json!(1), &json!(true)));
        assert!(!is_same(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
    }
}
