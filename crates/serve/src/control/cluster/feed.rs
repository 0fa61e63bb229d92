//! The events of this replica for another one that follows them. Events of other replicas are not
//! passed on, so that they cannot circulate. A reader that is too slow loses events, learns how
//! many, and gets the state again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, Response, header};
use futures_util::stream::unfold;
use tokio::sync::{Semaphore, mpsc};
use toolyard_hub::Yard;

use super::message::{FeedCall, FeedMessage};
use crate::connections::ConnectionState;
use crate::control::ControlFront;
use crate::control::journal::{Journal, JournalEntry, JournalEvent};
use crate::rest;

/// Maximum number of feeds. Each other replica needs one.
const MOST_FEEDS: usize = 256;
/// Number of entries that are rendered at once.
const BATCH: usize = 256;
/// How often something is sent if there are no events.
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// Time limit for the other replica to read a batch.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// How often to check whether the last call has ended while this replica stops.
const LAST_CALLS: Duration = Duration::from_millis(50);

/// Permits for feeds.
#[derive(Debug)]
pub(in crate::control) struct FeedPermits(Arc<Semaphore>);

impl Default for FeedPermits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST_FEEDS)))
    }
}

/// The receiver is gone, or does not read.
struct FeedClosed;

struct FeedSender {
    journal: Arc<Journal>,
    yard: Arc<Yard>,
    sender: mpsc::Sender<Bytes>,
    /// The number of the last entry that was sent.
    position: u64,
}

impl ControlFront {
    /// Responds with the events of this replica, if another replica requests them. For everyone
    /// else, this endpoint does not exist.
    pub(crate) async fn feed(self: &Arc<Self>, request: Request<Body>) -> Response<Body> {
        let router = self.cluster.as_ref().map(|cluster| &cluster.router);
        let (Some(router), Ok(permit)) = (router, Arc::clone(&self.feed_permits.0).try_acquire_owned())
        else {
            return rest::not_found().await;
        };
        if !router.may_open_feed(request.headers()).await {
            return rest::not_found().await;
        }
        if let Some(connection) = request.extensions().get::<Arc<ConnectionState>>() {
            connection.mark_authenticated();
        }
        let after = request.uri().query().and_then(|query| query.strip_prefix("after=")?.parse().ok());
        let (sender, receiver) = mpsc::channel(1);
        let (control, abort) = (Arc::clone(self), self.abort.clone());
        self.sockets.spawn(async move {
            let _permit = permit;
            let sending = control.send_feed(after, sender);
            abort.run_until_cancelled(sending).await;
        });
        let body = unfold(receiver, |mut receiver| async move {
            Some((Ok::<_, Infallible>(receiver.recv().await?), receiver))
        });
        let mut response = Response::new(Body::from_stream(body));
        let kind = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }

    /// Sends events until the receiver is gone or the last call of a stopping replica has ended.
    async fn send_feed(&self, after: Option<u64>, sender: mpsc::Sender<Bytes>) {
        let _reader = self.journal.attach().await;
        let mut latest = self.journal.watch();
        let (journal, yard) = (Arc::clone(&self.journal), Arc::clone(&self.yard));
        let mut feed = FeedSender { journal, yard, sender, position: after.unwrap_or_default() };
        let sending = async {
            feed.send_start(after).await?;
            loop {
                let is_last = self.closing.is_cancelled() && self.has_no_calls();
                if is_last {
                    feed.journal.flush().await;
                }
                latest.mark_unchanged();
                feed.send_new().await?;
                if is_last {
                    return Err(FeedClosed);
                }
                tokio::select! {
                    Ok(()) = latest.changed() => {}
                    () = tokio::time::sleep(KEEP_ALIVE) => feed.send("\n".to_owned()).await?,
                    () = feed.sender.closed() => return Err(FeedClosed),
                    () = self.closing.cancelled() => tokio::time::sleep(LAST_CALLS).await,
                }
            }
        };
        let _: Result<Infallible, FeedClosed> = sending.await;
    }

    fn has_no_calls(&self) -> bool {
        self.yard.metrics().snapshot().values().all(|source| source.running == 0)
    }
}

impl FeedSender {
    /// Sends the state, unless the events after the requested position are still available.
    async fn send_start(&mut self, after: Option<u64>) -> Result<(), FeedClosed> {
        let mut text = self.render_servers();
        if after.is_some_and(|after| self.journal.can_replay_from(after)) {
            append(&mut text, &FeedMessage::Resumed);
            return self.send(text).await;
        }
        if let Some(after) = after {
            let events = self.journal.seq().saturating_sub(after);
            append(&mut text, &FeedMessage::Lost { events });
        }
        self.send(text).await?;
        self.send_state().await
    }

    async fn send_state(&mut self) -> Result<(), FeedClosed> {
        let (seq, calls) = self.journal.own_calls();
        for some in calls.chunks(BATCH) {
            let mut text = String::new();
            some.iter().for_each(|call| append(&mut text, &FeedMessage::Call(FeedCall::from_call(call))));
            self.send(text).await?;
        }
        self.position = seq;
        let mut text = String::new();
        append(&mut text, &FeedMessage::Current);
        append(&mut text, &FeedMessage::Position { seq });
        self.send(text).await
    }

    /// Sends the entries since the last one that was sent.
    async fn send_new(&mut self) -> Result<(), FeedClosed> {
        loop {
            let batch = self.journal.since(self.position, BATCH);
            let Some(last) = batch.entries.last() else { return Ok(()) };
            if batch.forgotten > 0 {
                let mut text = String::new();
                append(&mut text, &FeedMessage::Lost { events: batch.forgotten });
                self.send(text).await?;
                self.send_state().await?;
                continue;
            }
            let mut text = String::new();
            let own = || batch.entries.iter().filter(|entry| is_own(entry));
            own().for_each(|entry| render(&mut text, entry));
            self.position = last.seq;
            if !text.is_empty() {
                append(&mut text, &FeedMessage::Position { seq: last.seq });
                self.send(text).await?;
            }
            if own().any(|entry| matches!(entry.event, JournalEvent::Lagged(_))) {
                // The end of a call may be among the lost events.
                self.send_state().await?;
            }
        }
    }

    fn render_servers(&self) -> String {
        let mut text = String::new();
        for (name, status) in self.yard.statuses() {
            append(&mut text, &FeedMessage::from_status(&name, Some(&status)));
        }
        text
    }

    async fn send(&self, text: String) -> Result<(), FeedClosed> {
        let sent = tokio::time::timeout(WRITE_TIME, self.sender.send(text.into())).await;
        sent.ok().and_then(Result::ok).ok_or(FeedClosed)
    }
}

fn is_own(entry: &JournalEntry) -> bool {
    entry.replica.as_ref().is_none_or(|replica| replica.is_own())
}

fn render(text: &mut String, entry: &JournalEntry) {
    let message = match &entry.event {
        JournalEvent::Server(name, status) => FeedMessage::from_status(name, status.as_deref()),
        JournalEvent::CallStarted(call) => FeedMessage::CallStarted(FeedCall::from_call(call)),
        JournalEvent::CallProgress(call, progress) => FeedMessage::from_progress(call, progress),
        JournalEvent::CallEnded(call) => FeedMessage::CallEnded(FeedCall::from_call(call)),
        JournalEvent::Log(line) => FeedMessage::from_log_line(line),
        JournalEvent::Stderr(line) => FeedMessage::from_stderr_line(line),
        JournalEvent::Lagged(events) => FeedMessage::Lost { events: *events },
        // Every replica knows these from its own servers and its own membership.
        JournalEvent::CatalogChanged(..) | JournalEvent::Resource(..) | JournalEvent::Replicas(_) => return,
    };
    append(text, &message);
}

/// Appends a message, or reports it as lost if it is too long.
fn append(text: &mut String, message: &FeedMessage<'_>) {
    if !message.write(text) {
        let _ = FeedMessage::Lost { events: 1 }.write(text);
    }
}
