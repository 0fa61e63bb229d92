//! The loop of the odd servers: messages in, messages out, whatever they travel over.

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

/// Any message, parsed no further than it takes to know what it is.
#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<Raw>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Option<Raw>,
    result: Option<Raw>,
    error: Option<Raw>,
}

/// What any of the requests may have in it.
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

/// What a modern client wants to hear of.
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

/// What a server has to say to a request. Results are text, so that nothing of them is tidied up on the way.
pub(super) enum Reply {
    Result(String),
    Error(i64, String),
    Silence,
    /// The process ends.
    Leave(u8),
}

/// Something on its way to the client.
pub(super) enum Out {
    Says(String),
    Answers(String, u16),
}

/// How many requests `floods-requests` sends.
const FLOOD: u64 = 20_000;

/// The way back to whoever asked.
pub(super) struct Way {
    pub(super) out: mpsc::Sender<Out>,
    /// Whether it is there for everything that is said, and not for one request only.
    pub(super) standing: bool,
}

impl Way {
    /// Whether there is still somebody to say it to.
    pub(super) async fn send(&self, text: String) -> bool {
        self.out.send(Out::Says(text)).await.is_ok()
    }
}

pub(super) struct Server {
    pub(super) options: Options,
    pub(super) seen: Seen,
    pub(super) calls: AtomicU64,
    /// How often its tools were listed from the start.
    pub(super) listed: AtomicU64,
    began: Instant,
    flooding: AtomicBool,
    questions: Mutex<HashMap<String, oneshot::Sender<String>>>,
    /// What `asks-itself` was told, once it was.
    pub(super) told: watch::Sender<Option<String>>,
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
            told: watch::Sender::new(None),
            leave,
        })
    }

    pub(super) fn kind(&self) -> Kind {
        self.options.kind
    }

    /// Does what one message asks for.
    pub(super) async fn handle(&self, message: Message, way: Way) {
        let (Some(method), Some(id)) = (&message.method, &message.id) else {
            self.handle_response(&message);
            let met = message.method.as_deref() == Some("notifications/initialized");
            if met && self.kind() == Kind::AsksItself && way.standing {
                self.ask_unprompted(&way).await;
            }
            return;
        };
        self.seen.count_request(method);
        if self.kind() == Kind::SlowStart {
            tokio::time::sleep_until(self.began + self.options.delay).await;
        }
        let params = message.params();
        let answer = match self.answer(method, &params, id, &way).await {
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
        let _ = way.out.send(answer).await;
        let listed = self.kind() == Kind::Floods && method == "tools/list" && way.standing;
        if listed && !self.flooding.swap(true, Ordering::Relaxed) {
            flood(&way, None).await;
        }
    }

    async fn answer(&self, method: &str, params: &Params, id: &RawValue, way: &Way) -> Reply {
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
                self.listen(id, way).await;
                Reply::Silence
            }
            "tools/call" => self.call(params, way).await,
            _ => self.answer_other(method, params),
        }
    }

    async fn listen(&self, id: &RawValue, way: &Way) {
        let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {"toolsListChanged": true}});
        let notice =
            json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
        let there = way.send(notice.to_string()).await;
        match self.kind() {
            Kind::Floods if there => flood(way, Some(id)).await,
            Kind::FloodsRequests if there => flood_requests(way).await,
            Kind::EndlessLater | Kind::HangsLater if there => {
                let meta = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
                let changed =
                    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta});
                way.send(changed.to_string()).await;
            }
            _ => {}
        }
    }

    /// Asks the client (legacy era) and waits for what it says, result or error.
    pub(super) async fn ask(&self, way: &Way, method: &str, params: &str) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = format!("\"q{}\"", NEXT.fetch_add(1, Ordering::Relaxed));
        let (tell, answer) = oneshot::channel();
        self.questions().insert(id.clone(), tell);
        way.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)).await;
        answer.await.unwrap_or_default()
    }

    fn handle_response(&self, message: &Message) {
        let said = message.result.as_ref().or(message.error.as_ref());
        if let (Some(id), Some(said)) = (&message.id, said)
            && let Some(tell) = self.questions().remove(id.get())
        {
            // Whoever asked may have gone since.
            let _ = tell.send(said.get().to_owned());
        }
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<String>>> {
        self.questions.lock()
    }
}

/// Says that the lists changed, and other things that nobody asked about, as fast as they are read.
pub(super) async fn flood(way: &Way, subscription: Option<&RawValue>) {
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
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"nobody","progress":{number}}}}}"#
            ),
            _ => format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{number}}}}}"#
            ),
        };
        if !way.send(text).await {
            return;
        }
    }
}

/// Asks for the roots more often than anybody can answer.
async fn flood_requests(way: &Way) {
    for number in 0..FLOOD {
        if !way.send(format!(r#"{{"jsonrpc":"2.0","id":"f{number}","method":"roots/list"}}"#)).await {
            return;
        }
    }
}

/// What the modern era wants in every result, before everything else in it.
fn add_modern_fields(method: &str, text: &str) -> String {
    if text.contains(r#""resultType""#) {
        return text.to_owned();
    }
    let lasting = method.ends_with("/list") || ["resources/read", "server/discover"].contains(&method);
    let cached = if lasting { r#","ttlMs":0,"cacheScope":"private""# } else { "" };
    let comma = if text == "{}" { "" } else { "," };
    format!(r#"{{"resultType":"complete"{cached}{comma}{}"#, &text[1..])
}
