//! One connection to the yard: requests go out with a number, and what comes back under that number finds its way to who
//! asked. Events go to whoever follows.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::mpsc;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{ErrorKind, HubError, LogLine, Progress, Question, Raw};

use super::control_socket::{RemoteConnection, RemoteError};
use super::decode;

/// How many requests wait to be written, and how much of what one call says waits to be heard.
const QUEUE: usize = 64;

/// What the yard says about one request.
#[derive(Debug)]
pub(super) enum RequestEvent {
    Progress(Progress),
    Chunk(Value),
    Log(LogLine),
    Questions(Vec<Question>),
    Response(Result<Raw, HubError>),
}

pub(super) struct ControlClient {
    outgoing: mpsc::Sender<String>,
    next: AtomicU64,
    open: Arc<RequestTable>,
}

/// Who waits for what. There is nothing once the connection is over, so that everybody who waits learns of it.
struct RequestTable(Mutex<Option<EventSenders>>);

type EventSenders = HashMap<u64, mpsc::Sender<RequestEvent>>;

impl RequestTable {
    fn lock(&self) -> MutexGuard<'_, Option<EventSenders>> {
        self.0.lock()
    }

    fn put(&self, id: u64, way: mpsc::Sender<RequestEvent>) -> Result<(), HubError> {
        self.lock().as_mut().ok_or_else(connection_lost)?.insert(id, way);
        Ok(())
    }

    fn get(&self, id: u64) -> Option<mpsc::Sender<RequestEvent>> {
        self.lock().as_ref()?.get(&id).cloned()
    }

    fn take(&self, id: u64) -> Option<mpsc::Sender<RequestEvent>> {
        self.lock().as_mut()?.remove(&id)
    }
}

/// A request that is under way. Dropping it before its end cancels it.
pub(super) struct RemoteRequest {
    pub(super) id: u64,
    events: mpsc::Receiver<RequestEvent>,
    client: Option<Arc<ControlClient>>,
}

/// The end of a line at which it is driven.
pub(super) struct ConnectionDriver {
    outgoing: mpsc::Receiver<String>,
    open: Arc<RequestTable>,
}

impl ControlClient {
    pub(super) fn new() -> (Arc<Self>, ConnectionDriver) {
        let (orders, receiver) = mpsc::channel(QUEUE);
        let open = Arc::new(RequestTable(Mutex::new(Some(HashMap::new()))));
        let line = Self { outgoing: orders, next: AtomicU64::new(1), open: Arc::clone(&open) };
        (Arc::new(line), ConnectionDriver { outgoing: receiver, open })
    }

    pub(super) async fn request(
        self: &Arc<Self>,
        subtype: &str,
        words: Object,
    ) -> Result<RemoteRequest, HubError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, said) = mpsc::channel(QUEUE);
        self.open.put(id, sender)?;
        let asked = RemoteRequest { id, events: said, client: Some(Arc::clone(self)) };
        self.outgoing.send(encode_request(id, subtype, words)).await.map_err(|_| connection_lost())?;
        Ok(asked)
    }
}

/// A request as it is written.
fn encode_request(id: u64, subtype: &str, words: Object) -> String {
    let mut order = words;
    order.set("id", to_raw(&id));
    order.set("subtype", to_raw(subtype));
    order.to_raw().get().to_owned()
}

fn connection_lost() -> HubError {
    HubError::new(ErrorKind::ConnectionLost, "the yard went away before it answered")
}

impl RemoteRequest {
    /// What is said next. After the end there is nothing.
    pub(super) async fn next_event(&mut self) -> RequestEvent {
        match self.events.recv().await {
            Some(RequestEvent::Response(end)) => {
                self.client = None;
                RequestEvent::Response(end)
            }
            Some(said) => said,
            None => {
                self.client = None;
                RequestEvent::Response(Err(connection_lost()))
            }
        }
    }

    /// How it ends, whatever is said before.
    pub(super) async fn response(mut self) -> Result<Raw, HubError> {
        loop {
            if let RequestEvent::Response(end) = self.next_event().await {
                return end;
            }
        }
    }
}

impl Drop for RemoteRequest {
    fn drop(&mut self) {
        let Some(line) = self.client.take() else { return };
        drop(line.open.take(self.id));
        let mut words = Object::default();
        words.set("request", to_raw(&self.id));
        let order = encode_request(line.next.fetch_add(1, Ordering::Relaxed), "mcp_cancel", words);
        if let Err(mpsc::error::TrySendError::Full(order)) = line.outgoing.try_send(order)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { line.outgoing.send(order).await });
        }
    }
}

impl ConnectionDriver {
    /// Carries messages both ways until the connection is over, and says why it is.
    pub(super) async fn run(
        mut self,
        mut attached: RemoteConnection,
        mut hear: impl FnMut(&Value),
    ) -> RemoteError {
        let lost = loop {
            let step = tokio::select! {
                text = attached.next() => match text {
                    Ok(text) => {
                        self.deliver(&text, &mut hear).await;
                        Ok(())
                    }
                    Err(lost) => Err(lost),
                },
                Some(order) = self.outgoing.recv() => attached.send(&order).await,
            };
            if let Err(lost) = step {
                break lost;
            }
        };
        *self.open.lock() = None;
        lost
    }

    async fn deliver(&self, text: &str, hear: &mut impl FnMut(&Value)) {
        // What cannot be read is not for us: a later version of the protocol may say more than this one.
        let Ok(message) = serde_json::from_str::<Object>(text) else { return };
        let word =
            |key: &str| message.get(key).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let Some(kind) = word("type") else { return };
        if kind == "event" {
            if let Ok(event) = serde_json::from_str(text) {
                hear(&event);
            }
            return;
        }
        let id = message.get("id").and_then(|raw| serde_json::from_str::<u64>(raw.get()).ok());
        let Some((id, said)) = id.zip(decode::decode_event(&kind, &message)) else { return };
        let ended = matches!(said, RequestEvent::Response(_));
        let way = match ended {
            true => self.open.take(id),
            false => self.open.get(id),
        };
        let Some(way) = way else { return };
        match said {
            // Only the latest of these counts, and whoever falls behind misses some.
            RequestEvent::Progress(_) | RequestEvent::Log(_) => drop(way.try_send(said)),
            RequestEvent::Chunk(_) | RequestEvent::Questions(_) | RequestEvent::Response(_) => {
                drop(way.send(said).await)
            }
        }
    }
}
