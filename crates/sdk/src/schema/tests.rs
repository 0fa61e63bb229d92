//! Derived schemas, each validated against the Draft 07 meta-schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{form_schema, input_schema, output_schema};
use crate::output::OutputSchema;

const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

fn valid(schema: &str) -> Value {
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert!(jsonschema::draft7::meta::is_valid(&schema), "{schema}");
    schema
}

fn input_of<T: JsonSchema>() -> Value {
    valid(input_schema::<T>().get())
}

fn output_of<T: JsonSchema>() -> Value {
    valid(output_schema::<T>().schema().unwrap().get())
}

fn form_of<T: JsonSchema>() -> Value {
    valid(form_schema::<T>().unwrap().get())
}

/// Where to look.
#[derive(Serialize, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only the schema is used")]
struct Search {
    /// What to look for.
    #[schemars(length(min = 1))]
    text: String,
    /// How many to find.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    most: u32,
    place: Option<Place>,
    corners: Vec<(f64, i64)>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    Here,
    There,
}

fn ten() -> u32 {
    10
}

#[test]
fn a_struct_becomes_an_object_of_draft_07() {
    assert_eq!(
        input_of::<Search>(),
        json!({
            "$schema": DIALECT,
            "type": "object",
            "description": "Where to look.",
            "properties": {
                "text": {"description": "What to look for.", "type": "string", "minLength": 1},
                "most": {
                    "description": "How many to find.",
                    "type": "integer",
                    "default": 10,
                    "minimum": 1,
                    "maximum": 100,
                },
                "place": {"anyOf": [{"$ref": "#/definitions/Place"}, {"type": "null"}]},
                "corners": {
                    "type": "array",
                    "items": {
                        "type": "array",
                        "items": [{"type": "number"}, {"type": "integer"}],
                        "minItems": 2,
                        "maxItems": 2,
                    },
                },
            },
            "required": ["text", "corners"],
            "definitions": {"Place": {"type": "string", "enum": ["here", "there"]}},
        })
    );
}

#[test]
fn a_struct_without_members_lists_no_properties() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    assert_eq!(input_of::<Nothing>(), json!({"$schema": DIALECT, "type": "object", "properties": {}}));
    assert_eq!(input_of::<()>(), json!({"type": "object", "properties": {}}));
    assert_eq!(valid(super::empty_input_schema().get()), json!({"type": "object", "properties": {}}));
}

#[test]
fn a_map_accepts_any_member_of_its_type() {
    let map = input_of::<std::collections::BTreeMap<String, bool>>();
    let expect = json!({"$schema": DIALECT, "type": "object", "additionalProperties": {"type": "boolean"}});
    assert_eq!(map, expect);
}

#[test]
fn a_type_that_is_not_an_object_accepts_any_object() {
    assert_eq!(input_of::<Value>(), json!({"type": "object"}));
    assert_eq!(input_of::<String>(), json!({"type": "object"}));
}

#[test]
fn a_tagged_enum_is_declared_as_an_object() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "shape", rename_all = "lowercase")]
    #[allow(dead_code, reason = "only the schema is used")]
    enum Shape {
        Circle { radius: f64 },
        Named(Name),
    }
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only the schema is used")]
    struct Name {
        name: String,
    }
    let schema = input_of::<Shape>();
    assert_eq!(schema["type"], "object");
    let validator = jsonschema::draft7::new(&schema).unwrap();
    assert!(validator.is_valid(&json!({"shape": "circle", "radius": 2})));
    assert!(validator.is_valid(&json!({"shape": "named", "name": "hexagon"})));
    assert!(!validator.is_valid(&json!({"shape": "named"})));
    assert!(!validator.is_valid(&json!({"shape": "square"})));
}

#[test]
fn a_newtype_is_resolved_to_its_object() {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only the schema is used")]
    struct Around(Search);
    assert_eq!(input_of::<Around>()["type"], "object");
}

#[test]
fn a_recursive_type_is_defined_once() {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only the schema is used")]
    struct Tree {
        leaf: u8,
        branches: Vec<Tree>,
    }
    let schema = input_of::<Tree>();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    assert!(validator.is_valid(&json!({"leaf": 1, "branches": [{"leaf": 2, "branches": []}]})));
    assert!(!validator.is_valid(&json!({"leaf": 1, "branches": [{"leaf": 256, "branches": []}]})));
}

#[test]
fn a_result_that_is_not_an_object_is_placed_under_result() {
    let OutputSchema::Wrapped(schema) = output_schema::<Vec<Place>>() else {
        panic!("expected a wrapped schema")
    };
    assert_eq!(
        valid(schema.get()),
        json!({
            "$schema": DIALECT,
            "type": "object",
            "definitions": {"Place": {"type": "string", "enum": ["here", "there"]}},
            "properties": {"result": {"type": "array", "items": {"$ref": "#/definitions/Place"}}},
            "required": ["result"],
        })
    );
    assert!(matches!(output_schema::<Search>(), OutputSchema::Object(_)));
    assert_eq!(output_of::<Search>()["required"], json!(["text", "most", "place", "corners"]));
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only the schema is used")]
struct Form {
    /// Your name.
    #[schemars(length(min = 1, max = 80))]
    name: String,
    #[schemars(email)]
    address: Option<String>,
    age: Option<u8>,
    #[serde(default)]
    subscribed: bool,
    place: Place,
    size: Option<Size>,
    sizes: Vec<Size>,
    places: Vec<Place>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only the schema is used")]
enum Size {
    /// Fits a pocket
    Small,
    /// Fits a truck
    Large,
    Other,
}

#[test]
fn a_form_is_flat_and_has_no_references() {
    let titled = json!([
        {"const": "other", "title": "other"},
        {"const": "small", "title": "Fits a pocket"},
        {"const": "large", "title": "Fits a truck"},
    ]);
    assert_eq!(
        form_of::<Form>(),
        json!({
            "type": "object",
            "properties": {
                "name": {"description": "Your name.", "type": "string", "minLength": 1, "maxLength": 80},
                "address": {"type": "string", "format": "email"},
                "age": {"type": "integer", "minimum": 0, "maximum": 255},
                "subscribed": {"type": "boolean", "default": false},
                "place": {"type": "string", "enum": ["here", "there"]},
                "size": {"type": "string", "oneOf": titled},
                "sizes": {"type": "array", "items": {"anyOf": titled}},
                "places": {"type": "array", "items": {"type": "string", "enum": ["here", "there"]}},
            },
            "required": ["name", "place", "sizes", "places"],
        })
    );
}

#[test]
fn a_form_that_clients_cannot_display_is_rejected() {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only the schema is used")]
    struct Nested {
        inner: Search,
    }
    assert_eq!(
        form_schema::<Nested>().unwrap_err().message(),
        "`inner` cannot be part of a form: a field must be a string, a number, a boolean, a choice or a list of choices"
    );
    assert_eq!(
        form_schema::<String>().unwrap_err().message(),
        "`string` cannot be part of a form: the type is not a struct with named fields"
    );
}
