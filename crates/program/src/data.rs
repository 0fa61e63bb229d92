//! Converts the result of a tool into data for a program, without the MCP envelope. Structured
//! content is passed on unchanged, so that the data matches the schema that `inspect_tool` shows.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolyard_hub::json::{Object, from_text, parse_untrusted};
use toolyard_hub::{Outcome, Raw};

use crate::program::{ProgramBlock, ProgramData, ToolFailure};
use crate::tool_failure::failure;

/// The `_meta` key under which tools of HTTP APIs report the status and headers of a response.
const HTTP: &str = "dev.toolyard/http";

/// Returns the data of a result, or the failure that the tool reports. `chunks` are the parts of the
/// result that were streamed before it; they come first.
pub(crate) fn read_outcome(
    tool: &str,
    outcome: &Outcome,
    chunks: Vec<Value>,
) -> Result<ProgramData, ToolFailure> {
    let data = read_content(tool, outcome, chunks)?;
    Ok(match http_metadata(&outcome.body) {
        Some(http) => ProgramData::Http { data: Box::new(data), http },
        None => data,
    })
}

/// Returns the status and headers of the HTTP response behind a result.
fn http_metadata(body: &RawValue) -> Option<Raw> {
    let meta = Object::parse(body).ok()?.remove("_meta")?;
    let http = Object::parse(&meta).ok()?.remove(HTTP)?;
    http.get().starts_with('{').then_some(http)
}

fn read_content(tool: &str, outcome: &Outcome, chunks: Vec<Value>) -> Result<ProgramData, ToolFailure> {
    let mut members = Object::parse(&outcome.body).unwrap_or_default();
    let structured = members.remove("structuredContent").filter(|value| value.get() != "null");
    let content =
        members.remove("content").and_then(|content| serde_json::from_str::<Vec<Raw>>(content.get()).ok());
    let content = content.unwrap_or_default();
    if outcome.failed {
        let texts: Vec<String> = content.iter().filter_map(|block| block_text(block)).collect();
        let message = if texts.is_empty() {
            "the tool failed without an error message".to_owned()
        } else {
            texts.join("\n")
        };
        let structured = structured.and_then(|value| serde_json::from_str(value.get()).ok());
        let http = members.remove("_meta").and_then(|meta| http_failure(&meta, &texts));
        let details = match (structured, http) {
            // The tool's own members take precedence over those of the HTTP response.
            (Some(Value::Object(members)), Some(http)) => {
                Some(Value::Object(http.into_iter().chain(members).collect()))
            }
            (Some(value), _) => Some(value),
            (None, http) => http.map(Value::Object),
        };
        return Err(failure(tool, "tool_failed", &message, details));
    }
    let chunks = chunks.into_iter().map(|chunk| match chunk {
        Value::String(text) => ProgramBlock::Text(text),
        other => ProgramBlock::Json(from_text(other.to_string())),
    });
    let mut blocks: Vec<ProgramBlock> = chunks.collect();
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

/// Returns the status, headers and body of a failed HTTP call. Tools of OpenAPI documents report the
/// first two in `_meta`, and the body in the text, after a head that ends with an empty line.
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
        // A description of the problem precedes the body.
        false => texts.get(1).map(String::as_str),
    };
    let body = body.map_or(Value::Null, |body| {
        let json = parse_untrusted(body).and_then(|json| serde_json::from_str(json.get()).ok());
        json.unwrap_or_else(|| Value::String(body.to_owned()))
    });
    let members = [("status", status.into()), ("headers", Value::Object(headers)), ("body", body)];
    Some(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
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

/// Converts one content block. A block that does not follow the protocol stays JSON.
fn parse_block(block: &RawValue) -> ProgramBlock {
    parse_media(block)
        .or_else(|| block_text(block).map(parse_text))
        .unwrap_or_else(|| ProgramBlock::Json(block.to_owned()))
}

fn parse_text(text: String) -> ProgramBlock {
    parse_untrusted(&text).map_or(ProgramBlock::Text(text), ProgramBlock::Json)
}

fn block_text(block: &RawValue) -> Option<String> {
    let block: ContentBlock = serde_json::from_str(block.get()).ok()?;
    block.text.filter(|_| block.r#type == "text")
}

fn parse_media(block: &RawValue) -> Option<ProgramBlock> {
    let block: ContentBlock = serde_json::from_str(block.get()).ok()?;
    let (kind, base64, mime_type, uri) = match block.r#type.as_str() {
        "image" => ("image", block.data?, block.mime_type, None),
        "audio" => ("audio", block.data?, block.mime_type, None),
        "resource" => {
            let Resource { uri, mime_type, text, blob } = block.resource?;
            let default_type = if text.is_some() { "text/plain" } else { "application/octet-stream" };
            let base64 = blob.or_else(|| text.map(|text| STANDARD.encode(text)))?;
            ("resource", base64, mime_type.or_else(|| Some(default_type.to_owned())), uri)
        }
        _ => return None,
    };
    // The worker decodes the data, so a block with invalid base64 stays JSON.
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

    fn data_of(body: &Value) -> String {
        format!("{:?}", read_outcome("t", &Outcome::success(to_raw(body)), Vec::new()).unwrap())
    }

    fn content(blocks: &Value) -> String {
        data_of(&json!({"content": blocks}))
    }

    #[test]
    fn structured_content_has_precedence_and_is_unchanged() {
        let body = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"result":[1e400,{"b":1,"a":2}]}}"#;
        let data = read_outcome("t", &Outcome::success(from_text(body.to_owned())), Vec::new()).unwrap();
        assert_eq!(format!("{data:?}"), r#"Json(RawValue({"result":[1e400,{"b":1,"a":2}]}))"#);
        assert_eq!(data_of(&json!({"structuredContent": [1, 2]})), "Json(RawValue([1,2]))");
        assert_eq!(
            data_of(&json!({"structuredContent": null, "content": [{"type": "text", "text": "x"}]})),
            "Text(\"x\")"
        );
    }

    #[test]
    fn results_of_http_apis_have_status_and_headers() {
        let http = json!({"status": 200, "headers": {"link": "</b>; rel=next"}});
        let body =
            json!({"content": [], "structuredContent": {"a": 1}, "_meta": {"dev.toolyard/http": http}});
        assert_eq!(
            data_of(&body),
            format!("Http {{ data: Json(RawValue({{\"a\":1}})), http: RawValue({http}) }}")
        );
        assert_eq!(data_of(&json!({"structuredContent": {}, "_meta": {"other": {}}})), "Json(RawValue({}))");
    }

    #[test]
    fn a_single_text_is_parsed_as_json_or_stays_text() {
        let text_block = |text: &str| content(&json!([{"type": "text", "text": text}]));
        assert_eq!(text_block(r#"{"a": 1}"#), r#"Json(RawValue({"a": 1}))"#);
        assert_eq!(text_block("42"), "Json(RawValue(42))");
        assert_eq!(text_block("{not json"), "Text(\"{not json\")");
        assert_eq!(text_block(""), "Text(\"\")");
        assert!(text_block(&"[".repeat(1_000)).starts_with("Text"));
        assert!(text_block(&format!("{}{}", "[".repeat(1_000), "]".repeat(1_000))).starts_with("Text"));
    }

    #[test]
    fn no_block_is_null_and_several_blocks_are_a_list() {
        assert_eq!(content(&json!([])), "Json(RawValue(null))");
        assert_eq!(data_of(&json!({})), "Json(RawValue(null))");
        assert_eq!(data_of(&json!([])), "Json(RawValue(null))");
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
    fn a_result_with_is_error_is_a_failure() {
        let body = json!({"content": [{"type": "text", "text": "no such table"}, {"type": "text", "text": "x"}],
            "structuredContent": {"code": 7}, "isError": true});
        let failure = read_outcome("t", &Outcome::failure(to_raw(&body)), Vec::new()).unwrap_err();
        assert_eq!((failure.message.as_str(), failure.kind.as_str()), ("no such table\nx", "tool_failed"));
        assert_eq!(failure.details, Some(json!({"code": 7})));
        let without_text = read_outcome("t", &Outcome::failure(to_raw(&json!({}))), Vec::new()).unwrap_err();
        assert_eq!(without_text.message, "the tool failed without an error message");
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
        let plain_text = details("HTTP 404 Not Found\n\n<p>\n\ngone", meta.clone()).unwrap();
        assert_eq!(plain_text["body"], json!("<p>\n\ngone"));
        assert_eq!(details("HTTP 404 Not Found", meta).unwrap()["body"], json!(null));
        assert_eq!(details("no status", json!({"headers": {}})), None);
    }

    #[test]
    fn streamed_chunks_come_first() {
        let body = to_raw(&json!({"structuredContent": {"done": true}}));
        let data = read_outcome("t", &Outcome::success(body), vec![json!("one"), json!({"two": 2})]).unwrap();
        assert_eq!(
            format!("{data:?}"),
            r#"Blocks([Text("one"), Json(RawValue({"two":2})), Json(RawValue({"done":true}))])"#
        );
    }
}
