//! Results of tools, byte for byte.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use reqwest::Url;

use super::{Answer, Cut};

fn answer(status: u16, headers: &[(&str, &str)], bytes: impl AsRef<[u8]>) -> Answer {
    let header = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    Answer {
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

fn plain(answer: Answer) -> String {
    answer.into_outcome(false).body.get().to_owned()
}

fn wrapped(answer: Answer) -> String {
    answer.into_outcome(true).body.get().to_owned()
}

#[test]
fn json_is_text_and_structured_content_as_it_came() {
    let text = r#"{"a": 1e3, "b":[9223372036854775808123]}"#;
    assert_eq!(
        plain(answer(200, &[JSON], text)),
        r#"{"content":[{"type":"text","text":"{\"a\": 1e3, \"b\":[9223372036854775808123]}"}],"structuredContent":{"a": 1e3, "b":[9223372036854775808123]},"_meta":{"dev.toolyard/http":{"status":200,"headers":{}}}}"#
    );
    // Structured content is an object; what is none is text alone, unless the schema says that it is wrapped.
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
    cut.cut = Some(Cut::Size);
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
    let outcome = answer(429, &headers, r#"{"message":"slow down"}"#).into_outcome(true);
    assert!(outcome.failed);
    let headers = r#"{"retry-after":"30","x-ratelimit-remaining":"0","x-request-id":"r1","www-authenticate":"Bearer realm=\"x\""}"#;
    assert_eq!(
        outcome.body.get(),
        format!(
            r#"{{"content":[{{"type":"text","text":"HTTP 429 Too Many Requests\nretry-after: 30\nx-ratelimit-remaining: 0\nx-request-id: r1\nwww-authenticate: Bearer realm=\"x\"\n\n{{\"message\":\"slow down\"}}"}}],"isError":true,"_meta":{{"dev.toolyard/http":{{"status":429,"headers":{headers}}}}}}}"#
        )
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
    assert!(result.contains(&format!("location: {}\\nlink: ab", "x".repeat(500))), "{result}");
}

#[test]
fn what_was_not_read_is_said() {
    let mut cut = answer(200, &[("content-type", "text/event-stream")], "data: 1\n\n");
    cut.cut = Some(Cut::Time);
    assert!(plain(cut).contains(r#"[{"type":"text","text":"data: 1\n\n"},{"type":"text","text":"[cut off: 9 bytes came in the time that there was]"}]"#));
}
