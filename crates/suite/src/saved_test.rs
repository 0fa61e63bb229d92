//! Writes a call that was made as a test file. The test expects the result that the call had.

use std::path::Path;

use serde_json::{Map, Value};

use crate::expect::observation::{result_text, strip_envelope};
use crate::file::parse_test_file;
use crate::snapshot::render::quote_text;
use crate::values::escape_variables;

const HEAD: &str = "# yaml-language-server: $schema=https://raw.githubusercontent.com/toolyard/toolyard/main/docs/toolyard-test.schema.json\n";
/// The maximum number of characters of a test's name that come from its arguments.
const NAME: usize = 60;
/// Words that are not a text in YAML.
const NOT_A_TEXT: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"];

/// The server of a saved test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavedServer {
    /// A server of the configuration.
    Configured(String),
    Command {
        program: String,
        args: Vec<String>,
        /// The names of environment variables. Their values stay outside the file.
        env: Vec<String>,
        /// Default: the folder of the file.
        cwd: Option<String>,
    },
    Url {
        url: String,
        /// The names of headers. Their values stay outside the file.
        headers: Vec<String>,
    },
}

/// A request that was made, and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedCall {
    pub request: SavedRequest,
    pub outcome: SavedOutcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SavedRequest {
    Call { tool: String, arguments: Value },
    Read { uri: String },
    Prompt { name: String, arguments: Value },
}

#[derive(Debug, Clone, PartialEq)]
pub enum SavedOutcome {
    Result(Value),
    /// A protocol error with this code.
    Error(Option<i64>),
}

/// Returns a test file with a test for each call.
pub fn render_saved_tests(server: &SavedServer, calls: &[SavedCall]) -> String {
    let mut text = HEAD.to_owned();
    let secret = |name: &String| {
        let variable: String =
            name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        (name.clone(), Value::String(format!("${{env:{}}}", variable.to_ascii_uppercase())))
    };
    let texts =
        |words: &[String]| words.iter().map(|word| escape_variables(&Value::String(word.clone()))).collect();
    let server = match server {
        SavedServer::Configured(name) => escape_variables(&Value::String(name.clone())),
        SavedServer::Command { program, args, env, cwd } => {
            let mut members = Map::new();
            members.insert("command".to_owned(), escape_variables(&Value::String(program.clone())));
            if !args.is_empty() {
                members.insert("args".to_owned(), Value::Array(texts(args)));
            }
            if !env.is_empty() {
                members.insert("env".to_owned(), Value::Object(env.iter().map(secret).collect()));
            }
            if let Some(cwd) = cwd {
                members.insert("cwd".to_owned(), escape_variables(&Value::String(cwd.clone())));
            }
            Value::Object(members)
        }
        SavedServer::Url { url, headers } => {
            let mut members = Map::new();
            members.insert("url".to_owned(), escape_variables(&Value::String(url.clone())));
            if !headers.is_empty() {
                members.insert("headers".to_owned(), Value::Object(headers.iter().map(secret).collect()));
            }
            Value::Object(members)
        }
    };
    write_member(&mut text, "server", &server, 0);
    text.push_str("tests:\n");
    let mut names = Vec::new();
    for call in calls {
        let name = unique_name(call, &names);
        write_test(&mut text, &name, call);
        names.push(name);
    }
    text
}

/// Adds a test to the end of a file, or returns why that is not possible.
pub fn append_saved_test(path: &Path, existing: &str, call: &SavedCall) -> Result<String, String> {
    let names_of = |text: &str| -> Result<Vec<String>, String> {
        let file = parse_test_file(path, text).map_err(|problems| match problems.first() {
            Some(problem) => problem.message.clone(),
            None => "the file is invalid".to_owned(),
        })?;
        Ok(file.tests.into_iter().map(|test| test.name).collect())
    };
    let before = names_of(existing).map_err(|reason| format!("it is not a test file: {reason}"))?;
    let name = unique_name(call, &before);
    let mut text = format!("{}\n", existing.trim_end());
    write_test(&mut text, &name, call);
    // The list of tests can be somewhere else in the file, or be written in another form.
    let is_added = names_of(&text).is_ok_and(|after| after.split_last() == Some((&name, before.as_slice())));
    if is_added { Ok(text) } else { Err("its list of tests is not at its end".to_owned()) }
}

fn unique_name(call: &SavedCall, taken: &[String]) -> String {
    let (subject, arguments) = match &call.request {
        SavedRequest::Call { tool, arguments } => (tool, Some(arguments)),
        SavedRequest::Prompt { name, arguments } => (name, Some(arguments)),
        SavedRequest::Read { uri } => (uri, None),
    };
    let mut name = subject.clone();
    for (key, value) in arguments.and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        name.push_str(&format!(" {key}={value}"));
    }
    let longest = subject.chars().count() + NAME;
    let mut name: String =
        name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(longest).collect();
    let base = name.trim().to_owned();
    name.clone_from(&base);
    let mut number = 1;
    while taken.contains(&name) {
        number += 1;
        name = format!("{base} ({number})");
    }
    name
}

fn write_test(out: &mut String, name: &str, call: &SavedCall) {
    out.push_str(&format!("  - name: {}\n", quote_text(name)));
    let arguments = match &call.request {
        SavedRequest::Call { tool, arguments } => {
            write_member(out, "call", &escape_variables(&Value::String(tool.clone())), 4);
            Some(arguments)
        }
        SavedRequest::Prompt { name, arguments } => {
            write_member(out, "prompt", &escape_variables(&Value::String(name.clone())), 4);
            Some(arguments)
        }
        SavedRequest::Read { uri } => {
            write_member(out, "read", &escape_variables(&Value::String(uri.clone())), 4);
            None
        }
    };
    if let Some(arguments) = arguments.filter(|value| value.as_object().is_some_and(|map| !map.is_empty())) {
        write_member(out, "arguments", &escape_variables(arguments), 4);
    }
    write_member(out, "expect", &escape_variables(&expectation(&call.outcome)), 4);
}

/// Returns what the test expects: the part of the result that says most.
fn expectation(outcome: &SavedOutcome) -> Value {
    let mut members = Map::new();
    match outcome {
        SavedOutcome::Error(Some(code)) => {
            let code = Map::from_iter([("code".to_owned(), Value::from(*code))]);
            members.insert("error".to_owned(), Value::Object(code));
        }
        SavedOutcome::Error(None) => drop(members.insert("error".to_owned(), Value::Bool(true))),
        SavedOutcome::Result(result) => {
            let result = strip_envelope(result.clone());
            if result.get("isError") == Some(&Value::Bool(true)) {
                members.insert("isError".to_owned(), Value::Bool(true));
            }
            let (key, value) = match (result.get("structuredContent"), has_only_text(&result)) {
                (Some(structured), _) => ("structured", structured.clone()),
                (None, true) => ("text", Value::String(result_text(&result).unwrap_or_default())),
                (None, false) => ("result", result),
            };
            let equals = Map::from_iter([("equals".to_owned(), value)]);
            members.insert(key.to_owned(), Value::Object(equals));
        }
    }
    Value::Object(members)
}

/// Whether a result of a tool consists of text blocks.
fn has_only_text(result: &Value) -> bool {
    let blocks = result.get("content").and_then(Value::as_array);
    blocks.is_some_and(|blocks| {
        !blocks.is_empty() && blocks.iter().all(|block| block.get("type") == Some(&Value::from("text")))
    })
}

/// Writes a member of a map as YAML.
fn write_member(out: &mut String, key: &str, value: &Value, indent: usize) {
    let is_plain = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
        && !NOT_A_TEXT.contains(&key.to_ascii_lowercase().as_str());
    let key = if is_plain { key.to_owned() } else { quote_text(key) };
    out.push_str(&format!("{:indent$}{key}:", ""));
    write_value(out, value, indent);
}

/// Writes a value after a key or a dash.
fn write_value(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            for (key, value) in members {
                write_member(out, key, value, indent + 2);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                out.push_str(&format!("{:indent$}  -", ""));
                let start = out.len();
                write_value(out, item, indent + 2);
                if item.as_object().is_some_and(|members| !members.is_empty()) {
                    // The first member follows the dash.
                    out.replace_range(start..start + 1 + indent + 4, " ");
                }
            }
        }
        Value::String(text) => out.push_str(&format!(" {}\n", quote_text(text))),
        other => out.push_str(&format!(" {other}\n")),
    }
}

#[cfg(test)]
mod tests;
