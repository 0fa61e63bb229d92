//! What happened in the yard lately, numbered: whoever was away for a moment can be told what was missed, and recent calls
//! are known though nobody keeps a history. `follow.rs` brings it what happens.

mod follow;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use toolyard_hub::{
    CallEndReason, CallRecord, CallStatus, CatalogChange, ExecutionId, Progress, RecordedCall, SourceName,
    SourceStatus, StderrLine, Yard, YardEvent,
};

use self::follow::Loss;

/// How many events, and how many calls that are over, are known.
const KEPT: usize = 4_096;
const CALLS_KEPT: usize = 1_000;
/// More calls than this are not seen to be running.
const MOST_RUNNING: usize = 10_000;
/// Of lines of logs more than so many a second are left out.
const LINES_A_SECOND: u32 = 500;
/// A call that should be over for so long ended while nobody looked.
const GRACE: Duration = Duration::from_secs(60);

/// A line of the yard's own log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub at: SystemTime,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: &'static str,
    pub target: String,
    /// The source that it is about, where it says so.
    pub source: Option<String>,
    pub message: String,
}

#[derive(Debug)]
pub(super) struct Journal {
    state: Mutex<JournalState>,
    /// The number of the latest entry.
    latest: watch::Sender<u64>,
    /// How many are attached.
    readers: watch::Sender<usize>,
    /// Whether everything that happened is written down.
    current: watch::Sender<bool>,
    /// How often it was asked to be up to date, and how many of these it was.
    flush_requests: watch::Sender<u64>,
    flushed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct JournalState {
    entries: VecDeque<Arc<JournalEntry>>,
    /// The number of the latest.
    seq: u64,
    running: HashMap<ExecutionId, Arc<JournalCall>>,
    /// Oldest first.
    finished: VecDeque<Arc<JournalCall>>,
    lines: [Budget; 2],
}

#[derive(Debug)]
pub(super) struct JournalEntry {
    pub(super) seq: u64,
    pub(super) at: SystemTime,
    pub(super) event: JournalEvent,
}

impl JournalEntry {
    /// The first number that it stands for: those of events that were lost are used up.
    fn first(&self) -> u64 {
        match self.event {
            JournalEvent::Lagged(missed) => self.seq - missed,
            _ => self.seq,
        }
    }
}

#[derive(Debug)]
pub(super) enum JournalEvent {
    /// Nothing more is known of a source that is gone.
    Server(SourceName, Option<Box<SourceStatus>>),
    CatalogChanged(CatalogChange, Arc<[SourceName]>),
    Resource(SourceName, String),
    CallStarted(Arc<JournalCall>),
    CallProgress(Arc<JournalCall>, Progress),
    CallEnded(Arc<JournalCall>),
    Log(Arc<LogEntry>),
    Stderr(Arc<StderrLine>),
    /// So many events were too fast for the journal itself.
    Lagged(u64),
}

/// A call that was seen to start, and how it ended if it has.
#[derive(Debug, Clone)]
pub(super) struct JournalCall {
    pub(super) record: Arc<CallRecord>,
    pub(super) end: Option<JournalCallEnd>,
}

impl JournalCall {
    pub(super) fn status(&self) -> CallStatus {
        self.end.as_ref().map_or(CallStatus::Running, |end| end.ended.into())
    }

    /// What decides who may see it.
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
}

/// What came after a certain entry.
#[derive(Debug, Default)]
pub(super) struct JournalBatch {
    pub(super) entries: Vec<Arc<JournalEntry>>,
    /// How many there were that are not known any more.
    pub(super) forgotten: u64,
}

/// So many lines in this second.
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

impl Default for Journal {
    fn default() -> Self {
        // Numbers go on from the clock: those of a yard that ran before are all smaller, so that whoever comes back with one
        // is not told something else under it.
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let seq = u64::try_from(micros).unwrap_or_default();
        let kept = JournalState { seq, ..JournalState::default() };
        Self {
            state: Mutex::new(kept),
            latest: watch::channel(seq).0,
            readers: watch::channel(0).0,
            current: watch::channel(false).0,
            flush_requests: watch::channel(0).0,
            flushed: watch::channel(0).0,
        }
    }
}

impl Journal {
    /// The number of the latest entry.
    pub(super) fn seq(&self) -> u64 {
        self.lock().seq
    }

    /// Tells when there is more.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// Whether everything after this number is still known.
    pub(super) fn can_replay_from(&self, seq: u64) -> bool {
        let kept = self.lock();
        let oldest = kept.entries.front().map_or(kept.seq + 1, |entry| entry.first());
        seq <= kept.seq && seq + 1 >= oldest
    }

    /// What came after this number, at most so many.
    pub(super) fn since(&self, seq: u64, most: usize) -> JournalBatch {
        let kept = self.lock();
        let first = kept.entries.partition_point(|entry| entry.seq <= seq);
        let entries: Vec<_> = kept.entries.range(first..).take(most).cloned().collect();
        let next = entries.first().map_or(seq + 1, |entry| entry.first());
        JournalBatch { entries, forgotten: next.saturating_sub(seq + 1) }
    }

    /// Calls that are under way, and those that are over: the latest first.
    pub(super) fn calls(&self) -> Vec<Arc<JournalCall>> {
        let kept = self.lock();
        let mut calls: Vec<_> = kept.running.values().chain(kept.finished.iter()).cloned().collect();
        calls.sort_by_key(|call| std::cmp::Reverse((call.record.accepted_at, call.record.id)));
        calls
    }

    fn note(&self, yard: &Yard, event: &YardEvent) {
        let what = match event {
            YardEvent::CallStarted(call) => {
                let started = Arc::new(JournalCall { record: Arc::clone(call), end: None });
                let mut kept = self.lock();
                if kept.running.len() < MOST_RUNNING {
                    kept.running.insert(call.id, Arc::clone(&started));
                }
                JournalEvent::CallStarted(started)
            }
            YardEvent::CallProgress { call, progress } => {
                let Some(running) = self.lock().running.get(&call.id).cloned() else { return };
                JournalEvent::CallProgress(running, progress.clone())
            }
            YardEvent::CallEnded { call, ended, error, duration } => {
                let mut kept = self.lock();
                if kept.running.remove(&call.id).is_none() {
                    return;
                }
                let end = JournalCallEnd { ended: *ended, error: error.clone(), duration: *duration };
                let over = Arc::new(JournalCall { record: Arc::clone(call), end: Some(end) });
                if kept.finished.len() >= CALLS_KEPT {
                    kept.finished.pop_front();
                }
                kept.finished.push_back(Arc::clone(&over));
                JournalEvent::CallEnded(over)
            }
            YardEvent::CatalogChanged(change, sources) => {
                JournalEvent::CatalogChanged(*change, Arc::clone(sources))
            }
            YardEvent::ResourceUpdated { source, uri } => JournalEvent::Resource(source.clone(), uri.clone()),
            YardEvent::StatusChanged { source } => {
                let status = yard.status(source);
                // Its last words are asked for by themselves.
                let status = status.map(|status| Box::new(SourceStatus { stderr: Vec::new(), ..status }));
                JournalEvent::Server(source.clone(), status)
            }
            YardEvent::ResultViolatesSchema { .. } => return,
        };
        self.lock().write(what);
    }

    fn record_line(&self, what: JournalEvent) {
        let budget = usize::from(matches!(what, JournalEvent::Log(_)));
        let mut kept = self.lock();
        if kept.lines[budget].spend(SystemTime::now()) {
            kept.write(what);
        }
    }

    fn record_loss(&self, missed: u64, yard: &Yard, loss: Loss) {
        let longest = match loss {
            Loss::Overrun => yard.limits().call_time.saturating_add(GRACE),
            // Nobody looked for long enough that most of them are over.
            Loss::Unattended => Duration::ZERO,
        };
        let mut kept = self.lock();
        // Their ends may be among what is lost.
        kept.running.retain(|_, call| call.record.accepted_at.elapsed().is_ok_and(|age| age < longest));
        kept.seq += missed;
        kept.write(JournalEvent::Lagged(missed));
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock()
    }
}

impl JournalState {
    fn write(&mut self, what: JournalEvent) {
        self.seq += 1;
        if self.entries.len() >= KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(Arc::new(JournalEntry { seq: self.seq, at: SystemTime::now(), event: what }));
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

    use super::{CALLS_KEPT, Journal, JournalEvent, KEPT, LINES_A_SECOND, LogEntry};

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
        let (journal, yard) = (Journal::default(), Yard::new(YardSettings::default()));
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
        for _ in 0..KEPT {
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
        let (journal, yard) = (Journal::default(), Yard::new(YardSettings::default()));
        let before = journal.seq();
        journal.record_loss(7, &yard, super::Loss::Overrun);
        let since = journal.since(before, 10);
        assert!(matches!(since.entries[0].event, JournalEvent::Lagged(7)));
        assert_eq!((since.entries[0].seq - before, since.forgotten), (8, 0));
        assert!(journal.can_replay_from(before));
    }

    #[tokio::test]
    async fn calls_are_known_while_they_run_and_for_a_while_after() {
        let (journal, yard) = (Journal::default(), Yard::new(YardSettings::default()));
        let ids: Vec<_> = (0..CALLS_KEPT + 2).map(|_| ExecutionId::generate().unwrap()).collect();
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
        assert_eq!((calls.len(), running), (CALLS_KEPT + 1, vec![ids[0]]));
    }

    #[test]
    fn a_log_that_babbles_does_not_push_everything_else_out() {
        let journal = Journal::default();
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
        // The second may change while this runs.
        let written = journal.since(before, usize::MAX).entries.len();
        assert!((500..=1_000).contains(&written), "{written}");
    }
}
