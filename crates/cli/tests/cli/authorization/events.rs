//! Unsolicited messages: events of the control socket, and resource updates over MCP.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolyard_serve::inventory::control_events;
use toolyard_testkit::harness::{Events, Socket, within_timeout};

use super::answer::{Lens, join_letters, letters, of_code, of_status};
use super::callers::{Caller, OTHER, YardKind, secret};
use super::control::{header, open};
use super::mcp::{McpClient, watched};
use super::table::Row;
use super::yard::World;

/// By column and event: the word of the table, and all messages received.
pub(super) type Received = HashMap<(&'static str, &'static str), (String, String)>;

/// The row for MCP updates, which are not events of the socket.
pub(super) const UPDATED: &str = "resources/updated";
/// How long to wait for an update that should not arrive.
const GRACE: Duration = Duration::from_millis(300);
/// How long to wait for an update that should arrive before the resource changes again.
const AGAIN: Duration = Duration::from_secs(2);

/// One listening caller.
struct Listener<'a> {
    caller: &'a Caller,
    /// The words of the table for events that were refused.
    refused: BTreeMap<&'static str, String>,
    socket: Option<Socket>,
    updates: Result<Events, u16>,
}

impl World {
    /// Returns what this caller received of this event while every kind of event happened.
    pub(super) async fn event(&self, row: &Row, caller: &Caller) -> (String, String) {
        let received = self.heard.get_or_init(|| self.let_things_happen()).await;
        let entry =
            received.iter().find(|((column, event), _)| *column == caller.column && *event == row.rest());
        entry.unwrap_or_else(|| panic!("no event {}", row.rest())).1.clone()
    }

    async fn let_things_happen(&self) -> Received {
        let mut listeners = Vec::new();
        for caller in &self.callers {
            listeners.push(self.listener(caller).await);
        }
        let ids = [self.act(YardKind::Mapped).await, self.act(YardKind::Unmapped).await];
        let received = listeners.into_iter().map(async |mut listener| {
            let mut received = Received::new();
            let column = listener.caller.column;
            let ids = &ids[usize::from(listener.caller.yard == YardKind::Unmapped)];
            let messages = listener.messages().await;
            for event in control_events() {
                let of_event: Vec<String> = messages
                    .iter()
                    .filter(|message| message["event"] == event)
                    .map(Value::to_string)
                    .collect();
                let word = match listener.refused.get(event) {
                    Some(word) => word.clone(),
                    None => word(event, &of_event, ids),
                };
                received.insert((column, event), (word, of_event.concat()));
            }
            received.insert((column, UPDATED), listener.updates().await);
            received
        });
        join_all(received).await.into_iter().flatten().collect()
    }

    async fn listener<'a>(&self, caller: &'a Caller) -> Listener<'a> {
        let mut refused = BTreeMap::new();
        let mut socket = open(self, caller, header(caller)).await;
        for event in control_events() {
            let subscribed = match &mut socket {
                Ok(socket) => socket
                    .request("subscribe", json!({"events": [event]}))
                    .await
                    .map_err(|code| of_code(&code)),
                Err(word) => Err(word.clone()),
            };
            refused.extend(subscribed.err().map(|word| (event, word)));
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

    /// Makes the other caller call tools, change resources and reconnect servers. Returns the ids
    /// of the calls.
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
            // The subscription may not have reached the server yet.
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
            // Earlier states of this server do not count.
            socket.take_unclaimed();
            // A server that is restarting by itself may be busy.
            let reconnected = async {
                while socket.request("mcp_reconnect", json!({"server_name": name})).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            within_timeout(&format!("{name} to accept the request"), reconnected).await;
            // States that follow each other quickly are one event, so `starting` may not be among
            // them. The last standard error of a failing server arrives before its state.
            let done =
                |event: &Value| event["server"]["name"] == name && event["server"]["state"] != "starting";
            socket.next_matching(&format!("{name} to be ready, or to fail"), done).await;
        }
        ids
    }
}

/// Returns the word of the table for the messages of an event.
fn word(event: &str, messages: &[String], ids: &[(&'static str, String)]) -> String {
    let text = messages.concat();
    match event {
        "call_started" | "call_progress" | "call_ended" => {
            join_letters(ids.iter().filter(|(_, id)| text.contains(id.as_str())).map(|(name, _)| *name))
        }
        "server" => letters(Lens::Servers, &text),
        "stderr" => letters(Lens::Talkers, &text),
        "resource" => letters(Lens::Resources, &text),
        "changed" if messages.is_empty() => "-".to_owned(),
        _ => "ok".to_owned(),
    }
}

impl Listener<'_> {
    /// Returns every message of the socket up to the end of a call that the caller makes now.
    async fn messages(&mut self) -> Vec<Value> {
        let Some(socket) = &mut self.socket else { return Vec::new() };
        let session = format!("last of {}", self.caller.column);
        let call = json!({"tool": "mcp__a__echo", "arguments": {}, "session_id": session});
        socket.request("mcp_call", call).await.unwrap();
        let last = |event: &Value| event["event"] == "call_ended" && event["call"]["sessionId"] == session;
        socket.next_matching("the end of the caller's own call", last).await;
        socket.take_unclaimed()
    }

    /// Returns the resources with an update.
    async fn updates(self) -> (String, String) {
        let mut events = match self.updates {
            Ok(events) => events,
            Err(status) => return (of_status(status), String::new()),
        };
        let mut text = String::new();
        // All changes are complete, so an update that does not arrive within this time was not
        // sent.
        while let Ok(Some((_, message))) = tokio::time::timeout(GRACE, events.next_message()).await {
            text.push_str(&message.text);
        }
        (letters(Lens::Resources, &text), text)
    }
}
