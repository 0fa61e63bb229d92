//! The table of the OpenAPI specification (3.1.1, "Style Examples"), and the expansions of RFC 6570
//! that it is based on.

use serde_json::value::RawValue;

use super::super::escape::EncodeSet;
use super::ParameterSerializer;
use crate::operation::ParameterStyle;

const EMPTY: &str = r#""""#;
const STRING: &str = r#""blue""#;
const ARRAY: &str = r#"["blue","black","brown"]"#;
const OBJECT: &str = r#"{"R":100,"G":200,"B":150}"#;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn piece(name: &str, style: ParameterStyle, explode: bool, allow: EncodeSet, value: &str) -> Option<String> {
    ParameterSerializer { name, style, explode, allow }.serialize_text(&raw(value))
}

fn query(name: &str, style: ParameterStyle, explode: bool, allow: EncodeSet, value: &str) -> String {
    let pairs = ParameterSerializer { name, style, explode, allow }.serialize_pairs(&raw(value));
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[test]
fn pieces_are_as_the_table_has_them() {
    let table = [
        (
            ParameterStyle::Matrix,
            false,
            [";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"],
        ),
        (
            ParameterStyle::Matrix,
            true,
            [";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"],
        ),
        (ParameterStyle::Label, false, [".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"]),
        (ParameterStyle::Label, true, [".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"]),
        (ParameterStyle::Simple, false, ["", "blue", "blue,black,brown", "R,100,G,200,B,150"]),
        (ParameterStyle::Simple, true, ["", "blue", "blue,black,brown", "R=100,G=200,B=150"]),
    ];
    for (style, explode, expected) in table {
        let got = [EMPTY, STRING, ARRAY, OBJECT]
            .map(|value| piece("color", style, explode, EncodeSet::Unreserved, value));
        assert_eq!(got, expected.map(|text| Some(text.to_owned())), "{style:?} {explode}");
    }
}

#[test]
fn queries_are_as_the_table_has_them() {
    let table = [
        (
            ParameterStyle::Form,
            false,
            ["color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"],
        ),
        (
            ParameterStyle::Form,
            true,
            ["color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"],
        ),
        (
            ParameterStyle::SpaceDelimited,
            false,
            ["color=", "color=blue", "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"],
        ),
        (
            ParameterStyle::PipeDelimited,
            false,
            ["color=", "color=blue", "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"],
        ),
        (
            ParameterStyle::DeepObject,
            true,
            [
                "color=",
                "color=blue",
                "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown",
                "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
            ],
        ),
        (
            ParameterStyle::TabDelimited,
            false,
            ["color=", "color=blue", "color=blue%09black%09brown", "color=R%09100%09G%09200%09B%09150"],
        ),
    ];
    for (style, explode, expected) in table {
        let got = [EMPTY, STRING, ARRAY, OBJECT]
            .map(|value| query("color", style, explode, EncodeSet::Unreserved, value));
        assert_eq!(got, expected.map(str::to_owned), "{style:?} {explode}");
    }
}

#[test]
fn delimited_styles_that_explode_repeat_the_name() {
    for style in [ParameterStyle::SpaceDelimited, ParameterStyle::PipeDelimited] {
        assert_eq!(query("c", style, true, EncodeSet::Unreserved, r#"["a b","c|d"]"#), "c=a%20b&c=c%7Cd");
    }
}

/// RFC 6570, section 3.2: the values of the document, by the operator that corresponds to the
/// style.
#[test]
fn values_are_encoded_as_rfc_6570_has_them() {
    const HELLO: &str = r#""Hello World!""#;
    const HALF: &str = r#""50%""#;
    const BASE: &str = r#""http://example.com/home/""#;
    const LIST: &str = r#"["red","green","blue"]"#;
    const KEYS: &str = r#"{"semi":";","dot":".","comma":","}"#;
    let path = |style, explode, value| piece("v", style, explode, EncodeSet::Unreserved, value).unwrap();
    assert_eq!(path(ParameterStyle::Simple, false, HELLO), "Hello%20World%21");
    assert_eq!(path(ParameterStyle::Simple, false, HALF), "50%25");
    assert_eq!(path(ParameterStyle::Simple, false, LIST), "red,green,blue");
    assert_eq!(path(ParameterStyle::Simple, false, KEYS), "semi,%3B,dot,.,comma,%2C");
    assert_eq!(path(ParameterStyle::Simple, true, KEYS), "semi=%3B,dot=.,comma=%2C");
    assert_eq!(path(ParameterStyle::Label, true, LIST), ".red.green.blue");
    assert_eq!(path(ParameterStyle::Label, true, KEYS), ".semi=%3B.dot=..comma=%2C");
    assert_eq!(path(ParameterStyle::Label, false, KEYS), ".semi,%3B,dot,.,comma,%2C");
    assert_eq!(path(ParameterStyle::Matrix, false, LIST), ";v=red,green,blue");
    assert_eq!(path(ParameterStyle::Matrix, true, KEYS), ";semi=%3B;dot=.;comma=%2C");
    let reserved =
        |value| piece("v", ParameterStyle::Simple, false, EncodeSet::ReservedInPath, value).unwrap();
    assert_eq!(reserved(BASE), "http://example.com/home/");
    assert_eq!(reserved(HELLO), "Hello%20World!");
    assert_eq!(reserved(HALF), "50%25");
    assert_eq!(
        query("v", ParameterStyle::Form, false, EncodeSet::Unreserved, KEYS),
        "v=semi,%3B,dot,.,comma,%2C"
    );
    assert_eq!(
        query("v", ParameterStyle::Form, true, EncodeSet::Unreserved, KEYS),
        "semi=%3B&dot=.&comma=%2C"
    );
    assert_eq!(
        query("v", ParameterStyle::Form, true, EncodeSet::Unreserved, BASE),
        "v=http%3A%2F%2Fexample.com%2Fhome%2F"
    );
    assert_eq!(
        query("v", ParameterStyle::Form, true, EncodeSet::ReservedInQuery, BASE),
        "v=http://example.com/home/"
    );
}

#[test]
fn reserved_characters_never_begin_another_parameter() {
    let value = r#""a&admin=true#x+y[z]""#;
    let got = query("q", ParameterStyle::Form, true, EncodeSet::ReservedInQuery, value);
    assert_eq!(got, "q=a%26admin=true%23x%2By%5Bz%5D");
}

#[test]
fn null_is_no_value_and_neither_is_an_empty_list() {
    for value in ["null", "[]", "{}", "[null]", r#"{"a":null}"#] {
        assert_eq!(query("a", ParameterStyle::Form, true, EncodeSet::Unreserved, value), "", "{value}");
        assert_eq!(query("a", ParameterStyle::Form, false, EncodeSet::Unreserved, value), "", "{value}");
        assert_eq!(
            query("a", ParameterStyle::PipeDelimited, false, EncodeSet::Unreserved, value),
            "",
            "{value}"
        );
        assert_eq!(query("a", ParameterStyle::DeepObject, true, EncodeSet::Unreserved, value), "", "{value}");
        assert_eq!(piece("a", ParameterStyle::Simple, false, EncodeSet::Unreserved, value), None, "{value}");
        assert_eq!(piece("a", ParameterStyle::Matrix, true, EncodeSet::Unreserved, value), None, "{value}");
    }
    assert_eq!(
        query("a", ParameterStyle::Form, true, EncodeSet::Unreserved, r#"[1,null,"",2]"#),
        "a=1&a=&a=2"
    );
}

#[test]
fn numbers_and_booleans_are_as_they_were_written() {
    let value = "[1e3,9223372036854775808123,-0.0,true,false]";
    assert_eq!(
        query("n", ParameterStyle::Form, false, EncodeSet::Unreserved, value),
        "n=1e3,9223372036854775808123,-0.0,true,false"
    );
    assert_eq!(query("n", ParameterStyle::Form, false, EncodeSet::Unreserved, "1E+3"), "n=1E%2B3");
}

#[test]
fn what_is_nested_is_json_save_in_deep_objects() {
    let nested = r#"{"a":{"b":[1,{"c":"x y"}]},"d":null,"e":true}"#;
    assert_eq!(
        query("f", ParameterStyle::DeepObject, true, EncodeSet::Unreserved, nested),
        "f%5Ba%5D%5Bb%5D%5B0%5D=1&f%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=x%20y&f%5Be%5D=true"
    );
    assert_eq!(
        query("f", ParameterStyle::Form, true, EncodeSet::Unreserved, nested),
        "a=%7B%22b%22%3A%5B1%2C%7B%22c%22%3A%22x%20y%22%7D%5D%7D&e=true"
    );
}

#[test]
fn a_value_that_is_nested_without_end_is_cut_off_in_good_time() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
    let pairs = query("f", ParameterStyle::DeepObject, true, EncodeSet::Unreserved, &deep);
    assert!(pairs.len() < 120_000);
}

#[test]
fn names_are_encoded_too() {
    assert_eq!(
        query("a b[]&c", ParameterStyle::Form, true, EncodeSet::ReservedInQuery, "[1]"),
        "a%20b%5B%5D%26c=1"
    );
}
