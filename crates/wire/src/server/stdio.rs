//! stdio: one message per line, both eras on one connection. Works over any pair of byte streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client_channel::{ClientChannel, OutgoingFrame};
use super::http::stream::ResumableStreams;
use super::legacy::{
    answer_in_transport, build_legacy_request, cancelled_request, empty_result, initialize_result,
    read_initialize,
};
use super::session::{Session, SessionId, SessionRegistry, StandingChannel};
use super::{RequestTransport, RpcResult, Service, build_modern_request};
use crate::message::{
    InvalidMessage, Packet, RequestId, RpcMessage, RpcRequest, parse, write_error, write_outcome,
};
use crate::meta::{Meta, modern_version};
use crate::rpc_error::RpcError;

/// The settings of a stdio connection.
#[derive(Debug, Clone)]
pub struct StdioSettings {
    /// The maximum length of a line, in bytes.
    pub max_line_bytes: usize,
    /// The maximum number of concurrent requests. At the limit, the next line is not read until a
    /// request completes.
    pub max_in_flight: usize,
    /// How long requests may take after the client has closed its side or shutdown was requested.
    pub drain_timeout: Duration,
}

impl Default for StdioSettings {
    fn default() -> Self {
        Self { max_line_bytes: 10 * 1024 * 1024, max_in_flight: 256, drain_timeout: Duration::from_secs(30) }
    }
}

/// The two ways to end a connection from outside.
#[derive(Debug)]
pub struct StdioShutdown<F> {
    /// Stops reading and completes the requests in flight.
    pub shutdown: CancellationToken,
    /// Completes when the output is no longer read.
    pub output_closed: F,
}

/// Serves one client until it closes its side, then waits for the requests in flight.
pub async fn serve_stdio<S: Service>(
    service: Arc<S>,
    caller: S::Caller,
    roster: Arc<SessionRegistry<S::Caller>>,
    (reader, writer): (impl AsyncRead + Unpin + Send, impl AsyncWrite + Unpin + Send + 'static),
    settings: StdioSettings,
    end: StdioShutdown<impl Future<Output = ()> + Send>,
) -> std::io::Result<()> {
    let (out, outgoing) = mpsc::channel(super::client_channel::QUEUE);
    let broken = CancellationToken::new();
    let writing = tokio::spawn(write(writer, outgoing, broken.clone()));
    let connection = Arc::new(Connection {
        service,
        caller,
        out,
        registry: roster,
        session: Mutex::default(),
        in_flight: Mutex::default(),
        permits: Arc::new(Semaphore::new(settings.max_in_flight)),
        tasks: TaskTracker::new(),
        closing: end.shutdown.clone(),
    });
    let read = tokio::select! {
        read = connection.read(reader, settings.max_line_bytes) => read,
        () = end.shutdown.cancelled() => Ok(()),
        () = broken.cancelled() => Ok(()),
    };
    connection.closing.cancel();
    connection.tasks.close();
    tokio::select! {
        () = connection.tasks.wait() => {}
        () = broken.cancelled() => {}
        () = end.output_closed => {}
        () = tokio::time::sleep(settings.drain_timeout) => {}
    }
    connection.cancel_all();
    connection.tasks.wait().await;
    // This drops the last sender. The writer then writes the remaining messages and ends.
    drop(connection);
    let _ = tokio::time::timeout(Duration::from_secs(5), writing).await;
    read
}

struct Connection<S: Service> {
    service: Arc<S>,
    caller: S::Caller,
    out: mpsc::Sender<OutgoingFrame>,
    registry: Arc<SessionRegistry<S::Caller>>,
    session: Mutex<Option<Arc<Session>>>,
    in_flight: Mutex<HashMap<RequestId, CancellationToken>>,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl<S: Service> Connection<S> {
    async fn read(
        self: &Arc<Self>,
        mut reader: impl AsyncRead + Unpin,
        longest: usize,
    ) -> std::io::Result<()> {
        let mut buffer = BytesMut::with_capacity(8 * 1024);
        let mut scanned = 0;
        let mut skipping = false;
        loop {
            match memchr::memchr(b'\n', &buffer[scanned..]) {
                Some(at) => {
                    let line = buffer.split_to(scanned + at);
                    buffer.advance(1);
                    scanned = 0;
                    match (std::mem::take(&mut skipping), line.len() > longest) {
                        (true, _) => {}
                        (false, true) => self.reject_long_line(longest).await,
                        (false, false) => self.handle_line(line.trim_ascii()).await,
                    }
                }
                None => {
                    if buffer.len() > longest && !skipping {
                        self.reject_long_line(longest).await;
                        skipping = true;
                    }
                    if skipping {
                        buffer.clear();
                    }
                    scanned = buffer.len();
                    if reader.read_buf(&mut buffer).await? == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn reject_long_line(&self, longest: usize) {
        let error = RpcError::invalid_request(format!("message exceeds the limit of {longest} bytes"));
        self.send(write_error(None, &error)).await;
    }

    async fn handle_line(self: &Arc<Self>, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        match parse(line) {
            Ok(Packet::Single(message)) => self.handle_message(message).await,
            Ok(Packet::Batch(messages)) => self.handle_batch(messages).await,
            Err(InvalidMessage { id, error }) => self.send(write_error(id.as_ref(), &error)).await,
        }
    }

    async fn handle_message(self: &Arc<Self>, message: RpcMessage) {
        match message {
            // Handled before the next line is read, because that line may rely on the session.
            RpcMessage::Request(request) if request.method == "initialize" => {
                let answer = self.answer_request(request.clone()).await;
                self.send(write_outcome(&request.id, &answer)).await;
            }
            RpcMessage::Request(request) => {
                // Reading stops here at the limit of concurrent requests.
                let Ok(place) = Arc::clone(&self.permits).acquire_owned().await else { return };
                let id = request.id.clone();
                let Some(cancel) = self.begin_request(&id) else {
                    return self.send(write_error(Some(&id), &duplicate_id_error())).await;
                };
                let connection = Arc::clone(self);
                self.tasks.spawn(async move {
                    // A canceled request gets no response.
                    let answer = cancel.run_until_cancelled(connection.answer_request(request)).await;
                    connection.lock_in_flight().remove(&id);
                    if let Some(answer) = answer {
                        connection.send(write_outcome(&id, &answer)).await;
                    }
                    drop(place);
                });
            }
            other => self.handle_notification_or_response(other),
        }
    }

    /// Handles a batch (one legacy version only). The responses form a batch too.
    async fn handle_batch(self: &Arc<Self>, messages: Vec<Result<RpcMessage, InvalidMessage>>) {
        if !self.session().is_some_and(|session| session.version().has_batches()) {
            let error = RpcError::invalid_request("this protocol version does not support batches");
            return self.send(write_error(None, &error)).await;
        }
        let Ok(place) = Arc::clone(&self.permits).acquire_owned().await else { return };
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let answers = messages.into_iter().map(|message| async {
                match message {
                    Ok(RpcMessage::Request(request)) => {
                        let id = request.id.clone();
                        let Some(cancel) = connection.begin_request(&id) else {
                            return Some(write_error(Some(&id), &duplicate_id_error()));
                        };
                        let answer = cancel.run_until_cancelled(connection.answer_request(request)).await;
                        connection.lock_in_flight().remove(&id);
                        answer.map(|answer| write_outcome(&id, &answer))
                    }
                    Ok(other) => {
                        connection.handle_notification_or_response(other);
                        None
                    }
                    Err(InvalidMessage { id, error }) => Some(write_error(id.as_ref(), &error)),
                }
            });
            let answers = futures_util::future::join_all(answers).await;
            let answers: Vec<String> = answers.into_iter().flatten().collect();
            if !answers.is_empty() {
                connection.send(format!("[{}]", answers.join(","))).await;
            }
            drop(place);
        });
    }

    async fn answer_request(&self, request: RpcRequest) -> RpcResult {
        let meta = Meta::read(request.params.as_deref())?;
        let session = self.session();
        let asks = session.as_ref().map(|session| Arc::clone(&session.pending_requests));
        if meta.has_version() || request.method == "server/discover" {
            let outlet = ClientChannel::new(self.out.clone(), None);
            let closing = self.closing.clone();
            let (version, client) = meta.require_modern_fields()?;
            let declared = (modern_version(version)?, client);
            let inbound = build_modern_request(
                request,
                meta,
                declared,
                self.caller.clone(),
                outlet,
                RequestTransport::Stdio,
                closing,
            );
            return Arc::clone(&self.service).handle(inbound).await;
        }
        let Some(session) = session else {
            return match request.method.as_str() {
                "initialize" => self.initialize(&request),
                "ping" => Ok(empty_result()),
                _ => Err(RpcError::invalid_params(
                    "protocol version not declared: send `initialize` first, or `_meta` with \
                     `io.modelcontextprotocol/protocolVersion`",
                )),
            };
        };
        if let Some(answer) = answer_in_transport(&session, &request) {
            return answer;
        }
        let outlet = ClientChannel::new(self.out.clone(), asks);
        let closing = self.closing.clone();
        let inbound = build_legacy_request(
            &session,
            request,
            self.caller.clone(),
            outlet,
            RequestTransport::Stdio,
            closing,
        )?;
        Arc::clone(&self.service).handle(inbound).await
    }

    fn initialize(&self, request: &RpcRequest) -> RpcResult {
        let (version, client) = read_initialize(request.params.as_deref())?;
        let about = self.service.describe(&self.caller, version);
        let standing = StandingChannel::Stdio(self.out.clone());
        let session = Arc::new(Session::new(
            SessionId::plain("stdio".to_owned()),
            version,
            client,
            standing,
            ResumableStreams::default(),
        ));
        *self.session.lock() = Some(Arc::clone(&session));
        self.registry.add(self.caller.clone(), session);
        Ok(initialize_result(version, &about))
    }

    /// Handles messages that need no response.
    fn handle_notification_or_response(&self, message: RpcMessage) {
        match message {
            RpcMessage::Notification(notification) => {
                if let Some(id) = cancelled_request(&notification)
                    && let Some(cancel) = self.lock_in_flight().get(&id)
                {
                    cancel.cancel();
                }
            }
            RpcMessage::Response(response) => {
                if let Some(session) = self.session() {
                    session.pending_requests.complete(response);
                }
            }
            RpcMessage::Request(_) => {}
        }
    }

    async fn send(&self, message: String) {
        // A closed channel means that the client no longer reads. The connection is about to end.
        let _ = self.out.send(OutgoingFrame::Message(message)).await;
    }

    fn begin_request(&self, id: &RequestId) -> Option<CancellationToken> {
        let mut in_flight = self.lock_in_flight();
        if in_flight.contains_key(id) {
            return None;
        }
        let cancel = CancellationToken::new();
        in_flight.insert(id.clone(), cancel.clone());
        Some(cancel)
    }

    fn cancel_all(&self) {
        for cancel in self.lock_in_flight().values() {
            cancel.cancel();
        }
        if let Some(session) = self.session() {
            session.close();
            self.registry.delete(session.id());
        }
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().clone()
    }

    fn lock_in_flight(&self) -> parking_lot::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.in_flight.lock()
    }
}

fn duplicate_id_error() -> RpcError {
    RpcError::invalid_request("a request with this ID is already in progress")
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<OutgoingFrame>,
    broken: CancellationToken,
) {
    // However the writer ends, responses can no longer be sent.
    let _broken = broken.drop_guard();
    let mut lines = String::new();
    while let Some(first) = outgoing.recv().await {
        lines.clear();
        let mut next = Some(first);
        while let Some(frame) = next {
            if let OutgoingFrame::Message(message) = frame {
                lines.push_str(&message);
                lines.push('\n');
            }
            next = if lines.len() < 64 * 1024 { outgoing.try_recv().ok() } else { None };
        }
        if writer.write_all(lines.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}
