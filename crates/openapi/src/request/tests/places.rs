//! Paths, queries, headers and cookies.

use reqwest::Url;
use serde_json::json;
use toolyard_hub::json::from_text;

use super::super::{RequestBuildError, build_request};
use super::{argument, operation, ordered, url};
use crate::operation::{Argument, ArgumentLocation, Method, Operation, ParameterStyle};

fn with(path: &str, arguments: Vec<Argument>) -> Operation {
    Operation { arguments, ..operation(Method::Get, path) }
}

#[test]
fn a_path_holds_its_arguments_and_nothing_that_they_make_up() {
    let get = with(
        "/users/{id}:show/{file}",
        vec![argument(ArgumentLocation::Path, "id"), argument(ArgumentLocation::Path, "file")],
    );
    assert_eq!(
        url(&get, &json!({"id": "a/b?c#d", "file": "é x%2e"})),
        "https://api.example.com/v1/users/a%2Fb%3Fc%23d:show/%C3%A9%20x%252e"
    );
    assert_eq!(
        url(&get, &json!({"id": [1, 2], "file": true})),
        "https://api.example.com/v1/users/1,2:show/true"
    );
}

#[test]
fn no_argument_leads_to_another_path() {
    let get = with("/files/{name}/meta", vec![argument(ArgumentLocation::Path, "name")]);
    for name in ["..", "."] {
        let refused = ordered(&get, &json!({"name": name}).to_string()).unwrap_err();
        let why = "would change the path that the document describes";
        assert_eq!(refused, RequestBuildError::Argument("name".to_owned(), why.to_owned()), "{name}");
    }
    // These are unusual but valid names.
    for (name, path) in [
        ("...", "..."),
        ("..;", "..%3B"),
        ("%2e%2e", "%252e%252e"),
        ("a/../b", "a%2F..%2Fb"),
        ("\\..", "%5C.."),
    ] {
        assert_eq!(
            url(&get, &json!({"name": name})),
            format!("https://api.example.com/v1/files/{path}/meta")
        );
    }
}

#[test]
fn reserved_characters_may_add_segments_but_go_nowhere_else() {
    let name = Argument { allow_reserved: true, ..argument(ArgumentLocation::Path, "name") };
    let get = with("/files/{name}", vec![name]);
    assert_eq!(url(&get, &json!({"name": "a/b;c?d#e"})), "https://api.example.com/v1/files/a/b;c%3Fd%23e");
    for name in ["a/../../b", "a/%2E%2e/b", "a/.%2e", ".."] {
        assert!(ordered(&get, &json!({"name": name}).to_string()).is_err(), "{name}");
    }
}

#[test]
fn a_path_without_a_value_is_refused() {
    let get = with("/pets/{id}", vec![argument(ArgumentLocation::Path, "id")]);
    for (arguments, why) in [
        ("{}", "is missing: it is part of the path"),
        (r#"{"id":""}"#, "must not be empty: it is part of the path"),
        (r#"{"id":null}"#, "must not be empty: it is part of the path"),
        (r#"{"id":[]}"#, "must not be empty: it is part of the path"),
    ] {
        let refused = ordered(&get, arguments).unwrap_err();
        assert_eq!(refused, RequestBuildError::Argument("id".to_owned(), why.to_owned()), "{arguments}");
    }
    let undescribed = with("/pets/{id}", Vec::new());
    let why = "its path contains `{id}`, which is not a parameter";
    assert_eq!(ordered(&undescribed, "{}").unwrap_err(), RequestBuildError::Document(why.to_owned()));
}

#[test]
fn a_document_cannot_smuggle_another_host_into_a_path() {
    for path in ["@evil.example/x", "//evil.example/x", ":9/x", "\\\\evil.example/x", "/x#y", "x"] {
        let base = Url::parse("https://api.example.com").unwrap();
        let made = build_request(&with(path, Vec::new()), &base, &from_text("{}".to_owned())).unwrap().url;
        assert_eq!(made.host_str(), Some("api.example.com"), "{path} {made}");
        assert_eq!(made.port(), None, "{path} {made}");
        assert_eq!(made.username(), "", "{path} {made}");
    }
}

#[test]
fn a_query_in_the_path_of_a_document_is_kept() {
    let get = with(
        "/?Action=List&x={x}#frag",
        vec![argument(ArgumentLocation::Path, "x"), argument(ArgumentLocation::Query, "q")],
    );
    assert_eq!(
        url(&get, &json!({"x": "1&2", "q": "é"})),
        "https://api.example.com/v1/?Action=List&x=1%262&q=%C3%A9"
    );
    let base = Url::parse("https://api.example.com/v1?key=1").unwrap();
    let made = build_request(
        &with("/a", vec![argument(ArgumentLocation::Query, "q")]),
        &base,
        &from_text(r#"{"q":1}"#.to_owned()),
    );
    assert_eq!(made.unwrap().url.as_str(), "https://api.example.com/v1/a?key=1&q=1");
}

#[test]
fn a_query_has_its_arguments_in_the_order_of_the_document() {
    let content = Argument {
        content: Some("application/json".to_owned()),
        ..argument(ArgumentLocation::Query, "filter")
    };
    let piped = Argument {
        style: ParameterStyle::PipeDelimited,
        explode: false,
        ..argument(ArgumentLocation::Query, "p")
    };
    let deep = Argument { style: ParameterStyle::DeepObject, ..argument(ArgumentLocation::Query, "d") };
    let get = with(
        "/a",
        vec![
            argument(ArgumentLocation::Query, "z"),
            content,
            piped,
            deep,
            argument(ArgumentLocation::Query, "none"),
        ],
    );
    assert_eq!(
        ordered(&get, r#"{"none":null,"d":{"a":1},"p":[1,2],"filter":{"n": 1e3},"z":"","stranger":1}"#)
            .unwrap()
            .url
            .as_str(),
        "https://api.example.com/v1/a?z=&filter=%7B%22n%22%3A%201e3%7D&p=1%7C2&d%5Ba%5D=1"
    );
}

#[test]
fn a_whole_query_is_written_as_its_media_type_has_it() {
    let of = |media_type: &str, value: &str| {
        let whole =
            Argument { content: Some(media_type.to_owned()), ..argument(ArgumentLocation::QueryString, "q") };
        ordered(&with("/a", vec![whole]), &format!(r#"{{"q":{value}}}"#))
            .unwrap()
            .url
            .query()
            .map(str::to_owned)
    };
    assert_eq!(
        of("application/x-www-form-urlencoded", r#"{"a":"x y","b":[1]}"#).unwrap(),
        "a=x%20y&b=%5B1%5D"
    );
    assert_eq!(of("application/json", r#"{"a":1}"#).unwrap(), "%7B%22a%22%3A1%7D");
    assert_eq!(of("text/plain", r#""a=b&c""#).unwrap(), "a=b&c");
}

#[test]
fn headers_and_cookies_are_as_they_were_given() {
    let object = Argument { explode: true, ..argument(ArgumentLocation::Header, "X-Point") };
    let json = Argument {
        content: Some("application/json".to_owned()),
        ..argument(ArgumentLocation::Header, "X-Json")
    };
    let get = with(
        "/a",
        vec![
            argument(ArgumentLocation::Header, "X-Ids"),
            object,
            json,
            argument(ArgumentLocation::Header, "X-None"),
            argument(ArgumentLocation::Cookie, "session"),
            argument(ArgumentLocation::Cookie, "tags"),
        ],
    );
    let mut made = ordered(
        &get,
        r#"{"X-Ids":[1,"b c"],"X-Point":{"x":1,"y":2},"X-Json":{"a":[1e3]},"X-None":null,"session":"a;b=c","tags":["x","y"]}"#,
    )
    .unwrap();
    made.set_cookie_header().unwrap();
    let headers: Vec<(&str, &str)> =
        made.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(
        headers,
        [
            ("accept", "application/json, */*;q=0.5"),
            ("x-ids", "1,b c"),
            ("x-point", "x=1,y=2"),
            ("x-json", r#"{"a":[1e3]}"#),
            ("cookie", "session=a%3Bb%3Dc; tags=x; tags=y"),
        ]
    );
}

#[test]
fn a_header_cannot_be_broken_in_two() {
    let get = with("/a", vec![argument(ArgumentLocation::Header, "X-A")]);
    for value in ["a\r\nX-Admin: 1", "a\nb", "a\u{0}b"] {
        let refused = ordered(&get, &json!({"X-A": value}).to_string()).unwrap_err();
        let why = "contains characters that are not valid in a header, such as a line break";
        assert_eq!(refused, RequestBuildError::Argument("X-A".to_owned(), why.to_owned()));
    }
    let odd = with("/a", vec![argument(ArgumentLocation::Header, "X A")]);
    assert_eq!(
        ordered(&odd, r#"{"X A":1}"#).unwrap_err(),
        RequestBuildError::Document("\"X A\" is not a valid header name".to_owned())
    );
}

#[test]
fn what_the_protocol_writes_is_no_argument() {
    let names = ["Host", "content-length", "Authorization", "Accept", "Content-Type", "Transfer-Encoding"];
    let get = with("/a", names.map(|name| argument(ArgumentLocation::Header, name)).to_vec());
    let arguments =
        json!(names.map(|name| (name, "evil")).into_iter().collect::<std::collections::BTreeMap<_, _>>());
    let made = ordered(&get, &arguments.to_string()).unwrap();
    assert_eq!(made.headers.keys().map(http::HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    assert_eq!(made.headers["accept"], "application/json, */*;q=0.5");
}

#[test]
fn what_the_operation_produces_is_asked_for() {
    let get = Operation {
        produces: vec!["application/xml".to_owned(), "text/csv".to_owned()],
        ..with("/a", Vec::new())
    };
    assert_eq!(ordered(&get, "{}").unwrap().headers["accept"], "application/xml, text/csv");
    let odd = Operation { produces: vec!["a\r\nb".to_owned()], ..with("/a", Vec::new()) };
    assert_eq!(ordered(&odd, "{}").unwrap().headers["accept"], "application/json, */*;q=0.5");
}
