//! Estimates the cost of checking a value against a schema without running the check: every keyword
//! is charged for the parts of the value that it visits. The estimate stops at its budget and is
//! therefore bounded itself.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::cost::SchemaAnchors;
use super::pattern::PatternWeights;

/// The result of the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Estimate {
    /// One check takes at most this many steps.
    Steps(u64),
    /// The check exceeds the budget.
    OverBudget,
}

/// The budget of a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckBudget {
    pub(super) steps: u64,
    /// Maximum recursion depth. A deeper check could overflow the stack of its thread.
    pub(super) depth: usize,
}

/// Counts the steps of checking `value`, up to `budget`.
pub(super) fn estimate(
    schema: &Value,
    patterns: &PatternWeights,
    value: &Value,
    budget: CheckBudget,
) -> Estimate {
    // A match that reaches its limit may decide either way, so both are tried, up to 64 times.
    let factor = if patterns.may_backtrack() { 64 } else { 1 };
    let names = SchemaAnchors::from_schema(schema);
    let left = budget.steps / factor;
    let (sizes, references) = (HashMap::new(), HashMap::new());
    let mut count =
        StepCounter { root: schema, names, patterns, left, deepest: budget.depth, sizes, references };
    match count.count_schema(schema, value, 0) {
        Ok(()) => Estimate::Steps(left - count.left),
        Err(BudgetExhausted) => Estimate::OverBudget,
    }
}

/// The budget is exhausted.
struct BudgetExhausted;

struct StepCounter<'a> {
    root: &'a Value,
    names: SchemaAnchors<'a>,
    patterns: &'a PatternWeights,
    left: u64,
    deepest: usize,
    /// Sizes of enumerations and constants, by their address.
    sizes: HashMap<*const Value, u64>,
    /// Targets of references, by their address.
    references: HashMap<*const Value, Rc<[&'a Value]>>,
}

impl<'a> StepCounter<'a> {
    fn spend(&mut self, steps: u64) -> Result<(), BudgetExhausted> {
        self.left = self.left.checked_sub(steps).ok_or(BudgetExhausted)?;
        Ok(())
    }

    fn count_schema(
        &mut self,
        schema: &'a Value,
        value: &Value,
        depth: usize,
    ) -> Result<(), BudgetExhausted> {
        if depth > self.deepest {
            return Err(BudgetExhausted);
        }
        self.spend(1)?;
        let Value::Object(keywords) = schema else { return Ok(()) };
        let before = self.left;
        for (key, argument) in keywords {
            self.spend(1)?;
            self.keyword(keywords, key, argument, value, depth + 1)?;
        }
        if keywords.keys().any(|key| key.starts_with("unevaluated")) {
            // Finding out what the other keywords have evaluated means evaluating them again.
            self.spend(before - self.left)?;
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        keywords: &'a Map<String, Value>,
        key: &str,
        argument: &'a Value,
        value: &Value,
        depth: usize,
    ) -> Result<(), BudgetExhausted> {
        match (key, argument, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(name), _) => {
                let targets = self.references.entry(std::ptr::from_ref(argument));
                let targets = targets.or_insert_with(|| self.names.targets(self.root, name).into());
                Rc::clone(targets).iter().try_for_each(|target| self.count_schema(target, value, depth))
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts), _) => {
                parts.iter().try_for_each(|part| self.count_schema(part, value, depth))
            }
            ("not" | "if" | "then" | "else", part, _) => self.count_schema(part, value, depth),
            ("dependentSchemas" | "dependencies", Value::Object(parts), Value::Object(members)) => {
                let present = parts.iter().filter(|(name, _)| members.contains_key(*name));
                present.map(|(_, part)| part).try_for_each(|part| self.count_schema(part, value, depth))
            }
            (
                "properties"
                | "patternProperties"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "required"
                | "dependentRequired",
                _,
                Value::Object(members),
            ) => self.members(keywords, key, argument, members, depth),
            (
                "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains" | "uniqueItems",
                _,
                Value::Array(items),
            ) => self.items(key, argument, items, depth),
            ("enum" | "const", _, _) => {
                let size = self.size_of(argument);
                self.spend(size)
            }
            ("pattern", Value::String(pattern), Value::String(text)) => {
                self.spend(self.patterns.steps(pattern, text.len()))
            }
            // The names of its groups are compared with each other.
            ("format", Value::String(format), Value::String(text)) if format == "regex" => {
                let length = text.len() as u64;
                self.spend(length.saturating_mul(length) / 64)
            }
            ("format" | "contentEncoding" | "contentMediaType", _, Value::String(text)) => {
                self.spend(text.len() as u64)
            }
            ("minLength" | "maxLength", _, Value::String(text)) => self.spend(text.len() as u64 / 32),
            _ => Ok(()),
        }
    }

    fn members(
        &mut self,
        keywords: &'a Map<String, Value>,
        key: &str,
        argument: &'a Value,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), BudgetExhausted> {
        match (key, argument) {
            ("properties", Value::Object(parts)) => {
                self.spend(parts.len() as u64)?;
                let present = parts.iter().filter_map(|(name, part)| Some((part, members.get(name)?)));
                present.into_iter().try_for_each(|(part, member)| self.count_schema(part, member, depth))
            }
            ("patternProperties", Value::Object(parts)) => {
                for (pattern, part) in parts {
                    for (name, member) in members {
                        self.spend(self.patterns.steps(pattern, name.len()))?;
                        self.count_schema(part, member, depth)?;
                    }
                }
                Ok(())
            }
            ("additionalProperties" | "unevaluatedProperties", part) => {
                let named = keywords.get("properties").and_then(Value::as_object);
                let patterns = keywords.get("patternProperties").and_then(Value::as_object);
                for (name, member) in members {
                    for pattern in patterns.into_iter().flat_map(Map::keys) {
                        self.spend(self.patterns.steps(pattern, name.len()))?;
                    }
                    self.spend(1)?;
                    if !named.is_some_and(|named| named.contains_key(name)) {
                        self.count_schema(part, member, depth)?;
                    }
                }
                Ok(())
            }
            ("propertyNames", part) => members
                .keys()
                .try_for_each(|name| self.count_schema(part, &Value::String(name.clone()), depth)),
            (_, argument) => {
                let size = self.size_of(argument);
                self.spend(size)
            }
        }
    }

    fn items(
        &mut self,
        key: &str,
        argument: &'a Value,
        items: &[Value],
        depth: usize,
    ) -> Result<(), BudgetExhausted> {
        match (key, argument) {
            // Few items are compared with each other; many are hashed.
            ("uniqueItems", _) => {
                let size: u64 = items.iter().map(size).fold(0, u64::saturating_add);
                self.spend(size.saturating_mul(16))
            }
            (_, Value::Array(parts)) => {
                parts.iter().zip(items).try_for_each(|(part, item)| self.count_schema(part, item, depth))
            }
            (_, part) => items.iter().try_for_each(|item| self.count_schema(part, item, depth)),
        }
    }

    /// The size of a part of the schema that is compared as a whole.
    fn size_of(&mut self, part: &'a Value) -> u64 {
        *self.sizes.entry(std::ptr::from_ref(part)).or_insert_with(|| size(part))
    }
}

/// The number of parts of a value. Long strings count as several.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(size).fold(1, u64::saturating_add),
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| name.len() as u64 / 32 + size(member);
            members.iter().map(member).fold(1, u64::saturating_add)
        }
        Value::String(text) => 1 + text.len() as u64 / 32,
        _ => 1,
    }
}

/// The nesting depth of a value.
pub(super) fn depth(value: &Value) -> u64 {
    match value {
        Value::Array(parts) => 1 + parts.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CheckBudget, Estimate, estimate};
    use crate::schema::pattern::PatternWeights;

    const BUDGET: CheckBudget = CheckBudget { steps: 1_000_000, depth: 1_000 };

    fn steps(schema: &Value, value: &Value) -> u64 {
        match estimate(
            schema,
            &PatternWeights::measure(schema).unwrap(),
            value,
            CheckBudget { steps: u64::MAX / 2, depth: 1_000 },
        ) {
            Estimate::Steps(steps) => steps,
            Estimate::OverBudget => u64::MAX,
        }
    }

    /// The cost of a value ten times as large, relative to the original.
    fn growth(schema: &Value, value: impl Fn(usize) -> Value) -> u64 {
        steps(schema, &value(1000)) / steps(schema, &value(100))
    }

    #[test]
    fn the_estimate_grows_with_what_is_checked() {
        let list = |count: usize| json!(vec!["some text"; count]);
        let object =
            |count: usize| Value::Object((0..count).map(|at| (format!("k{at}"), json!("x"))).collect());
        for schema in [
            json!({"items": {"type": "string"}}),
            json!({"items": {"pattern": "^(a|b)+c"}}),
            json!({"contains": {"enum": [1, 2, 3]}}),
            json!({"uniqueItems": true}),
            json!({"prefixItems": [true], "unevaluatedItems": {"const": "x"}}),
            json!({"allOf": [{"items": {"$ref": "#/$defs/a"}}], "$defs": {"a": {"minLength": 3}}}),
            json!({"items": {"$dynamicRef": "#a"}, "$defs": {"x": {"$dynamicAnchor": "a", "format": "uri"}}}),
        ] {
            assert!((9..=10).contains(&growth(&schema, list)), "{schema}: {}", growth(&schema, list));
        }
        for schema in [
            json!({"patternProperties": {"^k": {"type": "string"}}}),
            json!({"propertyNames": {"pattern": "^k"}}),
            json!({"additionalProperties": {"type": "string"}}),
            json!({"unevaluatedProperties": {"type": "string"}}),
        ] {
            assert!((9..=10).contains(&growth(&schema, object)), "{schema}");
        }
        let text = |count: usize| json!("x".repeat(count * 10));
        for schema in [json!({"pattern": "^(a|b)+c"}), json!({"pattern": "(?=a)b"}), json!({"format": "uri"})]
        {
            assert!((8..=10).contains(&growth(&schema, text)), "{schema}: {}", growth(&schema, text));
        }
    }

    #[test]
    fn alternatives_enumerations_and_unevaluated_parts_are_charged() {
        let value = json!({"a": [1, 2, 3]});
        let once = json!({"properties": {"a": {"items": {"type": "integer"}}}});
        let ten = json!({"anyOf": vec![once.clone(); 10]});
        assert!(steps(&ten, &value) >= 10 * steps(&once, &value));
        let large = json!({"enum": (0..1000).collect::<Vec<_>>()});
        assert!(steps(&large, &json!(1)) >= 1000);
        let again = json!({"allOf": [once], "unevaluatedProperties": false});
        assert!(steps(&again, &value) >= 2 * steps(&once, &value));
    }

    #[test]
    fn what_has_no_end_or_is_too_deep_for_the_stack_is_too_much() {
        let value = json!({"a": 1});
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"not": {"$ref": "#"}}),
            json!({"$dynamicRef": "#x", "$dynamicAnchor": "x"}),
        ] {
            let patterns = PatternWeights::measure(&schema).unwrap();
            assert_eq!(estimate(&schema, &patterns, &value, BUDGET), Estimate::OverBudget, "{schema}");
        }
        let nested = (0..100).fold(json!({}), |inner, _| json!({"a": inner}));
        let twice = json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let patterns = PatternWeights::measure(&twice).unwrap();
        assert_eq!(estimate(&twice, &patterns, &nested, BUDGET), Estimate::OverBudget);
        let once = json!({"properties": {"a": {"$ref": "#"}}});
        assert!(steps(&once, &nested) < 1_000);
    }
}
