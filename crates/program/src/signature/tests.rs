//! Tests of signatures and docstrings for all kinds of schemas.

use serde_json::{Value, json};

use super::{ExtraArguments, Signature};
use crate::fixtures::tool;

fn signature(input: &Value, output: Option<&Value>) -> Signature {
    let mut definition = json!({"name": "t", "description": "Does it.", "inputSchema": input});
    if let Some(output) = output {
        definition["outputSchema"] = output.clone();
    }
    Signature::from_tool(&tool(&definition))
}

fn line(input: &Value) -> String {
    signature(input, None).declaration("t")
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

#[test]
fn a_typical_signature() {
    let input = object(
        &json!({
            "ticker": {"type": "string"},
            "statement": {"type": "string", "enum": ["income", "balance"]},
            "limit": {"type": "integer"},
        }),
        &["ticker", "statement"],
    );
    let output =
        json!({"type": "array", "items": {"type": "object", "properties": {"revenue": {"type": "number"}}}});
    assert_eq!(
        signature(&input, Some(&output)).declaration("query_financials"),
        "async def query_financials(ticker: str, statement: Literal[\"income\", \"balance\"], \
         limit: int | None = None) -> list[dict]"
    );
}

#[test]
fn required_parameters_come_first_and_defaults_are_shown() {
    let input = object(
        &json!({
            "page": {"type": "integer", "default": 1},
            "flags": {"type": "array", "items": {"type": "string"}, "default": ["a", true]},
            "long": {"type": "string", "default": "x".repeat(100)},
            "query": {"type": "string"},
            "maybe": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
            "const": {"const": "on"},
        }),
        &["query", "const"],
    );
    assert_eq!(
        line(&input),
        "async def t(query: str, const: Literal[\"on\"], page: int = 1, flags: list[str] = [\"a\", True], \
         long: str = ..., maybe: str | None = None, either: int | None = None) -> Any"
    );
}

#[test]
fn names_that_are_not_identifiers_are_quoted() {
    let input = object(
        &json!({"from": {"type": "string"}, "max-size": {"type": "integer"}, "ok": {}, "größe": {"type": "number"}}),
        &["from", "ok"],
    );
    assert_eq!(
        line(&input),
        "async def t(ok: Any, **{\"from\": str, \"max-size\": int | None, \"größe\": float | None}) -> Any"
    );
    let name = "mcp__x-y__z";
    assert_eq!(
        signature(&json!({"type": "object"}), None).declaration(name),
        "async def tools[\"mcp__x-y__z\"](**others: Any) -> Any"
    );
}

#[test]
fn invalid_schemas_are_any_and_recursion_ends() {
    let recursive = json!({
        "type": "object",
        "properties": {
            "node": {"$ref": "#/$defs/node"},
            "self": {"$ref": "#"},
            "spin": {"$ref": "#/$defs/spin"},
            "nowhere": {"$ref": "#/$defs/missing"},
            "outside": {"$ref": "https://example.com/x.json"},
            "odd": {"type": 7},
            "no": false,
            "all": {"allOf": [{"type": "string"}, {"minLength": 1}]},
            "halves": {"enum": [0.5, 1.5]},
            "many": {"enum": (0..100).collect::<Vec<_>>()},
        },
        "$defs": {
            "node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}},
            "spin": {"$ref": "#/$defs/spin"},
        },
    });
    assert_eq!(
        line(&recursive),
        "async def t(node: dict | None = None, self: dict | None = None, spin: Any = None, nowhere: Any = None, \
         outside: Any = None, odd: Any = None, no: Any = None, all: Any = None, halves: Any = None, \
         many: int | None = None) -> Any"
    );
    for invalid in [json!({"type": "object", "properties": 7}), json!({"type": "object", "required": {}})] {
        assert_eq!(line(&invalid), "async def t(**others: Any) -> Any");
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    assert!(line(&object(&json!({"deep": deep}), &[])).contains("list[Any]"));
}

#[test]
fn the_schema_decides_whether_extra_arguments_are_allowed() {
    let cases = [
        (json!({"type": "object"}), ExtraArguments::Allow),
        (json!({"type": "object", "properties": {}}), ExtraArguments::Deny),
        (json!({"type": "object", "additionalProperties": false}), ExtraArguments::Deny),
        (json!({"type": "object", "properties": {"a": {}}}), ExtraArguments::Deny),
        (
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true}),
            ExtraArguments::Allow,
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}}),
            ExtraArguments::Allow,
        ),
        (json!({"type": "object", "anyOf": [{"properties": {"a": {}}}]}), ExtraArguments::Allow),
    ];
    for (schema, others) in cases {
        assert_eq!(signature(&schema, None).extra_arguments(), others, "{schema}");
    }
}

#[test]
fn null_is_omitted_only_for_optional_parameters_that_are_not_nullable() {
    let input = object(&json!({"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}, "c": {}}), &[]);
    let signature = signature(&input, None);
    let omittable: Vec<bool> = ["a", "b", "c", "d"].iter().map(|key| signature.is_omittable(key)).collect();
    assert_eq!(omittable, [true, false, false, false]);
}

#[test]
fn help_describes_parameters_and_results_with_their_fields() {
    let input = object(
        &json!({
            "filter": {
                "type": "object",
                "description": "What to look for.",
                "properties": {
                    "field": {"type": "string", "description": "Its name."},
                    "range": {"type": "object", "properties": {"from": {"type": "integer"}}, "required": ["from"]},
                },
                "required": ["field"],
            },
            "plain": {"type": "integer"},
        }),
        &["filter"],
    );
    let output = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {
        "type": "object", "properties": {"id": {"type": "integer"}, "when": {"type": "string"}}, "required": ["id"]}}}});
    let mut definition = json!({"name": "t", "inputSchema": input, "outputSchema": output});
    definition["description"] = json!("Finds rows.\n\nAnd \"\"\" more.\u{1b}[2J");
    insta::assert_snapshot!(Signature::from_tool(&tool(&definition)).definition("find_rows"));
}

#[test]
fn a_schema_that_expands_to_millions_of_shapes_is_cut() {
    let many = |to: &str| -> Value {
        (0..200).map(|at| (format!("f{at}"), json!({"$ref": to}))).collect::<serde_json::Map<_, _>>().into()
    };
    let unions: Vec<Value> = (0..200).map(|at| json!({"$ref": format!("#/$defs/u{at}")})).collect();
    let defs: serde_json::Map<_, _> =
        (0..200).map(|at| (format!("u{at}"), json!({"anyOf": unions.clone()}))).collect();
    let started = std::time::Instant::now();
    for properties in [many("#"), many("#/$defs/u0")] {
        let schema = json!({"type": "object", "properties": properties, "$defs": defs});
        assert!(signature(&schema, None).definition("t").len() < 100_000);
    }
    // Following every path would take years.
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
}
