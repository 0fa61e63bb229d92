//! What a tool's result is in REST. The text of numbers and the order of keys stay what they were: values are cut out of
//! what the source said and put in as they are.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, from_text, parse_untrusted, to_raw, truncate_for_message};
use toolyard_hub::{ErrorKind, HubError, Outcome, Raw};

/// A result, cut into what matters here.
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

/// The outcome, if its body is a tool result of the protocol. Anything else has no value that could be told as the
/// result, and `null` would look like one. Where the tool itself says that it failed, that is all there is to say.
pub(super) fn validate_result(tool: &str, outcome: Outcome) -> Result<Outcome, HubError> {
    // Most results begin like this, and need no second look.
    if outcome.failed || outcome.body.get().starts_with(r#"{"content":["#) {
        return Ok(outcome);
    }
    let why = match Object::parse(&outcome.body) {
        Err(_) => "it is not an object",
        Ok(members) => match members.get("content") {
            Some(content) if content.get().starts_with('[') => return Ok(outcome),
            Some(_) => "its `content` is not an array",
            None if members.contains("structuredContent") => return Ok(outcome),
            None => "it has neither `content` nor `structuredContent`",
        },
    };
    let message = format!("{tool} was called, but its answer is not a tool result: {why}");
    Err(HubError::new(ErrorKind::ToolFailed, message)
        .with_suggestion("fix the server of the tool: a result is an object with an array `content`")
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

    /// What a tool gave: the structured content if there is one; else nothing, its only block, or a list of its
    /// blocks. A block of text counts as the JSON that it is, else as its text; others are shown whole.
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

    /// Every block as the source said it.
    pub(super) fn content(&self) -> Raw {
        list(self.blocks.iter().cloned())
    }

    /// All text in it, line by line.
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
    fn structured_content_goes_out_as_it_came() {
        let body = r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"z":9007199254740993123,"a": 1.0,"e":1e400}}"#;
        assert_eq!(result(body), r#"{"z":9007199254740993123,"a": 1.0,"e":1e400}"#);
        assert_eq!(result(r#"{"structuredContent":null,"content":[]}"#), "null");
    }

    #[test]
    fn text_that_is_json_is_json_and_other_text_is_text() {
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
    fn json_that_nobody_could_read_stays_text() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(of_text(&deep), format!("\"{deep}\""));
        assert_eq!(of_text(r#"["[[\"[[", 1]"#), r#"["[[\"[[", 1]"#);
    }

    #[test]
    fn several_blocks_are_a_list_and_no_block_is_nothing() {
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
