//! The requests of the control socket.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolyard_testkit::harness::{Proof, Socket};

use super::answer::{Lens, letters, of_code};
use super::callers::Caller;
use super::table::Row;
use super::yard::World;

/// The open socket of each column, or the answer to the attempt to open it.
#[derive(Default)]
pub(super) struct Sockets(Mutex<HashMap<&'static str, Result<Socket, String>>>);

/// Opens a socket and waits for the welcome. Returns the word of the table if it is refused.
pub(super) async fn open(world: &World, caller: &Caller, proof: Proof<'_>) -> Result<Socket, String> {
    let address = &world.yard(caller.yard).server.address;
    let mut socket = Socket::open(address, proof, &[]).await.map_err(|status| status.to_string())?;
    if let Proof::Nothing = proof {
        // Otherwise the server waits for the token.
        socket.send("hello", json!({})).await;
    }
    welcomed(&mut socket).await?;
    Ok(socket)
}

async fn welcomed(socket: &mut Socket) -> Result<(), String> {
    match socket.next().await {
        Ok(welcome) => {
            assert_eq!(welcome["type"], "welcome", "{welcome}");
            Ok(())
        }
        // The close code for 401.
        Err(4401) => Err("401".to_owned()),
        Err(code) => Err(code.to_string()),
    }
}

pub(super) fn header(caller: &Caller) -> Proof<'_> {
    caller.token.as_deref().map_or(Proof::Nothing, Proof::Header)
}

/// Returns the members of a request, from its row of the table.
fn request_members(subtype: &str, operand: &str) -> Value {
    let first = operand.split(' ').next().unwrap_or_default();
    match subtype {
        "mcp_tools" | "mcp_prompts" if !first.is_empty() => json!({"server_name": first}),
        "mcp_tool" => json!({"tool": first}),
        "mcp_call" => json!({"tool": first, "arguments": {}}),
        "mcp_read" => match operand.split_once(" of ") {
            Some((uri, server)) => json!({"uri": uri, "server_name": server}),
            None => json!({"uri": first}),
        },
        "mcp_prompt" => json!({"name": first, "arguments": {}}),
        "mcp_complete" => json!({
            "ref": {"type": "ref/prompt", "name": first},
            "argument": {"name": "who", "value": ""},
        }),
        "mcp_cancel" => json!({"request": 1}),
        "mcp_answer" => json!({"request": 1, "answers": {}}),
        "mcp_history" => json!({"limit": 500}),
        "mcp_transcript" | "mcp_stderr" | "mcp_reconnect" | "mcp_enable" | "mcp_disable" | "mcp_login" => {
            json!({"server_name": first})
        }
        "subscribe" => json!({"events": [first]}),
        _ => json!({}),
    }
}

impl World {
    pub(super) async fn control(&self, row: &Row, caller: &Caller) -> (String, String) {
        let (subtype, operand) = (row.verb(), row.rest());
        if subtype == "hello" {
            return (self.hello(operand, caller).await, String::new());
        }
        // The socket is removed while it is in use, so that other rows need not wait.
        let taken = self.sockets.0.lock().await.remove(caller.column);
        let mut socket = match taken {
            Some(socket) => socket,
            None => open(self, caller, header(caller)).await,
        };
        let answered = match &mut socket {
            Ok(socket) => match socket.request(subtype, request_members(subtype, operand)).await {
                Ok(response) => self.seen(subtype, operand, caller, &response),
                Err(code) => (of_code(&code), socket.text.clone()),
            },
            Err(word) => (word.clone(), String::new()),
        };
        self.sockets.0.lock().await.insert(caller.column, socket);
        answered
    }

    fn seen(&self, subtype: &str, operand: &str, caller: &Caller, response: &Value) -> (String, String) {
        let text = response.to_string();
        let part = |key: &str| response[key].to_string();
        let word = match (subtype, operand) {
            ("mcp_servers", _) => letters(Lens::Servers, &text),
            ("mcp_tools", _) => letters(Lens::Tools, &text),
            ("mcp_prompts", _) => letters(Lens::Prompts, &text),
            ("mcp_history", _) => self.executions(caller, &text),
            ("mcp_list", "tools") => letters(Lens::Tools, &part("tools")),
            ("mcp_list", "resources") => letters(Lens::Resources, &part("resources")),
            ("mcp_list", "resource_templates") => letters(Lens::Templates, &part("resource_templates")),
            ("mcp_list", "auth_statuses") => letters(Lens::Keys, &part("auth_statuses")),
            _ => "ok".to_owned(),
        };
        (word, text)
    }

    /// Authenticates in one of the three supported ways.
    async fn hello(&self, method: &str, caller: &Caller) -> String {
        let opened = match (method, &caller.token) {
            ("by subprotocol", Some(token)) => open(self, caller, Proof::Subprotocol(token)).await,
            ("by message", Some(token)) => self.hello_by_message(caller, &json!({"token": token})).await,
            _ => open(self, caller, header(caller)).await,
        };
        opened.map_or_else(|word| word, |_| "ok".to_owned())
    }

    async fn hello_by_message(&self, caller: &Caller, words: &Value) -> Result<Socket, String> {
        let address = &self.yard(caller.yard).server.address;
        let opened = Socket::open(address, Proof::Nothing, &[]).await;
        let mut socket = opened.map_err(|status| status.to_string())?;
        socket.send("hello", words.clone()).await;
        welcomed(&mut socket).await?;
        Ok(socket)
    }
}
