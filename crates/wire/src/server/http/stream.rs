//! Event streams that outlive a connection. A disconnected client comes back with the ID of the
//! last event it received and continues from there. What is retained for that is bounded.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::charged_response::{ChargedBytes, ChargedResponse};
use super::stream_log::StreamLog;
use crate::message::RequestId;
use crate::server::Charge;
use toolyard_random::RandomError;

/// How many events may wait for a reader before writers have to wait.
const MOST_UNREAD: u64 = 256;
/// How many events, and bytes of events, are retained for a returning reader.
const MOST_KEPT: usize = 256;
const MOST_KEPT_BYTES: usize = 1024 * 1024;
/// How often a silent stream sends a keep-alive.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
pub(crate) const COMMENT: &[u8] = b":\n\n";
/// How many streams of a session, and bytes in them, are retained for returning readers.
const MOST_STREAMS: usize = 64;
const MOST_STREAM_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of standing streams of a session besides the first.
const MOST_STANDING: usize = 7;
/// The maximum size of the delivered events that all sessions together retain.
const MOST_RETAINED_BYTES: usize = 8 * 1024 * 1024;
/// The stream numbers of a session that moves to another process start at a multiple of this. The
/// first one is its standing stream.
const NUMBERS_PER_PROCESS: u64 = 1_000_000;
/// Larger events are sent from where they are stored instead of being copied into one piece.
const LARGE_EVENT: usize = 16 * 1024;

/// The bytes that all sessions of an endpoint retain for returning readers. Clones share one
/// account.
#[derive(Debug, Clone, Default)]
pub struct Retention(Arc<AtomicUsize>);

impl Retention {
    fn reserve(&self, bytes: usize) -> Option<RetentionReservation> {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= MOST_RETAINED_BYTES);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(RetentionReservation { account: Arc::clone(&self.0), bytes })
    }
}

#[derive(Debug)]
struct RetentionReservation {
    account: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for RetentionReservation {
    fn drop(&mut self) {
        self.account.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// One stream of events.
#[derive(Debug)]
pub(crate) struct ResumableStream {
    number: u64,
    log: Option<Arc<dyn StreamLog>>,
    retention: Retention,
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<Event>,
    bytes: usize,
    /// The number of the next event. The empty first event is 0.
    next: u64,
    /// The number of the first event that was not delivered to the reader.
    unread: u64,
    /// Each reader replaces the previous one. This number identifies the current reader.
    reader: u64,
    unread_since: Option<Instant>,
    ended: bool,
    disconnect_retry: Option<Duration>,
    /// Notified when the disconnected reader is back.
    returned: Option<Arc<Notify>>,
}

#[derive(Debug)]
struct Event {
    number: u64,
    text: Bytes,
    /// The charge for this event, released when it is sent.
    charge: Charge,
    /// Set once the event was delivered.
    retained: Option<RetentionReservation>,
}

impl ResumableStream {
    pub(crate) fn new(number: u64, retention: Retention) -> Arc<Self> {
        Self::build(number, retention, None)
    }

    /// Creates a stream whose events are logged.
    fn logged(number: u64, retention: Retention, log: Arc<dyn StreamLog>) -> Arc<Self> {
        Self::build(number, retention, Some(log))
    }

    fn build(number: u64, retention: Retention, log: Option<Arc<dyn StreamLog>>) -> Arc<Self> {
        let inner = Inner { next: 1, unread: 1, unread_since: Some(Instant::now()), ..Inner::default() };
        Arc::new(Self { number, log, retention, inner: Mutex::new(inner), changed: Notify::new() })
    }

    /// Adds a message. Waits while the reader is too far behind.
    pub(crate) async fn push(&self, message: impl Into<ChargedResponse>) {
        let message = message.into();
        loop {
            let changed = self.changed.notified();
            {
                let mut inner = self.lock();
                if inner.ended || inner.next - inner.unread < MOST_UNREAD {
                    if let Some(log) = &self.log {
                        log.append(self.number, inner.next, &message.text);
                    }
                    inner.add(message);
                    break;
                }
            }
            changed.await;
        }
        self.changed.notify_waiters();
    }

    /// Adds a message without waiting. Drops the oldest one at the limit.
    pub(crate) fn push_lossy(&self, message: String) {
        {
            let mut inner = self.lock();
            if inner.next - inner.unread >= MOST_UNREAD {
                inner.unread += 1;
            }
            inner.add(message.into());
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_waiters();
    }

    /// Closes the reader's connection but not the stream. `returned` is notified when there is a
    /// reader again.
    pub(crate) fn disconnect_reader(&self, retry: Duration, returned: Arc<Notify>) {
        {
            let mut inner = self.lock();
            inner.disconnect_retry = Some(retry);
            inner.returned = Some(returned);
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.lock().unread_since.is_none()
    }

    /// Completes when the stream has had no reader for this long.
    pub(crate) async fn wait_until_abandoned(&self, patience: Duration) {
        loop {
            let changed = self.changed.notified();
            let since = self.lock().unread_since;
            match since {
                Some(since) if since.elapsed() >= patience => return,
                Some(since) => tokio::time::sleep(patience.saturating_sub(since.elapsed())).await,
                None => changed.await,
            }
        }
    }

    /// Returns a response body with the events after `last`. It replaces any previous reader. If
    /// `prime` is set, the body starts with an empty event that has an ID, for clients that know
    /// this event.
    pub(crate) fn body(self: &Arc<Self>, last: Option<u64>, prime: Option<Duration>) -> Body {
        let reader = {
            let mut inner = self.lock();
            inner.reader += 1;
            inner.unread_since = None;
            inner.disconnect_retry = None;
            if let Some(returned) = inner.returned.take() {
                returned.notify_one();
            }
            if let Some(last) = last {
                inner.unread = last + 1;
            }
            Reader { stream: Arc::clone(self), generation: inner.reader, pieces: VecDeque::new() }
        };
        self.changed.notify_waiters();
        let first = prime.map(|retry| {
            let at = last.unwrap_or(0);
            format!("id: {}-{at}\nretry: {}\ndata: \n\n", self.number, retry.as_millis())
        });
        Body::from_stream(unfold((reader, first), |(mut reader, first)| async move {
            let bytes = match first {
                Some(first) => Bytes::from(first),
                None => reader.next().await?,
            };
            Some((Ok::<_, Infallible>(bytes), (reader, None)))
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn add(&mut self, ChargedResponse { text, charge }: ChargedResponse) {
        self.bytes += text.len();
        let text = Bytes::from(text);
        self.events.push_back(Event { number: self.next, text, charge, retained: None });
        self.next += 1;
        while self.events.len() > MOST_KEPT || self.bytes > MOST_KEPT_BYTES {
            // Only delivered events may be dropped.
            if self.events.front().is_none_or(|event| event.number >= self.unread) {
                break;
            }
            self.remove(0);
        }
    }

    fn remove(&mut self, at: usize) {
        if let Some(event) = self.events.remove(at) {
            self.bytes -= event.text.len();
        }
    }
}

struct Reader {
    stream: Arc<ResumableStream>,
    generation: u64,
    /// The rest of an event that is sent in pieces.
    pieces: VecDeque<Bytes>,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        let stream = Arc::clone(&self.stream);
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some(piece);
            }
            let changed = stream.changed.notified();
            if let Some(given) = self.next_chunk() {
                stream.changed.notify_waiters();
                return given;
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(COMMENT)),
            }
        }
    }

    /// Returns the next event or its first piece, or the end. `None` if there is nothing to send
    /// yet.
    fn next_chunk(&mut self) -> Option<Option<Bytes>> {
        let mut inner = self.stream.lock();
        if inner.reader != self.generation {
            return Some(None);
        }
        let unread = inner.unread;
        if let Some(at) = inner.events.iter().position(|event| event.number >= unread) {
            let event = &mut inner.events[at];
            let (number, text) = (event.number, event.text.clone());
            let held = ChargedBytes { text, charge: event.charge.take() };
            if event.retained.is_none() {
                event.retained = self.stream.retention.reserve(event.text.len());
            }
            if event.retained.is_none() {
                inner.remove(at);
            }
            inner.unread = number + 1;
            drop(inner);
            self.pieces.extend(event_chunks(&format!("id: {}-{number}\ndata: ", self.stream.number), held));
            return Some(self.pieces.pop_front());
        }
        if let Some(retry) = inner.disconnect_retry.take() {
            inner.reader += 1;
            inner.unread_since = Some(Instant::now());
            return Some(Some(format!("retry: {}\n\n", retry.as_millis()).into()));
        }
        inner.ended.then_some(None)
    }
}

/// Splits an event after its first line into chunks. A small event is one chunk.
pub(crate) fn event_chunks(head: &str, held: ChargedBytes) -> Vec<Bytes> {
    const END: &[u8] = b"\n\n";
    if held.text.len() < LARGE_EVENT {
        return vec![[head.as_bytes(), &held.text, END].concat().into()];
    }
    vec![Bytes::copy_from_slice(head.as_bytes()), held.into(), Bytes::from_static(END)]
}

impl Drop for Reader {
    fn drop(&mut self) {
        {
            let mut inner = self.stream.lock();
            if inner.reader == self.generation {
                inner.unread_since = Some(Instant::now());
            }
        }
        self.stream.changed.notify_waiters();
    }
}

/// The streams of a session, retained for returning clients.
#[derive(Debug, Default)]
pub(crate) struct ResumableStreams {
    next: AtomicU64,
    streams: Mutex<VecDeque<Arc<ResumableStream>>>,
    retention: Retention,
    log: Option<Arc<dyn StreamLog>>,
}

impl ResumableStreams {
    pub(crate) fn new(retention: Retention) -> Self {
        Self { retention, ..Self::default() }
    }

    /// Logs the streams for the responses to requests.
    pub(crate) fn with_log(self, log: Option<Arc<dyn StreamLog>>) -> Self {
        Self { log, ..self }
    }

    /// The streams of a session that another process opened. Their numbers differ from those of
    /// that process, so that no client reads on in the wrong stream.
    pub(crate) fn restored(retention: Retention) -> Result<Self, RandomError> {
        let random = u32::from_be_bytes(toolyard_random::bytes()?);
        let first = (u64::from(random) + 1) * NUMBERS_PER_PROCESS;
        Ok(Self { retention, next: AtomicU64::new(first), ..Self::default() })
    }

    /// Returns the stream of another process, and its event, that a `Last-Event-ID` names.
    pub(crate) fn find_elsewhere(&self, last_event: &str) -> Option<ForeignStream> {
        let (number, event) = parse_event_id(last_event)?;
        let first = self.next.load(Ordering::Relaxed) / NUMBERS_PER_PROCESS;
        if first == 0 || number / NUMBERS_PER_PROCESS == first {
            return None;
        }
        Some(match number % NUMBERS_PER_PROCESS {
            0 => ForeignStream::Standing,
            _ => ForeignStream::Call { number, event },
        })
    }

    /// Opens a stream for messages that belong to no request.
    pub(crate) fn open(&self) -> Arc<ResumableStream> {
        self.add(ResumableStream::new)
    }

    /// Opens a stream for the responses to these requests.
    pub(crate) fn open_for(&self, requests: impl Iterator<Item = RequestId>) -> Arc<ResumableStream> {
        let Some(log) = &self.log else { return self.open() };
        self.add(|number, retention| {
            log.open(number, &requests.collect::<Vec<_>>());
            ResumableStream::logged(number, retention, Arc::clone(log))
        })
    }

    fn add(&self, new: impl FnOnce(u64, Retention) -> Arc<ResumableStream>) -> Arc<ResumableStream> {
        let stream = new(self.next.fetch_add(1, Ordering::Relaxed), self.retention.clone());
        self.lock().push_back(Arc::clone(&stream));
        self.evict_ended();
        stream
    }

    /// Drops the oldest ended streams above the limits. Streams that are still written to are kept.
    pub(crate) fn evict_ended(&self) {
        let mut streams = self.lock();
        loop {
            let bytes: usize = streams.iter().map(|stream| stream.lock().bytes).sum();
            if streams.len() <= MOST_STREAMS && bytes <= MOST_STREAM_BYTES {
                return;
            }
            let Some(at) = streams.iter().position(|stream| stream.lock().ended) else { return };
            streams.remove(at);
        }
    }

    pub(crate) fn end_all(&self) {
        for stream in self.lock().drain(..) {
            stream.end();
        }
    }

    /// Returns the stream and the event that a `Last-Event-ID` names.
    pub(crate) fn find(&self, last_event: &str) -> Option<(Arc<ResumableStream>, u64)> {
        let (number, event) = parse_event_id(last_event)?;
        let stream = self.lock().iter().find(|stream| stream.number == number)?.clone();
        let known = event < stream.lock().next;
        known.then_some((stream, event))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<ResumableStream>>> {
        self.streams.lock()
    }
}

/// A stream that a session had in another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignStream {
    Standing,
    Call { number: u64, event: u64 },
}

fn parse_event_id(last_event: &str) -> Option<(u64, u64)> {
    let (number, event) = last_event.split_once('-')?;
    Some((number.parse().ok()?, event.parse().ok()?))
}

/// The streams of a session for messages that belong to no request. A client may have several. Each
/// message is sent on one of them.
#[derive(Debug)]
pub(crate) struct StandingStreams {
    first: Arc<ResumableStream>,
    /// The streams that were opened while others had a reader, oldest first.
    more: Mutex<Vec<Arc<ResumableStream>>>,
}

impl StandingStreams {
    /// Creates the first stream before a client opens it, so that earlier messages are not lost.
    pub(crate) fn new(streams: &ResumableStreams) -> Self {
        Self { first: streams.open(), more: Mutex::default() }
    }

    /// Returns a stream for a new reader.
    pub(crate) fn open(&self, streams: &ResumableStreams) -> Arc<ResumableStream> {
        if !self.first.has_reader() {
            return Arc::clone(&self.first);
        }
        let mut more = self.lock();
        if more.len() >= MOST_STANDING {
            let idle = more.iter().position(|stream| !stream.has_reader()).unwrap_or(0);
            more.remove(idle).end();
        }
        let stream = streams.open();
        more.push(Arc::clone(&stream));
        stream
    }

    /// Sends a message on the newest stream that has a reader. An older one may belong to a
    /// connection that broke unnoticed.
    pub(crate) fn announce(&self, message: String) {
        let newest = self.lock().iter().rev().find(|stream| stream.has_reader()).cloned();
        newest.as_ref().unwrap_or(&self.first).push_lossy(message);
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.first.has_reader() || self.lock().iter().any(|stream| stream.has_reader())
    }

    pub(crate) fn end(&self) {
        self.first.end();
        self.lock().iter().for_each(|stream| stream.end());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ResumableStream>>> {
        self.more.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use http_body_util::BodyExt;

    use super::{
        LARGE_EVENT, MOST_RETAINED_BYTES, MOST_STANDING, ResumableStream, ResumableStreams, Retention,
        StandingStreams,
    };

    async fn read(body: &mut Body) -> String {
        let frame = body.frame().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_comes_back_reads_on_after_the_last_event_it_saw() {
        let streams = ResumableStreams::default();
        let stream = streams.open();
        stream.push("one".to_owned()).await;
        let mut body = stream.body(None, Some(Duration::from_millis(500)));
        assert_eq!(read(&mut body).await, "id: 0-0\nretry: 500\ndata: \n\n");
        assert_eq!(read(&mut body).await, "id: 0-1\ndata: one\n\n");
        drop(body);
        stream.push("two".to_owned()).await;
        stream.push("three".to_owned()).await;
        stream.end();
        let (found, last) = streams.find("0-1").unwrap();
        let mut body = found.body(Some(last), None);
        assert_eq!(read(&mut body).await, "id: 0-2\ndata: two\n\n");
        assert_eq!(read(&mut body).await, "id: 0-3\ndata: three\n\n");
        assert!(body.frame().await.is_none());
        assert!(streams.find("0-9").is_none() && streams.find("1-0").is_none());
        assert!(streams.find("nonsense").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_never_reads_stops_the_writer_and_not_the_memory() {
        let stream = ResumableStream::new(1, Retention::default());
        let _body = stream.body(None, None);
        let mut written = 0;
        while tokio::time::timeout(Duration::from_secs(1), stream.push("x".repeat(1000))).await.is_ok() {
            written += 1;
        }
        assert_eq!(written, 256);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_says_that_it_is_alive() {
        let stream = ResumableStream::new(1, Retention::default());
        let mut body = stream.body(None, None);
        assert_eq!(read(&mut body).await, ":\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_a_reader_is_abandoned_after_a_while() {
        let stream = ResumableStream::new(1, Retention::default());
        let body = stream.body(None, None);
        let patience = Duration::from_secs(30);
        assert!(
            tokio::time::timeout(Duration::from_secs(100), stream.wait_until_abandoned(patience))
                .await
                .is_err()
        );
        drop(body);
        assert!(
            tokio::time::timeout(Duration::from_secs(29), stream.wait_until_abandoned(patience))
                .await
                .is_err()
        );
        assert!(
            tokio::time::timeout(Duration::from_secs(2), stream.wait_until_abandoned(patience)).await.is_ok()
        );
    }

    #[tokio::test]
    async fn unread_announcements_do_not_accumulate() {
        let stream = ResumableStream::new(0, Retention::default());
        for n in 0..10_000 {
            stream.push_lossy(n.to_string());
        }
        assert!(stream.lock().events.len() <= 257, "{} kept", stream.lock().events.len());
        let mut body = stream.body(None, None);
        assert_eq!(read(&mut body).await, "id: 0-9745\ndata: 9744\n\n");
    }

    #[tokio::test]
    async fn of_several_standing_streams_the_newest_that_is_read_carries_a_message() {
        let streams = ResumableStreams::default();
        let standing = StandingStreams::new(&streams);
        standing.announce("before".to_owned());
        let mut first = standing.open(&streams).body(None, None);
        let mut second = standing.open(&streams).body(None, None);
        standing.announce("to the second".to_owned());
        assert_eq!(read(&mut first).await, "id: 0-1\ndata: before\n\n");
        assert_eq!(read(&mut second).await, "id: 1-1\ndata: to the second\n\n");
        drop(second);
        standing.announce("to the first".to_owned());
        assert_eq!(read(&mut first).await, "id: 0-2\ndata: to the first\n\n");
        let (found, last) = streams.find("1-1").unwrap();
        let mut second = found.body(Some(last), None);
        standing.announce("to the second again".to_owned());
        assert_eq!(read(&mut second).await, "id: 1-2\ndata: to the second again\n\n");
        // The oldest stream is replaced, so a client that keeps opening streams uses no more
        // memory.
        let more: Vec<Body> = (0..MOST_STANDING).map(|_| standing.open(&streams).body(None, None)).collect();
        assert!(second.frame().await.is_none() && standing.has_reader());
        drop((first, more));
        assert!(!standing.has_reader());
    }

    #[tokio::test(start_paused = true)]
    async fn a_returning_reader_is_notified() {
        let stream = ResumableStream::new(1, Retention::default());
        let mut body = stream.body(None, None);
        let returned = std::sync::Arc::<tokio::sync::Notify>::default();
        stream.disconnect_reader(Duration::from_secs(9), std::sync::Arc::clone(&returned));
        assert_eq!(read(&mut body).await, "retry: 9000\n\n");
        assert!(body.frame().await.is_none());
        let wait = Duration::from_secs(5);
        assert!(tokio::time::timeout(wait, returned.notified()).await.is_err());
        let _body = stream.body(Some(0), None);
        assert!(tokio::time::timeout(wait, returned.notified()).await.is_ok());
    }

    #[tokio::test]
    async fn a_large_event_is_sent_from_where_it_is_stored() {
        let stream = ResumableStream::new(1, Retention::default());
        let text = "x".repeat(LARGE_EVENT);
        stream.push(text.clone()).await;
        let stored = stream.lock().events[0].text.as_ptr();
        let mut body = stream.body(None, None);
        assert_eq!(read(&mut body).await, "id: 1-1\ndata: ");
        let sent = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((sent.as_ptr(), sent.len()), (stored, text.len()));
        assert_eq!(read(&mut body).await, "\n\n");
    }

    #[tokio::test]
    async fn a_charge_is_held_until_the_bytes_of_its_event_are_sent() {
        let charge = std::sync::Arc::new(());
        let held = || std::sync::Arc::strong_count(&charge) - 1;
        let stream = ResumableStream::new(1, Retention::default());
        let text = "x".repeat(LARGE_EVENT);
        let charged: super::Charge = Some(Box::new(std::sync::Arc::clone(&charge)));
        stream.push(super::ChargedResponse { text, charge: charged }).await;
        let mut body = stream.body(None, None);
        read(&mut body).await;
        let sending = body.frame().await.unwrap().unwrap();
        assert_eq!((held(), stream.lock().events.len()), (1, 1));
        drop(sending);
        assert_eq!((held(), stream.lock().events.len()), (0, 1), "the event is retained without a charge");
    }

    #[tokio::test]
    async fn all_sessions_together_keep_a_bounded_number_of_read_bytes() {
        let retention = Retention::default();
        let mut sessions = Vec::new();
        for _ in 0..20 {
            let streams = ResumableStreams::new(retention.clone());
            let stream = streams.open();
            stream.push("x".repeat(4 * 1024 * 1024)).await;
            let mut body = stream.body(None, None);
            for _ in 0..3 {
                read(&mut body).await;
            }
            stream.end();
            sessions.push(streams);
        }
        let kept = |streams: &ResumableStreams| {
            streams.lock().iter().map(|stream| stream.lock().bytes).sum::<usize>()
        };
        assert_eq!(sessions.iter().map(kept).sum::<usize>(), MOST_RETAINED_BYTES);
        sessions.clear();
        assert!(retention.reserve(MOST_RETAINED_BYTES).is_some(), "all bytes are released");
    }
}
