//! What callers are told unasked: events of the control socket, and updates of resources over MCP.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolyard_serve::inventory::control_events;
use toolyard_testkit::harness::{Events, Socket, within_timeout};

use super::answer::{Lens, letters, of, of_code, of_status};
use super::callers::{Caller, OTHER, YardKind, secret};
use super::control::{header, open};
use super::mcp::{McpClient, watched};
use super::table::Row;
use super::yard::World;

/// By column and event: the word of the table, and everything that was said.
pub(super) type Heard = HashMap<(&'static str, &'static str), (String, String)>;

/// What is not an event of the socket.
pub(super) const UPDATED: &str = "resources/updated";
/// How long an update that should not come is waited for.
const GRACE: Duration = Duration::from_millis(300);
/// How long one that should come is waited for before the resource changes again.
const AGAIN: Duration = Duration::from_secs(2);

/// One caller, listening.
struct Listener<'a> {
    caller: &'a Caller,
    /// What the table says about events that were refused.
    refused: BTreeMap<&'static str, String>,
    socket: Option<Socket>,
    updates: Result<Events, u16>,
}

impl World {
    /// What this caller was told of this event, while everything happened that there are events for.
    pub(super) async fn event(&self, row: &Row, caller: &Caller) -> (String, String) {
        let heard = self.heard.get_or_init(|| self.let_things_happen()).await;
        let found =
            heard.iter().find(|((column, event), _)| *column == caller.column && *event == row.rest());
        found.unwrap_or_else(|| panic!("no event {}", row.rest())).1.clone()
    }

    async fn let_things_happen(&self) -> Heard {
        let mut listeners = Vec::new();
        for caller in &self.callers {
            listeners.push(self.listener(caller).await);
        }
        let ids = [self.act(YardKind::Mapped).await, self.act(YardKind::Unmapped).await];
        let heard = listeners.into_iter().map(async |mut listener| {
            let mut heard = Heard::new();
            let column = listener.caller.column;
            let ids = &ids[usize::from(listener.caller.yard == YardKind::Unmapped)];
            let said = listener.said().await;
            for event in control_events() {
                let of_event: Vec<String> =
                    said.iter().filter(|said| said["event"] == event).map(Value::to_string).collect();
                let word = match listener.refused.get(event) {
                    Some(word) => word.clone(),
                    None => word(event, &of_event, ids),
                };
                heard.insert((column, event), (word, of_event.concat()));
            }
            heard.insert((column, UPDATED), listener.updates().await);
            heard
        });
        join_all(heard).await.into_iter().flatten().collect()
    }

    async fn listener<'a>(&self, caller: &'a Caller) -> Listener<'a> {
        let mut refused = BTreeMap::new();
        let mut socket = open(self, caller, header(caller)).await;
        for event in control_events() {
            let told = match &mut socket {
                Ok(socket) => socket
                    .request("subscribe", json!({"events": [event]}))
                    .await
                    .map_err(|code| of_code(&code)),
                Err(word) => Err(word.clone()),
            };
            refused.extend(told.err().map(|word| (event, word)));
        }
        let reply = McpClient::modern(self, caller, "/mcp").send("subscriptions/listen", watched()).await;
        let updates = match reply.status {
            200 => {
                let mut events = reply.events();
                events.next_message().await.unwrap();
                Ok(events)
            }
            status => Err(status),
        };
        Listener { caller, refused, socket: socket.ok(), updates }
    }

    /// The other caller calls tools, has resources change, and has servers connect again. The ids of the calls.
    async fn act(&self, kind: YardKind) -> Vec<(&'static str, String)> {
        let yard = self.yard(kind);
        let token = Some(secret(OTHER));
        let other = Caller { column: OTHER, token, yard: kind, servers: None };
        let watching = McpClient::modern(self, &other, "/mcp").send("subscriptions/listen", watched()).await;
        let mut watching = watching.events();
        watching.next_message().await.unwrap();
        let mut ids = Vec::new();
        for name in ["a", "b", "l"] {
            ids.push((name, yard.execute(&format!("mcp__{name}__echo"), json!({})).await));
            // The server may not be watched yet, though we are told that it is.
            let mut touched = async || {
                yard.execute(&format!("mcp__{name}__touch"), json!({})).await;
                let note = format!("\"{name}://note\"");
                while !watching.next_message().await.unwrap().1.text.contains(&note) {}
            };
            within_timeout("an update", async {
                while tokio::time::timeout(AGAIN, touched()).await.is_err() {}
            })
            .await;
        }
        let mut socket = open(self, &other, header(&other)).await.unwrap_or_else(|word| panic!("{word}"));
        socket.request("subscribe", json!({"events": ["server", "stderr"]})).await.unwrap();
        socket.event("stderr").await;
        for name in ["a", "b", "l", "x", "y"] {
            // One that is just starting again by itself may be busy.
            while socket.request("mcp_reconnect", json!({"server_name": name})).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let started =
                |said: &Value| said["server"]["name"] == name && said["server"]["state"] == "starting";
            socket.next_matching(&format!("{name} to start"), started).await;
            // The last words of one that fails come before its state.
            let done = |said: &Value| said["server"]["name"] == name && said["server"]["state"] != "starting";
            socket.next_matching(&format!("{name} to be ready, or to fail"), done).await;
        }
        ids
    }
}

/// What the table says about what was heard of an event.
fn word(event: &str, said: &[String], ids: &[(&'static str, String)]) -> String {
    let text = said.concat();
    match event {
        "call_started" | "call_progress" | "call_ended" => {
            of(ids.iter().filter(|(_, id)| text.contains(id.as_str())).map(|(name, _)| *name))
        }
        "server" => letters(Lens::Servers, &text),
        "stderr" => letters(Lens::Talkers, &text),
        "resource" => letters(Lens::Resources, &text),
        "changed" if said.is_empty() => "-".to_owned(),
        _ => "ok".to_owned(),
    }
}

impl Listener<'_> {
    /// Everything that the socket told, up to the end of a call that the caller makes now.
    async fn said(&mut self) -> Vec<Value> {
        let Some(socket) = &mut self.socket else { return Vec::new() };
        let session = format!("last of {}", self.caller.column);
        let call = json!({"tool": "mcp__a__echo", "arguments": {}, "session_id": session});
        socket.request("mcp_call", call).await.unwrap();
        let last = |said: &Value| said["event"] == "call_ended" && said["call"]["sessionId"] == session;
        socket.next_matching("the end of the caller's own call", last).await;
        socket.take_unclaimed()
    }

    /// The resources of which an update came.
    async fn updates(self) -> (String, String) {
        let mut events = match self.updates {
            Ok(events) => events,
            Err(status) => return (of_status(status), String::new()),
        };
        let mut text = String::new();
        // All of it has happened: what is not here within this time does not come.
        while let Ok(Some((_, message))) = tokio::time::timeout(GRACE, events.next_message()).await {
            text.push_str(&message.text);
        }
        (letters(Lens::Resources, &text), text)
    }
}
