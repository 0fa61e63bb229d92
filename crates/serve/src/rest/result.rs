//! Tool results in REST. Values are copied from the source's text verbatim, which preserves number
//! literals and the order of keys.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, from_text, parse_untrusted, to_raw, truncate_for_message};
use toolyard_hub::{ErrorKind, HubError, Outcome, Raw};

/// The parts of a tool result.
#[derive(Debug, Default)]
pub(super) struct RestToolResult {
    structured: Option<Raw>,
    blocks: Vec<Raw>,
}

#[derive(Deserialize)]
struct Text {
    r#type: String,
    text: Option<String>,
}

/// Returns the outcome if its body is a valid tool result. Other bodies are an error, because REST
/// would have to report their value as `null`. An outcome that is already a failure is returned
/// unchanged.
pub(super) fn validate_result(tool: &str, outcome: Outcome) -> Result<Outcome, HubError> {
    // Fast path: most results start like this.
    if outcome.failed || outcome.body.get().starts_with(r#"{"content":["#) {
        return Ok(outcome);
    }
    let why = match Object::parse(&outcome.body) {
        Err(_) => "not an object",
        Ok(members) => match members.get("content") {
            Some(content) if content.get().starts_with('[') => return Ok(outcome),
            Some(_) => "`content` is not an array",
            None if members.contains("structuredContent") => return Ok(outcome),
            None => "neither `content` nor `structuredContent` is present",
        },
    };
    let message = format!("tool `{tool}` returned an invalid result: {why}");
    Err(HubError::new(ErrorKind::ToolFailed, message)
        .with_suggestion("fix the server: a tool result is an object with a `content` array")
        .with_details(json!({"answer": truncate_for_message(outcome.body.get())})))
}

impl RestToolResult {
    pub(super) fn read(body: &RawValue) -> Self {
        let Ok(mut members) = Object::parse(body) else { return Self::default() };
        let blocks = members.get("content").and_then(|content| serde_json::from_str(content.get()).ok());
        Self { structured: members.remove("structuredContent"), blocks: blocks.unwrap_or_default() }
    }

    pub(super) fn structured(&self) -> Option<&RawValue> {
        self.structured.as_deref()
    }

    /// Returns the value of the result: the structured content if present, otherwise null, the
    /// value of the only block, or an array of the values of all blocks. The value of a text block
    /// is its parsed JSON, or its text if it is not JSON. Other blocks are returned whole.
    pub(super) fn result(&self) -> Raw {
        if let Some(structured) = &self.structured {
            return structured.clone();
        }
        match self.blocks.as_slice() {
            [] => RawValue::NULL.to_owned(),
            [only] => value(only),
            several => list(several.iter().map(|block| value(block))),
        }
    }

    /// Returns all content blocks verbatim.
    pub(super) fn content(&self) -> Raw {
        list(self.blocks.iter().cloned())
    }

    /// Returns the text of all text blocks, joined by line breaks.
    pub(super) fn text(&self) -> String {
        let texts: Vec<String> = self.blocks.iter().filter_map(|block| text(block)).collect();
        texts.join("\n")
    }
}

fn value(block: &RawValue) -> Raw {
    match text(block) {
        Some(text) => parse_untrusted(&text).unwrap_or_else(|| to_raw(&text)),
        None => block.to_owned(),
    }
}

fn text(block: &RawValue) -> Option<String> {
    let block: Text = serde_json::from_str(block.get()).ok()?;
    block.text.filter(|_| block.r#type == "text")
}

pub(super) fn list(values: impl Iterator<Item = Raw>) -> Raw {
    let mut text = String::from("[");
    for (at, value) in values.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(value.get());
    }
    text.push(']');
    from_text(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_hub::json::from_text;

    use super::RestToolResult;

    fn result(body: &str) -> String {
        RestToolResult::read(&from_text(body.to_owned())).result().get().to_owned()
    }

    fn of_text(text: &str) -> String {
        result(&json!({"content": [{"type": "text", "text": text}]}).to_string())
    }

    #[test]
    fn structured_content_is_returned_verbatim() {
        let body = r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"z":9007199254740993123,"a": 1.0,"e":1e400}}"#;
        assert_eq!(result(body), r#"{"z":9007199254740993123,"a": 1.0,"e":1e400}"#);
        assert_eq!(result(r#"{"structuredContent":null,"content":[]}"#), "null");
    }

    #[test]
    fn text_that_is_json_is_parsed_and_other_text_is_a_string() {
        assert_eq!(
            of_text(r#" {"n":18446744073709551616,"f":1.0} "#),
            r#"{"n":18446744073709551616,"f":1.0}"#
        );
        assert_eq!(of_text("42"), "42");
        assert_eq!(of_text("{\"a\":"), r#""{\"a\":""#);
        assert_eq!(of_text("Lift-off!"), r#""Lift-off!""#);
        assert_eq!(of_text(""), r#""""#);
        assert_eq!(of_text("1 2"), r#""1 2""#);
    }

    #[test]
    fn json_that_is_nested_too_deeply_stays_text() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(of_text(&deep), format!("\"{deep}\""));
        assert_eq!(of_text(r#"["[[\"[[", 1]"#), r#"["[[\"[[", 1]"#);
    }

    #[test]
    fn several_blocks_are_an_array_and_no_block_is_null() {
        let body = r#"{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"b"},{"type":"hologram","n":1.0}]}"#;
        assert_eq!(
            result(body),
            r#"[{"a":1},{"type":"image","data":"AA==","mimeType":"image/png"},"b",{"type":"hologram","n":1.0}]"#
        );
        assert_eq!(result(r#"{"content":[]}"#), "null");
        assert_eq!(result("{}"), "null");
        assert_eq!(result("7"), "null");
    }
}
