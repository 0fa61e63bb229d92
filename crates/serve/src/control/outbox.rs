//! What waits to be written to one socket. Nobody waits for a client that does not read: what there is no room for is left
//! out where that may be, and otherwise the socket is given up.

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

/// Above this nothing is added that can be left out, and answers wait.
const FULL: usize = 1024 * 1024;
/// So much is written before anybody is told that there is room again.
const AT_ONCE: usize = 64 * 1024;
/// Above this the socket is given up.
const TOO_MUCH: usize = 4 * 1024 * 1024;
/// How long a message may take to be read, beside a second for each so many bytes of it.
const PATIENCE: Duration = Duration::from_secs(10);
const BYTES_PER_SECOND: usize = 100 * 1024;
/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// Why a socket is closed by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// A message that is none; why.
    InvalidMessage(&'static str),
    Unauthorized(&'static str),
    Slow,
    TooLarge,
    /// Trying again later may help; why.
    TryAgainLater(&'static str),
    Stopping,
    /// The other side said goodbye, or is gone.
    PeerClosed,
}

impl CloseReason {
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason): (u16, _) = match self {
            Self::InvalidMessage(why) => (4400, why),
            Self::Unauthorized(why) => (4401, why),
            Self::Slow => (4408, "this client does not read"),
            Self::TooLarge => (1009, "the message is too large"),
            Self::TryAgainLater(why) => (1013, why),
            Self::Stopping => (1001, "the yard stops"),
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
    /// Whoever has a large answer to give takes turns: one at a time is made and waits.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct OutboxState {
    queue: VecDeque<QueuedMessage>,
    /// Of everything, and of what did not wait for its turn.
    bytes: usize,
    immediate_bytes: usize,
    close: Option<CloseReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Immediate,
    Deferred,
}

/// A message, and what its reader is charged for it until it is written.
#[derive(Debug)]
struct QueuedMessage {
    message: Message,
    kind: Kind,
    charge: Option<QuotaCharge>,
}

/// What is written at once.
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
    /// Adds a message at once. Where too much is waiting the socket is given up.
    pub(super) fn push(&self, text: String) {
        self.add(Message::Text(text.into()), Kind::Immediate, None);
    }

    pub(super) fn ping(&self) {
        self.add(Message::Ping(Vec::new().into()), Kind::Immediate, None);
    }

    /// Adds an answer once there is room for it, made no earlier than that.
    pub(super) async fn push_deferred(&self, make: impl FnOnce() -> (String, Option<QuotaCharge>)) {
        let _turn = self.turn.lock().await;
        self.wait_for_room().await;
        let (text, charge) = make();
        self.add(Message::Text(text.into()), Kind::Deferred, charge);
    }

    /// Completes when there is room; also when nothing will be written any more.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let less = self.not_full.notified();
            {
                let waiting = self.lock();
                if waiting.bytes < FULL || waiting.close.is_some() {
                    return;
                }
            }
            less.await;
        }
    }

    /// Whether there is room for what can be left out.
    pub(super) fn has_room(&self) -> bool {
        self.lock().bytes < FULL
    }

    /// From now on nothing is added; what waits is written first, unless nobody reads it.
    pub(super) fn close(&self, why: CloseReason) {
        let mut waiting = self.lock();
        if waiting.close.is_none() {
            waiting.close = Some(why);
            if matches!(why, CloseReason::Slow | CloseReason::PeerClosed) {
                waiting.queue.clear();
            }
        }
        drop(waiting);
        self.not_empty.notify_one();
        self.not_full.notify_waiters();
    }

    fn add(&self, message: Message, kind: Kind, charge: Option<QuotaCharge>) {
        let size = size(&message);
        let mut waiting = self.lock();
        if waiting.close.is_some() {
            return;
        }
        if kind == Kind::Immediate && waiting.immediate_bytes + size > TOO_MUCH {
            drop(waiting);
            return self.close(CloseReason::Slow);
        }
        waiting.bytes += size;
        waiting.immediate_bytes += if kind == Kind::Immediate { size } else { 0 };
        waiting.queue.push_back(QueuedMessage { message, kind, charge });
        drop(waiting);
        self.not_empty.notify_one();
    }

    /// Writes until the socket is to be closed, and closes it.
    pub(super) async fn write(&self, mut sink: SplitSink<ControlStream, Message>) -> CloseReason {
        loop {
            let batch = match self.next().await {
                Ok(batch) => batch,
                Err(close) => {
                    let goodbye = async {
                        let _ = sink.send(Message::Close(close.frame())).await;
                        let _ = sink.close().await;
                    };
                    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
                    return close;
                }
            };
            let patience = PATIENCE + Duration::from_secs((batch.bytes / BYTES_PER_SECOND) as u64);
            // Many small messages go out in one piece.
            let sending = async {
                for message in batch.messages {
                    sink.feed(message).await?;
                }
                sink.flush().await
            };
            match tokio::time::timeout(patience, sending).await {
                Ok(Ok(())) => self.mark_written(batch.bytes, batch.immediate_bytes),
                Ok(Err(_)) => self.close(CloseReason::PeerClosed),
                Err(_) => self.close(CloseReason::Slow),
            }
        }
    }

    async fn next(&self) -> Result<Batch, CloseReason> {
        loop {
            let more = self.not_empty.notified();
            {
                let mut waiting = self.lock();
                let batch = Batch::take_from(&mut waiting.queue);
                match (batch.messages.is_empty(), waiting.close) {
                    (false, _) => return Ok(batch),
                    (true, Some(close)) => return Err(close),
                    (true, None) => {}
                }
            }
            more.await;
        }
    }

    fn mark_written(&self, bytes: usize, loose: usize) {
        let mut waiting = self.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        waiting.immediate_bytes = waiting.immediate_bytes.saturating_sub(loose);
        drop(waiting);
        self.not_full.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock()
    }
}

/// What a message costs while it waits, with what is kept around it.
fn size(message: &Message) -> usize {
    let length = match message {
        Message::Text(text) => text.len(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Close(_) | Message::Frame(_) => 0,
    };
    length + 64
}
