//! The log of streams in Redis. It is written in the background and in batches. What does not fit
//! into the queue is not logged: the call goes on, but its stream may end with an error if this
//! replica dies.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::Pipeline;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;
use toolyard_hub::{StoreUnavailable, StreamEntry};

use crate::store::{KEY_PREFIX, RedisStore};

/// The capacity of the queue, in entries and bytes.
const MOST_WAITING: usize = 4_096;
const MOST_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// Larger events are not logged.
const LARGEST_EVENT: usize = 256 * 1024;
/// How many events of a stream are kept.
const KEPT_EVENTS: isize = 300;
/// How long a stream is kept after its last event.
const KEPT_FOR: Duration = Duration::from_secs(600);
const BATCH: usize = 64;

/// An entry on its way to Redis.
#[derive(Debug)]
struct QueuedEntry {
    key: String,
    entry: StreamEntry,
}

#[derive(Debug)]
pub(crate) struct StreamLogQueue {
    sender: Sender<QueuedEntry>,
    /// Taken by [`Self::run`].
    receiver: Mutex<Option<Receiver<QueuedEntry>>>,
    bytes: AtomicUsize,
}

impl Default for StreamLogQueue {
    fn default() -> Self {
        let (sender, receiver) = channel(MOST_WAITING);
        Self { sender, receiver: Mutex::new(Some(receiver)), bytes: AtomicUsize::new(0) }
    }
}

impl StreamLogQueue {
    /// Queues an entry, or drops it if the queue is full.
    pub(crate) fn push(&self, session: &str, stream: u64, entry: StreamEntry) {
        let size = size(&entry);
        let fits = |used: usize| used.checked_add(size).filter(|used| *used <= MOST_WAITING_BYTES);
        if size > LARGEST_EVENT
            || self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err()
        {
            return;
        }
        if self.sender.try_send(QueuedEntry { key: key(session, stream), entry }).is_err() {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
        }
    }

    /// Writes queued entries until `stop` is canceled.
    pub(crate) async fn run(&self, store: &RedisStore, stop: &CancellationToken) {
        let Some(mut receiver) = self.receiver.lock().take() else { return };
        let mut batch = Vec::with_capacity(BATCH);
        while stop.run_until_cancelled(receiver.recv_many(&mut batch, BATCH)).await.is_some() {
            let size = batch.iter().map(|queued: &QueuedEntry| size(&queued.entry)).sum();
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            // Without the store, nothing is logged. The store logs that it is away.
            let _ = store.send(&commands(batch.drain(..))).await;
        }
    }
}

/// Reads what was logged of a stream.
pub(crate) async fn read(
    store: &RedisStore,
    session: &str,
    stream: u64,
) -> Result<Vec<StreamEntry>, StoreUnavailable> {
    let key = key(session, stream);
    let mut entries = Vec::new();
    let requests: Option<String> = store.query(redis::cmd("GET").arg(requests_key(&key))).await?;
    entries.extend(requests.and_then(|text| serde_json::from_str(&text).ok()).map(StreamEntry::Requests));
    let events: Vec<String> = store.query(redis::cmd("LRANGE").arg(&key).arg(0).arg(-1)).await?;
    entries.extend(events.iter().filter_map(|line| parse_event(line)));
    Ok(entries)
}

fn commands(batch: impl Iterator<Item = QueuedEntry>) -> Pipeline {
    let mut commands = redis::pipe();
    let time = u64::try_from(KEPT_FOR.as_millis()).unwrap_or(u64::MAX);
    for QueuedEntry { key, entry } in batch {
        match entry {
            StreamEntry::Requests(ids) => {
                let ids = serde_json::to_string(&ids).unwrap_or_default();
                commands.cmd("SET").arg(requests_key(&key)).arg(ids).arg("PX").arg(time).ignore();
            }
            StreamEntry::Event { number, text } => {
                commands.cmd("RPUSH").arg(&key).arg(format!("{number} {text}")).ignore();
                commands.cmd("LTRIM").arg(&key).arg(-KEPT_EVENTS).arg(-1).ignore();
                commands.cmd("PEXPIRE").arg(&key).arg(time).ignore();
                commands.cmd("PEXPIRE").arg(requests_key(&key)).arg(time).ignore();
            }
        }
    }
    commands
}

fn parse_event(line: &str) -> Option<StreamEntry> {
    let (number, text) = line.split_once(' ')?;
    Some(StreamEntry::Event { number: number.parse().ok()?, text: text.to_owned() })
}

fn size(entry: &StreamEntry) -> usize {
    match entry {
        StreamEntry::Requests(ids) => ids.iter().map(String::len).sum(),
        StreamEntry::Event { text, .. } => text.len(),
    }
}

fn key(session: &str, stream: u64) -> String {
    format!("{KEY_PREFIX}stream:{session}:{stream}")
}

fn requests_key(key: &str) -> String {
    format!("{key}:requests")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use toolyard_hub::StreamEntry;

    use super::{LARGEST_EVENT, MOST_WAITING, MOST_WAITING_BYTES, StreamLogQueue, commands, parse_event};

    fn event(text: &str) -> StreamEntry {
        StreamEntry::Event { number: 7, text: text.to_owned() }
    }

    #[test]
    fn the_queue_is_limited_in_entries_and_bytes() {
        let queue = StreamLogQueue::default();
        queue.push("s", 0, event(&"x".repeat(LARGEST_EVENT + 1)));
        assert_eq!(queue.bytes.load(Ordering::Relaxed), 0);
        for _ in 0..2 * MOST_WAITING {
            queue.push("s", 0, event("x"));
        }
        assert_eq!(queue.bytes.load(Ordering::Relaxed), MOST_WAITING);
        let queue = StreamLogQueue::default();
        let large = "x".repeat(LARGEST_EVENT);
        for _ in 0..2 * MOST_WAITING_BYTES / LARGEST_EVENT {
            queue.push("s", 0, event(&large));
        }
        assert_eq!(queue.bytes.load(Ordering::Relaxed), MOST_WAITING_BYTES);
    }

    #[test]
    fn entries_are_written_and_read_in_one_form() {
        let queue = StreamLogQueue::default();
        queue.push("s", 3, StreamEntry::Requests(vec!["1".to_owned(), "\"a\"".to_owned()]));
        queue.push("s", 3, event("{\"a\": 1}"));
        let mut receiver = queue.receiver.lock().take().unwrap();
        let queued = std::iter::from_fn(|| receiver.try_recv().ok());
        let packed = String::from_utf8(commands(queued).get_packed_pipeline()).unwrap();
        assert!(
            packed.contains("toolyard:{yard}:stream:s:3:requests\r\n$13\r\n[\"1\",\"\\\"a\\\"\"]"),
            "{packed}"
        );
        assert!(packed.contains("7 {\"a\": 1}"), "{packed}");
        assert_eq!(parse_event("7 {\"a\": 1}"), Some(event("{\"a\": 1}")));
        assert_eq!(parse_event("x"), None);
    }
}
