//! How much work a schema can make. Schemas come from strangers: a few definitions that refer to each other can
//! ask for more steps than there is time, or more stack than there is, and checking cannot be interrupted.

use std::collections::HashMap;

use serde_json::Value;

/// More steps than this take longer than a caller should wait.
const MOST_STEPS: u64 = 1_000_000;
/// Deeper than this, compiling could run out of stack.
const DEEPEST: usize = 200;

/// What one pass over the arguments costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    steps: u64,
    /// In how many ways the schema comes back to itself; each level of the arguments multiplies the work by it.
    loops: u64,
}

impl Cost {
    /// Measures a schema with all its references followed, or says why it must not be compiled.
    pub(super) fn of(schema: &Value) -> Result<Self, &'static str> {
        let mut names = HashMap::new();
        collect_names(schema, &mut names);
        let cost = Walk { root: schema, names, seen: HashMap::new() }.cost(schema, 0)?;
        if cost.steps > MOST_STEPS {
            return Err("it refers to itself too often to be checked");
        }
        Ok(cost)
    }

    /// Whether arguments of this shape can be checked in good time.
    pub(super) fn bears(self, arguments: &Value) -> bool {
        // The root is one level, and a schema that comes back in one way only walks the arguments once.
        let levels = if self.loops < 2 { 0 } else { depth(arguments) };
        self.steps.saturating_mul(self.loops.saturating_pow(levels)) <= MOST_STEPS
    }

    fn and(self, other: Self) -> Self {
        Self { steps: self.steps.saturating_add(other.steps), loops: self.loops.saturating_add(other.loops) }
    }
}

struct Walk<'a> {
    root: &'a Value,
    names: HashMap<String, &'a Value>,
    /// What each part costs, by its address; `None` while it is being measured.
    seen: HashMap<*const Value, Option<Cost>>,
}

impl<'a> Walk<'a> {
    fn cost(&mut self, part: &'a Value, depth: usize) -> Result<Cost, &'static str> {
        if depth > DEEPEST {
            return Err("it is nested too deeply to be checked");
        }
        match self.seen.get(&std::ptr::from_ref(part)) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Ok(Cost { steps: 1, loops: 1 }),
            None => {}
        }
        self.seen.insert(part, None);
        let mut cost = Cost { steps: 1, loops: 0 };
        match part {
            Value::Array(parts) => {
                for part in parts {
                    cost = cost.and(self.cost(part, depth + 1)?);
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    let part = match (key.as_str(), value) {
                        // Reached by reference only.
                        ("$defs" | "definitions", Value::Object(_)) => continue,
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(name)) => self.target(name),
                        _ => Some(value),
                    };
                    if let Some(part) = part {
                        cost = cost.and(self.cost(part, depth + 1)?);
                    }
                }
            }
            _ => {}
        }
        self.seen.insert(part, Some(cost));
        Ok(cost)
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        match reference.strip_prefix('#') {
            Some("") => Some(self.root),
            Some(pointer) if pointer.starts_with('/') => self.root.pointer(pointer),
            _ => self.names.get(reference).copied(),
        }
    }
}

fn collect_names<'a>(part: &'a Value, names: &mut HashMap<String, &'a Value>) {
    match part {
        Value::Array(parts) => parts.iter().for_each(|part| collect_names(part, names)),
        Value::Object(members) => {
            for (key, value) in members {
                let name = match (key.as_str(), value) {
                    ("$anchor" | "$dynamicAnchor", Value::String(name)) => Some(format!("#{name}")),
                    ("$id" | "id", Value::String(name)) => Some(name.clone()),
                    _ => None,
                };
                match name {
                    Some(name) => {
                        names.insert(name, part);
                    }
                    None => collect_names(value, names),
                }
            }
        }
        _ => {}
    }
}

fn depth(value: &Value) -> u32 {
    match value {
        Value::Array(parts) => 1 + parts.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Cost, DEEPEST};

    /// Definitions `d0` to `d{last}`, each made from the number of the next.
    fn chain(last: usize, link: impl Fn(String) -> Value) -> Value {
        let mut defs: serde_json::Map<_, _> =
            (0..last).map(|at| (format!("d{at}"), link(format!("#/$defs/d{}", at + 1)))).collect();
        defs.insert(format!("d{last}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    }

    #[test]
    fn a_schema_that_doubles_with_every_definition_is_refused() {
        let doubling = |last| chain(last, |next| json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
        assert!(Cost::of(&doubling(5)).is_ok());
        assert_eq!(Cost::of(&doubling(60)), Err("it refers to itself too often to be checked"));
        let named = json!({"$ref": "#a", "$defs": {
            "x": {"$anchor": "a", "allOf": vec![json!({"$ref": "b"}); 2000]},
            "y": {"$id": "b", "allOf": vec![json!({"$ref": "#/$defs/z"}); 2000]},
            "z": {"type": "object"},
        }});
        assert_eq!(Cost::of(&named), Err("it refers to itself too often to be checked"));
    }

    #[test]
    fn a_long_chain_of_references_is_refused_before_it_uses_up_the_stack() {
        let long = chain(20_000, |next| json!({"$ref": next}));
        assert_eq!(Cost::of(&long), Err("it is nested too deeply to be checked"));
        let deep = chain(DEEPEST / 2 - 5, |next| json!({"allOf": [{"$ref": next}]}));
        let allowed = chain(DEEPEST / 3 - 5, |next| json!({"allOf": [{"$ref": next}]}));
        assert_eq!((Cost::of(&deep).is_ok(), Cost::of(&allowed).is_ok()), (false, true));
        // What is allowed compiles and checks on the stack that a worker thread has.
        assert!(jsonschema::is_valid(&allowed, &json!({})));
    }

    #[test]
    fn recursive_schemas_are_checked_as_deep_as_time_allows() {
        let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        let tree = Cost::of(&json!({"properties": {"a": {"$ref": "#"}}})).unwrap();
        assert!(tree.bears(&nested(100)));
        let twice =
            Cost::of(&json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}})).unwrap();
        assert!(twice.bears(&nested(10)));
        assert!(!twice.bears(&nested(40)));
    }
}
