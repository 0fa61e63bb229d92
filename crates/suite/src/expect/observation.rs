//! What a step produced: the result with what assertions need from it, and the messages that
//! arrived meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

/// What a step produced.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observation {
    /// The result as the server sent it, without the fields of the protocol's envelope.
    pub(crate) result: Option<Value>,
    pub(crate) failure: Option<StepFailure>,
    /// Names or values, for lists and completions.
    pub(crate) names: Option<Value>,
    pub(crate) duration: Duration,
    pub(crate) bytes: usize,
    pub(crate) messages: Vec<ObservedNotification>,
    /// How many messages arrived but were dropped, because there were too many.
    pub(crate) dropped: u64,
    pub(crate) questions: Vec<Value>,
    pub(crate) stderr: Vec<String>,
    pub(crate) violations: Vec<String>,
}

/// Why a step has no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepFailure {
    /// The server answered with an error.
    Rpc { code: i64, message: String, data: Option<Value> },
    /// There is no answer.
    Other(String),
}

impl StepFailure {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Rpc { code, message, .. } => {
                format!("the server answered with the error {code}: {message}")
            }
            Self::Other(reason) => reason.clone(),
        }
    }
}

/// A notification from the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObservedNotification {
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl Observation {
    pub(crate) fn is_tool_error(&self) -> bool {
        self.result.as_ref().and_then(|result| result.get("isError")) == Some(&Value::Bool(true))
    }

    /// Returns the text of a result: text blocks of a tool, contents of a resource, messages of a
    /// prompt.
    pub(crate) fn text(&self) -> Option<String> {
        result_text(self.result.as_ref()?)
    }

    /// Returns the progress notifications in the order of arrival.
    pub(crate) fn progress(&self) -> Vec<&Value> {
        self.of_method("notifications/progress")
    }

    pub(crate) fn of_method(&self, method: &str) -> Vec<&Value> {
        self.messages
            .iter()
            .filter(|message| message.method == method)
            .map(|message| &message.params)
            .collect()
    }

    /// Returns the stderr lines as one text.
    pub(crate) fn stderr_value(&self) -> Value {
        json!(self.stderr.join("\n"))
    }
}

/// Returns the text of a result, if it has the form of one that can contain text.
pub(crate) fn result_text(result: &Value) -> Option<String> {
    let texts: Vec<&str> = if let Some(blocks) = result.get("content").and_then(Value::as_array) {
        blocks.iter().filter_map(block_text).collect()
    } else if let Some(contents) = result.get("contents").and_then(Value::as_array) {
        contents.iter().filter_map(|content| content.get("text")?.as_str()).collect()
    } else if let Some(messages) = result.get("messages").and_then(Value::as_array) {
        messages.iter().filter_map(|message| block_text(message.get("content")?)).collect()
    } else {
        return None;
    };
    Some(texts.join("\n"))
}

fn block_text(block: &Value) -> Option<&str> {
    match block.get("type")?.as_str()? {
        "text" => block.get("text")?.as_str(),
        "resource" => block.get("resource")?.get("text")?.as_str(),
        _ => None,
    }
}

/// Removes the fields of the protocol's envelope, which differ between the eras: they are about the
/// answer, not part of it.
pub(crate) fn strip_envelope(mut result: Value) -> Value {
    const ENVELOPE: [&str; 4] = ["resultType", "ttlMs", "cacheScope", "nextCursor"];
    const META: &str = "io.modelcontextprotocol/";
    if let Value::Object(members) = &mut result {
        ENVELOPE.iter().for_each(|key| drop(members.shift_remove(*key)));
        if let Some(Value::Object(meta)) = members.get_mut("_meta") {
            meta.retain(|key, _| !key.starts_with(META));
            if meta.is_empty() {
                members.shift_remove("_meta");
            }
        }
        // The default, which some servers write out in one era only.
        if members.get("isError") == Some(&Value::Bool(false)) {
            members.shift_remove("isError");
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{result_text, strip_envelope};

    #[test]
    fn texts_are_joined() {
        let blocks = json!([
            {"type": "text", "text": "a"},
            {"type": "image", "data": "", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x:y", "text": "b"}},
        ]);
        assert_eq!(result_text(&json!({"content": blocks})).as_deref(), Some("a\nb"));
        let contents = json!({"contents": [{"uri": "a:b", "text": "c"}, {"uri": "a:c", "blob": ""}]});
        assert_eq!(result_text(&contents).as_deref(), Some("c"));
        let messages = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "d"}}]});
        assert_eq!(result_text(&messages).as_deref(), Some("d"));
        assert_eq!(result_text(&json!({})), None);
    }

    #[test]
    fn the_envelope_is_not_part_of_the_answer() {
        let modern = json!({
            "content": [], "resultType": "complete", "ttlMs": 0, "isError": false,
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "x"}},
        });
        assert_eq!(strip_envelope(modern), json!({"content": []}));
        let own = json!({"content": [], "_meta": {"a/b": 1, "io.modelcontextprotocol/serverInfo": {}}});
        assert_eq!(strip_envelope(own), json!({"content": [], "_meta": {"a/b": 1}}));
    }
}
