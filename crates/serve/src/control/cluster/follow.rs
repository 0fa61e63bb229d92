//! Following the events of one other replica: reads its feed into the journal, and connects again
//! when it breaks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::timeout;
use toolyard_hub::{Progress, Replica, ReplicaState, SourceName};

use super::message::{FeedMessage, LONGEST_MESSAGE, read_log_line, read_server, read_stderr_line};
use super::{ClusterView, FirstContact};
use crate::control::journal::{JournalCall, JournalReplica};

const RETRY: Duration = Duration::from_secs(1);
/// How long another replica may take to answer, and how long it may be silent. It sends something
/// more often than that.
const ANSWER: Duration = Duration::from_secs(3);
const SILENCE: Duration = Duration::from_secs(12);
/// Maximum number of calls in the state of one replica.
const MOST_CALLS: usize = 11_000;

/// What is known of a feed while it is read.
struct FeedReader {
    replica: Arc<JournalReplica>,
    contact: FirstContact,
    /// The calls of a state that is not complete yet.
    calls: Vec<JournalCall>,
    is_current: bool,
}

impl ClusterView {
    /// Follows a replica until the future is dropped.
    pub(super) async fn follow(self: Arc<Self>, replica: Replica, contact: FirstContact) {
        let origin = Arc::new(JournalReplica::other(&replica.name, replica.id.clone()));
        let mut contact = contact;
        let mut was_reported = false;
        loop {
            let reason = self.read_feed(&replica, &origin, contact).await;
            self.set_connected(&replica.id, false);
            // What ends from now on is reported when the connection is back.
            contact = FirstContact::Later;
            let known = self.router.replicas().find(&replica.id);
            if !was_reported && known.is_some_and(|known| known.state == ReplicaState::Ready) {
                tracing::warn!(
                    replica = replica.name,
                    reason,
                    "cannot follow the events of another replica; retrying"
                );
                was_reported = true;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Reads the feed until it breaks, and returns why.
    async fn read_feed(
        &self,
        replica: &Replica,
        origin: &Arc<JournalReplica>,
        contact: FirstContact,
    ) -> &'static str {
        let after = self.journal.feed_position(&replica.id);
        let response = match timeout(ANSWER, self.router.open_feed(replica, after)).await {
            Ok(Ok(response)) => response,
            Ok(Err(reason)) => return reason,
            Err(_) => return "it does not answer",
        };
        let mut stream = response.bytes_stream();
        let mut reader =
            FeedReader { replica: Arc::clone(origin), contact, calls: Vec::new(), is_current: false };
        let mut buffer = Vec::new();
        loop {
            let chunk = match timeout(SILENCE, stream.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(_))) => return "the connection broke",
                Ok(None) => return "it ended the stream",
                Err(_) => return "it sends nothing",
            };
            buffer.extend_from_slice(&chunk);
            let end = memchr::memrchr(b'\n', &buffer).map_or(0, |at| at + 1);
            for line in buffer[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                // A later version may send messages that this one does not know.
                if let Ok(message) = serde_json::from_slice(line) {
                    self.record(&mut reader, message);
                }
            }
            buffer.drain(..end);
            if buffer.len() > LONGEST_MESSAGE {
                return "it sends a message that is too long";
            }
            self.journal.announce_entries();
            if reader.is_current {
                self.set_connected(&replica.id, true);
            }
        }
    }

    fn record(&self, reader: &mut FeedReader, message: FeedMessage<'_>) {
        let (journal, replica) = (&self.journal, &reader.replica);
        match message {
            FeedMessage::Call(call) if reader.calls.len() < MOST_CALLS => {
                reader.calls.extend(call.into_call(replica));
            }
            FeedMessage::Call(_) => {}
            FeedMessage::Current => {
                journal.record_state(replica, std::mem::take(&mut reader.calls), reader.contact);
                reader.contact = FirstContact::Later;
                reader.is_current = true;
            }
            FeedMessage::Resumed => reader.is_current = true,
            FeedMessage::Server { name, state, reason } => {
                let server = state.and_then(|state| read_server(replica, &state, reason));
                journal.record_server(replica, &SourceName::new(name.as_ref()), server, &self.yard);
            }
            FeedMessage::CallStarted(call) => {
                if let Some(call) = call.into_call(replica) {
                    journal.record_start(replica, call);
                }
            }
            FeedMessage::CallProgress { id, progress, total, message } => {
                if let Ok(id) = id.parse() {
                    let message = message.map(std::borrow::Cow::into_owned);
                    journal.record_progress(replica, id, Progress { progress, total, message });
                }
            }
            FeedMessage::CallEnded(call) => {
                if let Some(call) = call.into_call(replica).filter(|call| call.end.is_some()) {
                    journal.record_end(replica, call);
                }
            }
            FeedMessage::Log { at, level, target, source, message } => {
                if let Some(line) = read_log_line(at, &level, (target, source, message)) {
                    journal.record_log_line(replica, line);
                }
            }
            FeedMessage::Stderr { at, source, line } => {
                if let Some(line) = read_stderr_line(at, &source, line) {
                    journal.record_stderr_line(replica, line);
                }
            }
            FeedMessage::Lost { events } => journal.record_feed_loss(replica, events),
            FeedMessage::Position { seq } => journal.set_feed_position(replica, seq),
        }
    }
}
