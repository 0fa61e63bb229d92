//! Computes how much work a schema can cause. Schemas are untrusted: a few definitions that refer
//! to each other can require excessive time or stack, and a check cannot be interrupted.

use std::collections::HashMap;

use serde_json::Value;

use super::pattern::PatternWeights;

/// A schema that needs more steps than this is not used.
const MOST_STEPS: u64 = 1_000_000;
/// Compiling a deeper schema could overflow the stack.
const DEEPEST: usize = 200;

/// The cost of one pass over a value, and of the patterns of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaCost {
    steps: u64,
    /// The number of ways in which the schema refers to itself. Each level of the value multiplies
    /// the work by it.
    loops: u64,
    pub(super) patterns: PatternWeights,
}

#[derive(Debug, Clone, Copy)]
struct SubschemaCost {
    steps: u64,
    loops: u64,
}

impl SchemaCost {
    /// Measures a schema with all references resolved, or returns why it must not be compiled.
    pub(super) fn measure(schema: &Value) -> Result<Self, String> {
        let mut walk = Walk { root: schema, names: SchemaAnchors::from_schema(schema), seen: HashMap::new() };
        let SubschemaCost { steps, loops } = walk.cost(schema, 0)?;
        if steps > MOST_STEPS {
            return Err("it has too many references to itself".to_owned());
        }
        Ok(Self { steps, loops, patterns: PatternWeights::measure(schema)? })
    }

    /// Returns whether no part of the schema needs more than a few steps for each part of a small
    /// value.
    pub(super) fn is_simple(&self) -> bool {
        self.loops < 2 && self.patterns.is_empty()
    }

    /// Returns the maximum number of steps for a value with this many parts, if the schema is
    /// simple.
    pub(super) fn max_steps(&self, parts: u64) -> u64 {
        self.steps.saturating_mul(parts)
    }
}

impl SubschemaCost {
    fn combine(self, other: Self) -> Self {
        Self { steps: self.steps.saturating_add(other.steps), loops: self.loops.saturating_add(other.loops) }
    }
}

struct Walk<'a> {
    root: &'a Value,
    names: SchemaAnchors<'a>,
    /// The cost of each part by its address, or `None` while it is being measured.
    seen: HashMap<*const Value, Option<SubschemaCost>>,
}

impl<'a> Walk<'a> {
    fn cost(&mut self, part: &'a Value, depth: usize) -> Result<SubschemaCost, &'static str> {
        if depth > DEEPEST {
            return Err("it is nested too deeply");
        }
        match self.seen.get(&std::ptr::from_ref(part)) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Ok(SubschemaCost { steps: 1, loops: 1 }),
            None => {}
        }
        self.seen.insert(part, None);
        let mut cost = SubschemaCost { steps: 1, loops: 0 };
        match part {
            Value::Array(parts) => {
                for part in parts {
                    cost = cost.combine(self.cost(part, depth + 1)?);
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        // Only reached by reference.
                        ("$defs" | "definitions", Value::Object(_)) => {}
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(name)) => {
                            for target in self.names.targets(self.root, name) {
                                cost = cost.combine(self.cost(target, depth + 1)?);
                            }
                        }
                        _ => cost = cost.combine(self.cost(value, depth + 1)?),
                    }
                }
                if members.keys().any(|key| key.starts_with("unevaluated")) {
                    // Finding out what the other keywords have evaluated means evaluating them
                    // again.
                    cost.steps = cost.steps.saturating_mul(2);
                }
            }
            _ => {}
        }
        self.seen.insert(part, Some(cost));
        Ok(cost)
    }
}

/// Collects the parts of a schema that have a name.
pub(super) struct SchemaAnchors<'a>(HashMap<String, Vec<&'a Value>>);

impl<'a> SchemaAnchors<'a> {
    pub(super) fn from_schema(schema: &'a Value) -> Self {
        let mut names = Self(HashMap::new());
        names.collect(schema);
        names
    }

    /// Returns the possible targets of a reference. A dynamic reference can resolve to every part
    /// with its name.
    pub(super) fn targets(&self, root: &'a Value, reference: &str) -> Vec<&'a Value> {
        match reference.strip_prefix('#') {
            Some("") => vec![root],
            Some(pointer) if pointer.starts_with('/') => root.pointer(pointer).into_iter().collect(),
            _ => self.0.get(reference).cloned().unwrap_or_default(),
        }
    }

    fn collect(&mut self, part: &'a Value) {
        match part {
            Value::Array(parts) => parts.iter().for_each(|part| self.collect(part)),
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                            self.0.entry(format!("#{name}")).or_default().push(part);
                        }
                        ("$id" | "id", Value::String(name)) => {
                            self.0.entry(name.clone()).or_default().push(part);
                        }
                        _ => self.collect(value),
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{DEEPEST, SchemaCost};

    /// Definitions `d0` to `d{last}`, each generated from the number of the next.
    fn chain(last: usize, link: impl Fn(String) -> Value) -> Value {
        let mut defs: serde_json::Map<_, _> =
            (0..last).map(|at| (format!("d{at}"), link(format!("#/$defs/d{}", at + 1)))).collect();
        defs.insert(format!("d{last}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    }

    fn refused(schema: &Value) -> Option<String> {
        SchemaCost::measure(schema).err()
    }

    #[test]
    fn a_schema_that_doubles_with_every_definition_is_refused() {
        let doubling = |last| chain(last, |next| json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
        assert!(SchemaCost::measure(&doubling(5)).is_ok());
        let too_often = Some("it has too many references to itself".to_owned());
        assert_eq!(refused(&doubling(60)), too_often);
        let named = json!({"$ref": "#a", "$defs": {
            "x": {"$anchor": "a", "allOf": vec![json!({"$ref": "b"}); 2000]},
            "y": {"$id": "b", "allOf": vec![json!({"$ref": "#/$defs/z"}); 2000]},
            "z": {"type": "object"},
        }});
        assert_eq!(refused(&named), too_often);
        let unevaluated =
            chain(60, |next| json!({"allOf": [{"$ref": next}], "unevaluatedProperties": false}));
        assert_eq!(refused(&unevaluated), too_often);
        let dynamic = json!({"$dynamicRef": "#a", "$defs": {
            "x": {"$dynamicAnchor": "a", "allOf": vec![json!({"$ref": "#/$defs/y"}); 2000]},
            "y": {"allOf": vec![json!({"type": "object"}); 2000]},
            "z": {"$dynamicAnchor": "a"},
        }});
        assert_eq!(refused(&dynamic), too_often);
    }

    #[test]
    fn a_long_chain_of_references_is_refused_before_it_uses_up_the_stack() {
        let too_deep = Some("it is nested too deeply".to_owned());
        let long = chain(20_000, |next| json!({"$ref": next}));
        assert_eq!(refused(&long), too_deep);
        let deep = chain(DEEPEST / 2 - 5, |next| json!({"allOf": [{"$ref": next}]}));
        let allowed = chain(DEEPEST / 3 - 5, |next| json!({"allOf": [{"$ref": next}]}));
        assert_eq!(
            (SchemaCost::measure(&deep).is_ok(), SchemaCost::measure(&allowed).is_ok()),
            (false, true)
        );
        // Every accepted schema compiles and runs on the stack of a worker thread.
        assert!(jsonschema::is_valid(&allowed, &json!({})));
    }
}
