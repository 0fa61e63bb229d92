//! Output schemas: they accept every successful response that the document describes, or there is
//! none.

use serde_json::{Value, json};
use toolyard_openapi::ResultWrapping;

use super::{converted, tool};

/// The output schema of an operation without the common parts, and how its responses are wrapped.
#[track_caller]
fn output_of(method: &str, responses: &Value) -> (Option<Value>, ResultWrapping) {
    let document =
        json!({"openapi": "3.1.0", "paths": {"/": {method: {"operationId": "it", "responses": responses}}}});
    let conversion = converted(&document.to_string());
    let mut schema = tool(&conversion, "it").get("outputSchema").cloned();
    if let Some(members) = schema.as_mut().and_then(Value::as_object_mut) {
        members.remove("$schema");
        members.remove("type");
    }
    (schema, conversion.operations[0].wrapping)
}

#[track_caller]
fn output(responses: &Value) -> (Option<Value>, ResultWrapping) {
    output_of("get", responses)
}

fn body(schema: &Value) -> Value {
    json!({"description": "", "content": {"application/json": {"schema": schema}}})
}

fn object(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

const NONE: (Option<Value>, ResultWrapping) = (None, ResultWrapping::Never);

#[test]
fn several_good_responses_are_all_allowed() {
    let (a, b) = (object("a"), object("b"));
    assert_eq!(
        output(&json!({"202": body(&b), "200": body(&a), "404": body(&object("error"))})),
        (Some(json!({"anyOf": [a, b]})), ResultWrapping::Never)
    );
    // Duplicates are merged.
    assert_eq!(
        output(&json!({"200": body(&a), "201": body(&a)})),
        (Some(json!({"properties": {"a": {"type": "string"}}, "required": ["a"]})), ResultWrapping::Never)
    );
    let list = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(
        output(&json!({"200": body(&a), "206": body(&list)})),
        (
            Some(json!({"properties": {"result": {"anyOf": [a, list]}}, "required": ["result"]})),
            ResultWrapping::Always
        )
    );
    let kinds = json!({"application/json": {"schema": a}, "application/problem+json": {"schema": b}});
    assert_eq!(
        output(&json!({"200": {"content": kinds}})),
        (Some(json!({"anyOf": [a, b]})), ResultWrapping::Never)
    );
}

#[test]
fn there_is_no_output_schema_where_a_good_response_has_no_body() {
    let a = body(&object("a"));
    assert_eq!(output(&json!({"200": a, "204": {"description": "nothing new"}})), NONE);
    assert_eq!(output(&json!({"200": a, "202": {"description": "later"}})), NONE);
    assert_eq!(output(&json!({"200": {"description": "done"}})), NONE);
    // A 204 has no body, whatever the document says, and neither has the response to a HEAD
    // request.
    assert_eq!(output(&json!({"200": a, "204": a})), NONE);
    assert_eq!(output_of("head", &json!({"200": a})), NONE);
    // A body that may be any JSON value has no schema either.
    assert_eq!(output(&json!({"200": a, "202": body(&json!({}))})), NONE);
    assert_eq!(output(&json!({"200": {"content": {"application/json": {}}}})), NONE);
    assert_eq!(output(&json!({"200": {"content": {"text/plain": {"schema": {}}}}})), NONE);
}

#[test]
fn answers_that_are_no_json_have_a_place_beside_those_that_are() {
    let a = object("a");
    let text = json!({"type": ["string", "null"]});
    let stream =
        json!({"application/json": {"schema": a}, "text/event-stream": {"schema": {"type": "string"}}});
    let beside = json!({"type": "object", "properties": {"result": text}, "required": ["result"], "additionalProperties": false});
    assert_eq!(
        output(&json!({"200": {"content": stream}})),
        (Some(json!({"anyOf": [a, beside]})), ResultWrapping::Others)
    );
    let list = json!({"type": "array"});
    assert_eq!(
        output(&json!({"200": body(&list), "206": {"content": {"text/csv": {}}}})),
        (
            Some(json!({"properties": {"result": {"anyOf": [list, text]}}, "required": ["result"]})),
            ResultWrapping::Always
        )
    );
}

#[test]
fn what_clients_check_in_different_ways_is_words_in_an_output_schema() {
    let time = json!({"type": "string", "format": "date-time", "description": "When."});
    let price = json!({"type": "number", "multipleOf": 0.01});
    let count = json!({"type": "integer", "multipleOf": 2, "format": "snowflake"});
    let schema = json!({"type": "object", "properties": {"time": time, "price": price, "count": count}});
    assert_eq!(
        output(&json!({"200": body(&schema)})).0,
        Some(json!({"properties": {
            "time": {"description": "When.\nFormat: date-time", "type": "string"},
            "price": {"description": "A multiple of 0.01", "type": "number"},
            "count": count,
        }}))
    );
}
