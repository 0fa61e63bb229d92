//! Tests of forms without a screen: schema and keys in, JSON out.

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;

use super::{FormAction, SchemaForm};
use crate::key::KeyPress;

fn form(schema: &Value) -> SchemaForm {
    SchemaForm::new(to_raw(schema), "call")
}

fn of(properties: &Value, required: &Value) -> SchemaForm {
    form(&json!({"type": "object", "properties": properties, "required": required}))
}

fn press(form: &mut SchemaForm, keys: &[KeyPress]) {
    for key in keys {
        form.press(*key);
    }
}

fn types(form: &mut SchemaForm, text: &str) {
    text.chars().for_each(|c| drop(form.press(KeyPress::Char(c))));
}

/// Submits the form and returns the value or the error.
fn submitted(form: &mut SchemaForm) -> Result<String, String> {
    match form.press(KeyPress::Ctrl('s')) {
        FormAction::Submit(raw) => Ok(raw.get().to_owned()),
        FormAction::Invalid(why) => Err(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn defaults_are_filled_in_and_the_rest_is_omitted() {
    let mut form = of(
        &json!({
            "a": {"type": "string", "default": "x"},
            "b": {"type": "integer", "default": 12345678901234567_u64},
            "c": {"type": "boolean", "default": true},
            "d": {"enum": ["u", "v"], "default": "v"},
            "e": {"type": "array", "items": {"type": "number"}, "default": [1.5, 2]},
            "f": {"type": "object", "properties": {"g": {"type": "string"}}, "default": {"g": "h"}},
            "wrong": {"type": "integer", "default": "no number"},
            "none": {"type": "string"},
        }),
        &json!([]),
    );
    assert_eq!(
        submitted(&mut form).unwrap(),
        r#"{"a":"x","b":12345678901234567,"c":true,"d":"v","e":[1.5,2],"f":{"g":"h"}}"#
    );
}

#[test]
fn missing_and_invalid_values_are_reported_and_selected() {
    let mut form = of(
        &json!({"name": {"type": "string", "minLength": 2}, "n": {"type": "integer", "maximum": 9}}),
        &json!(["name"]),
    );
    assert_eq!(submitted(&mut form), Err("name: is required".to_owned()));
    types(&mut form, "x");
    assert_eq!(submitted(&mut form), Err(r#"name: "x" is shorter than 2 characters"#.to_owned()));
    types(&mut form, "y");
    press(&mut form, &[KeyPress::Down]);
    types(&mut form, "1o");
    assert_eq!(submitted(&mut form), Err("n: is not a number".to_owned()));
    press(&mut form, &[KeyPress::Backspace]);
    types(&mut form, "0");
    assert_eq!(submitted(&mut form), Err("n: 10 is greater than the maximum of 9".to_owned()));
    press(&mut form, &[KeyPress::Backspace]);
    assert_eq!(submitted(&mut form).unwrap(), r#"{"name":"xy","n":1}"#);
}

#[test]
fn a_field_can_be_set_empty_and_omitted_again() {
    let mut form = of(&json!({"a": {"type": "string"}}), &json!([]));
    assert_eq!(submitted(&mut form).unwrap(), "{}");
    press(&mut form, &[KeyPress::Ctrl('t')]);
    assert_eq!(submitted(&mut form).unwrap(), r#"{"a":""}"#);
    press(&mut form, &[KeyPress::Char('x'), KeyPress::Backspace]);
    assert_eq!(submitted(&mut form).unwrap(), r#"{"a":""}"#);
    press(&mut form, &[KeyPress::Backspace]);
    assert_eq!(submitted(&mut form).unwrap(), "{}");
}

#[test]
fn lists_grow_and_shrink() {
    let mut form = of(
        &json!({"list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}),
        &json!([]),
    );
    press(&mut form, &[KeyPress::Enter, KeyPress::Down]);
    types(&mut form, "1");
    press(&mut form, &[KeyPress::Ctrl('n'), KeyPress::Down]);
    types(&mut form, "2");
    assert_eq!(submitted(&mut form).unwrap(), r#"{"list":[{"n":1},{"n":2}]}"#);
    press(&mut form, &[KeyPress::Up, KeyPress::Up, KeyPress::Up, KeyPress::Ctrl('d')]);
    assert_eq!(submitted(&mut form).unwrap(), r#"{"list":[{"n":2}]}"#);
}

#[test]
fn choices_are_cycled_picked_and_typed() {
    let mut form = of(&json!({"c": {"enum": ["red", "green", 3, null]}}), &json!([]));
    for (keys, expected) in [
        (&[KeyPress::Right][..], r#"{"c":"red"}"#),
        (&[KeyPress::Left], r#"{"c":null}"#),
        (&[KeyPress::Char('g')], r#"{"c":"green"}"#),
        (&[KeyPress::Enter, KeyPress::Down, KeyPress::Enter], r#"{"c":3}"#),
        (&[KeyPress::Enter, KeyPress::Char('d'), KeyPress::Enter], r#"{"c":"red"}"#),
        (&[KeyPress::Delete], "{}"),
    ] {
        press(&mut form, keys);
        assert_eq!(submitted(&mut form).unwrap(), expected, "{keys:?}");
    }
}

#[test]
fn long_numbers_and_free_values_go_out_as_they_were_typed() {
    let mut form = of(
        &json!({"n": {"type": "number"}, "any": {}, "u": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}),
        &json!([]),
    );
    types(&mut form, "123456789012345678901234567890");
    press(&mut form, &[KeyPress::Down]);
    types(&mut form, "[1, {\"a\": 1e3}]");
    press(&mut form, &[KeyPress::Down]);
    types(&mut form, "\"x");
    assert!(submitted(&mut form).unwrap_err().starts_with("u: invalid JSON"));
    types(&mut form, "\"");
    assert_eq!(
        submitted(&mut form).unwrap(),
        r#"{"n":123456789012345678901234567890,"any":[1, {"a": 1e3}],"u":"x"}"#
    );
}

#[test]
fn everything_can_be_written_as_json_and_comes_back_into_the_form() {
    let mut form = of(&json!({"a": {"type": "string"}, "n": {"type": "integer"}}), &json!(["a"]));
    types(&mut form, "x");
    press(&mut form, &[KeyPress::Ctrl('r')]);
    let text = form.raw.as_ref().unwrap().text().to_owned();
    assert_eq!(text, "{\n  \"a\": \"x\"\n}");
    // A value without a field keeps the form in JSON mode.
    press(&mut form, &[KeyPress::Down, KeyPress::End]);
    types(&mut form, ",\"z\":1");
    assert!(matches!(form.press(KeyPress::Ctrl('r')), FormAction::Invalid(why) if why.contains("no fields")));
    assert_eq!(submitted(&mut form).unwrap(), "{\n  \"a\": \"x\",\"z\":1\n}");
    press(&mut form, &[KeyPress::Backspace; 5]);
    assert!(
        matches!(form.press(KeyPress::Ctrl('r')), FormAction::Invalid(why) if why.contains("invalid JSON"))
    );
    types(&mut form, "\"n\":7");
    assert!(matches!(form.press(KeyPress::Ctrl('r')), FormAction::Stay));
    assert_eq!(submitted(&mut form).unwrap(), r#"{"a":"x","n":7}"#);
}

#[test]
fn required_objects_are_there_and_optional_ones_are_filled_in_when_wanted() {
    let inner = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let mut form = of(&json!({"must": inner, "may": inner}), &json!(["must"]));
    assert_eq!(submitted(&mut form).unwrap(), r#"{"must":{}}"#);
    press(&mut form, &[KeyPress::Down, KeyPress::Down, KeyPress::Char(' '), KeyPress::Down]);
    types(&mut form, "5");
    assert_eq!(submitted(&mut form).unwrap(), r#"{"must":{},"may":{"x":5}}"#);
}
