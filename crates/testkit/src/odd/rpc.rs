//! The loop of the misbehaving servers: messages in, messages out, over either transport.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::seen::Seen;
use super::{Eras, Kind, Options, write_stderr};

pub(super) type Raw = Box<RawValue>;

/// A message, parsed only as far as needed to classify it.
#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<Raw>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Option<Raw>,
    result: Option<Raw>,
    error: Option<Raw>,
}

/// The params that any of the requests may have.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Params {
    pub(super) name: String,
    pub(super) uri: String,
    pub(super) arguments: Option<Raw>,
    pub(super) cursor: Option<String>,
    pub(super) protocol_version: Option<String>,
    pub(super) request_state: Option<String>,
    notifications: Wanted,
    pub(super) input_responses: Option<BTreeMap<String, Raw>>,
    #[serde(rename = "_meta")]
    pub(super) meta: Meta,
}

/// The notifications that a modern client subscribes to.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wanted {
    resource_subscriptions: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
    #[serde(rename = "progressToken")]
    pub(super) progress: Option<Raw>,
}

impl Message {
    pub(super) fn params(&self) -> Params {
        self.params.as_ref().and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default()
    }
}

impl Params {
    pub(super) fn is_modern(&self) -> bool {
        self.meta.version.is_some()
    }
}

/// The answer of a server to a request. Results are text, so that nothing normalizes them on the
/// way.
pub(super) enum Reply {
    Result(String),
    Error(i64, String),
    Silence,
    /// The process exits with this code.
    Leave(u8),
}

/// A message on its way to the client.
pub(super) enum Out {
    Says(String),
    Answers(String, u16),
}

/// The number of requests that `floods-requests` sends.
const FLOOD: u64 = 20_000;

/// The channel back to the client.
pub(super) struct ReplySender {
    pub(super) out: mpsc::Sender<Out>,
    /// Whether the channel carries all messages of the connection instead of those of one request.
    pub(super) standing: bool,
}

impl ReplySender {
    /// Sends a message. Returns whether the client is still connected.
    pub(super) async fn send(&self, text: String) -> bool {
        self.out.send(Out::Says(text)).await.is_ok()
    }
}

pub(super) struct Server {
    pub(super) options: Options,
    pub(super) seen: Seen,
    pub(super) calls: AtomicU64,
    /// How often the tools were listed from the first page.
    pub(super) listed: AtomicU64,
    began: Instant,
    flooding: AtomicBool,
    questions: Mutex<HashMap<String, oneshot::Sender<String>>>,
    /// The answers that `asks-itself` received, once it has them.
    pub(super) unprompted: watch::Sender<Option<String>>,
    leave: mpsc::Sender<u8>,
}

impl Server {
    pub(super) fn new(options: Options, leave: mpsc::Sender<u8>) -> std::io::Result<Self> {
        Ok(Self {
            seen: Seen::new(&options)?,
            options,
            calls: AtomicU64::new(0),
            listed: AtomicU64::new(0),
            began: Instant::now(),
            flooding: AtomicBool::new(false),
            questions: Mutex::default(),
            unprompted: watch::Sender::new(None),
            leave,
        })
    }

    pub(super) fn kind(&self) -> Kind {
        self.options.kind
    }

    /// Handles one message.
    pub(super) async fn handle(&self, message: Message, channel: ReplySender) {
        let (Some(method), Some(id)) = (&message.method, &message.id) else {
            self.handle_response(&message);
            let met = message.method.as_deref() == Some("notifications/initialized");
            if met && self.kind() == Kind::AsksItself && channel.standing {
                self.ask_unprompted(&channel).await;
            }
            return;
        };
        self.seen.count_request(method);
        if self.kind() == Kind::SlowStart {
            tokio::time::sleep_until(self.began + self.options.delay).await;
        }
        let params = message.params();
        let answer = match self.answer(method, &params, id, &channel).await {
            Reply::Result(text) => {
                let text = if params.is_modern() { add_modern_fields(method, &text) } else { text };
                Out::Answers(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#), 200)
            }
            Reply::Error(code, message) => {
                let error = json!({"code": code, "message": message});
                let status = if params.is_modern() && code == -32601 { 404 } else { 200 };
                Out::Answers(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#), status)
            }
            Reply::Silence => std::future::pending().await,
            Reply::Leave(code) => {
                write_stderr("odd: leaving in the middle of a call\n").await;
                let _ = self.leave.send(code).await;
                std::future::pending().await
            }
        };
        let _ = channel.out.send(answer).await;
        let listed = self.kind() == Kind::Floods && method == "tools/list" && channel.standing;
        if listed && !self.flooding.swap(true, Ordering::Relaxed) {
            flood(&channel, None).await;
        }
    }

    async fn answer(&self, method: &str, params: &Params, id: &RawValue, channel: &ReplySender) -> Reply {
        let eras = self.kind().eras();
        match method {
            _ if self.kind() == Kind::Mute => Reply::Silence,
            "server/discover" if eras != Eras::Legacy => Reply::Result(self.discover_result()),
            "initialize" if eras != Eras::Modern => {
                self.seen.count_session();
                Reply::Result(self.initialize_result(params))
            }
            "ping" | "logging/setLevel" if eras != Eras::Modern => Reply::Result("{}".to_owned()),
            "resources/subscribe" | "resources/unsubscribe" if self.kind() == Kind::Subscribable => {
                self.seen.subscribe(&params.uri, method == "resources/subscribe");
                Reply::Result("{}".to_owned())
            }
            "subscriptions/listen" if eras != Eras::Legacy => {
                self.seen.set_subscriptions(params.notifications.resource_subscriptions.clone());
                self.listen(id, channel).await;
                Reply::Silence
            }
            "tools/call" => self.call(params, channel).await,
            _ => self.answer_other(method, params),
        }
    }

    async fn listen(&self, id: &RawValue, channel: &ReplySender) {
        let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {"toolsListChanged": true}});
        let notice =
            json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
        let there = channel.send(notice.to_string()).await;
        match self.kind() {
            Kind::Floods if there => flood(channel, Some(id)).await,
            Kind::FloodsRequests if there => flood_requests(channel).await,
            Kind::EndlessLater | Kind::HangsLater if there => {
                let meta = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
                let changed =
                    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta});
                channel.send(changed.to_string()).await;
            }
            _ => {}
        }
    }

    /// Sends a request to the client (legacy era) and waits for its result or error.
    pub(super) async fn ask(&self, channel: &ReplySender, method: &str, params: &str) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = format!("\"q{}\"", NEXT.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.questions().insert(id.clone(), sender);
        channel.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)).await;
        answer.await.unwrap_or_default()
    }

    fn handle_response(&self, message: &Message) {
        let response = message.result.as_ref().or(message.error.as_ref());
        if let (Some(id), Some(response)) = (&message.id, response)
            && let Some(sender) = self.questions().remove(id.get())
        {
            // The task that asked may have ended.
            let _ = sender.send(response.get().to_owned());
        }
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<String>>> {
        self.questions.lock()
    }
}

/// Sends list changes and unsolicited notifications as fast as they are read.
pub(super) async fn flood(channel: &ReplySender, subscription: Option<&RawValue>) {
    let tag = subscription
        .map(|id| format!(r#","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#));
    let changed = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"{}}}"#,
        tag.unwrap_or_default()
    );
    let mut number = 0_u64;
    loop {
        number += 1;
        let text = match number % 3 {
            _ if subscription.is_some() => changed.clone(),
            0 => changed.clone(),
            1 => format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"unknown","progress":{number}}}}}"#
            ),
            _ => format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{number}}}}}"#
            ),
        };
        if !channel.send(text).await {
            return;
        }
    }
}

/// Requests the roots more often than a client can answer.
async fn flood_requests(channel: &ReplySender) {
    for number in 0..FLOOD {
        if !channel.send(format!(r#"{{"jsonrpc":"2.0","id":"f{number}","method":"roots/list"}}"#)).await {
            return;
        }
    }
}

/// Adds the fields that the modern era requires in every result, before all other fields.
fn add_modern_fields(method: &str, text: &str) -> String {
    if text.contains(r#""resultType""#) {
        return text.to_owned();
    }
    let lasting = method.ends_with("/list") || ["resources/read", "server/discover"].contains(&method);
    let cached = if lasting { r#","ttlMs":0,"cacheScope":"private""# } else { "" };
    let comma = if text == "{}" { "" } else { "," };
    format!(r#"{{"resultType":"complete"{cached}{comma}{}"#, &text[1..])
}
