//! From a tool's result to data for a program: no envelope. What the tool declared as structured is taken as it is, so that
//! what arrives is what `inspect_tool` shows; nothing is unwrapped.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolyard_hub::json::{Object, from_text, parse_untrusted};
use toolyard_hub::{Outcome, Raw};

use crate::program::{ProgramBlock, ProgramData, ToolFailure};
use crate::tool_failure::failure;

/// Where tools that are HTTP APIs say status and headers of an answer.
const HTTP: &str = "dev.toolyard/http";

/// What a call gave, or how the tool says that it failed. Pieces that were sent ahead come first.
pub(crate) fn read_outcome(
    tool: &str,
    outcome: &Outcome,
    ahead: Vec<Value>,
) -> Result<ProgramData, ToolFailure> {
    let data = read_content(tool, outcome, ahead)?;
    Ok(match http_metadata(&outcome.body) {
        Some(http) => ProgramData::Http { data: Box::new(data), http },
        None => data,
    })
}

/// Status and headers of the HTTP answer behind a result.
fn http_metadata(body: &RawValue) -> Option<Raw> {
    let meta = Object::parse(body).ok()?.remove("_meta")?;
    let http = Object::parse(&meta).ok()?.remove(HTTP)?;
    http.get().starts_with('{').then_some(http)
}

fn read_content(tool: &str, outcome: &Outcome, ahead: Vec<Value>) -> Result<ProgramData, ToolFailure> {
    let mut members = Object::parse(&outcome.body).unwrap_or_default();
    let structured = members.remove("structuredContent").filter(|value| value.get() != "null");
    let content =
        members.remove("content").and_then(|content| serde_json::from_str::<Vec<Raw>>(content.get()).ok());
    let content = content.unwrap_or_default();
    if outcome.failed {
        let texts: Vec<String> = content.iter().filter_map(|block| block_text(block)).collect();
        let message =
            if texts.is_empty() { "the tool says that it failed".to_owned() } else { texts.join("\n") };
        let structured = structured.and_then(|value| serde_json::from_str(value.get()).ok());
        let http = members.remove("_meta").and_then(|meta| http_failure(&meta, &texts));
        let details = match (structured, http) {
            // Both: what the tool says itself, and beside it what HTTP said.
            (Some(Value::Object(own)), Some(http)) => {
                Some(Value::Object(http.into_iter().chain(own).collect()))
            }
            (Some(own), _) => Some(own),
            (None, http) => http.map(Value::Object),
        };
        return Err(failure(tool, "tool_failed", &message, details));
    }
    let ahead = ahead.into_iter().map(|piece| match piece {
        Value::String(text) => ProgramBlock::Text(text),
        other => ProgramBlock::Json(from_text(other.to_string())),
    });
    let mut blocks: Vec<ProgramBlock> = ahead.collect();
    match structured {
        Some(value) if blocks.is_empty() => return Ok(ProgramData::Json(value)),
        Some(value) => blocks.push(ProgramBlock::Json(value)),
        None => blocks.extend(content.iter().map(|block| parse_block(block))),
    }
    Ok(match (blocks.len(), blocks.pop()) {
        (_, None) => ProgramData::Json(RawValue::NULL.to_owned()),
        (1, Some(ProgramBlock::Json(value))) => ProgramData::Json(value),
        (1, Some(ProgramBlock::Text(text))) => ProgramData::Text(text),
        (_, Some(last)) => {
            blocks.push(last);
            ProgramData::Blocks(blocks)
        }
    })
}

/// Status, headers and body of an HTTP call that failed: tools of OpenAPI documents say the first two beside their result,
/// and the body in its text, after a head that ends with an empty line.
fn http_failure(meta: &RawValue, texts: &[String]) -> Option<Map<String, Value>> {
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "dev.toolyard/http")]
        http: Http,
    }
    #[derive(Deserialize)]
    struct Http {
        status: u16,
        #[serde(default)]
        headers: Map<String, Value>,
    }
    let Http { status, headers } = serde_json::from_str::<Meta>(meta.get()).ok()?.http;
    let first = texts.first().map(String::as_str).unwrap_or_default();
    let body = match first.starts_with("HTTP ") {
        true => first.split_once("\n\n").map(|(_, body)| body),
        // What is wrong with an answer is said before it.
        false => texts.get(1).map(String::as_str),
    };
    let body = body.map_or(Value::Null, |body| {
        let json = parse_untrusted(body).and_then(|json| serde_json::from_str(json.get()).ok());
        json.unwrap_or_else(|| Value::String(body.to_owned()))
    });
    let facts = [("status", status.into()), ("headers", Value::Object(headers)), ("body", body)];
    Some(facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContentBlock {
    r#type: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    resource: Option<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: Option<String>,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

/// One block of content. What is not as the protocol says stays JSON.
fn parse_block(block: &RawValue) -> ProgramBlock {
    parse_media(block)
        .or_else(|| block_text(block).map(parse_text))
        .unwrap_or_else(|| ProgramBlock::Json(block.to_owned()))
}

fn parse_text(text: String) -> ProgramBlock {
    parse_untrusted(&text).map_or(ProgramBlock::Text(text), ProgramBlock::Json)
}

fn block_text(block: &RawValue) -> Option<String> {
    let told: ContentBlock = serde_json::from_str(block.get()).ok()?;
    told.text.filter(|_| told.r#type == "text")
}

fn parse_media(block: &RawValue) -> Option<ProgramBlock> {
    let told: ContentBlock = serde_json::from_str(block.get()).ok()?;
    let (kind, base64, mime_type, uri) = match told.r#type.as_str() {
        "image" => ("image", told.data?, told.mime_type, None),
        "audio" => ("audio", told.data?, told.mime_type, None),
        "resource" => {
            let Resource { uri, mime_type, text, blob } = told.resource?;
            let usual = if text.is_some() { "text/plain" } else { "application/octet-stream" };
            let base64 = blob.or_else(|| text.map(|text| STANDARD.encode(text)))?;
            ("resource", base64, mime_type.or_else(|| Some(usual.to_owned())), uri)
        }
        _ => return None,
    };
    // Whoever reads it decodes it: what is no base64 is left as it came.
    STANDARD.decode(&base64).ok()?;
    let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    Some(ProgramBlock::Media { kind, mime_type, base64, uri })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolyard_hub::Outcome;
    use toolyard_hub::json::{from_text, to_raw};

    use super::read_outcome;

    fn given(body: &Value) -> String {
        format!("{:?}", read_outcome("t", &Outcome::success(to_raw(body)), Vec::new()).unwrap())
    }

    fn content(blocks: &Value) -> String {
        given(&json!({"content": blocks}))
    }

    #[test]
    fn structured_content_comes_first_and_as_it_is() {
        let body = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"result":[1e400,{"b":1,"a":2}]}}"#;
        let data = read_outcome("t", &Outcome::success(from_text(body.to_owned())), Vec::new()).unwrap();
        assert_eq!(format!("{data:?}"), r#"Json(RawValue({"result":[1e400,{"b":1,"a":2}]}))"#);
        assert_eq!(given(&json!({"structuredContent": [1, 2]})), "Json(RawValue([1,2]))");
        assert_eq!(
            given(&json!({"structuredContent": null, "content": [{"type": "text", "text": "x"}]})),
            "Text(\"x\")"
        );
    }

    #[test]
    fn what_an_http_api_gave_comes_with_its_status_and_headers() {
        let http = json!({"status": 200, "headers": {"link": "</b>; rel=next"}});
        let body =
            json!({"content": [], "structuredContent": {"a": 1}, "_meta": {"dev.toolyard/http": http}});
        assert_eq!(
            given(&body),
            format!("Http {{ data: Json(RawValue({{\"a\":1}})), http: RawValue({http}) }}")
        );
        assert_eq!(given(&json!({"structuredContent": {}, "_meta": {"other": {}}})), "Json(RawValue({}))");
    }

    #[test]
    fn one_text_is_the_json_that_it_is_or_a_text() {
        let of = |text: &str| content(&json!([{"type": "text", "text": text}]));
        assert_eq!(of(r#"{"a": 1}"#), r#"Json(RawValue({"a": 1}))"#);
        assert_eq!(of("42"), "Json(RawValue(42))");
        assert_eq!(of("{not json"), "Text(\"{not json\")");
        assert_eq!(of(""), "Text(\"\")");
        assert!(of(&"[".repeat(1_000)).starts_with("Text"));
        assert!(of(&format!("{}{}", "[".repeat(1_000), "]".repeat(1_000))).starts_with("Text"));
    }

    #[test]
    fn nothing_is_null_and_several_are_a_list() {
        assert_eq!(content(&json!([])), "Json(RawValue(null))");
        assert_eq!(given(&json!({})), "Json(RawValue(null))");
        assert_eq!(given(&json!([])), "Json(RawValue(null))");
        let several = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "[1]"}]);
        assert_eq!(content(&several), "Blocks([Text(\"a\"), Json(RawValue([1]))])");
    }

    #[test]
    fn pictures_sounds_and_files_have_a_type_and_bytes() {
        let blocks = json!([
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk="},
            {"type": "resource", "resource": {"uri": "x://1", "text": "hi"}},
            {"type": "resource", "resource": {"uri": "x://2", "blob": "aGk=", "mimeType": "a/b"}},
            {"type": "resource_link", "uri": "x://3", "name": "three"},
            {"type": "image", "data": "no base64!"},
            {"type": "text"},
            7,
        ]);
        insta::assert_snapshot!(content(&blocks).replace("}, ", "},\n").replace("), ", "),\n"));
    }

    #[test]
    fn a_tool_that_says_that_it_failed_is_a_failure() {
        let body = json!({"content": [{"type": "text", "text": "no such table"}, {"type": "text", "text": "x"}],
            "structuredContent": {"code": 7}, "isError": true});
        let failure = read_outcome("t", &Outcome::failure(to_raw(&body)), Vec::new()).unwrap_err();
        assert_eq!((failure.message.as_str(), failure.kind.as_str()), ("no such table\nx", "tool_failed"));
        assert_eq!(failure.details, Some(json!({"code": 7})));
        let silent = read_outcome("t", &Outcome::failure(to_raw(&json!({}))), Vec::new()).unwrap_err();
        assert_eq!(silent.message, "the tool says that it failed");
    }

    #[test]
    fn status_body_and_headers_of_a_failed_http_call_are_in_the_details() {
        let details = |text: &str, meta: Value| {
            let content = json!([{"type": "text", "text": text}]);
            let body = json!({"content": content, "isError": true, "_meta": {"dev.toolyard/http": meta}});
            read_outcome("t", &Outcome::failure(to_raw(&body)), Vec::new()).unwrap_err().details
        };
        let meta = json!({"status": 404, "headers": {"retry-after": "7"}});
        assert_eq!(
            details("HTTP 404 Not Found\nretry-after: 7\n\n{\"reason\": \"gone\"}", meta.clone()),
            Some(json!({"status": 404, "headers": {"retry-after": "7"}, "body": {"reason": "gone"}}))
        );
        let of_text = details("HTTP 404 Not Found\n\n<p>\n\ngone", meta.clone()).unwrap();
        assert_eq!(of_text["body"], json!("<p>\n\ngone"));
        assert_eq!(details("HTTP 404 Not Found", meta).unwrap()["body"], json!(null));
        assert_eq!(details("no status", json!({"headers": {}})), None);
    }

    #[test]
    fn what_was_sent_ahead_comes_first() {
        let body = to_raw(&json!({"structuredContent": {"done": true}}));
        let data = read_outcome("t", &Outcome::success(body), vec![json!("one"), json!({"two": 2})]).unwrap();
        assert_eq!(
            format!("{data:?}"),
            r#"Blocks([Text("one"), Json(RawValue({"two":2})), Json(RawValue({"done":true}))])"#
        );
    }
}
