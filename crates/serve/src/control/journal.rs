//! A numbered journal of recent events in the yard. A client that reconnects can request the events
//! that it missed, and recent calls are available without a configured history. `follow.rs` feeds
//! the journal, and `replicas.rs` adds what other replicas report.

mod follow;
mod replicas;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;
use toolyard_hub::{
    CallEndReason, CallRecord, CallStatus, CatalogChange, ExecutionId, Progress, RecordedCall, ReplicaId,
    SourceName, SourceStatus, StderrLine, Yard, YardEvent,
};

use self::follow::Loss;
use self::replicas::FeedRecord;
pub(super) use self::replicas::{FirstContact, JournalReplica, ServerElsewhere};

/// Maximum number of entries, and of finished calls.
const MOST_ENTRIES: usize = 4_096;
const MOST_FINISHED: usize = 1_000;
/// Maximum number of running calls that are tracked.
const MOST_RUNNING: usize = 10_000;
/// Maximum number of log lines per second. Further lines are dropped.
const LINES_A_SECOND: u32 = 500;
/// The first number of a replica is smaller than this. Clients read numbers as doubles.
const LARGEST_START: u64 = 1 << 52;
/// A call that exceeds its time limit by this much has ended, but its end event was lost.
const GRACE: Duration = Duration::from_secs(60);

/// A line of the yard's own log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub at: SystemTime,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: &'static str,
    pub target: String,
    /// The source that the line is about, if it names one.
    pub source: Option<String>,
    pub message: String,
}

#[derive(Debug)]
pub(super) struct Journal {
    state: Mutex<JournalState>,
    /// Number of the latest entry.
    latest: watch::Sender<u64>,
    /// Number of attached readers.
    readers: watch::Sender<usize>,
    /// Whether the journal is up to date.
    current: watch::Sender<bool>,
    /// Number of flush requests, and of those that are done.
    flush_requests: watch::Sender<u64>,
    flushed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct JournalState {
    /// This replica, if there are several.
    own: Option<Arc<JournalReplica>>,
    entries: VecDeque<Arc<JournalEntry>>,
    /// Number of the latest entry.
    seq: u64,
    running: HashMap<ExecutionId, Arc<JournalCall>>,
    /// Oldest first.
    finished: VecDeque<Arc<JournalCall>>,
    lines: [Budget; 2],
    /// Calls whose end is unknown, because their replica is gone. It may come back.
    lost: HashSet<ExecutionId>,
    /// What the other replicas report.
    feeds: HashMap<ReplicaId, FeedRecord>,
    /// The last list of replicas.
    replicas: Option<Arc<Value>>,
}

#[derive(Debug)]
pub(super) struct JournalEntry {
    pub(super) seq: u64,
    pub(super) at: SystemTime,
    /// Where it happened, if there are several replicas.
    pub(super) replica: Option<Arc<JournalReplica>>,
    pub(super) event: JournalEvent,
}

impl JournalEntry {
    /// Returns the first number that the entry covers. Lost events use up their numbers.
    fn first(&self) -> u64 {
        match self.event {
            JournalEvent::Lagged(missed) => self.seq - missed,
            _ => self.seq,
        }
    }
}

#[derive(Debug)]
pub(super) enum JournalEvent {
    /// The status is `None` if the source was removed.
    Server(SourceName, Option<Box<SourceStatus>>),
    CatalogChanged(CatalogChange, Arc<[SourceName]>),
    Resource(SourceName, String),
    CallStarted(Arc<JournalCall>),
    CallProgress(Arc<JournalCall>, Progress),
    CallEnded(Arc<JournalCall>),
    Log(Arc<LogEntry>),
    Stderr(Arc<StderrLine>),
    /// The list of replicas, or the state of their store, changed.
    Replicas(Arc<Value>),
    /// Number of events that the journal itself missed.
    Lagged(u64),
}

/// A call whose start was observed, and its end if it has ended.
#[derive(Debug, Clone)]
pub(super) struct JournalCall {
    /// Where it runs, if there are several replicas.
    pub(super) replica: Option<Arc<JournalReplica>>,
    pub(super) record: Arc<CallRecord>,
    pub(super) end: Option<JournalCallEnd>,
}

impl JournalCall {
    pub(super) fn status(&self) -> CallStatus {
        self.end.as_ref().map_or(CallStatus::Running, |end| end.ended.into())
    }

    /// Returns the properties that decide who may see the call.
    pub(super) fn as_recorded_call(&self) -> RecordedCall<'_> {
        RecordedCall {
            principal: self.record.principal.id(),
            kind: self.record.kind,
            subject: &self.record.subject,
            source: self.record.source.as_ref().map(SourceName::as_str),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct JournalCallEnd {
    pub(super) ended: CallEndReason,
    pub(super) error: Option<String>,
    pub(super) duration: Duration,
    pub(super) certainty: EndCertainty,
}

/// Whether it is known how a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndCertainty {
    Reported,
    /// The replica that made the call is gone.
    Unknown,
}

/// The entries after a given number.
#[derive(Debug, Default)]
pub(super) struct JournalBatch {
    pub(super) entries: Vec<Arc<JournalEntry>>,
    /// Number of entries that are no longer available.
    pub(super) forgotten: u64,
}

/// The number of lines in the current second.
#[derive(Debug, Default, Clone, Copy)]
struct Budget {
    second: u64,
    used: u32,
}

impl Budget {
    fn spend(&mut self, at: SystemTime) -> bool {
        let second = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if self.second != second {
            *self = Self { second, used: 0 };
        }
        self.used += 1;
        self.used <= LINES_A_SECOND
    }
}

impl Journal {
    /// Creates the journal of a replica with this name, or of the only process of a yard.
    pub(super) fn new(own: Option<&str>) -> Self {
        // Numbers start at the current time. All numbers of an earlier run are smaller, so a client
        // that reconnects with such a number does not get different events for it.
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let micros = u64::try_from(micros).unwrap_or_default();
        // Replicas run at the same time, so a number of one of them must not be one of another.
        let random = own.and_then(|_| toolyard_random::bytes::<8>().ok());
        let seq = random.map_or(micros, |bytes| u64::from_le_bytes(bytes) % LARGEST_START);
        let own = own.map(|name| Arc::new(JournalReplica::own(name)));
        let state = JournalState { seq, own, ..JournalState::default() };
        Self {
            state: Mutex::new(state),
            latest: watch::channel(seq).0,
            readers: watch::channel(0).0,
            current: watch::channel(false).0,
            flush_requests: watch::channel(0).0,
            flushed: watch::channel(0).0,
        }
    }

    /// Returns the number of the latest entry.
    pub(super) fn seq(&self) -> u64 {
        self.lock().seq
    }

    /// Returns a receiver that changes when there are new entries.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// Returns whether all entries after this number are still available.
    pub(super) fn can_replay_from(&self, seq: u64) -> bool {
        let state = self.lock();
        let oldest = state.entries.front().map_or(state.seq + 1, |entry| entry.first());
        seq <= state.seq && seq + 1 >= oldest
    }

    /// Returns at most `most` entries after this number.
    pub(super) fn since(&self, seq: u64, most: usize) -> JournalBatch {
        let state = self.lock();
        let first = state.entries.partition_point(|entry| entry.seq <= seq);
        let entries: Vec<_> = state.entries.range(first..).take(most).cloned().collect();
        let next = entries.first().map_or(seq + 1, |entry| entry.first());
        JournalBatch { entries, forgotten: next.saturating_sub(seq + 1) }
    }

    /// Returns the running and the recently finished calls, latest first.
    pub(super) fn calls(&self) -> Vec<Arc<JournalCall>> {
        let state = self.lock();
        let elsewhere = state.feeds.values().flat_map(|feed| feed.running.values());
        let all = state.running.values().chain(elsewhere).chain(state.finished.iter());
        let mut calls: Vec<_> = all.cloned().collect();
        drop(state);
        calls.sort_by_key(|call| std::cmp::Reverse((call.record.accepted_at, call.record.id)));
        calls
    }

    fn note(&self, yard: &Yard, event: &YardEvent) {
        let journal_event = match event {
            YardEvent::CallStarted(call) => {
                let mut state = self.lock();
                let replica = state.own.clone();
                let started = Arc::new(JournalCall { replica, record: Arc::clone(call), end: None });
                if state.running.len() < MOST_RUNNING {
                    state.running.insert(call.id, Arc::clone(&started));
                }
                JournalEvent::CallStarted(started)
            }
            YardEvent::CallProgress { call, progress } => {
                let Some(running) = self.lock().running.get(&call.id).cloned() else { return };
                JournalEvent::CallProgress(running, progress.clone())
            }
            YardEvent::CallEnded { call, ended, error, duration } => {
                let mut state = self.lock();
                if state.running.remove(&call.id).is_none() {
                    return;
                }
                let (error, duration, certainty) = (error.clone(), *duration, EndCertainty::Reported);
                let end = JournalCallEnd { ended: *ended, error, duration, certainty };
                let (replica, record) = (state.own.clone(), Arc::clone(call));
                let finished = Arc::new(JournalCall { replica, record, end: Some(end) });
                state.add_finished(Arc::clone(&finished));
                JournalEvent::CallEnded(finished)
            }
            YardEvent::CatalogChanged(change, sources) => {
                JournalEvent::CatalogChanged(*change, Arc::clone(sources))
            }
            YardEvent::ResourceUpdated { source, uri } => JournalEvent::Resource(source.clone(), uri.clone()),
            YardEvent::StatusChanged { source } => {
                let status = yard.status(source);
                // Clients request the standard error lines separately.
                let status = status.map(|status| Box::new(SourceStatus { stderr: Vec::new(), ..status }));
                JournalEvent::Server(source.clone(), status)
            }
            YardEvent::ResultViolatesSchema { .. } => return,
        };
        self.lock().write(journal_event);
    }

    fn record_line(&self, event: JournalEvent) {
        let own = self.lock().own.clone();
        self.record_line_about(own, event);
    }

    fn record_line_about(&self, replica: Option<Arc<JournalReplica>>, event: JournalEvent) {
        let budget = usize::from(matches!(event, JournalEvent::Log(_)));
        let mut state = self.lock();
        if state.lines[budget].spend(SystemTime::now()) {
            state.write_about(replica, event);
        }
    }

    fn record_loss(&self, missed: u64, yard: &Yard, loss: Loss) {
        let longest = match loss {
            Loss::Overrun => yard.limits().call_time.saturating_add(GRACE),
            // After a time without readers, most calls have ended.
            Loss::Unattended => Duration::ZERO,
        };
        let mut state = self.lock();
        // The end events of these calls may be among the lost events.
        state.running.retain(|_, call| call.record.accepted_at.elapsed().is_ok_and(|age| age < longest));
        state.seq += missed;
        state.write(JournalEvent::Lagged(missed));
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock()
    }
}

impl JournalState {
    /// Adds an entry about this replica.
    fn write(&mut self, event: JournalEvent) {
        let own = self.own.clone();
        self.write_about(own, event);
    }

    fn write_about(&mut self, replica: Option<Arc<JournalReplica>>, event: JournalEvent) {
        self.seq += 1;
        if self.entries.len() >= MOST_ENTRIES {
            self.entries.pop_front();
        }
        let at = SystemTime::now();
        self.entries.push_back(Arc::new(JournalEntry { seq: self.seq, at, replica, event }));
    }

    fn add_finished(&mut self, call: Arc<JournalCall>) {
        if self.finished.len() >= MOST_FINISHED {
            self.finished.pop_front();
        }
        self.finished.push_back(call);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use toolyard_hub::{
        CallEndReason, CallRecord, CatalogChange, EntryKind, ExecutionId, Permissions, Principal, Yard,
        YardEvent, YardSettings,
    };

    use super::{Journal, JournalEvent, LINES_A_SECOND, LogEntry, MOST_ENTRIES, MOST_FINISHED};

    fn changed() -> YardEvent {
        YardEvent::CatalogChanged(
            CatalogChange { tools: true, resources: false, prompts: false },
            Arc::default(),
        )
    }

    fn started(id: ExecutionId) -> YardEvent {
        let ada = Principal::new("ada", Permissions::All);
        YardEvent::CallStarted(Arc::new(CallRecord::new(id, EntryKind::Tool, "x", ada)))
    }

    fn ended(id: ExecutionId) -> YardEvent {
        let YardEvent::CallStarted(call) = started(id) else { unreachable!() };
        YardEvent::CallEnded { call, ended: CallEndReason::Succeeded, error: None, duration: Duration::ZERO }
    }

    #[tokio::test]
    async fn who_comes_back_gets_what_was_missed_or_learns_that_it_is_forgotten() {
        let (journal, yard) = (Journal::new(None), Yard::new(YardSettings::default()));
        let before = journal.seq();
        assert!(
            journal.can_replay_from(before)
                && !journal.can_replay_from(before + 1)
                && !journal.can_replay_from(before - 1)
        );
        for _ in 0..3 {
            journal.note(&yard, &changed());
        }
        let missed = journal.since(before, 10);
        let numbers: Vec<u64> = missed.entries.iter().map(|entry| entry.seq - before).collect();
        assert_eq!((numbers, missed.forgotten), (vec![1, 2, 3], 0));
        assert_eq!(journal.since(before + 1, 1).entries.len(), 1);
        for _ in 0..MOST_ENTRIES {
            journal.note(&yard, &changed());
        }
        assert!(
            !journal.can_replay_from(before)
                && !journal.can_replay_from(before + 2)
                && journal.can_replay_from(before + 3)
        );
        assert_eq!(journal.since(before, 1).forgotten, 3);
    }

    #[tokio::test]
    async fn what_was_too_fast_for_the_journal_is_counted_once() {
        let (journal, yard) = (Journal::new(None), Yard::new(YardSettings::default()));
        let before = journal.seq();
        journal.record_loss(7, &yard, super::Loss::Overrun);
        let since = journal.since(before, 10);
        assert!(matches!(since.entries[0].event, JournalEvent::Lagged(7)));
        assert_eq!((since.entries[0].seq - before, since.forgotten), (8, 0));
        assert!(journal.can_replay_from(before));
    }

    #[tokio::test]
    async fn calls_are_known_while_they_run_and_for_a_while_after() {
        let (journal, yard) = (Journal::new(None), Yard::new(YardSettings::default()));
        let ids: Vec<_> = (0..MOST_FINISHED + 2).map(|_| ExecutionId::generate().unwrap()).collect();
        for id in &ids {
            journal.note(&yard, &started(*id));
        }
        assert!(journal.calls().iter().all(|call| call.end.is_none()));
        for id in &ids[1..] {
            journal.note(&yard, &ended(*id));
        }
        let calls = journal.calls();
        let running: Vec<_> =
            calls.iter().filter(|call| call.end.is_none()).map(|call| call.record.id).collect();
        assert_eq!((calls.len(), running), (MOST_FINISHED + 1, vec![ids[0]]));
    }

    #[test]
    fn a_verbose_log_does_not_displace_other_entries() {
        let journal = Journal::new(None);
        let before = journal.seq();
        let line = LogEntry {
            at: SystemTime::now(),
            level: "info",
            target: "x".to_owned(),
            source: None,
            message: "y".to_owned(),
        };
        for _ in 0..10 * LINES_A_SECOND {
            journal.record_line(JournalEvent::Log(line.clone().into()));
        }
        // The loop may span two seconds.
        let written = journal.since(before, usize::MAX).entries.len();
        assert!((500..=1_000).contains(&written), "{written}");
    }
}
