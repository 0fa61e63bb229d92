//! The arguments that a tool is called with: edge values first, then random ones; and arguments
//! that the input schema excludes.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{Schema, SchemaCheck};

use super::compact::compact;
use super::input_schema::{Keywords, count, properties, required, types, variants};
use super::random::SeededRandom;
use super::values::{MOST_EDGES, ObjectMembers, ValueGenerator};
use crate::expect::JsonType;

/// After this many values that are not valid, or not new, no more are tried.
const MOST_MISSES: usize = 100;

/// Whether arguments match the input schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseClass {
    Valid,
    Invalid(Mistake),
    /// The input schema cannot be used, so it is unknown.
    Unknown,
}

/// What is wrong with arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A property is missing, or a value is wrong.
    Excluded,
    /// Only a property that the schema does not declare.
    UnknownProperty,
}

/// Arguments for one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GeneratedCase {
    pub(crate) class: CaseClass,
    pub(crate) arguments: Value,
}

/// Finds out whether arguments match the schema.
pub(crate) async fn classify(schema: &Schema, arguments: &Value) -> CaseClass {
    match is_valid(schema, arguments).await {
        Some(true) => CaseClass::Valid,
        None => CaseClass::Unknown,
        Some(false) => {
            let declared = without_unknown(schema, arguments);
            let is_known = declared == *arguments || is_valid(schema, &declared).await != Some(true);
            CaseClass::Invalid(if is_known { Mistake::Excluded } else { Mistake::UnknownProperty })
        }
    }
}

/// Returns `None` if the schema cannot be used.
async fn is_valid(schema: &Schema, arguments: &Value) -> Option<bool> {
    match schema.check(&to_raw(arguments)).await {
        SchemaCheck::Checked(violations) => Some(violations.is_empty()),
        SchemaCheck::Skipped(_) => None,
    }
}

/// Removes the properties that the schema does not declare.
fn without_unknown(schema: &Schema, arguments: &Value) -> Value {
    let root: Value = serde_json::from_str(schema.text().get()).unwrap_or_default();
    let all = variants(&root, &root);
    let is_declared = |name: &String| all.iter().flat_map(properties).any(|(known, _)| known == name);
    let members = arguments.as_object().into_iter().flatten().filter(|(name, _)| is_declared(name));
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns at most `most` valid arguments, always the same for a seed.
pub(crate) async fn valid_cases(
    root: &Value,
    schema: &Schema,
    most: usize,
    random: &mut SeededRandom,
) -> Vec<GeneratedCase> {
    let generator = ValueGenerator { root };
    let mut cases = CaseCollector::new(schema, most);
    for keywords in variants(root, root) {
        cases.add_edges(generator, &keywords).await;
    }
    let mut misses = 0;
    while !cases.is_full() && misses < MOST_MISSES {
        let before = cases.found.len();
        let arguments = generator.random("", root, random);
        cases.add_if_valid(if arguments.is_object() { arguments } else { json!({}) }).await;
        misses = if cases.found.len() > before { 0 } else { misses + 1 };
    }
    cases.found
}

/// Returns arguments that the schema excludes, each for one reason.
pub(crate) async fn invalid_cases(root: &Value, schema: &Schema, most: usize) -> Vec<GeneratedCase> {
    let generator = ValueGenerator { root };
    let mut cases = CaseCollector::new(schema, most);
    let Some(keywords) = variants(root, root).into_iter().next() else { return Vec::new() };
    let base = generator.object(&keywords, ObjectMembers::All, 0);
    for name in required(&keywords) {
        cases.add_if_invalid(without_member(&base, name)).await;
    }
    let needed = required(&keywords);
    for (name, schema) in properties(&keywords) {
        for wrong in wrong_values(root, schema, needed.contains(&name.as_str())) {
            cases.add_if_invalid(with_member(&base, name, wrong)).await;
        }
    }
    cases.add_if_invalid(with_member(&base, "unknown_property", json!("a"))).await;
    cases.found
}

/// Returns values that a property must not have. Servers that convert values, such as `"5"` to 5,
/// are not wrong, so each of these cannot be converted.
fn wrong_values(root: &Value, schema: &Value, is_required: bool) -> Vec<Value> {
    let all = variants(root, schema);
    let kinds: Vec<JsonType> = all.iter().flat_map(types).collect();
    if kinds.is_empty() || all.iter().any(|keywords| types(keywords).is_empty()) {
        return Vec::new();
    }
    let accepts = |kind: JsonType| kinds.contains(&kind);
    let accepts_numbers = accepts(JsonType::Integer) || accepts(JsonType::Number);
    let mut wrong = Vec::new();
    if !accepts(JsonType::Object) {
        wrong.push(json!({"unexpected": ["value"]}));
    }
    if !accepts(JsonType::String) {
        wrong.push(json!("neither one nor the other"));
    }
    if !accepts_numbers && !accepts(JsonType::Boolean) && !accepts(JsonType::String) {
        wrong.push(json!(7));
    }
    if is_required && !accepts(JsonType::Null) {
        wrong.push(Value::Null);
    }
    for keywords in &all {
        wrong.extend(outside(keywords));
    }
    wrong
}

/// Returns values of the right type that violate another keyword.
fn outside(keywords: &Keywords) -> Vec<Value> {
    let mut wrong = Vec::new();
    if keywords.contains_key("enum") || keywords.contains_key("const") {
        wrong.push(json!("not one of the values"));
    }
    let limit = |key: &str| keywords.get(key).and_then(Value::as_f64).filter(|limit| limit.abs() < 1e15);
    #[allow(clippy::cast_possible_truncation, reason = "the range was checked")]
    let whole = |number: f64| json!(number as i64);
    wrong.extend(limit("minimum").map(|least| whole(least.floor() - 1.0)));
    wrong.extend(limit("maximum").map(|most| whole(most.ceil() + 1.0)));
    wrong.extend(limit("exclusiveMinimum").map(|least| whole(least.floor())));
    wrong.extend(limit("exclusiveMaximum").map(|most| whole(most.ceil())));
    if let Some(least) = count(keywords, "minLength").filter(|least| (1..100_000).contains(least)) {
        wrong.push(Value::String("a".repeat(least - 1)));
    }
    if let Some(most) = count(keywords, "maxLength").filter(|most| *most < 100_000) {
        wrong.push(Value::String("a".repeat(most + 1)));
    }
    if keywords.contains_key("pattern") {
        wrong.extend([json!(""), json!("\u{1f600} no match!")]);
    }
    if let Some(most) = count(keywords, "maxItems").filter(|most| *most < 1_000) {
        wrong.push(Value::Array(vec![json!("a"); most + 1]));
    }
    if count(keywords, "minItems").is_some_and(|least| least > 0) {
        wrong.push(json!([]));
    }
    if let Some(items) = keywords.get("items")
        && types(keywords).contains(&JsonType::Array)
        && !variants(items, items)
            .iter()
            .any(|each| types(each).is_empty() || types(each).contains(&JsonType::Object))
    {
        wrong.push(json!([{"unexpected": ["value"]}]));
    }
    wrong
}

fn with_member(object: &Value, name: &str, value: Value) -> Value {
    let mut members = object.as_object().cloned().unwrap_or_default();
    members.insert(name.to_owned(), value);
    Value::Object(members)
}

fn without_member(object: &Value, name: &str) -> Value {
    let mut members: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    members.shift_remove(name);
    Value::Object(members)
}

/// Collects different arguments up to a limit.
struct CaseCollector<'a> {
    schema: &'a Schema,
    most: usize,
    seen: HashSet<String>,
    found: Vec<GeneratedCase>,
}

impl<'a> CaseCollector<'a> {
    fn new(schema: &'a Schema, most: usize) -> Self {
        Self { schema, most, seen: HashSet::new(), found: Vec::new() }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.most
    }

    /// Adds objects in which one property has an edge value and the others are typical.
    async fn add_edges(&mut self, generator: ValueGenerator<'_>, keywords: &Keywords) {
        let least = generator.object(keywords, ObjectMembers::Required, 0);
        let all = generator.object(keywords, ObjectMembers::All, 0);
        self.add_if_valid(least.clone()).await;
        self.add_if_valid(all.clone()).await;
        let properties = properties(keywords);
        // In turns, so that a small number of cases has edge values of every property.
        let mut misses = 0;
        for index in 0..MOST_EDGES {
            for (name, schema) in &properties {
                let Some(value) = generator.edges(name, schema).into_iter().nth(index) else { continue };
                if self.is_full() || misses >= MOST_MISSES {
                    return;
                }
                let before = self.found.len();
                for base in [&all, &least] {
                    self.add_if_valid(with_member(base, name, value.clone())).await;
                }
                misses = if self.found.len() > before { 0 } else { misses + 1 };
            }
        }
        for (name, _) in &properties {
            self.add_if_valid(without_member(&all, name)).await;
        }
    }

    async fn add_if_valid(&mut self, arguments: Value) {
        self.add(arguments, |class| matches!(class, CaseClass::Valid | CaseClass::Unknown)).await;
    }

    async fn add_if_invalid(&mut self, arguments: Value) {
        self.add(arguments, |class| matches!(class, CaseClass::Invalid(_))).await;
    }

    async fn add(&mut self, arguments: Value, fits: impl Fn(CaseClass) -> bool) {
        if self.is_full() || !self.seen.insert(compact(&arguments).to_string()) {
            return;
        }
        // Schemas can be large, and an interrupted run must end.
        tokio::task::yield_now().await;
        let class = classify(self.schema, &arguments).await;
        if fits(class) {
            self.found.push(GeneratedCase { class, arguments });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolyard_hub::Schema;
    use toolyard_hub::json::to_raw;

    use super::{CaseClass, Mistake, classify, invalid_cases, valid_cases};
    use crate::generic::random::SeededRandom;

    async fn valid(schema: &Value, seed: u64) -> Vec<Value> {
        let compiled = Schema::new(to_raw(schema));
        let cases = valid_cases(schema, &compiled, 200, &mut SeededRandom::new(seed, "tool")).await;
        cases.into_iter().map(|case| case.arguments).collect()
    }

    async fn invalid(schema: &Value) -> Vec<(Mistake, Value)> {
        let cases = invalid_cases(schema, &Schema::new(to_raw(schema)), 200).await;
        let mistake = |class| match class {
            CaseClass::Invalid(mistake) => mistake,
            other => panic!("{other:?}"),
        };
        cases.into_iter().map(|case| (mistake(case.class), case.arguments)).collect()
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["text", "size"],
            "properties": {
                "text": {"type": "string"},
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "color": {"enum": ["red", "green"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
        })
    }

    #[tokio::test]
    async fn edge_values_come_before_random_ones() {
        let cases = valid(&schema(), 1).await;
        assert_eq!(cases[0], json!({"text": "a", "size": 1}));
        let has = |fits: &dyn Fn(&Value) -> bool| cases.iter().any(fits);
        assert!(has(&|case| case["text"] == json!("")));
        assert!(has(&|case| case["text"].as_str().is_some_and(|text| text.len() == 100_000)));
        assert!(has(&|case| case["text"].as_str().is_some_and(|text| !text.is_ascii())));
        assert!(has(&|case| case["size"] == json!(9)));
        assert!(has(&|case| case["color"] == json!("green")));
        assert!(has(&|case| case["tags"] == json!([])));
        assert!(has(&|case| case["note"] == Value::Null && case.get("note").is_some()));
        assert!(has(&|case| case.get("note").is_none()));
        assert_eq!(cases.len(), 200);
    }

    #[tokio::test]
    async fn a_seed_gives_the_same_cases_and_another_seed_gives_others() {
        let (one, same, other) =
            (valid(&schema(), 1).await, valid(&schema(), 1).await, valid(&schema(), 2).await);
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(one[..20], other[..20]);
    }

    #[tokio::test]
    async fn every_keyword_is_violated() {
        let cases = invalid(&schema()).await;
        let has = |mistake, fits: &dyn Fn(&Value) -> bool| {
            cases.iter().any(|(found, case)| *found == mistake && fits(case))
        };
        assert!(has(Mistake::Excluded, &|case| case.get("text").is_none()));
        assert!(has(Mistake::Excluded, &|case| case["text"].is_object()));
        assert!(has(Mistake::Excluded, &|case| case["text"].is_null()));
        assert!(has(Mistake::Excluded, &|case| case["size"] == json!(0)));
        assert!(has(Mistake::Excluded, &|case| case["size"] == json!(10)));
        assert!(has(Mistake::Excluded, &|case| case["color"] == json!("not one of the values")));
        assert!(has(Mistake::Excluded, &|case| case["tags"].as_array().is_some_and(|tags| tags.len() == 4)));
        // Nothing that the schema allows, such as unknown properties here.
        assert!(!cases.iter().any(|(_, case)| case.get("unknown_property").is_some()));
    }

    #[tokio::test]
    async fn nothing_is_invalid_if_everything_is_allowed() {
        assert_eq!(invalid(&json!({"type": "object"})).await, Vec::new());
        assert!(!valid(&json!({"type": "object"}), 1).await.is_empty());
        let closed = json!({"type": "object", "additionalProperties": false});
        let only = json!({"unknown_property": "a"});
        assert_eq!(invalid(&closed).await, vec![(Mistake::UnknownProperty, only.clone())]);
        let broken = Schema::new(to_raw(&json!({"type": "nonsense"})));
        assert_eq!(classify(&broken, &only).await, CaseClass::Unknown);
    }

    #[tokio::test]
    async fn a_hostile_schema_does_not_lead_to_large_arguments() {
        let long = json!({"type": "string", "minLength": 1_000_000});
        let list = json!({"type": "array", "minItems": 1_000_000, "items": long});
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": list, "b": long}});
        assert_eq!(valid(&schema, 1).await, Vec::<Value>::new());
        let tree = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let cases = valid(&tree, 1).await;
        assert!(cases.iter().all(|case| case.to_string().len() < 100_000), "the depth is limited");
    }

    #[tokio::test]
    async fn a_pattern_is_satisfied_and_a_reference_is_followed() {
        let schema = json!({
            "type": "object", "required": ["id"],
            "properties": {"id": {"$ref": "#/$defs/id"}, "seconds": {"type": "number"}},
            "$defs": {"id": {"type": "string", "pattern": "^v[0-9]+\\.[0-9]+\\.[0-9]+$"}},
        });
        let cases = valid(&schema, 1).await;
        assert_eq!(cases[0]["id"], json!("v1.0.0"));
        let seconds = cases.iter().filter_map(|case| case["seconds"].as_f64());
        assert!(seconds.into_iter().all(|seconds| seconds <= 1.0), "a duration is short");
    }
}
