//! Samples instances of a JSON Schema and checks them with a validator.

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// Deeper values are not varied.
const DEEPEST: usize = 5;

/// Values of every kind, at and around the usual limits.
fn usual_values() -> Vec<Value> {
    let mut values = vec![Value::Null, json!(true), json!(false), json!([]), json!({})];
    values.extend((-2..=12).map(|number| json!(number)));
    values.extend([24, 25, 30, 49, 50, 51, 60, 100, 1000].map(|number| json!(number)));
    values.extend([-0.5, 0.25, 0.5, 0.75, 0.999, 1.5, 2.5].map(|number| json!(number)));
    let texts = ["", "a", "b", "ab", "abc", "abcd", "ABC", "a1", "x y", "2026-01-31", "2026-01-31T10:00:00Z"];
    values.extend(texts.map(|text| json!(text)));
    values.extend([5, 8, 20, 50, 99, 100, 101, 200].map(|length| json!("q".repeat(length))));
    values.push(json!("https://example.com/a"));
    values
}

/// Every value of `enum`, `const` and `default` in a schema.
fn listed_values(schema: &Value, values: &mut Vec<Value>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| listed_values(item, values)),
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("enum", Value::Array(listed)) => values.extend(listed.iter().cloned()),
                    ("const" | "default", value) => values.push(value.clone()),
                    _ => listed_values(value, values),
                }
            }
        }
        _ => {}
    }
}

/// A schema in its document, so that references work.
fn validator(schema: &Value, root: &Value) -> Option<Validator> {
    let mut schema = match schema {
        Value::Object(members) => members.clone(),
        Value::Bool(true) => Map::new(),
        other => return jsonschema::options().build(other).ok(),
    };
    for key in ["$defs", "definitions", "$schema"] {
        if let Some(value) = root.get(key) {
            schema.entry(key).or_insert_with(|| value.clone());
        }
    }
    jsonschema::options().should_validate_formats(true).build(&Value::Object(schema)).ok()
}

struct Sampler<'a> {
    root: &'a Value,
    other: &'a Value,
    usual: Vec<Value>,
}

impl Sampler<'_> {
    /// Values that a schema accepts.
    fn samples(&self, schema: &Value, depth: usize) -> Vec<Value> {
        let Some(validator) = validator(schema, self.root) else { return Vec::new() };
        let mut candidates = self.usual.clone();
        if depth < DEEPEST {
            self.add_structured(schema, depth, &mut candidates);
        }
        candidates.retain(|value| validator.is_valid(value));
        candidates
    }

    fn add_structured(&self, schema: &Value, depth: usize, candidates: &mut Vec<Value>) {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(target.trim_start_matches('#'));
            candidates.extend(target.into_iter().flat_map(|target| self.samples(target, depth + 1)));
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for branch in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                // Properties next to the union belong to its branches.
                let mut merged = schema.as_object().cloned().unwrap_or_default();
                merged.remove(key);
                for (key, value) in branch.as_object().into_iter().flatten() {
                    match (merged.get_mut(key), value) {
                        (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
                        _ => drop(merged.insert(key.clone(), value.clone())),
                    }
                }
                candidates.extend(self.samples(&Value::Object(merged), depth + 1));
            }
        }
        self.add_arrays(schema, depth, candidates);
        self.add_objects(schema, depth, candidates);
    }

    fn add_arrays(&self, schema: &Value, depth: usize, candidates: &mut Vec<Value>) {
        let prefix = schema.get("prefixItems").or(schema.get("items").filter(|items| items.is_array()));
        if let Some(prefix) = prefix.and_then(Value::as_array) {
            let mut columns: Vec<Vec<Value>> =
                prefix.iter().map(|item| self.samples(item, depth + 1)).collect();
            // No longer array is valid.
            columns.truncate(columns.iter().take_while(|column| !column.is_empty()).count());
            let base: Vec<Value> = columns.iter().filter_map(|column| column.first().cloned()).collect();
            for length in 0..=base.len() {
                candidates.push(Value::from(base[..length].to_vec()));
            }
            for (index, column) in columns.iter().enumerate() {
                for value in column {
                    let mut varied = base.clone();
                    varied[index] = value.clone();
                    candidates.push(Value::from(varied));
                }
            }
            let mut longer = base;
            longer.push(json!("more"));
            candidates.push(Value::from(longer));
        } else if let Some(items) = schema.get("items") {
            let values = self.samples(items, depth + 1);
            candidates.extend(values.iter().map(|value| json!([value])));
            for length in 2..8 {
                candidates.push(Value::from(values.iter().take(length).cloned().collect::<Vec<_>>()));
                candidates.extend(values.first().map(|value| Value::from(vec![value.clone(); length])));
            }
        }
    }

    fn add_objects(&self, schema: &Value, depth: usize, candidates: &mut Vec<Value>) {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut columns: Vec<(String, Vec<Value>)> =
            properties.iter().map(|(name, schema)| (name.clone(), self.samples(schema, depth + 1))).collect();
        // Other names are sent only if the schema says that they may be.
        if let Some(rest) = schema.get("additionalProperties") {
            let others = self.other_names(properties);
            columns.extend(others.into_iter().map(|name| (name, self.samples(rest, depth + 1))));
        }
        for (pattern, schema) in
            schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten()
        {
            let name = format!("{}1", pattern.trim_start_matches('^').trim_end_matches('$'));
            columns.push((name, self.samples(schema, depth + 1)));
        }
        let mut base = Map::new();
        for (name, values) in &columns {
            if required.contains(&name.as_str())
                && let Some(value) = values.iter().find(|value| !value.is_null()).or(values.first())
            {
                base.insert(name.clone(), value.clone());
            }
        }
        candidates.push(Value::Object(base.clone()));
        let mut full = base.clone();
        for (name, values) in &columns {
            for value in values {
                let mut varied = base.clone();
                varied.insert(name.clone(), value.clone());
                candidates.push(Value::Object(varied));
            }
            full.extend(values.first().map(|value| (name.clone(), value.clone())));
        }
        for name in full.keys() {
            let mut without = full.clone();
            without.remove(name);
            candidates.push(Value::Object(without));
        }
        candidates.push(Value::Object(full));
    }

    /// Names that only the other schema declares, and one that neither does.
    fn other_names(&self, properties: &Map<String, Value>) -> Vec<String> {
        fn collect(schema: &Value, names: &mut Vec<String>) {
            match schema {
                Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
                Value::Object(members) => {
                    if let Some(declared) = members.get("properties").and_then(Value::as_object) {
                        names.extend(declared.keys().cloned());
                    }
                    members.values().for_each(|value| collect(value, names));
                }
                _ => {}
            }
        }
        let mut names = vec!["extra".to_owned()];
        collect(self.other, &mut names);
        names.retain(|name| !properties.contains_key(name));
        names.sort();
        names.dedup();
        names
    }
}

/// Finds an instance of `from` that `to` refuses.
pub(crate) fn find_refused(from: &Value, to: &Value) -> Option<Value> {
    let mut usual = usual_values();
    listed_values(from, &mut usual);
    listed_values(to, &mut usual);
    let (any, nothing) = (json!({}), Value::Null);
    let from = if *from == nothing { &any } else { from };
    let to = if *to == nothing { &any } else { to };
    let sampler = Sampler { root: from, other: to, usual };
    let checker = validator(to, to).expect("the schema of the table compiles");
    sampler.samples(from, 0).into_iter().find(|value| !checker.is_valid(value))
}
