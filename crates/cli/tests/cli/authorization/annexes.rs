//! The tools of the tester and of programs, each at its own endpoint.

use std::fmt::Write;

use serde_json::{Value, json};

use super::super::programs::TURN;
use super::answer::{Lens, join_letters, letters, of_message, of_status};
use super::callers::Caller;
use super::mcp::McpClient;
use super::table::{Row, Table};
use super::yard::World;

/// Calls one tool of every kind and prints the letters of those that answer.
const PROGRAM: &str = "\
for letter, name in [('a', 'mcp__a__echo'), ('r', 'mcp__a__restricted'), ('b', 'mcp__b__echo'), ('l', 'mcp__l__echo')]:
    try:
        await call_tool(name, {})
        print('may use ' + letter)
    except ToolError as error:
        assert error.type in ('forbidden', 'tool_not_found'), error.type
";

/// Returns the arguments of a tester tool, from its row of the table.
fn tester_arguments(tool: &str, words: &str) -> Value {
    match tool {
        "connect_to_server" => json!({"url": words}),
        "call_tool" => json!({"name": "echo", "arguments": {}}),
        "read_resource" => json!({"uri": "a://note"}),
        "get_prompt" => json!({"name": "greet"}),
        _ => json!({}),
    }
}

impl World {
    /// Returns the tools of both endpoints that the table does not name.
    pub(super) async fn missing_tools(&self, table: &Table) -> String {
        let mut missing = String::new();
        let everything = self.callers.iter().find(|caller| caller.column == "all").unwrap();
        for section in ["tester", "programs"] {
            let client = McpClient::modern(self, everything, &format!("/{section}/mcp"));
            let listed = client.ask("tools/list", json!({})).await.unwrap();
            for tool in listed["result"]["tools"].as_array().unwrap() {
                let name = tool["name"].as_str().unwrap();
                if !table.rows.iter().any(|row| row.section == section && row.verb() == name) {
                    writeln!(missing, "[{section}] {name} is not in the table").unwrap();
                }
            }
        }
        missing
    }

    pub(super) async fn tester(&self, row: &Row, caller: &Caller) -> (String, String) {
        let operation = self.fill(row.operation, caller.yard);
        let (tool, words) = operation.split_once(' ').unwrap_or((operation.as_str(), ""));
        let client = match McpClient::legacy(self, &self.sessions, caller, "/tester/mcp").await {
            Ok(client) => client,
            Err(status) => return (of_status(status), String::new()),
        };
        let call = async |tool: &str, words: &str| {
            let call = json!({"name": tool, "arguments": tester_arguments(tool, words)});
            client.ask("tools/call", call).await
        };
        let message = match call(tool, words).await {
            Ok(message) => message,
            Err(status) => return (of_status(status), String::new()),
        };
        let word = of_message(&message);
        if tool == "connect_to_server" && word == "ok" {
            let left = call("disconnect", "").await;
            assert_eq!(left.map(|left| of_message(&left)), Ok("ok".to_owned()));
        }
        (word, message.to_string())
    }

    pub(super) async fn programs(&self, row: &Row, caller: &Caller) -> (String, String) {
        let (tool, words) = (row.verb(), row.rest());
        let client = McpClient::modern(self, caller, "/programs/mcp");
        let arguments = match tool {
            "search_tools" => json!({"query": "", "limit": 50}),
            "inspect_tool" => json!({"tool_name": words}),
            _ => json!({"code": PROGRAM}),
        };
        let _turn = if tool == "execute_program" { Some(TURN.lock().await) } else { None };
        let message = match client.ask("tools/call", json!({"name": tool, "arguments": arguments})).await {
            Ok(message) => message,
            Err(status) => return (of_status(status), String::new()),
        };
        let text = message.to_string();
        let word = match (tool, of_message(&message)) {
            ("search_tools", word) if word == "ok" => letters(Lens::Tools, &text),
            ("execute_program", word) if word == "ok" => {
                let used = ["a", "r", "b", "l"].into_iter();
                join_letters(used.filter(|letter| text.contains(&format!("may use {letter}"))))
            }
            _ if text.contains("[Tool not found]") => "404".to_owned(),
            (_, word) => word,
        };
        (word, text)
    }
}
