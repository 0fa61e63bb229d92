//! One connection to the yard. Every request has an ID, and messages with that ID are routed to the
//! request. Events go to the handler of the connection.

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

/// The number of requests that may wait to be written, and of unread messages per request.
const QUEUE: usize = 64;

/// A message of the yard about one request.
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

/// The open requests. `None` after the connection is closed: dropping the senders ends all requests.
struct RequestTable(Mutex<Option<EventSenders>>);

type EventSenders = HashMap<u64, mpsc::Sender<RequestEvent>>;

impl RequestTable {
    fn lock(&self) -> MutexGuard<'_, Option<EventSenders>> {
        self.0.lock()
    }

    fn put(&self, id: u64, sender: mpsc::Sender<RequestEvent>) -> Result<(), HubError> {
        self.lock().as_mut().ok_or_else(connection_lost)?.insert(id, sender);
        Ok(())
    }

    fn get(&self, id: u64) -> Option<mpsc::Sender<RequestEvent>> {
        self.lock().as_ref()?.get(&id).cloned()
    }

    fn take(&self, id: u64) -> Option<mpsc::Sender<RequestEvent>> {
        self.lock().as_mut()?.remove(&id)
    }
}

/// An open request. Dropping it before its response cancels it.
pub(super) struct RemoteRequest {
    pub(super) id: u64,
    events: mpsc::Receiver<RequestEvent>,
    client: Option<Arc<ControlClient>>,
}

/// The part of a client that reads from and writes to the connection.
pub(super) struct ConnectionDriver {
    outgoing: mpsc::Receiver<String>,
    open: Arc<RequestTable>,
}

impl ControlClient {
    pub(super) fn new() -> (Arc<Self>, ConnectionDriver) {
        let (outgoing, receiver) = mpsc::channel(QUEUE);
        let open = Arc::new(RequestTable(Mutex::new(Some(HashMap::new()))));
        let client = Self { outgoing, next: AtomicU64::new(1), open: Arc::clone(&open) };
        (Arc::new(client), ConnectionDriver { outgoing: receiver, open })
    }

    pub(super) async fn request(
        self: &Arc<Self>,
        subtype: &str,
        params: Object,
    ) -> Result<RemoteRequest, HubError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::channel(QUEUE);
        self.open.put(id, sender)?;
        let request = RemoteRequest { id, events, client: Some(Arc::clone(self)) };
        self.outgoing.send(encode_request(id, subtype, params)).await.map_err(|_| connection_lost())?;
        Ok(request)
    }
}

fn encode_request(id: u64, subtype: &str, params: Object) -> String {
    let mut request = params;
    request.set("id", to_raw(&id));
    request.set("subtype", to_raw(subtype));
    request.to_raw().get().to_owned()
}

fn connection_lost() -> HubError {
    HubError::new(ErrorKind::ConnectionLost, "lost the connection to the yard before it responded")
}

impl RemoteRequest {
    /// Waits for the next event. The response is the last one.
    pub(super) async fn next_event(&mut self) -> RequestEvent {
        match self.events.recv().await {
            Some(RequestEvent::Response(response)) => {
                self.client = None;
                RequestEvent::Response(response)
            }
            Some(event) => event,
            None => {
                self.client = None;
                RequestEvent::Response(Err(connection_lost()))
            }
        }
    }

    /// Waits for the response and ignores all other events.
    pub(super) async fn response(mut self) -> Result<Raw, HubError> {
        loop {
            if let RequestEvent::Response(response) = self.next_event().await {
                return response;
            }
        }
    }
}

impl Drop for RemoteRequest {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        drop(client.open.take(self.id));
        let mut params = Object::default();
        params.set("request", to_raw(&self.id));
        let cancel = encode_request(client.next.fetch_add(1, Ordering::Relaxed), "mcp_cancel", params);
        if let Err(mpsc::error::TrySendError::Full(cancel)) = client.outgoing.try_send(cancel)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { client.outgoing.send(cancel).await });
        }
    }
}

impl ConnectionDriver {
    /// Reads and writes messages until the connection is closed, and returns the reason.
    pub(super) async fn run(
        mut self,
        mut connection: RemoteConnection,
        mut on_event: impl FnMut(&Value),
    ) -> RemoteError {
        let error = loop {
            let result = tokio::select! {
                text = connection.next() => match text {
                    Ok(text) => {
                        self.deliver(&text, &mut on_event).await;
                        Ok(())
                    }
                    Err(error) => Err(error),
                },
                Some(request) = self.outgoing.recv() => connection.send(&request).await,
            };
            if let Err(error) = result {
                break error;
            }
        };
        *self.open.lock() = None;
        error
    }

    async fn deliver(&self, text: &str, on_event: &mut impl FnMut(&Value)) {
        // Unknown messages are ignored: a later version of the protocol may add some.
        let Ok(message) = serde_json::from_str::<Object>(text) else { return };
        let string =
            |key: &str| message.get(key).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let Some(kind) = string("type") else { return };
        if kind == "event" {
            if let Ok(event) = serde_json::from_str(text) {
                on_event(&event);
            }
            return;
        }
        let id = message.get("id").and_then(|raw| serde_json::from_str::<u64>(raw.get()).ok());
        let Some((id, event)) = id.zip(decode::decode_event(&kind, &message)) else { return };
        let is_last = matches!(event, RequestEvent::Response(_));
        let sender = match is_last {
            true => self.open.take(id),
            false => self.open.get(id),
        };
        let Some(sender) = sender else { return };
        match event {
            // A slow reader misses some of these.
            RequestEvent::Progress(_) | RequestEvent::Log(_) => drop(sender.try_send(event)),
            RequestEvent::Chunk(_) | RequestEvent::Questions(_) | RequestEvent::Response(_) => {
                drop(sender.send(event).await)
            }
        }
    }
}
