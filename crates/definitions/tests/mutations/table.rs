//! The table: what changes, and what `diff` must say about it.

use serde_json::{Value, json};
use toolyard_definitions::compare::ChangeClass;

/// Whether an instance can show that a change breaks clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    Witness,
    /// The change takes a promise back, or it is only undecided.
    Unobservable,
    /// The validator cannot compile the schema.
    Uncompilable,
}

/// A change of the base tool.
pub(crate) struct Mutation {
    pub(crate) name: &'static str,
    pub(crate) class: ChangeClass,
    pub(crate) path: &'static str,
    pub(crate) sampling: Sampling,
    /// Changes that lead to the old version, and further ones that lead to the new one.
    before: Vec<(&'static str, Option<Value>)>,
    after: Vec<(&'static str, Option<Value>)>,
}

impl Mutation {
    pub(crate) fn old_tool(&self) -> Value {
        apply(base_tool(), &self.before)
    }

    pub(crate) fn new_tool(&self) -> Value {
        apply(self.old_tool(), &self.after)
    }

    fn unobservable(self) -> Self {
        Self { sampling: Sampling::Unobservable, ..self }
    }

    fn uncompilable(self) -> Self {
        Self { sampling: Sampling::Uncompilable, ..self }
    }

    /// The same change of a base that differs in this place.
    fn given(mut self, pointer: &'static str, value: Value) -> Self {
        self.before.push((pointer, Some(value)));
        self
    }

    fn and(mut self, pointer: &'static str, value: Value) -> Self {
        self.after.push((pointer, Some(value)));
        self
    }
}

fn apply(mut tool: Value, changes: &[(&str, Option<Value>)]) -> Value {
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = tool.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} is not in the tool"));
        match (parent, value) {
            (Value::Object(members), Some(value)) => drop(members.insert(key.to_owned(), value.clone())),
            (Value::Object(members), None) => {
                assert!(members.remove(key).is_some(), "{pointer} is not in the tool");
            }
            (Value::Array(items), Some(value)) if key == "-" => items.push(value.clone()),
            (Value::Array(items), Some(value)) => items[key.parse::<usize>().unwrap()] = value.clone(),
            (Value::Array(items), None) => drop(items.remove(key.parse().unwrap())),
            (other, _) => panic!("{pointer}: {other} has no members"),
        }
    }
    tool
}

/// Sets a value.
fn set(name: &'static str, class: ChangeClass, path: &'static str, value: Value) -> Mutation {
    let after = vec![(path, Some(value))];
    Mutation { name, class, path, sampling: Sampling::Witness, before: Vec::new(), after }
}

/// Removes a value.
fn remove(name: &'static str, class: ChangeClass, path: &'static str) -> Mutation {
    Mutation { after: vec![(path, None)], ..set(name, class, path, Value::Null) }
}

/// Sets a value, which is reported in another place.
fn set_at(
    name: &'static str,
    class: ChangeClass,
    path: &'static str,
    place: &'static str,
    value: Value,
) -> Mutation {
    Mutation { after: vec![(place, Some(value))], ..set(name, class, path, Value::Null) }
}

pub(crate) fn base_tool() -> Value {
    json!({
        "name": "search",
        "title": "Search",
        "description": "Searches the catalog.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 100, "description": "Words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                "ratio": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                "mode": {"enum": ["fast", "exact", "fuzzy"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5, "uniqueItems": true},
                "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                "point": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false, "minItems": 2},
                "filter": {"$ref": "#/$defs/filter"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "options": {
                    "type": "object",
                    "properties": {"deep": {"type": "boolean"}, "depth": {"type": "integer"}},
                    "additionalProperties": false,
                },
                "shape": {"oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
                    {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
                ]},
                "code": {"type": "string", "pattern": "^[a-z]+$"},
                "step": {"type": "integer", "multipleOf": 6},
                "note": {"type": ["string", "null"]},
                "any": {},
            },
            "required": ["query"],
            "$defs": {
                "filter": {
                    "type": "object",
                    "properties": {"field": {"type": "string"}, "not": {"$ref": "#/$defs/filter"}},
                    "required": ["field"],
                },
            },
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "items": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"id": {"type": "integer"}, "score": {"type": "number"}, "label": {"type": ["string", "null"]}},
                    "required": ["id"],
                }},
                "total": {"type": "integer", "minimum": 0},
                "status": {"enum": ["ok", "partial"]},
                "next": {"type": "string", "maxLength": 20},
                "meta": {"type": "object", "properties": {"took": {"type": "number"}}, "additionalProperties": false},
            },
            "required": ["items", "total"],
        },
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
    })
}

/// The changes of the base tool.
pub(crate) fn mutations() -> Vec<Mutation> {
    let groups = [
        input_scalars(),
        input_types_and_values(),
        input_objects(),
        input_arrays(),
        input_composition(),
        output(),
        words_and_hints(),
    ];
    groups.into_iter().flatten().collect()
}

fn input_scalars() -> Vec<Mutation> {
    use ChangeClass::{Breaking, Compatible, Wording};
    vec![
        set("a higher minimum", Breaking, "/inputSchema/properties/limit/minimum", json!(5)),
        set("a lower minimum", Compatible, "/inputSchema/properties/limit/minimum", json!(0)),
        remove("no minimum", Compatible, "/inputSchema/properties/limit/minimum"),
        set("a lower maximum", Breaking, "/inputSchema/properties/limit/maximum", json!(25)),
        set("a higher maximum", Compatible, "/inputSchema/properties/limit/maximum", json!(100)),
        remove("no maximum", Compatible, "/inputSchema/properties/limit/maximum"),
        set_at(
            "a minimum written as exclusive",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/limit",
            json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 50, "default": 10}),
        ),
        set_at(
            "a maximum that became exclusive",
            Breaking,
            "/inputSchema/properties/limit/exclusiveMaximum",
            "/inputSchema/properties/limit",
            json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 50, "default": 10}),
        ),
        set("a first minimum of a number", Breaking, "/inputSchema/properties/ratio/minimum", json!(0.5)),
        Mutation {
            after: vec![
                ("/inputSchema/properties/ratio/exclusiveMaximum", None),
                ("/inputSchema/properties/ratio/maximum", Some(json!(1))),
            ],
            ..set(
                "a maximum that is no longer exclusive",
                Compatible,
                "/inputSchema/properties/ratio/maximum",
                Value::Null,
            )
        },
        set("integer becomes number", Compatible, "/inputSchema/properties/limit/type", json!("number")),
        set("number becomes integer", Breaking, "/inputSchema/properties/ratio/type", json!("integer")),
        set("integer becomes string", Breaking, "/inputSchema/properties/limit/type", json!("string")),
        set("a longer minimum length", Breaking, "/inputSchema/properties/query/minLength", json!(3)),
        set("a minimum length of zero", Compatible, "/inputSchema/properties/query/minLength", json!(0)),
        set("a shorter maximum length", Breaking, "/inputSchema/properties/query/maxLength", json!(50)),
        set("a longer maximum length", Compatible, "/inputSchema/properties/query/maxLength", json!(200)),
        remove("no maximum length", Compatible, "/inputSchema/properties/query/maxLength"),
        set("a new maximum length", Breaking, "/inputSchema/properties/code/maxLength", json!(3)),
        set("a new pattern", Breaking, "/inputSchema/properties/query/pattern", json!("^[a-z]+$")),
        remove("no pattern", Compatible, "/inputSchema/properties/code/pattern"),
        set("another pattern", Breaking, "/inputSchema/properties/code/pattern", json!("^[a-z]{1,3}$")),
        set(
            "a pattern that only looks different",
            Breaking,
            "/inputSchema/properties/code/pattern",
            json!("^[a-z][a-z]*$"),
        )
        .unobservable(),
        set("a new format", Breaking, "/inputSchema/properties/query/format", json!("date")),
        remove("no format", Compatible, "/inputSchema/properties/when/anyOf/0/format"),
        set("another format", Breaking, "/inputSchema/properties/when/anyOf/0/format", json!("date")),
        set("a multiple of a multiple", Breaking, "/inputSchema/properties/step/multipleOf", json!(12)),
        set("a divisor of the multiple", Compatible, "/inputSchema/properties/step/multipleOf", json!(3)),
        set("another multiple", Breaking, "/inputSchema/properties/step/multipleOf", json!(4)),
        remove("any multiple", Compatible, "/inputSchema/properties/step/multipleOf"),
        set_at(
            "a multiple of 1",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/limit/multipleOf",
            json!(1),
        ),
    ]
}

fn input_types_and_values() -> Vec<Mutation> {
    use ChangeClass::{Breaking, Compatible, Wording};
    vec![
        set("one type less", Breaking, "/inputSchema/properties/note/type", json!("string")),
        set(
            "one type more",
            Compatible,
            "/inputSchema/properties/note/type",
            json!(["string", "null", "integer"]),
        ),
        set("a type for anything", Breaking, "/inputSchema/properties/any/type", json!("string")),
        remove("anything instead of a type", Compatible, "/inputSchema/properties/note/type"),
        set(
            "a nullable parameter",
            Compatible,
            "/inputSchema/properties/query/type",
            json!(["string", "null"]),
        ),
        Mutation {
            after: vec![("/inputSchema/properties/mode/enum/1", None)],
            ..set("a value less", Breaking, "/inputSchema/properties/mode/enum", Value::Null)
        },
        set(
            "a value more",
            Compatible,
            "/inputSchema/properties/mode/enum",
            json!(["fast", "exact", "fuzzy", "slow"]),
        ),
        set("another value", Breaking, "/inputSchema/properties/mode/enum", json!(["fast", "exact", "slow"])),
        set_at(
            "values in another order",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/mode/enum",
            json!(["fuzzy", "exact", "fast"]),
        ),
        set("a list of values for a text", Breaking, "/inputSchema/properties/note/enum", json!(["a", null])),
        set_at(
            "any text instead of values",
            Compatible,
            "/inputSchema/properties/mode/enum",
            "/inputSchema/properties/mode",
            json!({"type": "string"}),
        ),
        set_at(
            "a type that all values have",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/mode/type",
            json!("string"),
        ),
        set_at(
            "a type that no value has",
            Breaking,
            "/inputSchema/properties/mode/enum",
            "/inputSchema/properties/mode/type",
            json!("integer"),
        ),
        set_at(
            "values as constants",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/mode",
            json!({"oneOf": [{"const": "fast"}, {"const": "exact"}, {"const": "fuzzy"}]}),
        ),
        set_at(
            "a constant instead of values",
            Breaking,
            "/inputSchema/properties/mode/const",
            "/inputSchema/properties/mode",
            json!({"const": "fast"}),
        ),
        set_at(
            "nothing is accepted",
            Breaking,
            "/inputSchema/properties/note",
            "/inputSchema/properties/note",
            json!(false),
        ),
        set_at(
            "anything is accepted",
            Compatible,
            "/inputSchema/properties/note/type",
            "/inputSchema/properties/note",
            json!(true),
        ),
        set_at(
            "numbers that are written differently",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/limit/maximum",
            json!(50.0),
        ),
    ]
}

fn input_objects() -> Vec<Mutation> {
    use ChangeClass::{Breaking, Compatible};
    vec![
        set(
            "a new optional parameter",
            Compatible,
            "/inputSchema/properties/page",
            json!({"type": "integer"}),
        ),
        set("a new required parameter", Breaking, "/inputSchema/properties/page", json!({"type": "integer"}))
            .and("/inputSchema/required", json!(["query", "page"])),
        remove("a parameter less", Breaking, "/inputSchema/properties/limit").unobservable(),
        set("a parameter is required", Breaking, "/inputSchema/required", json!(["query", "limit"])),
        set("a parameter is no longer required", Compatible, "/inputSchema/required", json!([])),
        remove("nothing is required", Compatible, "/inputSchema/required"),
        set("undeclared parameters are refused", Breaking, "/inputSchema/additionalProperties", json!(false))
            .given("/inputSchema/additionalProperties", json!(true)),
        set_at(
            "undeclared parameters of a closed object",
            Compatible,
            "/inputSchema/properties/options/additionalProperties",
            "/inputSchema/properties/options/additionalProperties",
            json!(true),
        ),
        remove("an object is open", Compatible, "/inputSchema/properties/options/additionalProperties"),
        set(
            "a parameter more in a closed object",
            Compatible,
            "/inputSchema/properties/options/properties/width",
            json!({"type": "integer"}),
        ),
        remove(
            "a parameter less in a closed object",
            Breaking,
            "/inputSchema/properties/options/properties/depth",
        ),
        set_at(
            "a stricter parameter where every name was free",
            Breaking,
            "/inputSchema/properties/labels/properties/color/enum",
            "/inputSchema/properties/labels/properties",
            json!({"color": {"enum": ["red"]}}),
        ),
        set_at(
            "a wider parameter where every name was free",
            Compatible,
            "/inputSchema/properties/labels/properties/color",
            "/inputSchema/properties/labels/properties",
            json!({"color": {"type": ["string", "null"]}}),
        ),
        set(
            "stricter undeclared properties",
            Breaking,
            "/inputSchema/properties/labels/additionalProperties/maxLength",
            json!(8),
        ),
        set(
            "wider undeclared properties",
            Compatible,
            "/inputSchema/properties/labels/additionalProperties/type",
            json!(["string", "integer"]),
        ),
        set("fewer properties", Breaking, "/inputSchema/properties/labels/maxProperties", json!(1)),
        set("more properties", Breaking, "/inputSchema/properties/labels/minProperties", json!(1)),
        set_at(
            "names of properties",
            Breaking,
            "/inputSchema/properties/labels/propertyNames/pattern",
            "/inputSchema/properties/labels/propertyNames",
            json!({"pattern": "^[a-d]+$"}),
        ),
        set_at(
            "properties by pattern in a closed object",
            Compatible,
            "/inputSchema/properties/options/patternProperties/^x",
            "/inputSchema/properties/options/patternProperties",
            json!({"^x": {"type": "string"}}),
        ),
        set(
            "stricter properties by pattern",
            Breaking,
            "/inputSchema/properties/options/patternProperties/^x/type",
            json!("integer"),
        )
        .given("/inputSchema/properties/options/patternProperties", json!({"^x": {"type": "string"}})),
        set(
            "a parameter that requires another",
            Breaking,
            "/inputSchema/properties/options/dependentRequired",
            json!({"deep": ["depth"]}),
        ),
        remove(
            "a parameter that requires no other",
            Compatible,
            "/inputSchema/properties/options/dependentRequired",
        )
        .given("/inputSchema/properties/options/dependentRequired", json!({"deep": ["depth"]})),
        set(
            "another type of a nested parameter",
            Breaking,
            "/inputSchema/properties/options/properties/deep/type",
            json!("string"),
        ),
    ]
}

fn input_arrays() -> Vec<Mutation> {
    use ChangeClass::{Breaking, Compatible, Wording};
    vec![
        set("fewer items", Breaking, "/inputSchema/properties/tags/maxItems", json!(3)),
        set("more items", Compatible, "/inputSchema/properties/tags/maxItems", json!(10)),
        set("a minimum of items", Breaking, "/inputSchema/properties/tags/minItems", json!(1)),
        set_at("items that may repeat", Compatible, "/inputSchema/properties/tags/uniqueItems", "/inputSchema/properties/tags/uniqueItems", json!(false)),
        set("items that must differ", Breaking, "/inputSchema/properties/tags/uniqueItems", json!(true)).given("/inputSchema/properties/tags/uniqueItems", json!(false)),
        set("items of another type", Breaking, "/inputSchema/properties/tags/items/type", json!("integer")),
        set("items of one type more", Compatible, "/inputSchema/properties/tags/items/type", json!(["string", "integer"])),
        set("a position of another type", Breaking, "/inputSchema/properties/point/prefixItems/0/type", json!("integer")),
        set("a position of one type more", Compatible, "/inputSchema/properties/point/prefixItems/1/type", json!(["number", "null"])),
        set_at("a position more", Compatible, "/inputSchema/properties/point/prefixItems/2", "/inputSchema/properties/point/prefixItems/-", json!({"type": "number"})),
        Mutation { after: vec![("/inputSchema/properties/point/prefixItems/1", None)], ..set("a position less", Breaking, "/inputSchema/properties/point/items", Value::Null) },
        set_at("positions written as in draft 7", Wording, "/inputSchema", "/inputSchema/properties/point", json!({"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": false, "minItems": 2})).uncompilable(),
        set("an item that must be present", Breaking, "/inputSchema/properties/tags/contains", json!({"const": "a"})),
    ]
}

fn input_composition() -> Vec<Mutation> {
    use ChangeClass::{Breaking, Compatible, Wording};
    vec![
        set_at(
            "a value in two alternatives",
            Breaking,
            "/inputSchema/properties/mode/oneOf",
            "/inputSchema/properties/mode",
            json!({"oneOf": [{"enum": ["fast", "exact", "fuzzy"]}, {"const": "fast"}]}),
        ),
        set("a pattern for listed values", Breaking, "/inputSchema/properties/mode/pattern", json!("^f")),
        set_at(
            "an alternative more",
            Compatible,
            "/inputSchema/properties/when/anyOf/2",
            "/inputSchema/properties/when/anyOf/-",
            json!({"type": "integer"}),
        ),
        Mutation {
            after: vec![("/inputSchema/properties/when/anyOf/1", None)],
            ..set("an alternative less", Breaking, "/inputSchema/properties/when/anyOf/1", Value::Null)
        },
        set_at(
            "alternatives in another order",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/when/anyOf",
            json!([{"type": "null"}, {"type": "string", "format": "date-time"}]),
        ),
        set_at(
            "types instead of alternatives",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/note",
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ),
        set_at(
            "a parameter becomes a union with itself",
            Compatible,
            "/inputSchema/properties/query/anyOf/1",
            "/inputSchema/properties/query",
            json!({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 100}, {"type": "null"}], "description": "Words."}),
        ),
        set_at(
            "a union becomes one of its alternatives",
            Breaking,
            "/inputSchema/properties/when/anyOf/1",
            "/inputSchema/properties/when",
            json!({"type": "string", "format": "date-time"}),
        ),
        set(
            "a stricter alternative",
            Breaking,
            "/inputSchema/properties/shape/oneOf/0/properties/radius/minimum",
            json!(2),
        ),
        set(
            "a wider alternative",
            Compatible,
            "/inputSchema/properties/shape/oneOf/0/properties/radius/type",
            json!(["number", "string"]),
        ),
        set(
            "an alternative with another constant",
            Breaking,
            "/inputSchema/properties/shape/oneOf/1/properties/kind/const",
            json!("rectangle"),
        ),
        set_at(
            "a distinct alternative more",
            Compatible,
            "/inputSchema/properties/shape/oneOf/2",
            "/inputSchema/properties/shape/oneOf/-",
            json!({"type": "object", "properties": {"kind": {"const": "line"}}, "required": ["kind"]}),
        ),
        set_at(
            "an overlapping alternative",
            Breaking,
            "/inputSchema/properties/shape/oneOf",
            "/inputSchema/properties/shape/oneOf/-",
            json!({"type": "object", "properties": {"radius": {"type": "number"}}, "required": ["radius"]}),
        ),
        set_at(
            "a stricter constraint in allOf",
            Breaking,
            "/inputSchema/properties/query/allOf/0/minLength",
            "/inputSchema/properties/query/allOf",
            json!([{"minLength": 4}]),
        ),
        set_at(
            "a weaker constraint in allOf",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/query/allOf",
            json!([{"maxLength": 500}]),
        ),
        set("an exclusion", Breaking, "/inputSchema/properties/query/not", json!({"const": "abc"})),
        remove("no exclusion", Compatible, "/inputSchema/properties/query/not")
            .given("/inputSchema/properties/query/not", json!({"const": "abc"})),
        set_at(
            "a smaller exclusion",
            Compatible,
            "/inputSchema/properties/query/not",
            "/inputSchema/properties/query/not",
            json!({"const": "abc"}),
        )
        .given("/inputSchema/properties/query/not", json!({"enum": ["abc", "ab"]})),
        set_at(
            "a larger exclusion",
            Breaking,
            "/inputSchema/properties/query/not",
            "/inputSchema/properties/query/not",
            json!({"enum": ["abc", "ab"]}),
        )
        .given("/inputSchema/properties/query/not", json!({"const": "abc"})),
        set("a condition", Breaking, "/inputSchema/properties/options/if", json!({"required": ["deep"]}))
            .and("/inputSchema/properties/options/then", json!({"required": ["depth"]})),
        set(
            "a stricter definition",
            Breaking,
            "/inputSchema/$defs/filter/properties/field/maxLength",
            json!(2),
        ),
        set(
            "a wider definition",
            Compatible,
            "/inputSchema/$defs/filter/properties/field/type",
            json!(["string", "null"]),
        ),
        Mutation {
            after: vec![("/inputSchema/$defs/filter/required", None)],
            ..set(
                "a definition that requires less",
                Compatible,
                "/inputSchema/$defs/filter/required",
                Value::Null,
            )
        },
        set_at(
            "a reference written out",
            Wording,
            "/inputSchema",
            "/inputSchema/properties/filter",
            json!({"type": "object", "properties": {"field": {"type": "string"}, "not": {"$ref": "#/$defs/filter"}}, "required": ["field"]}),
        ),
        set(
            "a reference to another document",
            Breaking,
            "/inputSchema/properties/filter/$ref",
            json!("https://example.com/filter.json"),
        )
        .uncompilable(),
    ]
}

fn output() -> Vec<Mutation> {
    use ChangeClass::{Breaking, Compatible};
    vec![
        remove("a property less", Breaking, "/outputSchema/properties/next").unobservable(),
        remove(
            "a property less in a closed object",
            Breaking,
            "/outputSchema/properties/meta/properties/took",
        )
        .unobservable(),
        set("a property more", Compatible, "/outputSchema/properties/pages", json!({"type": "integer"})),
        set(
            "a property more in a closed object",
            Breaking,
            "/outputSchema/properties/meta/properties/cost",
            json!({"type": "number"}),
        ),
        set("a property is no longer promised", Breaking, "/outputSchema/required", json!(["items"])),
        set(
            "a property is promised",
            Compatible,
            "/outputSchema/required",
            json!(["items", "total", "status"]),
        ),
        set(
            "a status more",
            Breaking,
            "/outputSchema/properties/status/enum",
            json!(["ok", "partial", "failed"]),
        ),
        set("a status less", Compatible, "/outputSchema/properties/status/enum", json!(["ok"])),
        set(
            "a result of one type more",
            Breaking,
            "/outputSchema/properties/total/type",
            json!(["integer", "null"]),
        ),
        set(
            "a result of one type less",
            Compatible,
            "/outputSchema/properties/items/items/properties/label/type",
            json!("string"),
        ),
        set(
            "an integer result becomes a number",
            Breaking,
            "/outputSchema/properties/total/type",
            json!("number"),
        ),
        set(
            "a number result becomes an integer",
            Compatible,
            "/outputSchema/properties/items/items/properties/score/type",
            json!("integer"),
        ),
        set("a lower minimum of a result", Breaking, "/outputSchema/properties/total/minimum", json!(-1)),
        set("a higher minimum of a result", Compatible, "/outputSchema/properties/total/minimum", json!(1)),
        remove("no minimum of a result", Breaking, "/outputSchema/properties/total/minimum"),
        set("a longer result", Breaking, "/outputSchema/properties/next/maxLength", json!(50)),
        set("a shorter result", Compatible, "/outputSchema/properties/next/maxLength", json!(8)),
        set(
            "a nested property is no longer promised",
            Breaking,
            "/outputSchema/properties/items/items/required",
            json!([]),
        ),
        remove("a closed result is open", Breaking, "/outputSchema/properties/meta/additionalProperties")
            .unobservable(),
        set("an open result is closed", Compatible, "/outputSchema/additionalProperties", json!(false)),
        set(
            "results may be empty arrays only",
            Compatible,
            "/outputSchema/properties/items/maxItems",
            json!(0),
        ),
        set_at(
            "a result becomes a union",
            Breaking,
            "/outputSchema/properties/next/anyOf/1",
            "/outputSchema/properties/next",
            json!({"anyOf": [{"type": "string", "maxLength": 20}, {"type": "null"}]}),
        ),
        Mutation {
            after: vec![("/outputSchema", None)],
            ..set("no output schema", Breaking, "/outputSchema", Value::Null)
        },
    ]
}

fn words_and_hints() -> Vec<Mutation> {
    use ChangeClass::{Breaking, Compatible, Wording};
    vec![
        set("another title", Wording, "/title", json!("Find")),
        set("another description", Wording, "/description", json!("Finds.")),
        remove("no description", Wording, "/description"),
        set(
            "another description of a parameter",
            Wording,
            "/inputSchema/properties/query/description",
            json!("Text."),
        ),
        set("another default", Wording, "/inputSchema/properties/limit/default", json!(20)),
        set("examples", Wording, "/inputSchema/properties/query/examples", json!(["a"])),
        set("a deprecated parameter", Wording, "/inputSchema/properties/query/deprecated", json!(true)),
        set("a keyword of another tool", Wording, "/inputSchema/properties/query/x-order", json!(1)),
        set(
            "another dialect",
            Wording,
            "/inputSchema/$schema",
            json!("https://json-schema.org/draft/2020-12/schema"),
        ),
        set("icons", Wording, "/icons", json!([{"src": "https://example.com/i.png"}])),
        set("metadata", Wording, "/_meta", json!({"a": 1})),
        set(
            "a description of a result",
            Wording,
            "/outputSchema/properties/total/description",
            json!("All of them."),
        ),
        set("not read-only any more", Breaking, "/annotations/readOnlyHint", json!(false)),
        remove("no word about read-only any more", Breaking, "/annotations/readOnlyHint"),
        set("destructive now", Breaking, "/annotations/destructiveHint", json!(true)),
        remove("no word about destructive any more", Breaking, "/annotations/destructiveHint"),
        set("not idempotent any more", Breaking, "/annotations/idempotentHint", json!(false)),
        set("open-world now", Breaking, "/annotations/openWorldHint", json!(true)),
        set("read-only now", Compatible, "/annotations/readOnlyHint", json!(true))
            .given("/annotations/readOnlyHint", json!(false)),
        set("not destructive any more", Compatible, "/annotations/destructiveHint", json!(false))
            .given("/annotations/destructiveHint", json!(true)),
        set("closed-world now", Compatible, "/annotations/openWorldHint", json!(false))
            .given("/annotations/openWorldHint", json!(true)),
        remove("a default that was written out", Wording, "/annotations/openWorldHint")
            .given("/annotations/openWorldHint", json!(true)),
        set("another title in the annotations", Wording, "/annotations/title", json!("Find")),
        set_at(
            "calls only as tasks",
            Breaking,
            "/execution/taskSupport",
            "/execution",
            json!({"taskSupport": "required"}),
        ),
        set_at(
            "calls as tasks as well",
            Compatible,
            "/execution/taskSupport",
            "/execution",
            json!({"taskSupport": "optional"}),
        ),
    ]
}
