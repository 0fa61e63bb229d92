//! Changes of a list of tools, each with the class and the place that `diff` must report. Changes of
//! schemas are checked a second time with sampled instances and a JSON Schema validator, which
//! shares no code with the comparison: an instance that was valid and is refused disproves
//! "compatible", and what is called breaking must have such an instance.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod mutations {
    pub(super) mod sampler;
    pub(super) mod table;
}

use mutations::sampler::find_refused;
use mutations::table::{Mutation, Sampling, base_tool, mutations};
use proptest::prelude::*;
use serde_json::{Value, json};
use toolyard_definitions::compare::{ChangeClass, compare_offers};
use toolyard_definitions::parse_saved_definitions;

/// The changes that `diff` reports, as class and path.
fn reported(old: &Value, new: &Value) -> Vec<(ChangeClass, String, String)> {
    let read = |tool: &Value| {
        let list = serde_json::json!({ "tools": [tool] });
        parse_saved_definitions(&list.to_string(), "s").unwrap()
    };
    let changes = compare_offers(&read(old), &read(new));
    changes.into_iter().map(|change| (change.class, change.path, change.reason)).collect()
}

/// What is wrong with the verdict about a mutation, if anything.
fn check(mutation: &Mutation) -> Option<String> {
    let old = mutation.old_tool();
    let new = mutation.new_tool();
    let changes = reported(&old, &new);
    let problem = |why: &str| Some(format!("{}: {why}\n  reported {changes:#?}", mutation.name));
    let worst = changes.iter().map(|(class, ..)| *class).max();
    if worst != Some(mutation.class) {
        return problem(&format!("expected {:?}", mutation.class));
    }
    if !changes.iter().any(|(class, path, _)| *class == mutation.class && path == mutation.path) {
        return problem(&format!("expected a change at {}", mutation.path));
    }
    let (schema, from, to) = match mutation.path {
        path if path.starts_with("/inputSchema") => ("inputSchema", &old, &new),
        // What the new server sends must be valid for clients of the old one.
        path if path.starts_with("/outputSchema") => ("outputSchema", &new, &old),
        _ => return None,
    };
    if mutation.sampling == Sampling::Uncompilable {
        return None;
    }
    let refused = find_refused(&from[schema], &to[schema]);
    match (mutation.class, mutation.sampling, refused) {
        (ChangeClass::Breaking, Sampling::Witness, None) => problem("no instance shows that it breaks"),
        (ChangeClass::Breaking, Sampling::Unobservable, Some(instance)) => {
            problem(&format!("marked as unobservable, but {instance} is refused"))
        }
        (ChangeClass::Compatible | ChangeClass::Wording, _, Some(instance)) => {
            problem(&format!("{instance} was valid and is refused"))
        }
        _ => None,
    }
}

#[test]
fn every_mutation_is_classified_correctly() {
    let table = mutations();
    let problems: Vec<String> = table.iter().filter_map(check).collect();
    assert!(problems.is_empty(), "{} of {} failed:\n{}", problems.len(), table.len(), problems.join("\n"));
    let schemas = table.iter().filter(|mutation| mutation.path.contains("Schema")).count();
    let blind = table.iter().filter(|mutation| mutation.sampling != Sampling::Witness).count();
    assert!(table.len() >= 100 && schemas >= 80, "{} mutations, {schemas} of schemas", table.len());
    assert!(blind <= 12, "{blind} mutations cannot be sampled");
}

#[test]
fn the_sampler_reaches_every_property_of_the_base() {
    let base = base_tool();
    for schema in ["inputSchema", "outputSchema"] {
        let properties = base[schema]["properties"].as_object().unwrap();
        for name in properties.keys() {
            let mut closed = base[schema].clone();
            closed["properties"][name] = Value::Bool(false);
            assert!(find_refused(&base[schema], &closed).is_some(), "{schema}: {name} is never sampled");
        }
        assert_eq!(find_refused(&base[schema], &base[schema]), None);
    }
}

#[test]
fn the_reverse_of_a_compatible_input_change_is_breaking_if_an_instance_shows_it() {
    for mutation in mutations() {
        let (old, new) = (mutation.old_tool(), mutation.new_tool());
        if !mutation.path.starts_with("/inputSchema") || mutation.sampling == Sampling::Uncompilable {
            continue;
        }
        let worst = reported(&new, &old).into_iter().map(|(class, ..)| class).max();
        if let Some(instance) = find_refused(&new["inputSchema"], &old["inputSchema"]) {
            assert_eq!(worst, Some(ChangeClass::Breaking), "{}: {instance}", mutation.name);
        }
    }
}

/// Small schemas of everything that the comparison decides.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        (0_i64..4, 3_i64..6)
            .prop_map(|(least, most)| json!({"type": "integer", "minimum": least, "maximum": most})),
        (0_u64..3, 2_u64..5)
            .prop_map(|(least, most)| json!({"type": "string", "minLength": least, "maxLength": most})),
        prop::sample::subsequence(vec!["null", "boolean", "number", "string"], 1..3)
            .prop_map(|kinds| json!({ "type": kinds })),
        prop::sample::subsequence(vec![json!("a"), json!("ab"), json!(1), json!(2), Value::Null], 1..4)
            .prop_map(|values| json!({ "enum": values })),
        prop_oneof![Just("#/$defs/a"), Just("#/$defs/b")].prop_map(|target| json!({ "$ref": target })),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (prop_oneof![Just("anyOf"), Just("oneOf"), Just("allOf")], list.clone())
                .prop_map(|(key, list)| json!({ key: list })),
            (list, any::<bool>())
                .prop_map(|(list, open)| json!({"type": "array", "prefixItems": list, "items": open})),
            inner.clone().prop_map(|schema| json!({"type": "array", "items": schema, "maxItems": 3})),
            inner.clone().prop_map(|schema| json!({"type": ["string", "integer"], "not": schema})),
            (
                prop::collection::btree_map("[ab]", inner, 0..3),
                prop::sample::subsequence(vec!["a", "b"], 0..2),
                any::<bool>()
            )
                .prop_map(|(properties, required, closed)| {
                    let mut schema =
                        json!({"type": "object", "properties": properties, "required": required});
                    if closed {
                        schema["additionalProperties"] = Value::Bool(false);
                    }
                    schema
                }),
        ]
    })
}

fn schema_with(value: &Value, definitions: &[Value; 2]) -> Value {
    json!({
        "type": "object",
        "properties": {"p": value},
        "required": ["p"],
        "$defs": {"a": definitions[0], "b": definitions[1]},
    })
}

/// Whether a change of this schema is called breaking.
fn breaks(key: &str, old: &Value, new: &Value) -> bool {
    let tool = |schema: &Value| {
        let mut tool = json!({"name": "t", "inputSchema": {"type": "object"}});
        tool[key] = schema.clone();
        tool
    };
    reported(&tool(old), &tool(new)).iter().any(|(class, ..)| *class == ChangeClass::Breaking)
}

proptest! {
    /// No sampled instance disproves a verdict about random schemas. Most of the new ones are related
    /// to the old one, so that many of them are wider.
    #[test]
    fn nothing_that_is_called_compatible_refuses_an_instance(
        one in schema(), other in schema(), a in schema(), b in schema(), relation in 0..8_u8,
    ) {
        let new = match relation {
            0 => other.clone(),
            1 => json!({"anyOf": [one, other]}),
            2 => json!({"anyOf": [other, {"allOf": [one]}]}),
            3 => json!({"oneOf": [one, other]}),
            4 => json!({"type": "array", "items": {"anyOf": [one, {"type": "null"}]}}),
            5 => json!({"not": {"allOf": [one, other]}}),
            6 => json!({"type": "object", "properties": {"a": {"anyOf": [other, one]}, "b": other}}),
            _ => one.clone(),
        };
        let old = match relation {
            4 => json!({"type": "array", "prefixItems": [one], "items": one}),
            5 => json!({"not": one}),
            6 => json!({"type": "object", "properties": {"a": one}, "required": ["a"]}),
            _ => one,
        };
        let definitions = if relation == 7 { [a.clone(), json!({"anyOf": [b, other]})] } else { [a.clone(), b.clone()] };
        let (old, new) = (schema_with(&old, &[a, b]), schema_with(&new, &definitions));
        if !breaks("inputSchema", &old, &new) {
            let refused = find_refused(&old, &new);
            prop_assert!(refused.is_none(), "{refused:?} was valid and is refused by {new}");
        }
        if !breaks("outputSchema", &new, &old) {
            let refused = find_refused(&old, &new);
            prop_assert!(refused.is_none(), "{refused:?} is a result that clients of {new} refuse");
        }
    }
}
