//! The form that results must have, by the protocol: members that exist and have the right type.

use serde_json::Value;

use crate::expect::diff::shorten;

/// Returns what is wrong with the form of a tool result.
pub(crate) fn tool_result_problems(result: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    match result.get("content") {
        Some(Value::Array(blocks)) => {
            for (index, block) in blocks.iter().enumerate() {
                problems.extend(block_problem(block).map(|problem| format!("`content[{index}]` {problem}")));
            }
        }
        Some(_) => problems.push("`content` must be a list".to_owned()),
        None => problems.push("a result must have `content`".to_owned()),
    }
    if result.get("isError").is_some_and(|value| !value.is_boolean()) {
        problems.push("`isError` must be true or false".to_owned());
    }
    if result.get("structuredContent").is_some_and(Value::is_null) {
        problems.push("`structuredContent` must not be null".to_owned());
    }
    problems.truncate(5);
    problems
}

/// Returns what is wrong with a content block.
fn block_problem(block: &Value) -> Option<String> {
    let Some(kind) = block.get("type").and_then(Value::as_str) else {
        return Some("must have a `type`".to_owned());
    };
    let missing = |object: &Value, keys: &[&str]| {
        let wrong = keys.iter().find(|key| !object.get(**key).is_some_and(Value::is_string))?;
        Some(format!("of type `{kind}` must have a text `{wrong}`"))
    };
    match kind {
        "text" => missing(block, &["text"]),
        "image" | "audio" => missing(block, &["data", "mimeType"]),
        "resource_link" => missing(block, &["uri", "name"]),
        "resource" => match block.get("resource") {
            Some(resource) => contents_problem(resource),
            None => Some("of type `resource` must have `resource`".to_owned()),
        },
        _ => Some(format!("has the unknown type `{}`", shorten(kind))),
    }
}

/// Returns what is wrong with the contents of a resource.
fn contents_problem(contents: &Value) -> Option<String> {
    let is_text = |key: &str| contents.get(key).is_some_and(Value::is_string);
    match (is_text("uri"), is_text("text") || is_text("blob")) {
        (false, _) => Some("must have a text `uri`".to_owned()),
        (_, false) => Some("must have `text` or `blob`".to_owned()),
        _ => None,
    }
}

/// Returns what is wrong with the result of reading a resource.
pub(crate) fn resource_result_problem(result: &Value) -> Option<String> {
    match result.get("contents") {
        Some(Value::Array(all)) => all.iter().enumerate().find_map(|(index, contents)| {
            contents_problem(contents).map(|problem| format!("`contents[{index}]` {problem}"))
        }),
        _ => Some("a result must have a list `contents`".to_owned()),
    }
}

/// Returns what is wrong with the messages of a prompt.
pub(crate) fn prompt_result_problem(result: &Value) -> Option<String> {
    let Some(Value::Array(messages)) = result.get("messages") else {
        return Some("a result must have a list `messages`".to_owned());
    };
    messages.iter().enumerate().find_map(|(index, message)| {
        let has_role = matches!(message.get("role").and_then(Value::as_str), Some("user" | "assistant"));
        let problem = match message.get("content") {
            _ if !has_role => Some("must have the role `user` or `assistant`".to_owned()),
            Some(content) if content.is_object() => block_problem(content),
            _ => Some("must have an object `content`".to_owned()),
        };
        problem.map(|problem| format!("`messages[{index}]` {problem}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{prompt_result_problem, resource_result_problem};

    #[test]
    fn resources_and_prompts_have_the_form_of_the_protocol() {
        assert_eq!(resource_result_problem(&json!({"contents": [{"uri": "a:b", "text": ""}]})), None);
        let wrong = json!({"contents": [{"uri": "a:b", "text": 1}]});
        assert_eq!(resource_result_problem(&wrong).unwrap(), "`contents[0]` must have `text` or `blob`");
        let message = json!({"role": "user", "content": {"type": "text", "text": "a"}});
        assert_eq!(prompt_result_problem(&json!({"messages": [message]})), None);
        let wrong = json!({"messages": [{"role": "system", "content": {"type": "text", "text": "a"}}]});
        assert!(prompt_result_problem(&wrong).unwrap().contains("role"));
    }
}
