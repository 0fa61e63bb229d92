//! Converts answers to the words of the table.

use serde_json::Value;

use super::callers::Caller;

/// The kinds of items that a list can show, each with its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lens {
    Tools,
    Resources,
    Templates,
    Prompts,
    Servers,
    /// Servers that write to standard error.
    Talkers,
    /// Servers as labels of metrics.
    Sources,
    /// Servers as keys of an object.
    Keys,
}

const SERVERS: [(&str, &str); 7] =
    [("a", "a"), ("b", "b"), ("l", "l"), ("o", "o"), ("p", "programs"), ("x", "x"), ("y", "y")];

/// Returns the letters of the items in a text, or `-` if there are none.
pub(super) fn letters(lens: Lens, text: &str) -> String {
    let text = text.replace("\\\"", "\"");
    let markers: Vec<(&str, String)> = match lens {
        Lens::Tools => vec![
            ("a", "mcp__a__echo".to_owned()),
            ("r", "mcp__a__restricted".to_owned()),
            ("b", "mcp__b__echo".to_owned()),
            ("l", "mcp__l__echo".to_owned()),
            ("o", "mcp__o__get_pet".to_owned()),
            ("p", "execute_program".to_owned()),
        ],
        Lens::Resources => of_three(|name| format!("{name}://note\"")),
        Lens::Templates => of_three(|name| format!("{name}://notes/{{n}}")),
        Lens::Prompts => of_three(|name| format!("mcp__{name}__greet")),
        Lens::Servers => SERVERS.map(|(letter, name)| (letter, format!("ame\":\"{name}\""))).into(),
        Lens::Talkers => vec![("e", "ame\":\"e\"".to_owned())],
        Lens::Sources => SERVERS.map(|(letter, name)| (letter, format!("source=\"{name}\""))).into(),
        Lens::Keys => SERVERS.map(|(letter, name)| (letter, format!("\"{name}\":"))).into(),
    };
    join_letters(
        markers.iter().filter(|(_, marker)| text.contains(marker.as_str())).map(|(letter, _)| *letter),
    )
}

fn of_three(marker: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
    ["a", "b", "l"].map(|name| (name, marker(name))).into()
}

/// Joins letters, or returns `-` if there are none.
pub(super) fn join_letters<'a>(letters: impl Iterator<Item = &'a str>) -> String {
    let letters: String = letters.collect();
    if letters.is_empty() { "-".to_owned() } else { letters }
}

/// Converts a status to the word of the table.
pub(super) fn of_status(status: u16) -> String {
    match status {
        200..=299 => "ok".to_owned(),
        other => other.to_string(),
    }
}

/// Converts a code of REST or of the control socket.
pub(super) fn of_code(code: &str) -> String {
    match code {
        "PERMISSION_ERROR" => "403".to_owned(),
        "NOT_FOUND" | "TOOL_NOT_FOUND" => "404".to_owned(),
        "VALIDATION_ERROR" => "400".to_owned(),
        // The request was authorized, but its target was busy.
        "RATE_LIMIT_ERROR" => "ok".to_owned(),
        other => other.to_lowercase(),
    }
}

/// Converts an MCP answer.
pub(super) fn of_message(message: &Value) -> String {
    let error = &message["error"];
    let text = match error["message"].as_str() {
        Some(text) => text,
        None if message["result"]["isError"] == true => {
            message["result"]["content"][0]["text"].as_str().unwrap_or_default()
        }
        None => return "ok".to_owned(),
    };
    let unknown = ["unknown ", "tool_not_found", "there is no "];
    match error["code"].as_i64() {
        _ if text.contains("needs the permission") => "403".to_owned(),
        _ if unknown.iter().any(|word| text.contains(word)) => "404".to_owned(),
        None => "fail".to_owned(),
        Some(code) => code.to_string(),
    }
}

/// Returns a server that is hidden from this caller but named in the answer, although the request
/// does not name it.
pub(super) fn leaked(caller: &Caller, operation: &str, text: &str) -> Option<&'static str> {
    let known = caller.servers?;
    ["b", "l", "o"].into_iter().filter(|name| !known.contains(name)).find(|name| {
        let tool = format!("mcp__{name}__");
        let resource = format!("{name}://");
        [tool, resource].iter().any(|marker| text.contains(marker) && !operation.contains(marker))
    })
}
