//! A cassette as a list of exchanges: what a client sent, and what the server sent because of it.
//!
//! A response belongs to its request, and so do progress notifications and, over HTTP, everything on
//! the stream of the request. Everything else belongs to the latest request that has no response
//! yet, or else to the latest message of the client.

use std::collections::HashMap;

use serde_json::{Map, Value};
use toolyard_hub::Raw;
use toolyard_hub::json::from_text;
use toolyard_wire::{Era, Packet, RpcMessage, parse};

use crate::format::{Cassette, CassetteEntry, EntryContent, EntryOrigin};
use crate::splice::value_at;

/// Where a notification names the request of its subscription (modern era).
pub(crate) const SUBSCRIPTION_ID: [&str; 3] = ["params", "_meta", "io.modelcontextprotocol/subscriptionId"];

/// The request that opens a subscription (modern era). It ends with the session.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// A recorded session.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    pub exchanges: Vec<Exchange>,
    /// The eras of the requests that were answered with a result, in the order of their first one.
    pub eras: Vec<Era>,
}

/// A message of a client, and what the server sent because of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The line of the cassette.
    pub line: usize,
    /// When the client sent the message, in milliseconds.
    pub at: u64,
    pub trigger: Trigger,
    pub era: Era,
    /// What the client declared in this request that it can do.
    pub capabilities: Option<Value>,
    pub steps: Vec<TapeStep>,
    /// Whether the client canceled the request.
    pub is_canceled: bool,
}

#[derive(Debug, Clone)]
pub struct Trigger {
    pub kind: TriggerKind,
    pub method: String,
    /// The params without what the protocol adds to them.
    pub params: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerKind {
    Request,
    Notification,
}

/// What happens next in an exchange.
#[derive(Debug, Clone)]
pub enum TapeStep {
    /// The server responds.
    Respond { message: Raw, at: u64, status: Option<u16> },
    /// The server responds to an HTTP request with something other than a message.
    RespondText { text: String, at: u64, status: u16 },
    /// The server sends a notification for the request of this exchange.
    Notify { message: Raw, at: u64, exchange: usize },
    /// The server sends a request.
    Ask { message: Raw, id: String, at: u64, exchange: usize },
    /// The client responds to a request of the server.
    Await { message: Raw, id: String, at: u64 },
}

impl Exchange {
    /// Returns the response to the request, if there is one.
    pub fn response(&self) -> Option<&Raw> {
        self.steps.iter().find_map(|step| match step {
            TapeStep::Respond { message, .. } => Some(message),
            _ => None,
        })
    }

    pub(crate) fn has_response(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, TapeStep::Respond { .. } | TapeStep::RespondText { .. }))
    }
}

impl Tape {
    pub fn new(cassette: &Cassette) -> Self {
        let mut builder = TapeBuilder::default();
        for entry in &cassette.entries {
            builder.add(entry);
        }
        let mut tape = builder.tape;
        for exchange in &tape.exchanges {
            let is_result = |response: &&Raw| value_at(response.get(), &["result"]).is_some();
            if exchange.response().filter(is_result).is_some() && !tape.eras.contains(&exchange.era) {
                tape.eras.push(exchange.era);
            }
        }
        tape
    }

    /// Returns the requests that a client sent, in order.
    pub fn requests(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.trigger.kind == TriggerKind::Request)
    }
}

/// A request that has no response yet.
#[derive(Debug)]
struct OpenRequest {
    exchange: usize,
    id: String,
    stream: Option<u64>,
    progress_token: Option<String>,
}

#[derive(Debug, Default)]
struct TapeBuilder {
    tape: Tape,
    open: Vec<OpenRequest>,
    /// The exchange of each request of the server.
    questions: HashMap<String, usize>,
}

impl TapeBuilder {
    fn add(&mut self, entry: &CassetteEntry) {
        let text = match &entry.content {
            EntryContent::Message(raw) => raw.get(),
            EntryContent::Text(text) => text.as_str(),
        };
        match entry.from {
            EntryOrigin::Client => messages(text).into_iter().for_each(|(raw, message)| {
                self.add_client_message(entry, raw, message);
            }),
            EntryOrigin::Server => {
                let messages = messages(text);
                if messages.is_empty() {
                    self.add_text(entry, text);
                }
                messages.into_iter().for_each(|(raw, message)| self.add_server_message(entry, raw, message));
            }
            EntryOrigin::Stderr | EntryOrigin::Recorder => {}
        }
    }

    fn add_client_message(&mut self, entry: &CassetteEntry, raw: Raw, message: RpcMessage) {
        const VERSION: [&str; 3] = ["params", "_meta", "io.modelcontextprotocol/protocolVersion"];
        let is_modern = value_at(raw.get(), &VERSION).is_some();
        const CAPABILITIES: [&[&str]; 2] =
            [&["params", "capabilities"], &["params", "_meta", "io.modelcontextprotocol/clientCapabilities"]];
        let capabilities = CAPABILITIES.iter().find_map(|path| value_at(raw.get(), path));
        let capabilities = capabilities.and_then(|text| serde_json::from_str(text).ok());
        let (kind, method, params) = match message {
            RpcMessage::Request(request) => {
                let progress = value_at(raw.get(), &["params", "_meta", "progressToken"]);
                self.open.push(OpenRequest {
                    exchange: self.tape.exchanges.len(),
                    id: request.id.as_json().to_owned(),
                    stream: entry.stream,
                    progress_token: progress.map(ToOwned::to_owned),
                });
                (TriggerKind::Request, request.method, request.params)
            }
            RpcMessage::Notification(notification) => {
                if notification.method == "notifications/cancelled" {
                    self.cancel(value_at(raw.get(), &["params", "requestId"]));
                }
                (TriggerKind::Notification, notification.method, notification.params)
            }
            RpcMessage::Response(response) => {
                let id = response.id.as_json().to_owned();
                if let Some(exchange) = self.questions.get(&id) {
                    self.tape.exchanges[*exchange].steps.push(TapeStep::Await {
                        message: raw,
                        id,
                        at: entry.at,
                    });
                }
                return;
            }
        };
        let params = matched_params(params.as_deref().map_or("{}", |params| params.get()));
        let trigger = Trigger { kind, method, params };
        self.tape.exchanges.push(Exchange {
            line: entry.line,
            at: entry.at,
            trigger,
            era: if is_modern { Era::Modern } else { Era::Legacy },
            capabilities,
            steps: Vec::new(),
            is_canceled: false,
        });
    }

    fn cancel(&mut self, id: Option<&str>) {
        if let Some(request) = self.open.iter().find(|request| Some(request.id.as_str()) == id) {
            self.tape.exchanges[request.exchange].is_canceled = true;
        }
    }

    fn add_server_message(&mut self, entry: &CassetteEntry, message: Raw, parsed: RpcMessage) {
        let at = entry.at;
        match parsed {
            RpcMessage::Response(response) => {
                let Some(request) = self.take_open(entry.stream, response.id.as_json()) else { return };
                let step = TapeStep::Respond { message, at, status: entry.status };
                self.tape.exchanges[request].steps.push(step);
            }
            RpcMessage::Request(request) => {
                let Some((trigger, exchange)) = self.owner(entry, &message) else { return };
                let id = request.id.as_json().to_owned();
                self.questions.insert(id.clone(), trigger);
                self.tape.exchanges[trigger].steps.push(TapeStep::Ask { message, id, at, exchange });
            }
            RpcMessage::Notification(_) => {
                let Some((trigger, exchange)) = self.owner(entry, &message) else { return };
                self.tape.exchanges[trigger].steps.push(TapeStep::Notify { message, at, exchange });
            }
        }
    }

    /// A body that is not a message answers the HTTP request.
    fn add_text(&mut self, entry: &CassetteEntry, text: &str) {
        let (Some(status), Some(stream)) = (entry.status, entry.stream) else { return };
        let Some(at) = self.open.iter().position(|request| request.stream == Some(stream)) else { return };
        let request = self.open.remove(at);
        let step = TapeStep::RespondText { text: text.to_owned(), at: entry.at, status };
        self.tape.exchanges[request.exchange].steps.push(step);
    }

    /// Closes the request that a response is for. A stream that was resumed has another number.
    fn take_open(&mut self, stream: Option<u64>, id: &str) -> Option<usize> {
        let same_id = |request: &OpenRequest| request.id == id;
        let same_stream = self.open.iter().position(|request| same_id(request) && request.stream == stream);
        let at = same_stream.or_else(|| self.open.iter().position(same_id))?;
        Some(self.open.remove(at).exchange)
    }

    /// Returns the exchange in whose course the server sent a message, and the exchange whose
    /// request it is about.
    fn owner(&self, entry: &CassetteEntry, message: &Raw) -> Option<(usize, usize)> {
        let latest = self.open.iter().rev().find(|request| !self.is_subscription(request.exchange));
        let latest = match latest {
            Some(request) => request.exchange,
            None => self.tape.exchanges.len().checked_sub(1)?,
        };
        if let Some(subscription) = value_at(message.get(), &SUBSCRIPTION_ID) {
            let about = self.open.iter().find(|request| request.id == subscription);
            let about = about.map_or(latest, |request| request.exchange);
            return Some((latest.max(about), about));
        }
        if let Some(token) = value_at(message.get(), &["params", "progressToken"])
            && let Some(request) =
                self.open.iter().find(|request| request.progress_token.as_deref() == Some(token))
        {
            return Some((request.exchange, request.exchange));
        }
        let on_stream = self
            .open
            .iter()
            .find(|request| entry.stream.is_some() && request.stream == entry.stream)
            .filter(|request| !self.is_subscription(request.exchange));
        let exchange = on_stream.map_or(latest, |request| request.exchange);
        Some((exchange, exchange))
    }

    fn is_subscription(&self, exchange: usize) -> bool {
        self.tape.exchanges[exchange].trigger.method == LISTEN
    }
}

/// Returns the messages of a line: one, or those of a batch.
fn messages(text: &str) -> Vec<(Raw, RpcMessage)> {
    match parse(text.as_bytes()) {
        Ok(Packet::Single(message)) => vec![(from_text(text.trim().to_owned()), message)],
        Ok(Packet::Batch(messages)) => {
            let raw: Vec<Raw> = serde_json::from_str(text).unwrap_or_default();
            raw.into_iter().zip(messages).filter_map(|(raw, message)| Some((raw, message.ok()?))).collect()
        }
        Err(_) => Vec::new(),
    }
}

/// Returns the params that decide whether two requests are the same: without the metadata that the
/// protocol adds, and without empty arguments, which are as good as none.
pub(crate) fn matched_params(text: &str) -> Value {
    const ADDED: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];
    let params: Value = serde_json::from_str(text).unwrap_or_default();
    let Value::Object(mut params) = params else { return params };
    let emptied = match params.get_mut("_meta") {
        Some(Value::Object(meta)) => {
            meta.retain(|key, _| {
                !ADDED.contains(&key.as_str()) && !key.starts_with("io.modelcontextprotocol/")
            });
            meta.is_empty()
        }
        _ => false,
    };
    if emptied {
        params.shift_remove("_meta");
    }
    if params.get("arguments").is_some_and(|arguments| *arguments == Value::Object(Map::new())) {
        params.shift_remove("arguments");
    }
    Value::Object(params)
}

#[cfg(test)]
pub(crate) mod tests;
