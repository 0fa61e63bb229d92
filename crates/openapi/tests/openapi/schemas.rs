//! The Draft 07 form of each kind of schema.

use serde_json::{Value, json};

use super::{converted, tool, warnings};

/// The property `x` of a tool whose query parameter has this schema, its definitions, and the codes
/// of the diagnostics.
#[track_caller]
fn input_of(version: &str, schema: &Value, components: &Value) -> (Value, Value, Vec<String>) {
    let document = json!({
        "openapi": version,
        "paths": {"/": {"get": {
            "operationId": "it",
            "parameters": [{"name": "x", "in": "query", "schema": schema}],
            "responses": {"204": {"description": "fine"}}
        }}},
        "components": {"schemas": components}
    });
    let conversion = converted(&document.to_string());
    let input = tool(&conversion, "it")["inputSchema"].clone();
    let codes = conversion.diagnostics.iter().map(|found| found.code.to_owned()).collect();
    (input["properties"]["x"].clone(), input.get("definitions").cloned().unwrap_or_default(), codes)
}

#[track_caller]
fn becomes(version: &str, schema: &Value, expected: &Value) {
    assert_eq!(input_of(version, schema, &json!({})).0, *expected);
}

#[test]
fn nullable_becomes_a_type_that_may_be_null() {
    becomes("3.0.3", &json!({"type": "string", "nullable": true}), &json!({"type": ["string", "null"]}));
    becomes("3.0.3", &json!({"type": "string", "nullable": false}), &json!({"type": "string"}));
    becomes(
        "3.0.3",
        &json!({"type": "string", "nullable": true, "enum": ["a", "b"]}),
        &json!({"type": ["string", "null"], "enum": ["a", "b", null]}),
    );
    becomes(
        "3.0.3",
        &json!({"nullable": true, "oneOf": [{"type": "string"}, {"type": "integer"}]}),
        &json!({"anyOf": [{"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "null"}]}),
    );
    becomes("3.0.3", &json!({"nullable": true, "const": 1}), &json!({"enum": [1, null]}));
}

#[test]
fn a_list_of_types_with_null_stays_one() {
    becomes("3.1.0", &json!({"type": ["string", "null"]}), &json!({"type": ["string", "null"]}));
    becomes("3.1.0", &json!({"type": ["integer"]}), &json!({"type": "integer"}));
    becomes("3.1.0", &json!({"enum": ["a", null]}), &json!({"enum": ["a", null]}));
    becomes("3.1.0", &json!({"type": "null"}), &json!({"type": "null"}));
}

#[test]
fn boolean_exclusive_bounds_become_numbers() {
    becomes(
        "3.0.3",
        &json!({"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
        &json!({"type": "number", "exclusiveMinimum": 0, "maximum": 9}),
    );
    becomes(
        "3.1.0",
        &json!({"type": "number", "minimum": 0, "exclusiveMinimum": 1}),
        &json!({"type": "number", "minimum": 0, "exclusiveMinimum": 1}),
    );
}

#[test]
fn large_numbers_keep_their_value() {
    becomes(
        "3.0.3",
        &json!({"type": "integer", "maximum": 9_223_372_036_854_775_808_u64}),
        &json!({"type": "integer", "maximum": 9_223_372_036_854_775_808_u64}),
    );
}

#[test]
fn prefix_items_become_a_list_of_items() {
    becomes(
        "3.1.0",
        &json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false}),
        &json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false}),
    );
    becomes(
        "3.1.0",
        &json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}}),
        &json!({"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "number"}}),
    );
}

#[test]
fn keywords_that_came_after_draft_07_are_said_another_way() {
    becomes(
        "3.1.0",
        &json!({"type": "object", "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}),
        &json!({"type": "object", "dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
    );
    becomes(
        "3.1.0",
        &json!({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": false}),
        &json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
    );
    becomes(
        "3.1.0",
        &json!({"type": "array", "contains": {"type": "string"}, "minContains": 0}),
        &json!({"type": "array"}),
    );
    becomes(
        "3.1.0",
        &json!({"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png", "contentSchema": {}}),
        &json!({"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}),
    );
    becomes(
        "3.1.0",
        &json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": false}),
        &json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"not": {}}}),
    );
}

#[test]
fn what_draft_07_cannot_say_is_said_in_words() {
    becomes(
        "3.0.3",
        &json!({"type": "string", "deprecated": true, "description": "Old.", "pattern": "\\p{L}+", "xml": {}, "x-a": 1}),
        &json!({"type": "string", "description": "Deprecated. Old.\nPattern: \\p{L}+"}),
    );
}

#[test]
fn examples_of_all_forms_become_a_list() {
    becomes(
        "3.0.3",
        &json!({"type": "string", "example": "a"}),
        &json!({"type": "string", "examples": ["a"]}),
    );
    becomes("3.1.0", &json!({"examples": [1, 2]}), &json!({"examples": [1, 2]}));
}

#[test]
fn a_reference_with_words_beside_it_keeps_them() {
    let components = json!({"Pet": {"type": "string"}});
    let reference = json!({"$ref": "#/components/schemas/Pet", "description": "Mine.", "minLength": 2});
    let (newer, definitions, _) = input_of("3.1.0", &reference, &components);
    assert_eq!(
        newer,
        json!({"description": "Mine.", "minLength": 2, "allOf": [{"$ref": "#/definitions/Pet"}]})
    );
    assert_eq!(definitions, json!({"Pet": {"type": "string"}}));
    // Before OpenAPI 3.1, keywords next to a reference do not change the accepted values.
    let (older, ..) = input_of("3.0.3", &reference, &components);
    assert_eq!(older, json!({"description": "Mine.", "allOf": [{"$ref": "#/definitions/Pet"}]}));
    let nullable = json!({"$ref": "#/components/schemas/Pet", "nullable": true});
    let (older, ..) = input_of("3.0.3", &nullable, &components);
    assert_eq!(older, json!({"anyOf": [{"$ref": "#/definitions/Pet"}, {"type": "null"}]}));
}

#[test]
fn schemas_that_refer_to_themselves_become_definitions() {
    let components = json!({
        "Node": {"type": "object", "properties": {
            "next": {"$ref": "#/components/schemas/Node"},
            "tree": {"$ref": "#/components/schemas/a tree"}
        }},
        "a tree": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}
    });
    let (schema, definitions, codes) =
        input_of("3.0.3", &json!({"$ref": "#/components/schemas/Node"}), &components);
    assert_eq!(schema, json!({"$ref": "#/definitions/Node"}));
    assert_eq!(
        definitions,
        json!({
            "Node": {"type": "object", "properties": {
                "next": {"$ref": "#/definitions/Node"},
                "tree": {"$ref": "#/definitions/a_tree"}
            }},
            "a_tree": {"type": "array", "items": {"$ref": "#/definitions/Node"}}
        })
    );
    assert_eq!(codes, Vec::<String>::new());
}

#[test]
fn schemas_that_are_only_themselves_allow_anything() {
    let components = json!({
        "A": {"$ref": "#/components/schemas/B"},
        "B": {"$ref": "#/components/schemas/A"},
        "C": {"allOf": [{"$ref": "#/components/schemas/D"}, {"type": "object"}]},
        "D": {"anyOf": [{"$ref": "#/components/schemas/C"}]}
    });
    let (schema, _, codes) = input_of("3.0.3", &json!({"$ref": "#/components/schemas/A"}), &components);
    assert_eq!((schema, codes), (json!({}), vec!["reference-cycle".to_owned()]));
    let (_, definitions, codes) = input_of("3.0.3", &json!({"$ref": "#/components/schemas/C"}), &components);
    assert_eq!(definitions, json!({"C": {"allOf": [{}, {"type": "object"}]}}));
    assert_eq!(codes, ["schema-cycle"]);
}

#[test]
fn a_reference_that_leads_nowhere_allows_anything() {
    let (schema, _, codes) = input_of("3.0.3", &json!({"$ref": "#/components/schemas/None"}), &json!({}));
    assert_eq!((schema, codes), (json!({}), vec!["dangling-reference".to_owned()]));
    // If one branch accepted any value, `oneOf` would fail for values that match another one.
    let one_of = json!({"oneOf": [{"type": "string"}, {"$ref": "#/nowhere"}]});
    let (schema, _, codes) = input_of("3.0.3", &one_of, &json!({}));
    assert_eq!(schema, json!({"anyOf": [{"type": "string"}, {}]}));
    assert_eq!(codes, ["dangling-reference", "loose-one-of"]);
}

#[test]
fn names_anchors_and_ids_are_found() {
    let components = json!({
        "Anchored": {"$anchor": "here", "type": "string"},
        "Named": {"$id": "https://example.org/named", "type": "integer", "$defs": {"inner": {"type": "boolean"}}}
    });
    for (reference, expected) in [
        ("#here", json!({"type": "string"})),
        ("https://example.org/named", json!({"type": "integer"})),
        ("https://example.org/named#/$defs/inner", json!({"type": "boolean"})),
        ("Named", json!({"type": "integer"})),
        ("#/components/schemas/Na%6Ded", json!({"type": "integer"})),
    ] {
        let (_, definitions, codes) = input_of("3.1.0", &json!({"$ref": reference}), &components);
        let only = definitions.as_object().unwrap().values().next().unwrap();
        assert_eq!((only, codes), (&expected, Vec::new()), "{reference}");
    }
}

#[test]
fn a_discriminator_with_a_mapping_says_which_branch_is_meant() {
    let components = json!({"Cat": {"type": "object"}, "Dog": {"type": "object"}});
    let schema = json!({
        "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
        "discriminator": {"propertyName": "kind", "mapping": {
            "cat": "#/components/schemas/Cat", "kitten": "Cat", "dog": "#/components/schemas/Dog"
        }}
    });
    let kind = |values: &[&str]| json!({"properties": {"kind": {"enum": values}}, "required": ["kind"]});
    assert_eq!(
        input_of("3.0.3", &schema, &components).0,
        json!({
            "description": "The property `kind` selects the variant.",
            "oneOf": [
                {"allOf": [{"$ref": "#/definitions/Cat"}, kind(&["cat", "kitten"])]},
                {"allOf": [{"$ref": "#/definitions/Dog"}, kind(&["dog"])]}
            ]
        })
    );
}

#[test]
fn all_of_one_of_any_of_and_not_stay() {
    let schema = json!({
        "allOf": [{"type": "string"}, {"minLength": 1}],
        "anyOf": [{"maxLength": 5}, {"pattern": "^a"}],
        "oneOf": [{"const": "a"}, {"const": "b"}],
        "not": {"const": "c"}
    });
    becomes("3.0.3", &schema, &schema);
}

#[test]
fn choices_are_of_the_kind_that_the_type_asks_for() {
    becomes(
        "3.0.3",
        &json!({"type": "string", "enum": [1.5, true, "x", "x"]}),
        &json!({"type": "string", "enum": ["1.5", "true", "x"]}),
    );
    becomes(
        "3.0.3",
        &json!({"type": "integer", "enum": ["1", 2]}),
        &json!({"type": "integer", "enum": [1, 2]}),
    );
}

#[test]
fn wrong_types_are_left_out_and_reported() {
    let schema = json!({
        "type": 5, "properties": [], "required": "a", "enum": {}, "minimum": [], "maxLength": -1, "multipleOf": 0,
        "allOf": {}, "oneOf": [], "pattern": 1, "format": {}, "items": 3, "additionalProperties": "no", "minItems": 1.5
    });
    let (converted, _, codes) = input_of("3.0.3", &schema, &json!({}));
    assert_eq!(converted, json!({"items": {}, "additionalProperties": {}}));
    assert_eq!(codes.len(), 13, "{codes:?}");
    becomes(
        "3.0.3",
        &json!({"type": "Int", "minimum": "5", "maxLength": 3.0, "required": true}),
        &json!({"type": "integer", "minimum": 5, "maxLength": 3}),
    );
}

#[test]
fn what_is_read_only_is_no_input_and_what_is_write_only_no_output() {
    let document = json!({
        "openapi": "3.0.3",
        "paths": {"/": {"post": {
            "operationId": "it",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "array", "items": {"$ref": "#/components/schemas/User"}
            }}}},
            "responses": {"200": {"description": "", "content": {"application/json": {"schema": {
                "$ref": "#/components/schemas/User"
            }}}}}
        }}},
        "components": {"schemas": {
            "Id": {"type": "integer", "readOnly": true},
            "User": {"type": "object", "required": ["id", "name", "password"], "properties": {
                "id": {"$ref": "#/components/schemas/Id"},
                "name": {"type": "string"},
                "password": {"type": "string", "writeOnly": true}
            }}
        }}
    });
    let tool = tool(&converted(&document.to_string()), "it");
    assert_eq!(
        tool["inputSchema"]["definitions"],
        json!({"User": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "password": {"type": "string"}},
            "required": ["name", "password"]
        }})
    );
    assert_eq!(
        tool["outputSchema"],
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"id": {"$ref": "#/definitions/Id"}, "name": {"type": "string"}},
            "required": ["id", "name"],
            "definitions": {"Id": {"type": "integer"}}
        })
    );
}

/// One branch marks a property as read-only and another one requires it: no request could contain
/// it.
#[test]
fn what_is_read_only_in_one_branch_is_required_in_none() {
    let components = json!({
        "Base": {"type": "object", "required": ["id"], "properties": {
            "id": {"type": "integer", "readOnly": true}, "kind": {"type": "string"}
        }},
        "Demanding": {"required": ["id", "kind"]},
        "More": {"allOf": [{"$ref": "#/components/schemas/Demanding"}, {"required": ["extra", "id"]}]}
    });
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let defined = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
    let of = |version: &str, schema: Value| input_of(version, &schema, &components);
    let base = json!({"type": "object", "properties": {"kind": {"type": "string"}}});
    let beside = json!({"allOf": [reference("Base")], "required": ["id", "kind"]});
    let expected = json!({"allOf": [defined("Base")], "required": ["kind"]});
    assert_eq!(of("3.0.3", beside), (expected, json!({"Base": base}), vec![]));
    let inline =
        json!({"allOf": [reference("Base"), {"oneOf": [{"required": ["id", "a"]}, {"required": ["b"]}]}]});
    let expected = json!({"allOf": [defined("Base"), {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}]});
    assert_eq!(of("3.0.3", inline).0, expected);
    // A shared definition is inlined where it has to differ.
    let shared = json!({"allOf": [reference("Base"), reference("More")]});
    let expected = json!({"allOf": [
        defined("Base"), {"allOf": [{"required": ["kind"]}, {"required": ["extra"]}]}
    ]});
    assert_eq!(of("3.0.3", shared), (expected, json!({"Base": base}), vec![]));
    let siblings = json!({"$ref": "#/components/schemas/Base", "required": ["id", "kind"]});
    assert_eq!(of("3.1.0", siblings).0, json!({"allOf": [defined("Base")], "required": ["kind"]}));
    // The nested object is another value with its own `id`.
    let inside = json!({"allOf": [reference("Base")], "properties": {"child": reference("Demanding")}});
    let expected = json!({"allOf": [defined("Base")], "properties": {"child": defined("Demanding")}});
    assert_eq!(of("3.0.3", inside).0, expected);
}

#[test]
fn what_is_too_large_is_cut_breadth_first_and_told() {
    let deep = |n: usize| {
        json!({"type": "object", "properties": {
        "near": {"type": "string"},
        "next": {"$ref": format!("#/components/schemas/S{}", n + 1)},
        "choice": {"oneOf": [{"$ref": format!("#/components/schemas/S{}", n + 1)}, {"type": "string"}]}
    }, "description": "x".repeat(900)})
    };
    let schemas: serde_json::Map<String, Value> = (0..200).map(|n| (format!("S{n}"), deep(n))).collect();
    let document = json!({
        "openapi": "3.0.3",
        "paths": {"/": {"post": {
            "operationId": "it",
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}},
            "responses": {"200": {"description": "", "content": {"application/json": {"schema": {
                "$ref": "#/components/schemas/S0"
            }}}}}
        }}},
        "components": {"schemas": schemas}
    });
    let conversion = converted(&document.to_string());
    let tool = tool(&conversion, "it");
    for (schema, least, most, kept) in
        [("inputSchema", 55 << 10, 64 << 10, "S40"), ("outputSchema", 12 << 10, 16 << 10, "S10")]
    {
        let size = tool[schema].to_string().len();
        assert!(size > least && size <= most, "{schema} has {size} bytes");
        assert!(tool[schema]["definitions"].get(kept).is_some(), "{schema}");
        assert!(tool[schema]["definitions"].get("S190").is_none(), "{schema}");
    }
    let text = tool["inputSchema"].to_string();
    assert!(!text.contains("oneOf"), "a branch that accepts any value must not be in oneOf");
    let elided: Vec<&str> = conversion.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(elided, ["dangling-reference", "input-elided", "output-elided"].split_at(1).1);
    assert_eq!(warnings(&conversion).len(), 2);
}
