//! Bodies of every encoding.

use std::collections::BTreeMap;

use super::super::RequestBuildError;
use super::{argument, body, operation, ordered};
use crate::operation::{
    Argument, ArgumentLocation, BodyEncoding, FieldEncoding, Method, Operation, OperationBody, ParameterStyle,
};

fn posting(body: OperationBody, arguments: Vec<Argument>) -> Operation {
    Operation { body: Some(body), arguments, ..operation(Method::Post, "/a") }
}

fn members(names: &[&str]) -> Vec<Argument> {
    names.iter().map(|name| argument(ArgumentLocation::BodyField, name)).collect()
}

/// The content type and text of the body for these arguments.
fn sent(operation: &Operation, arguments: &str) -> Option<(String, String)> {
    let payload = ordered(operation, arguments).unwrap().payload?;
    Some((payload.content_type, String::from_utf8_lossy(&payload.bytes).into_owned()))
}

fn pair(content_type: &str, text: &str) -> Option<(String, String)> {
    Some((content_type.to_owned(), text.to_owned()))
}

#[test]
fn json_is_sent_as_it_was_written() {
    let json = || body(BodyEncoding::Json, "application/json");
    let whole = posting(json(), vec![argument(ArgumentLocation::Body, "body")]);
    assert_eq!(
        sent(&whole, r#"{"body":{"a": 1e3,"b":[9223372036854775808123, null]}}"#),
        pair("application/json", r#"{"a": 1e3,"b":[9223372036854775808123, null]}"#)
    );
    assert_eq!(sent(&whole, r#"{"body":[1, 2]}"#), pair("application/json", "[1, 2]"));
    assert_eq!(sent(&whole, "{}"), None);
    let renamed = Argument { wire_name: "id".to_owned(), ..argument(ArgumentLocation::BodyField, "body_id") };
    let flat = posting(json(), [members(&["b", "a"]), vec![renamed]].concat());
    assert_eq!(
        sent(&flat, r#"{"a":1.50,"body_id":null,"b":"x","other":1}"#),
        pair("application/json", r#"{"b":"x","a":1.50,"id":null}"#)
    );
    assert_eq!(sent(&flat, "{}"), None);
    let required = posting(OperationBody { required: true, ..json() }, members(&["a"]));
    assert_eq!(sent(&required, "{}"), pair("application/json", "{}"));
    let merge = posting(
        body(BodyEncoding::Json, "application/merge-patch+json"),
        vec![argument(ArgumentLocation::Body, "body")],
    );
    assert_eq!(sent(&merge, r#"{"body":null}"#), pair("application/merge-patch+json", "null"));
    let any = posting(body(BodyEncoding::Json, "*/*"), vec![argument(ArgumentLocation::Body, "body")]);
    assert_eq!(sent(&any, r#"{"body":1}"#), pair("application/json", "1"));
}

#[test]
fn a_form_is_written_as_its_fields_say() {
    const FORM: &str = "application/x-www-form-urlencoded";
    let how = |style, explode| FieldEncoding {
        style: Some(style),
        explode: Some(explode),
        ..FieldEncoding::default()
    };
    let json =
        FieldEncoding { content_type: Some("application/json".to_owned()), ..FieldEncoding::default() };
    let fields = BTreeMap::from([
        ("piped".to_owned(), how(ParameterStyle::PipeDelimited, false)),
        ("deep".to_owned(), how(ParameterStyle::DeepObject, true)),
        ("json".to_owned(), json),
        ("open".to_owned(), FieldEncoding { allow_reserved: true, ..FieldEncoding::default() }),
    ]);
    let names = ["a", "list", "object", "piped", "deep", "json", "open", "none"];
    let post = posting(OperationBody { fields, ..body(BodyEncoding::Form, FORM) }, members(&names));
    assert_eq!(
        sent(
            &post,
            r#"{"a":"x y&z=1","list":[1,"2"],"object":{"b":1},"piped":[1,2],"deep":{"k":[1]},"json":[1e3],"open":"a/b&c","none":null}"#
        ),
        pair(
            FORM,
            "a=x%20y%26z%3D1&list=1&list=2&object=%7B%22b%22%3A1%7D&piped=1%7C2&deep%5Bk%5D%5B0%5D=1&json=%5B1e3%5D&open=a/b%26c"
        )
    );
    let whole = posting(body(BodyEncoding::Form, FORM), vec![argument(ArgumentLocation::Body, "body")]);
    assert_eq!(sent(&whole, r#"{"body":{"a":[1,2],"é":true}}"#), pair(FORM, "a=1&a=2&%C3%A9=true"));
    assert_eq!(sent(&whole, r#"{"body":"a=1&b=2"}"#), pair(FORM, "a=1&b=2"));
}

/// The parts with a fixed boundary, so that they can be compared.
fn parts(operation: &Operation, arguments: &str) -> String {
    let (content_type, text) = sent(operation, arguments).unwrap();
    let (kind, boundary) = content_type.split_once("; boundary=").unwrap();
    assert_eq!(kind, "multipart/form-data");
    assert!(boundary.len() > 30 && boundary.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
    text.replace(boundary, "BOUNDARY").replace("\r\n", "\n")
}

#[test]
fn parts_carry_files_with_their_names_and_types() {
    let file = FieldEncoding { file: true, ..FieldEncoding::default() };
    let png = FieldEncoding { content_type: Some("image/*, image/png".to_owned()), ..file };
    let listed = FieldEncoding { explode: Some(false), ..FieldEncoding::default() };
    let fields = BTreeMap::from([
        ("file".to_owned(), file),
        ("photos".to_owned(), png),
        ("listed".to_owned(), listed),
    ]);
    let names = ["title", "file", "photos", "meta", "tags", "listed", "none"];
    let post = posting(
        OperationBody { fields, ..body(BodyEncoding::Multipart, "multipart/form-data") },
        members(&names),
    );
    insta::assert_snapshot!(parts(
        &post,
        r#"{"title":"Hi é","file":{"data":"aGVsbG8=","filename":"he\"l\r\nlo.txt","content_type":"text/plain"},
            "photos":["AQID","data:image/gif;base64,R0lG"],"meta":{"n":1e3},"tags":["a","b"],"listed":[1,2],"none":null}"#
    ));
}

#[test]
fn no_part_can_be_given_another_header() {
    let fields =
        BTreeMap::from([("file".to_owned(), FieldEncoding { file: true, ..FieldEncoding::default() })]);
    let post = posting(
        OperationBody { fields, ..body(BodyEncoding::Multipart, "multipart/form-data") },
        members(&["file"]),
    );
    let refused = ordered(&post, r#"{"file":{"data":"aGk=","content_type":"a/b\r\nx: y"}}"#).unwrap_err();
    assert_eq!(
        refused,
        RequestBuildError::Argument("file".to_owned(), "has an invalid content type".to_owned())
    );
    let refused = ordered(&post, r#"{"file":"not base64"}"#).unwrap_err();
    assert_eq!(
        refused,
        RequestBuildError::Argument("file".to_owned(), "is neither base64 nor a data URI".to_owned())
    );
    let odd =
        posting(body(BodyEncoding::Multipart, "multipart/form-data"), members(&["a\"; filename=\"x\r\n"]));
    insta::assert_snapshot!(parts(&odd, r#"{"a\"; filename=\"x\r\n":"v"}"#), @r#"
    --BOUNDARY
    content-disposition: form-data; name="a%22; filename=%22x%0D%0A"

    v
    --BOUNDARY--
    "#);
}

#[test]
fn text_and_bytes_are_sent_as_they_are() {
    let text = posting(body(BodyEncoding::Text, "text/csv"), vec![argument(ArgumentLocation::Body, "body")]);
    assert_eq!(sent(&text, r#"{"body":"a,b\nü"}"#), pair("text/csv", "a,b\nü"));
    assert_eq!(sent(&text, r#"{"body":1e3}"#), pair("text/csv", "1e3"));
    let any = posting(body(BodyEncoding::Text, "text/*"), vec![argument(ArgumentLocation::Body, "body")]);
    assert_eq!(sent(&any, r#"{"body":"a"}"#), pair("text/plain; charset=utf-8", "a"));
    let bytes = |media_type| {
        posting(body(BodyEncoding::Bytes, media_type), vec![argument(ArgumentLocation::Body, "body")])
    };
    let payload = ordered(&bytes("application/octet-stream"), r#"{"body":"AP8="}"#).unwrap().payload.unwrap();
    assert_eq!(payload.bytes.as_ref(), [0, 255]);
    assert_eq!(sent(&bytes("image/*"), r#"{"body":"data:image/png;base64,aGk="}"#), pair("image/png", "hi"));
    assert_eq!(sent(&bytes("*/*"), r#"{"body":"aGk="}"#), pair("application/octet-stream", "hi"));
    let refused = ordered(&bytes("image/png"), r#"{"body":"&"}"#).unwrap_err();
    assert_eq!(
        refused,
        RequestBuildError::Argument("body".to_owned(), "is neither base64 nor a data URI".to_owned())
    );
}
