//! The assertions of mcp-assert, with its semantics: the first that fails is reported, texts are
//! compared after trimming, and values at JSON paths by how Go prints them.

use std::fs;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::expect::AssertionFailure;
use crate::expect::diff::shorten;
use crate::expect::matcher::compile;
use crate::expect::observation::Observation;
use crate::file::FilePosition;
use crate::values::Variables;

/// Objects whose length counts as the number of results.
const RESULT_KEYS: [&str; 5] = ["locations", "items", "results", "references", "symbols"];

/// The assertions of an imported file.
#[derive(Debug, Clone)]
pub struct McpAssertExpect {
    pub target: McpAssertTarget,
}

#[derive(Debug, Clone)]
pub enum McpAssertTarget {
    /// The step must get an answer.
    Nothing,
    Result(Box<AssertResultExpect>),
    Logging(AssertLoggingExpect),
    Notifications(AssertNotificationExpect),
}

/// The `expect` of a result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AssertResultExpect {
    #[serde(deserialize_with = "texts")]
    pub contains: Vec<String>,
    #[serde(deserialize_with = "texts")]
    pub contains_any: Vec<String>,
    #[serde(deserialize_with = "texts")]
    pub not_contains: Vec<String>,
    pub equals: Option<Value>,
    pub json_path: Map<String, Value>,
    pub min_results: Option<usize>,
    pub max_results: Option<usize>,
    pub not_empty: Option<bool>,
    pub not_error: Option<bool>,
    pub is_error: Option<bool>,
    #[serde(deserialize_with = "texts")]
    pub matches_regex: Vec<String>,
    pub file_contains: Map<String, Value>,
    pub file_not_contains: Map<String, Value>,
    #[serde(deserialize_with = "texts")]
    pub file_not_exists: Vec<String>,
    pub net_delta: Option<i64>,
    #[serde(deserialize_with = "texts")]
    pub in_order: Vec<String>,
    pub min_progress: Option<usize>,
}

/// The `expect` of `assert_logging`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AssertLoggingExpect {
    pub min_messages: Option<usize>,
    pub contains_level: Vec<String>,
    pub contains_data: Vec<String>,
}

/// The `expect` of `assert_notifications`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AssertNotificationExpect {
    pub min_count: Option<usize>,
    pub max_count: Option<usize>,
    pub methods: Vec<String>,
    pub not_methods: Vec<String>,
    pub contains_data: Vec<String>,
    pub not_contains_data: Vec<String>,
}

/// Reads a list of texts in which YAML may see numbers.
fn texts<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(values.iter().map(super::scalar).collect())
}

/// Checks the assertions of an imported step.
pub(crate) fn check(
    at: FilePosition,
    expect: &McpAssertExpect,
    seen: &Observation,
    variables: &Variables,
) -> Vec<AssertionFailure> {
    let checked = match (&seen.failure, &expect.target) {
        (Some(failure), _) => Err(failure.words()),
        (None, McpAssertTarget::Nothing) => Ok(()),
        (None, McpAssertTarget::Result(expect)) => check_result(expect, seen, variables),
        (None, McpAssertTarget::Logging(expect)) => check_logging(expect, seen),
        (None, McpAssertTarget::Notifications(expect)) => check_notifications(expect, seen),
    };
    checked.err().map(|message| AssertionFailure::new(at, message)).into_iter().collect()
}

fn check_result(
    expect: &AssertResultExpect,
    seen: &Observation,
    variables: &Variables,
) -> Result<(), String> {
    let text = result_text(seen);
    let is_error = seen.is_tool_error();
    if expect.not_error == Some(true) && is_error {
        return Err(format!("expected no error, but the tool returned isError: {}", shorten(&text)));
    }
    if expect.is_error == Some(true) && !is_error {
        return Err("expected an error, but the tool returned no isError".to_owned());
    }
    if expect.not_empty == Some(true) && ["", "null", "[]", "{}"].contains(&text.trim()) {
        return Err(format!("expected a result that is not empty, got {:?}", text.trim()));
    }
    if let Some(wanted) = &expect.equals {
        let wanted = super::scalar(wanted);
        if text.trim() != wanted.trim() {
            return Err(format!("expected exactly {wanted:?}, got {:?}", shorten(&text)));
        }
    }
    let got = || shorten(&text);
    if let Some(part) = expect.contains.iter().find(|part| !text.contains(*part)) {
        return Err(format!("expected the result to contain {part:?}, got {:?}", got()));
    }
    if !expect.contains_any.is_empty() && !expect.contains_any.iter().any(|part| text.contains(part)) {
        return Err(format!(
            "expected the result to contain one of {:?}, got {:?}",
            expect.contains_any,
            got()
        ));
    }
    if let Some(part) = expect.not_contains.iter().find(|part| text.contains(*part)) {
        return Err(format!("expected the result not to contain {part:?}, got {:?}", got()));
    }
    for pattern in &expect.matches_regex {
        if !compile(pattern)?.is_match(&text) {
            return Err(format!("expected the result to match /{pattern}/, got {:?}", got()));
        }
    }
    check_json_paths(&expect.json_path, &text)?;
    check_count(expect, &text)?;
    if let Some(wanted) = expect.net_delta {
        let value: Value = parse(&text).map_err(|error| format!("net_delta: {error}"))?;
        let delta =
            value.get("net_delta").and_then(Value::as_f64).ok_or("net_delta: not found in the result")?;
        if delta.trunc() != wanted as f64 {
            return Err(format!("expected net_delta {wanted}, got {delta}"));
        }
    }
    check_files(expect, variables)?;
    let mut from = 0;
    for part in &expect.in_order {
        match text[from..].find(part.as_str()) {
            Some(at) => from += at + part.len(),
            None => return Err(format!("expected {part:?} after the parts before it, got {:?}", got())),
        }
    }
    let progress = seen.progress().len();
    match expect.min_progress {
        Some(least) if progress < least => {
            Err(format!("expected at least {least} progress notifications, got {progress}"))
        }
        _ => Ok(()),
    }
}

/// Returns the text that mcp-assert sees: text blocks only, and the JSON of lists and completions.
fn result_text(seen: &Observation) -> String {
    let Some(result) = &seen.result else { return String::new() };
    let list = |key: &str| result.get(key).and_then(Value::as_array);
    let text_of = |block: &Value| match block.get("type").and_then(Value::as_str) {
        Some("text") => block.get("text").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    if let Some(blocks) = list("content") {
        return blocks.iter().filter_map(text_of).collect::<Vec<_>>().join("\n");
    }
    if let Some(contents) = list("contents") {
        let parts = contents.iter().map(|content| match content.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => {
                let member = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default();
                format!("<blob mimeType={:?} len={}>", member("mimeType"), member("blob").len())
            }
        });
        return parts.collect::<Vec<_>>().join("\n");
    }
    if let Some(messages) = list("messages") {
        let description = result.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
        let parts = messages.iter().map(|message| {
            let content = message.get("content").unwrap_or(&Value::Null);
            text_of(content).unwrap_or_else(|| content.to_string())
        });
        return description.map(str::to_owned).into_iter().chain(parts).collect::<Vec<_>>().join("\n");
    }
    result.to_string()
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("the result is not JSON: {error}"))
}

/// Parses a text, or else the first of its lines that is JSON.
fn parse_segment(text: &str) -> Result<Value, String> {
    parse(text).or_else(|error| {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.find_map(|line| serde_json::from_str(line).ok()).ok_or(error)
    })
}

fn check_json_paths(paths: &Map<String, Value>, text: &str) -> Result<(), String> {
    if paths.is_empty() {
        return Ok(());
    }
    let value = parse_segment(text).map_err(|error| format!("json_path: {error}"))?;
    let mut paths: Vec<(&String, &Value)> = paths.iter().collect();
    paths.sort_by_key(|(path, _)| *path);
    for (path, wanted) in paths {
        let found = look_up(&value, path).map_err(|error| format!("json_path {path:?}: {error}"))?;
        let (wanted, found) = (go_format(wanted), go_format(found));
        if wanted != found {
            return Err(format!("json_path {path:?}: expected {wanted}, got {found}"));
        }
    }
    Ok(())
}

/// Follows a path such as `$.field.list[0].name`.
fn look_up<'v>(value: &'v Value, path: &str) -> Result<&'v Value, String> {
    let mut current = value;
    for part in path.strip_prefix("$.").unwrap_or(path).split('.') {
        let object = current.as_object().ok_or_else(|| format!("expected an object at {part:?}"))?;
        current = match part.split_once('[') {
            Some((field, index)) => {
                let list = object.get(field).and_then(Value::as_array);
                let list = list.ok_or_else(|| format!("expected a list at {field:?}"))?;
                let digits: String = index.chars().take_while(char::is_ascii_digit).collect();
                let index: usize = digits.parse().map_err(|_| format!("invalid index {index:?}"))?;
                list.get(index).ok_or_else(|| format!("index {index} is out of range"))?
            }
            None => object.get(part).ok_or_else(|| format!("field {part:?} not found"))?,
        };
    }
    Ok(current)
}

/// Formats a value like `%v` of Go.
pub(super) fn go_format(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            // JSON numbers are floats in Go, written with an exponent from 1e21 on.
            Some(float) if float.abs() < 1e21 => float.to_string(),
            _ => number.to_string(),
        },
        Value::Bool(flag) => flag.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_format).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members = members.into_iter().map(|(key, value)| format!("{key}:{}", go_format(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
    }
}

fn check_count(expect: &AssertResultExpect, text: &str) -> Result<(), String> {
    if expect.min_results.is_none() && expect.max_results.is_none() {
        return Ok(());
    }
    let value = parse_segment(text).unwrap_or_default();
    let list = match &value {
        Value::Object(members) => RESULT_KEYS.iter().find_map(|key| members.get(*key)?.as_array()),
        other => other.as_array(),
    };
    let count = list.ok_or("min/max_results: the result is neither a list nor an object with one")?.len();
    match (expect.min_results, expect.max_results) {
        (Some(min), _) if count < min => Err(format!("expected at least {min} results, got {count}")),
        (_, Some(max)) if count > max => Err(format!("expected at most {max} results, got {count}")),
        _ => Ok(()),
    }
}

fn check_files(expect: &AssertResultExpect, variables: &Variables) -> Result<(), String> {
    let complete = |path: &str| variables.complete_text(path).map_err(|error| error.to_string());
    let read = |path: &str| -> Result<String, String> {
        let path = complete(path)?;
        let bytes = fs::read(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    for (path, wanted) in &expect.file_contains {
        if !read(path)?.contains(&super::scalar(wanted)) {
            return Err(format!("file_contains: {path} does not contain {wanted}"));
        }
    }
    for (path, unwanted) in &expect.file_not_contains {
        if read(path)?.contains(&super::scalar(unwanted)) {
            return Err(format!("file_not_contains: {path} contains {unwanted}"));
        }
    }
    for path in &expect.file_not_exists {
        if fs::exists(complete(path)?).unwrap_or(true) {
            return Err(format!("file_not_exists: {path} exists"));
        }
    }
    Ok(())
}

fn check_logging(expect: &AssertLoggingExpect, seen: &Observation) -> Result<(), String> {
    let messages = seen.of_method("notifications/message");
    if expect.min_messages.is_some_and(|least| messages.len() < least) {
        return Err(format!("expected more log messages, got {}", messages.len()));
    }
    let text = |params: &Value, key: &str| params.get(key).map(go_format).unwrap_or_default();
    let missing = expect
        .contains_level
        .iter()
        .find(|level| !messages.iter().any(|params| text(params, "level") == **level));
    if let Some(level) = missing {
        return Err(format!("expected a log message at level {level:?}"));
    }
    let missing = expect
        .contains_data
        .iter()
        .find(|part| !messages.iter().any(|params| text(params, "data").contains(*part)));
    match missing {
        Some(part) => Err(format!("expected log data with {part:?}")),
        None => Ok(()),
    }
}

fn check_notifications(expect: &AssertNotificationExpect, seen: &Observation) -> Result<(), String> {
    let count = seen.messages.len();
    if expect.min_count.is_some_and(|least| count < least)
        || expect.max_count.is_some_and(|most| count > most)
    {
        return Err(format!("got {count} notifications"));
    }
    let has_method = |method: &&String| seen.messages.iter().any(|message| message.method == **method);
    if let Some(method) = expect.methods.iter().find(|method| !has_method(method)) {
        return Err(format!("the notification {method:?} did not arrive"));
    }
    if let Some(method) = expect.not_methods.iter().find(has_method) {
        return Err(format!("the notification {method:?} arrived"));
    }
    let has_data =
        |part: &&String| seen.messages.iter().any(|message| message.params.to_string().contains(*part));
    if let Some(part) = expect.contains_data.iter().find(|part| !has_data(part)) {
        return Err(format!("no notification contains {part:?}"));
    }
    match expect.not_contains_data.iter().find(has_data) {
        Some(part) => Err(format!("a notification contains {part:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{AssertResultExpect, check_result, go_format, look_up};
    use crate::expect::observation::Observation;
    use crate::values::Variables;

    #[test]
    fn values_are_formatted_like_in_go() {
        let value = json!({"b": [1, 1.5, null], "a": "x", "c": true});
        assert_eq!(go_format(&value), "map[a:x b:[1 1.5 <nil>] c:true]");
        assert_eq!(go_format(&json!(100_000)), "100000");
    }

    #[test]
    fn paths_are_followed() {
        let value = json!({"a": {"b": [{"c": 1}]}});
        assert_eq!(
            look_up(&value, "$.a.b[0].c"),
            Err("expected a list at \"b\"".to_owned()).or(Ok(&json!(1)))
        );
        assert!(look_up(&value, "$.a.b[1]").unwrap_err().contains("out of range"));
        assert!(look_up(&value, "$.x").unwrap_err().contains("not found"));
    }

    #[test]
    fn each_assertion_has_its_verdict() {
        let text = "{\"n\": 5, \"items\": [1, 2]}\nNext step";
        let result = json!({"content": [{"type": "text", "text": text}]});
        let seen = Observation { result: Some(result), ..Observation::default() };
        let verdict = |expect: serde_json::Value| {
            let expect: AssertResultExpect = serde_json::from_value(expect).unwrap();
            check_result(&expect, &seen, &Variables::default()).is_ok()
        };
        for right in [
            json!({"contains": ["Next", 5]}),
            json!({"contains_any": ["x", "Next"]}),
            json!({"not_contains": ["y"]}),
            json!({"equals": format!(" {text}\n")}),
            json!({"json_path": {"$.n": 5, "$.items[1]": "2"}}),
            json!({"min_results": 2, "max_results": 2}),
            json!({"not_empty": true, "not_error": true}),
            json!({"matches_regex": ["N[a-z]+"]}),
            json!({"in_order": ["items", "Next"]}),
        ] {
            assert!(verdict(right.clone()), "{right}");
        }
        for wrong in [
            json!({"contains": ["Next", "y"]}),
            json!({"contains_any": ["z"]}),
            json!({"not_contains": ["Next"]}),
            json!({"equals": "x"}),
            json!({"json_path": {"$.n": 6}}),
            json!({"min_results": 3}),
            json!({"max_results": 1}),
            json!({"is_error": true}),
            json!({"matches_regex": ["^x"]}),
            json!({"in_order": ["Next", "items"]}),
            json!({"min_progress": 1}),
            json!({"file_contains": {"/no/such/file": "x"}}),
        ] {
            assert!(!verdict(wrong.clone()), "{wrong}");
        }
    }
}
