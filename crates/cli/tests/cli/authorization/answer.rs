//! What came back, in the words of the table.

use serde_json::Value;

use super::callers::Caller;

/// The things that a list can show, each with the letter that stands for it.
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

/// The letters of what a text shows; `-` where it shows nothing.
pub(super) fn letters(lens: Lens, text: &str) -> String {
    let text = text.replace("\\\"", "\"");
    let found: Vec<(&str, String)> = match lens {
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
    of(found.iter().filter(|(_, marker)| text.contains(marker.as_str())).map(|(letter, _)| *letter))
}

fn of_three(marker: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
    ["a", "b", "l"].map(|name| (name, marker(name))).into()
}

/// The same of letters that were found one by one.
pub(super) fn of<'a>(found: impl Iterator<Item = &'a str>) -> String {
    let found: String = found.collect();
    if found.is_empty() { "-".to_owned() } else { found }
}

/// What the table says instead of the words that each front has for it.
pub(super) fn of_status(status: u16) -> String {
    match status {
        200..=299 => "ok".to_owned(),
        other => other.to_string(),
    }
}

/// The same of the codes of REST and of the control socket.
pub(super) fn of_code(code: &str) -> String {
    match code {
        "PERMISSION_ERROR" => "403".to_owned(),
        "NOT_FOUND" | "TOOL_NOT_FOUND" => "404".to_owned(),
        "VALIDATION_ERROR" => "400".to_owned(),
        // The request was let through; what it was about was busy.
        "RATE_LIMIT_ERROR" => "ok".to_owned(),
        other => other.to_lowercase(),
    }
}

/// The same of an answer of MCP.
pub(super) fn of_message(message: &Value) -> String {
    let error = &message["error"];
    let said = match error["message"].as_str() {
        Some(said) => said,
        None if message["result"]["isError"] == true => {
            message["result"]["content"][0]["text"].as_str().unwrap_or_default()
        }
        None => return "ok".to_owned(),
    };
    let unknown = ["unknown ", "tool_not_found", "there is no "];
    match error["code"].as_i64() {
        _ if said.contains("needs the permission") => "403".to_owned(),
        _ if unknown.iter().any(|word| said.contains(word)) => "404".to_owned(),
        None => "fail".to_owned(),
        Some(code) => code.to_string(),
    }
}

/// A server that does not exist for this caller and that the answer names all the same, though nobody asked for it.
pub(super) fn leaked(caller: &Caller, operation: &str, text: &str) -> Option<&'static str> {
    let known = caller.servers?;
    ["b", "l", "o"].into_iter().filter(|name| !known.contains(name)).find(|name| {
        let tool = format!("mcp__{name}__");
        let resource = format!("{name}://");
        [tool, resource].iter().any(|marker| text.contains(marker) && !operation.contains(marker))
    })
}
