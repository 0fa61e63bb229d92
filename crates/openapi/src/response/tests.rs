//! Tool results, byte for byte.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use reqwest::Url;

use serde_json::{Value, json};
use toolyard_hub::Outcome;
use toolyard_hub::json::to_raw;

use super::{BufferedResponse, TruncationCause};
use crate::operation::{Method as Verb, Operation, ResponseRule, ResultWrapping};
use crate::request::fixtures::operation;

fn answer(status: u16, headers: &[(&str, &str)], bytes: impl AsRef<[u8]>) -> BufferedResponse {
    let header = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    BufferedResponse {
        method: Method::GET,
        url: Url::parse("https://user:pass@api.example.com/v1/a?api_key=secret").unwrap(),
        status: StatusCode::from_u16(status).unwrap(),
        headers: headers.iter().map(header).collect::<HeaderMap>(),
        bytes: bytes.as_ref().to_vec(),
        cut: None,
        note: None,
    }
}

const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");

fn outcome(answer: BufferedResponse, operation: &Operation) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(answer.into_outcome(operation))
}

/// The result of a tool without an output schema.
fn plain(answer: BufferedResponse) -> String {
    outcome(answer, &operation(Verb::Get, "/a")).body.get().to_owned()
}

/// A tool with an output schema.
fn promising(schema: &Value, wrapping: ResultWrapping) -> Operation {
    let definition = json!({"name": "made", "inputSchema": {"type": "object"}, "outputSchema": schema});
    let rule = |status: &str, branch| ResponseRule {
        status: status.to_owned(),
        pointer: format!("/paths/~1a/get/responses/{status}"),
        branch,
    };
    let several = schema.get("anyOf").is_some();
    let answer_rules = if several { vec![rule("200", 0), rule("202", 1)] } else { vec![rule("200", 0)] };
    Operation {
        definition: to_raw(&definition),
        wrapping,
        response_rules: answer_rules,
        ..operation(Verb::Get, "/a")
    }
}

fn wrapped(answer: BufferedResponse) -> String {
    let schema = json!({"type": "object", "properties": {"result": {}}, "required": ["result"]});
    outcome(answer, &promising(&schema, ResultWrapping::Always)).body.get().to_owned()
}

/// Whether a result is an error, its first text, and its structured content.
fn kept(answer: BufferedResponse, schema: &Value, wrapping: ResultWrapping) -> (bool, String, Value) {
    let outcome = outcome(answer, &promising(schema, wrapping));
    let result: Value = serde_json::from_str(outcome.body.get()).unwrap();
    assert_eq!(outcome.failed, result["isError"] == true);
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    (outcome.failed, text.to_owned(), result["structuredContent"].clone())
}

#[test]
fn json_is_text_and_structured_content_as_it_came() {
    let text = r#"{"a": 1e3, "b":[9223372036854775808123]}"#;
    assert_eq!(
        plain(answer(200, &[JSON], text)),
        r#"{"content":[{"type":"text","text":"{\"a\": 1e3, \"b\":[9223372036854775808123]}"}],"structuredContent":{"a": 1e3, "b":[9223372036854775808123]},"_meta":{"dev.toolyard/http":{"status":200,"headers":{}}}}"#
    );
    // Structured content has to be an object. Other JSON is text alone, unless the schema wraps it.
    assert_eq!(
        plain(answer(200, &[("content-type", "application/problem+json")], "[1, 2]")),
        r#"{"content":[{"type":"text","text":"[1, 2]"}],"_meta":{"dev.toolyard/http":{"status":200,"headers":{}}}}"#
    );
    assert_eq!(
        wrapped(answer(200, &[JSON], "[1, 2]")),
        r#"{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":{"result":[1, 2]},"_meta":{"dev.toolyard/http":{"status":200,"headers":{}}}}"#
    );
    assert_eq!(
        wrapped(answer(200, &[("content-type", "text/plain")], "hi")),
        r#"{"content":[{"type":"text","text":"hi"}],"structuredContent":{"result":"hi"},"_meta":{"dev.toolyard/http":{"status":200,"headers":{}}}}"#
    );
}

#[test]
fn what_says_that_it_is_json_and_is_not_is_text() {
    for odd in ["{oops", "", "NaN"] {
        let result = plain(answer(200, &[JSON], odd));
        assert!(!result.contains("structuredContent"), "{result}");
    }
    assert!(plain(answer(200, &[JSON], "{oops")).contains(r#""text":"{oops""#));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(wrapped(answer(200, &[JSON], &deep)).contains(&deep));
    let mut cut = answer(200, &[JSON], r#"{"a":1}"#);
    cut.cut = Some(TruncationCause::Size);
    assert!(!plain(cut).contains("structuredContent"));
}

#[test]
fn an_answer_without_a_body_says_what_it_is() {
    assert_eq!(
        plain(answer(204, &[], "")),
        r#"{"content":[{"type":"text","text":"HTTP 204 No Content"}],"_meta":{"dev.toolyard/http":{"status":204,"headers":{}}}}"#
    );
    assert_eq!(
        plain(answer(201, &[("location", "/pets/7")], "")),
        r#"{"content":[{"type":"text","text":"HTTP 201 Created\nlocation: /pets/7"}],"_meta":{"dev.toolyard/http":{"status":201,"headers":{"location":"/pets/7"}}}}"#
    );
    let mut head =
        answer(200, &[JSON, ("content-length", "12"), ("etag", "\"x\""), ("set-cookie", "s=1")], "");
    head.method = Method::HEAD;
    assert!(plain(head).contains(r#""text":"HTTP 200 OK\ncontent-type: application/json; charset=utf-8\ncontent-length: 12\netag: \"x\"""#));
}

#[test]
fn pictures_sounds_and_other_bytes_are_what_they_are() {
    let of = |kind: &str| plain(answer(200, &[("content-type", kind)], [0, 255]));
    assert!(of("image/PNG; x=y").contains(r#"{"type":"image","data":"AP8=","mimeType":"image/png"}"#));
    assert!(of("audio/wav").contains(r#"{"type":"audio","data":"AP8=","mimeType":"audio/wav"}"#));
    let blob = of("application/pdf");
    assert!(blob.contains(
        r#"{"type":"resource","resource":{"uri":"https://api.example.com/v1/a","mimeType":"application/pdf","blob":"AP8="}}"#
    ));
    assert!(!blob.contains("secret") && !blob.contains("pass"), "{blob}");
    assert!(plain(answer(200, &[], [0, 255])).contains(r#""mimeType":"application/octet-stream""#));
    assert!(plain(answer(200, &[], r#"{"a":1}"#)).contains(r#""structuredContent":{"a":1}"#));
    assert!(plain(answer(200, &[], "hello")).contains(r#"{"type":"text","text":"hello"}"#));
    assert!(of("image/svg+xml").contains(r#"{"type":"text""#));
}

#[test]
fn a_failure_says_its_status_the_headers_of_interest_and_the_body() {
    let headers = [
        JSON,
        ("retry-after", "30"),
        ("x-ratelimit-remaining", "0"),
        ("x-request-id", "r1"),
        ("www-authenticate", "Bearer realm=\"x\""),
        ("set-cookie", "session=secret"),
        ("x-internal", "secret"),
    ];
    let outcome = answer(429, &headers, r#"{"message":"slow down"}"#);
    let outcome = self::outcome(outcome, &operation(Verb::Get, "/a"));
    assert!(outcome.failed);
    let headers = r#"{"retry-after":"30","x-ratelimit-remaining":"0","x-request-id":"r1","www-authenticate":"Bearer realm=\"x\""}"#;
    assert_eq!(
        outcome.body.get(),
        format!(
            r#"{{"content":[{{"type":"text","text":"HTTP 429 Too Many Requests\nretry-after: 30\nx-ratelimit-remaining: 0\nx-request-id: r1\nwww-authenticate: Bearer realm=\"x\"\n\n{{\"message\":\"slow down\"}}"}}],"isError":true,"_meta":{{"dev.toolyard/http":{{"status":429,"headers":{headers}}}}}}}"#
        )
    );
}

const MADE: &str = "the call was made: GET /a answered HTTP 200 OK, but the response violates the schema of the document at \
                    #/paths/~1a/get/responses/200: ";

#[test]
fn an_answer_that_breaks_its_schema_is_an_error_that_says_which_rule_and_shows_the_body() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let body = r#"{"id": "seven"}"#;
    assert_eq!(
        kept(answer(200, &[JSON], body), &schema, ResultWrapping::Never),
        (true, format!("{MADE}`id`: \"seven\" is not of type \"integer\"\n\n{body}"), Value::Null)
    );
    let (failed, text, _) = kept(answer(200, &[JSON], "{}"), &schema, ResultWrapping::Never);
    assert_eq!((failed, text), (true, format!("{MADE}`id` is required\n\n{{}}")));
    // A matching response is passed on unchanged, and an error response is not checked.
    let (failed, _, structured) = kept(answer(200, &[JSON], r#"{"id":7}"#), &schema, ResultWrapping::Never);
    assert_eq!((failed, structured), (false, json!({"id": 7})));
    let (failed, text, _) = kept(answer(404, &[JSON], "[]"), &schema, ResultWrapping::Never);
    assert_eq!((failed, text.as_str()), (true, "HTTP 404 Not Found\n\n[]"));
}

#[test]
fn an_answer_of_another_kind_than_promised_is_an_error() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
    for (body, headers, why) in [
        ("", JSON, "the response has no body"),
        ("<p>Hi</p>", ("content-type", "text/html; charset=utf-8"), "the response is text/html, not JSON"),
        ("oops{", JSON, "the response is declared as application/json but is not JSON"),
        ("[1]", JSON, "the response is JSON, but not an object"),
    ] {
        let (failed, text, structured) = kept(answer(200, &[headers], body), &schema, ResultWrapping::Never);
        let line = text.lines().next().unwrap_or_default();
        assert_eq!((failed, line, structured), (true, format!("{MADE}{why}").as_str(), Value::Null));
        assert!(text.ends_with(body), "{text}");
    }
}

#[test]
fn json_under_another_label_is_taken_for_what_it_is_if_that_is_what_was_promised() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let text = ("content-type", "text/plain");
    let (failed, _, structured) = kept(answer(200, &[text], r#"{"id":7}"#), &schema, ResultWrapping::Never);
    assert_eq!((failed, structured), (false, json!({"id": 7})));
    let list = json!({"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]});
    let (failed, _, structured) = kept(answer(200, &[text], "[7]"), &list, ResultWrapping::Always);
    assert_eq!((failed, structured), (false, json!({"result": [7]})));
    // If the schema expects text, a text that happens to be JSON stays text.
    let words =
        json!({"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]});
    let (failed, _, structured) = kept(answer(200, &[text], "[7]"), &words, ResultWrapping::Always);
    assert_eq!((failed, structured), (false, json!({"result": "[7]"})));
}

#[test]
fn of_several_schemas_the_one_of_the_status_says_what_is_wrong() {
    let object = |name: &str| json!({"properties": {name: {"type": "integer"}}, "required": [name]});
    let schema = json!({"type": "object", "anyOf": [object("id"), object("job")]});
    for body in [r#"{"id":1}"#, r#"{"job":1}"#] {
        assert!(!kept(answer(202, &[JSON], body), &schema, ResultWrapping::Never).0, "{body}");
    }
    let (failed, text, _) = kept(answer(202, &[JSON], r#"{"job":"x"}"#), &schema, ResultWrapping::Never);
    assert!(failed && text.contains("responses/202: `job`: \"x\" is not of type \"integer\"\n"), "{text}");
}

#[test]
fn a_lenient_schema_is_broken_by_nothing() {
    let schema = json!({"type": "object"});
    let image = ("content-type", "image/png");
    for (answer, structured) in [
        (answer(200, &[JSON], r#"{"a":1}"#), json!({"a": 1})),
        (answer(200, &[JSON], "[1]"), json!({"result": [1]})),
        (answer(200, &[JSON], "oops{"), json!({"result": "oops{"})),
        (answer(204, &[], ""), json!({"result": null})),
        (answer(200, &[image], [1]), json!({"result": null})),
    ] {
        let (failed, _, found) = kept(answer, &schema, ResultWrapping::Others);
        assert_eq!((failed, found), (false, structured));
    }
}

#[test]
fn headers_that_people_need_are_in_the_metadata() {
    let links = format!("<https://x/?after={}>; rel=\"next\"", "a".repeat(1_000));
    let headers = [
        JSON,
        ("link", links.as_str()),
        ("link", "</last>; rel=\"last\""),
        ("x-total-count", "70"),
        ("x-next-page", "2"),
        ("content-disposition", "attachment; filename=\"a.csv\""),
        ("content-range", "items 0-9/70"),
        ("ratelimit", "limit=10"),
        ("x-ratelimit-reset", "5"),
        ("set-cookie", "session=secret"),
    ];
    let result: Value = serde_json::from_str(&plain(answer(200, &headers, "{}"))).unwrap();
    assert_eq!(
        result["_meta"]["dev.toolyard/http"]["headers"],
        json!({
            "link": format!("{links}, </last>; rel=\"last\""),
            "x-total-count": "70",
            "x-next-page": "2",
            "content-disposition": "attachment; filename=\"a.csv\"",
            "content-range": "items 0-9/70",
            "ratelimit": "limit=10",
            "x-ratelimit-reset": "5",
        })
    );
}

#[test]
fn a_failure_whose_body_is_a_picture_shows_both() {
    let result = plain(answer(500, &[("content-type", "image/png")], [1]));
    assert!(result.contains(r#"[{"type":"text","text":"HTTP 500 Internal Server Error"},{"type":"image","data":"AQ==","mimeType":"image/png"}]"#));
}

#[test]
fn long_and_odd_headers_are_cut_and_cleaned() {
    let long = "x".repeat(5_000);
    let result = plain(answer(404, &[("location", &long), ("link", "a\tb")], ""));
    assert!(result.contains(&format!("location: {}\\nlink: a b", "x".repeat(500))), "{result}");
}

#[test]
fn what_was_not_read_is_said() {
    let mut cut = answer(200, &[("content-type", "text/event-stream")], "data: 1\n\n");
    cut.cut = Some(TruncationCause::Time);
    assert!(plain(cut).contains(r#"[{"type":"text","text":"data: 1\n\n"},{"type":"text","text":"[truncated: 9 bytes were received before the timeout]"}]"#));
}
