//! Files in multipart bodies: the same rule for every shape of the body.

use serde_json::{Value, json};
use toolyard_openapi::{BodyEncoding, Conversion};

use super::{converted, tool};

/// One operation with this body content.
fn document(required: bool, content: &Value) -> Conversion {
    let operation = json!({"operationId": "it", "requestBody": {"required": required, "content": content}});
    let file = json!({"type": "string", "format": "binary"});
    let upload = json!({"type": "object", "properties": {"file": file, "note": {"type": "string"}}, "required": ["file"]});
    let components =
        json!({"schemas": {"File": file, "Files": {"type": "array", "items": file}, "Upload": upload}});
    let whole = json!({"openapi": "3.1.0", "paths": {"/": {"post": operation}}, "components": components});
    converted(&whole.to_string())
}

fn multipart(required: bool, schema: &Value) -> Conversion {
    document(required, &json!({"multipart/form-data": {"schema": schema}}))
}

fn properties(conversion: &Conversion) -> Value {
    tool(conversion, "it")["inputSchema"]["properties"].clone()
}

/// Whether an object with a name and a type is accepted.
fn takes_named(schema: &Value) -> bool {
    schema["anyOf"][1]["properties"]["filename"] == json!({"type": "string"})
}

fn is_sent_as_file(conversion: &Conversion, name: &str) -> bool {
    let body = conversion.operations[0].body.clone().unwrap();
    body.encoding == BodyEncoding::Multipart && body.fields.get(name).is_some_and(|field| field.file)
}

#[test]
fn a_file_may_have_a_name_whatever_the_shape_of_the_body() {
    let reference = json!({"$ref": "#/components/schemas/Upload"});
    let spread = multipart(true, &reference);
    assert!(takes_named(&properties(&spread)["file"]) && is_sent_as_file(&spread, "file"));
    // An optional body with a required member stays one property.
    let whole = multipart(false, &reference);
    let body = properties(&whole)["body"].clone();
    assert!(takes_named(&body["properties"]["file"]), "{body}");
    assert_eq!(body["properties"]["note"], json!({"type": "string"}));
    assert!(is_sent_as_file(&whole, "file") && !is_sent_as_file(&whole, "note"));
    // So does a composition.
    let more = json!({"type": "object", "properties": {"cover": {"$ref": "#/components/schemas/File"}}});
    let composed = multipart(true, &json!({"allOf": [reference, more]}));
    let body = properties(&composed)["body"].clone();
    assert!(takes_named(&body["allOf"][0]["properties"]["file"]), "{body}");
    assert!(takes_named(&body["allOf"][1]["properties"]["cover"]), "{body}");
    assert!(is_sent_as_file(&composed, "file") && is_sent_as_file(&composed, "cover"));
    // So does a body with arbitrary member names.
    let open = multipart(
        true,
        &json!({"type": "object", "additionalProperties": {"type": "string", "format": "binary"}}),
    );
    assert!(takes_named(&properties(&open)["body"]["additionalProperties"]));
    assert!(open.operations[0].body.clone().unwrap().more_files);
}

#[test]
fn one_file_or_several_or_none_may_be_given_as_the_document_says() {
    let file = json!({"type": "string", "format": "binary"});
    let conversion = multipart(
        true,
        &json!({"type": "object", "properties": {
            "many": {"$ref": "#/components/schemas/Files"},
            "any": {"oneOf": [file, {"type": "array", "items": file}]},
            "maybe": {"anyOf": [file, {"type": "null"}]},
            "text": {"anyOf": [file, {"type": "string"}]}
        }}),
    );
    let found = properties(&conversion);
    assert_eq!(found["many"]["type"], "array");
    assert!(takes_named(&found["many"]["items"]));
    assert!(takes_named(&found["any"]) && takes_named(&found["any"]["anyOf"][2]["items"]));
    assert!(takes_named(&found["maybe"]) && found["maybe"]["anyOf"][2] == json!({"type": "null"}));
    assert!(!is_sent_as_file(&conversion, "text") && is_sent_as_file(&conversion, "many"));
}

#[test]
fn a_body_with_a_file_is_sent_in_parts_where_json_is_offered_too() {
    let both = |schema: Value| {
        let content =
            json!({"application/json": {"schema": schema}, "multipart/form-data": {"schema": schema}});
        document(true, &content).operations[0].body.clone().unwrap().encoding
    };
    assert_eq!(both(json!({"$ref": "#/components/schemas/Upload"})), BodyEncoding::Multipart);
    assert_eq!(both(json!({"type": "object", "properties": {"a": {"type": "string"}}})), BodyEncoding::Json);
    // JSON can represent base64.
    let byte = json!({"type": "object", "properties": {"a": {"type": "string", "format": "byte"}}});
    assert_eq!(both(byte), BodyEncoding::Json);
}

#[test]
fn a_container_file_of_openai_is_sent_in_parts() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/openapi/openai.yaml");
    let conversion = converted(&std::fs::read_to_string(path).unwrap());
    let named = |operation: &&toolyard_openapi::Operation| operation.name == "create_container_file";
    let operation = conversion.operations.iter().find(named).unwrap();
    let body = operation.body.clone().unwrap();
    assert_eq!((body.encoding, body.fields["file"].file), (BodyEncoding::Multipart, true));
}
