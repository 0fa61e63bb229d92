//! The messages that wait to be written to one socket. A client that does not read blocks no other
//! task: without room, optional messages are dropped, and beyond a limit the socket is closed.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use toolyard_hub::QuotaCharge;

use super::handshake::ControlStream;

/// Number of bytes above which events are not added and responses wait.
const FULL: usize = 1024 * 1024;
/// Number of bytes written before waiting tasks are notified of new room.
const AT_ONCE: usize = 64 * 1024;
/// Number of bytes above which the socket is closed.
const TOO_MUCH: usize = 4 * 1024 * 1024;
/// Time limit for the client to read a batch, plus one second for each `BYTES_PER_SECOND`.
const WRITE_TIME: Duration = Duration::from_secs(10);
const BYTES_PER_SECOND: usize = 100 * 1024;
/// Time limit for the closing handshake.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// Why the server closes a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// A message cannot be parsed, for this reason.
    InvalidMessage(&'static str),
    Unauthorized(&'static str),
    Slow,
    TooLarge,
    /// A retry may succeed later.
    TryAgainLater(&'static str),
    Stopping,
    /// The client closed the socket or disconnected.
    PeerClosed,
}

impl CloseReason {
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason): (u16, _) = match self {
            Self::InvalidMessage(reason) => (4400, reason),
            Self::Unauthorized(reason) => (4401, reason),
            Self::Slow => (4408, "the client does not read its messages"),
            Self::TooLarge => (1009, "the message exceeds the size limit"),
            Self::TryAgainLater(reason) => (1013, reason),
            Self::Stopping => (1001, "the yard is shutting down"),
            Self::PeerClosed => return None,
        };
        Some(CloseFrame { code: code.into(), reason: reason.into() })
    }
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<OutboxState>,
    not_empty: Notify,
    not_full: Notify,
    /// Serializes deferred responses, which may be large: only one is rendered and waits at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct OutboxState {
    queue: VecDeque<QueuedMessage>,
    /// Total size, and the size of the immediate messages.
    bytes: usize,
    immediate_bytes: usize,
    close: Option<CloseReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Immediate,
    Deferred,
}

/// A message with the quota charge that is held until it is written.
#[derive(Debug)]
struct QueuedMessage {
    message: Message,
    kind: Kind,
    charge: Option<QuotaCharge>,
}

/// Messages that are written together.
#[derive(Debug, Default)]
struct Batch {
    messages: Vec<Message>,
    charges: Vec<QuotaCharge>,
    bytes: usize,
    immediate_bytes: usize,
}

impl Batch {
    fn take_from(queue: &mut VecDeque<QueuedMessage>) -> Self {
        let mut batch = Self::default();
        while batch.bytes < AT_ONCE
            && let Some(QueuedMessage { message, kind, charge }) = queue.pop_front()
        {
            batch.charges.extend(charge);
            let size = size(&message);
            batch.bytes += size;
            batch.immediate_bytes += if kind == Kind::Immediate { size } else { 0 };
            batch.messages.push(message);
        }
        batch
    }
}

impl Outbox {
    /// Adds a message without waiting. Closes the socket if too much is waiting.
    pub(super) fn push(&self, text: String) {
        self.add(Message::Text(text.into()), Kind::Immediate, None);
    }

    pub(super) fn ping(&self) {
        self.add(Message::Ping(Vec::new().into()), Kind::Immediate, None);
    }

    /// Waits for room, then renders and adds a response.
    pub(super) async fn push_deferred(&self, render: impl FnOnce() -> (String, Option<QuotaCharge>)) {
        let _turn = self.turn.lock().await;
        self.wait_for_room().await;
        let (text, charge) = render();
        self.add(Message::Text(text.into()), Kind::Deferred, charge);
    }

    /// Completes when there is room or the outbox is closed.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let notified = self.not_full.notified();
            {
                let state = self.lock();
                if state.bytes < FULL || state.close.is_some() {
                    return;
                }
            }
            notified.await;
        }
    }

    /// Returns whether there is room for events.
    pub(super) fn has_room(&self) -> bool {
        self.lock().bytes < FULL
    }

    /// Closes the outbox. Waiting messages are still written, unless the client does not read.
    pub(super) fn close(&self, reason: CloseReason) {
        let mut state = self.lock();
        if state.close.is_none() {
            state.close = Some(reason);
            if matches!(reason, CloseReason::Slow | CloseReason::PeerClosed) {
                state.queue.clear();
            }
        }
        drop(state);
        self.not_empty.notify_one();
        self.not_full.notify_waiters();
    }

    fn add(&self, message: Message, kind: Kind, charge: Option<QuotaCharge>) {
        let size = size(&message);
        let mut state = self.lock();
        if state.close.is_some() {
            return;
        }
        if kind == Kind::Immediate && state.immediate_bytes + size > TOO_MUCH {
            drop(state);
            return self.close(CloseReason::Slow);
        }
        state.bytes += size;
        state.immediate_bytes += if kind == Kind::Immediate { size } else { 0 };
        state.queue.push_back(QueuedMessage { message, kind, charge });
        drop(state);
        self.not_empty.notify_one();
    }

    /// Writes messages until the outbox is closed, then closes the socket.
    pub(super) async fn write(&self, mut sink: SplitSink<ControlStream, Message>) -> CloseReason {
        loop {
            let batch = match self.next().await {
                Ok(batch) => batch,
                Err(close) => {
                    let closing = async {
                        let _ = sink.send(Message::Close(close.frame())).await;
                        let _ = sink.close().await;
                    };
                    let _ = tokio::time::timeout(CLOSE_TIME, closing).await;
                    return close;
                }
            };
            let time_limit = WRITE_TIME + Duration::from_secs((batch.bytes / BYTES_PER_SECOND) as u64);
            // Many small messages are sent in one write.
            let sending = async {
                for message in batch.messages {
                    sink.feed(message).await?;
                }
                sink.flush().await
            };
            match tokio::time::timeout(time_limit, sending).await {
                Ok(Ok(())) => self.mark_written(batch.bytes, batch.immediate_bytes),
                Ok(Err(_)) => self.close(CloseReason::PeerClosed),
                Err(_) => self.close(CloseReason::Slow),
            }
        }
    }

    async fn next(&self) -> Result<Batch, CloseReason> {
        loop {
            let notified = self.not_empty.notified();
            {
                let mut state = self.lock();
                let batch = Batch::take_from(&mut state.queue);
                match (batch.messages.is_empty(), state.close) {
                    (false, _) => return Ok(batch),
                    (true, Some(close)) => return Err(close),
                    (true, None) => {}
                }
            }
            notified.await;
        }
    }

    fn mark_written(&self, bytes: usize, immediate_bytes: usize) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        state.immediate_bytes = state.immediate_bytes.saturating_sub(immediate_bytes);
        drop(state);
        self.not_full.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock()
    }
}

/// Returns the memory cost of a waiting message, including its overhead.
fn size(message: &Message) -> usize {
    let length = match message {
        Message::Text(text) => text.len(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Close(_) | Message::Frame(_) => 0,
    };
    length + 64
}
