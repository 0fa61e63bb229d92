//! What other replicas report: their calls, log lines and the states of their servers. It is
//! recorded like what happens here, so that numbering, resuming and visibility are the same.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolyard_hub::{
    CallEndReason, ErrorKind, ExecutionId, Progress, ReplicaId, SourceName, SourceState, SourceStatus,
    StderrLine, Yard,
};

use super::{
    EndCertainty, Journal, JournalCall, JournalCallEnd, JournalEvent, JournalState, LogEntry, MOST_FINISHED,
    MOST_RUNNING,
};

/// A replica, as the origin of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::control) struct JournalReplica {
    pub(in crate::control) name: Box<str>,
    /// `None` if it is this one.
    id: Option<ReplicaId>,
}

impl JournalReplica {
    pub(super) fn own(name: &str) -> Self {
        Self { name: name.into(), id: None }
    }

    pub(in crate::control) fn other(name: &str, id: ReplicaId) -> Self {
        Self { name: name.into(), id: Some(id) }
    }

    pub(in crate::control) fn is_own(&self) -> bool {
        self.id.is_none()
    }
}

/// What one other replica reports.
#[derive(Debug)]
pub(super) struct FeedRecord {
    replica: Arc<JournalReplica>,
    /// The number of its last event that was recorded.
    position: Option<u64>,
    pub(super) running: HashMap<ExecutionId, Arc<JournalCall>>,
    servers: BTreeMap<SourceName, ServerElsewhere>,
}

/// The status of a server at another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::control) struct ServerElsewhere {
    pub(in crate::control) replica: Arc<JournalReplica>,
    pub(in crate::control) state: SourceState,
    pub(in crate::control) reason: Option<String>,
}

/// Whether the finished calls in the state of a replica are reported as events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::control) enum FirstContact {
    /// They are old: this replica has just begun to watch.
    AtStart,
    /// They have ended while this replica was watching but did not receive them.
    Later,
}

impl Journal {
    /// Returns the name of this replica, if there are several.
    pub(in crate::control) fn own_name(&self) -> Option<String> {
        self.lock().own.as_ref().map(|own| own.name.to_string())
    }

    /// Returns the position up to which the events of a replica are recorded.
    pub(in crate::control) fn feed_position(&self, id: &ReplicaId) -> Option<u64> {
        self.lock().feeds.get(id)?.position
    }

    pub(in crate::control) fn set_feed_position(&self, replica: &Arc<JournalReplica>, seq: u64) {
        if let Some(feed) = self.lock().feed(replica) {
            feed.position = Some(seq);
        }
    }

    /// Records the calls of a replica: all that are running, and the latest that have ended. Running
    /// calls that it does not mention have ended without a report.
    pub(in crate::control) fn record_state(
        &self,
        replica: &Arc<JournalReplica>,
        calls: Vec<JournalCall>,
        contact: FirstContact,
    ) {
        let mut state = self.lock();
        let Some(feed) = state.feed(replica) else { return };
        let was_running: HashSet<ExecutionId> = feed.running.keys().copied().collect();
        let (running, ended): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.end.is_none());
        let is_running: HashSet<ExecutionId> = running.iter().map(|call| call.record.id).collect();
        let known: HashSet<ExecutionId> = state.known_ends().collect();
        for call in ended.into_iter().filter(|call| !known.contains(&call.record.id)) {
            if contact == FirstContact::Later || was_running.contains(&call.record.id) {
                state.end(replica, call);
            } else {
                state.forget_loss(call.record.id);
                state.finished.push_back(Arc::new(call));
            }
        }
        let unreported = |call: &&Arc<JournalCall>| !is_running.contains(&call.record.id);
        let feed = state.feed(replica).map(|feed| &feed.running);
        let lost: Vec<_> = feed.into_iter().flat_map(HashMap::values).filter(unreported).cloned().collect();
        for call in lost {
            state.lose(replica, &call);
        }
        for call in running {
            state.start(replica, call);
        }
        // The calls of all replicas, by time.
        let finished = state.finished.make_contiguous();
        finished.sort_by_key(|call| (call.record.accepted_at, call.record.id));
        let excess = state.finished.len().saturating_sub(MOST_FINISHED);
        state.finished.drain(..excess);
    }

    pub(in crate::control) fn record_start(&self, replica: &Arc<JournalReplica>, call: JournalCall) {
        self.lock().start(replica, call);
    }

    pub(in crate::control) fn record_progress(
        &self,
        replica: &Arc<JournalReplica>,
        id: ExecutionId,
        progress: Progress,
    ) {
        let mut state = self.lock();
        let running = state.feed(replica).and_then(|feed| feed.running.get(&id)).cloned();
        if let Some(call) = running {
            state.write_about(Some(Arc::clone(replica)), JournalEvent::CallProgress(call, progress));
        }
    }

    pub(in crate::control) fn record_end(&self, replica: &Arc<JournalReplica>, call: JournalCall) {
        let mut state = self.lock();
        let was_running = state.feed(replica).is_some_and(|feed| feed.running.contains_key(&call.record.id));
        if was_running || state.known_ends().all(|known| known != call.record.id) {
            state.end(replica, call);
        }
    }

    /// Records a line of a replica. The lines of all replicas count against the same limit.
    pub(in crate::control) fn record_log_line(&self, replica: &Arc<JournalReplica>, line: LogEntry) {
        self.record_line_about(Some(Arc::clone(replica)), JournalEvent::Log(Arc::new(line)));
    }

    pub(in crate::control) fn record_stderr_line(&self, replica: &Arc<JournalReplica>, line: StderrLine) {
        self.record_line_about(Some(Arc::clone(replica)), JournalEvent::Stderr(Arc::new(line)));
    }

    /// Records that events of a replica were lost.
    pub(in crate::control) fn record_feed_loss(&self, replica: &Arc<JournalReplica>, events: u64) {
        let mut state = self.lock();
        state.seq += events;
        state.write_about(Some(Arc::clone(replica)), JournalEvent::Lagged(events));
    }

    /// Records the status of a server at another replica. It is an event of the server, if this
    /// replica has the server too.
    pub(in crate::control) fn record_server(
        &self,
        replica: &Arc<JournalReplica>,
        name: &SourceName,
        server: Option<ServerElsewhere>,
        yard: &Yard,
    ) {
        let mut state = self.lock();
        let Some(feed) = state.feed(replica) else { return };
        if feed.servers.get(name) == server.as_ref() {
            return;
        }
        match server {
            Some(server) => feed.servers.insert(name.clone(), server),
            None => feed.servers.remove(name),
        };
        drop(state);
        self.note_server(yard, name);
    }

    /// Keeps what is known of these replicas only. The running calls of the others have ended
    /// without a report.
    pub(in crate::control) fn retain_replicas(&self, alive: &HashSet<ReplicaId>, yard: &Yard) {
        let mut state = self.lock();
        let gone: Vec<ReplicaId> = state.feeds.keys().filter(|id| !alive.contains(id)).cloned().collect();
        let mut servers = Vec::new();
        for id in gone {
            let Some(feed) = state.feeds.remove(&id) else { continue };
            for call in feed.running.values() {
                state.lose(&feed.replica, call);
            }
            servers.extend(feed.servers.into_keys());
        }
        drop(state);
        for name in servers {
            self.note_server(yard, &name);
        }
    }

    /// Records the list of replicas if it has changed.
    pub(in crate::control) fn record_replicas(&self, list: Value) {
        let mut state = self.lock();
        if state.replicas.as_deref() == Some(&list) {
            return;
        }
        let list = Arc::new(list);
        state.replicas = Some(Arc::clone(&list));
        state.write(JournalEvent::Replicas(list));
    }

    /// Wakes the readers of the journal.
    pub(in crate::control) fn announce_entries(&self) {
        self.latest.send_replace(self.seq());
    }

    /// Returns the status of a server at the other replicas, by the name of the replica.
    pub(in crate::control) fn servers_elsewhere(&self, name: &SourceName) -> Vec<ServerElsewhere> {
        let state = self.lock();
        let mut servers: Vec<_> =
            state.feeds.values().filter_map(|feed| feed.servers.get(name)).cloned().collect();
        drop(state);
        servers.sort_by(|a, b| a.replica.name.cmp(&b.replica.name));
        servers
    }

    /// Returns the calls of this replica and the number of the latest entry.
    pub(in crate::control) fn own_calls(&self) -> (u64, Vec<Arc<JournalCall>>) {
        let state = self.lock();
        let is_own = |call: &&Arc<JournalCall>| call.replica.as_ref().is_none_or(|replica| replica.is_own());
        let finished = state.finished.iter().filter(is_own);
        (state.seq, finished.chain(state.running.values()).cloned().collect())
    }

    fn note_server(&self, yard: &Yard, name: &SourceName) {
        if let Some(status) = yard.status(name) {
            let status = Box::new(SourceStatus { stderr: Vec::new(), ..status });
            self.lock().write(JournalEvent::Server(name.clone(), Some(status)));
        }
    }
}

impl JournalState {
    /// Returns what is known of another replica.
    fn feed(&mut self, replica: &Arc<JournalReplica>) -> Option<&mut FeedRecord> {
        let new = || FeedRecord {
            replica: Arc::clone(replica),
            position: None,
            running: HashMap::new(),
            servers: BTreeMap::new(),
        };
        Some(self.feeds.entry(replica.id.clone()?).or_insert_with(new))
    }

    /// The calls whose end is known.
    fn known_ends(&self) -> impl Iterator<Item = ExecutionId> {
        let known = |call: &&Arc<JournalCall>| {
            call.end.as_ref().is_some_and(|end| end.certainty == EndCertainty::Reported)
        };
        self.finished.iter().filter(known).map(|call| call.record.id)
    }

    fn start(&mut self, replica: &Arc<JournalReplica>, call: JournalCall) {
        let call = Arc::new(call);
        let Some(feed) = self.feed(replica) else { return };
        if feed.running.contains_key(&call.record.id) {
            return;
        }
        if feed.running.len() < MOST_RUNNING {
            feed.running.insert(call.record.id, Arc::clone(&call));
        }
        self.forget_loss(call.record.id);
        self.write_about(Some(Arc::clone(replica)), JournalEvent::CallStarted(call));
    }

    fn end(&mut self, replica: &Arc<JournalReplica>, call: JournalCall) {
        let call = Arc::new(call);
        if let Some(feed) = self.feed(replica) {
            feed.running.remove(&call.record.id);
        }
        self.forget_loss(call.record.id);
        self.add_finished(Arc::clone(&call));
        self.write_about(Some(Arc::clone(replica)), JournalEvent::CallEnded(call));
    }

    /// Forgets that a call was lost: a replica that was considered dead may continue.
    fn forget_loss(&mut self, id: ExecutionId) {
        if self.lost.remove(&id) {
            self.finished.retain(|known| known.record.id != id);
        }
    }

    /// Ends a call that its replica does not report any more.
    fn lose(&mut self, replica: &Arc<JournalReplica>, call: &JournalCall) {
        if let Some(feed) = replica.id.as_ref().and_then(|id| self.feeds.get_mut(id)) {
            feed.running.remove(&call.record.id);
        }
        let age = SystemTime::now().duration_since(call.record.accepted_at).unwrap_or(Duration::ZERO);
        let end = JournalCallEnd {
            ended: CallEndReason::Error(ErrorKind::ConnectionLost),
            error: Some(format!("lost the connection to replica `{}`; the outcome is unknown", replica.name)),
            duration: age,
            certainty: EndCertainty::Unknown,
        };
        let lost = Arc::new(JournalCall { end: Some(end), ..call.clone() });
        if self.lost.len() >= MOST_RUNNING {
            self.lost.clear();
        }
        self.lost.insert(call.record.id);
        self.add_finished(Arc::clone(&lost));
        self.write_about(Some(Arc::clone(replica)), JournalEvent::CallEnded(lost));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::time::Duration;

    use toolyard_hub::{
        CallEndReason, CallRecord, CallStatus, EntryKind, ExecutionId, Permissions, Principal, ReplicaId,
        Yard, YardSettings,
    };

    use super::{FirstContact, JournalReplica};
    use crate::control::journal::{EndCertainty, Journal, JournalCall, JournalCallEnd, JournalEvent};

    fn running(replica: &Arc<JournalReplica>, id: ExecutionId) -> JournalCall {
        let ada = Principal::new("ada", Permissions::All);
        let record = Arc::new(CallRecord::new(id, EntryKind::Tool, "x", ada));
        JournalCall { replica: Some(Arc::clone(replica)), record, end: None }
    }

    fn ended(replica: &Arc<JournalReplica>, id: ExecutionId) -> JournalCall {
        let (duration, certainty) = (Duration::ZERO, EndCertainty::Reported);
        let end = JournalCallEnd { ended: CallEndReason::Succeeded, error: None, duration, certainty };
        JournalCall { end: Some(end), ..running(replica, id) }
    }

    fn other(id: &str) -> Arc<JournalReplica> {
        Arc::new(JournalReplica::other("b", ReplicaId::new(id)))
    }

    fn statuses(journal: &Journal) -> Vec<CallStatus> {
        journal.calls().iter().map(|call| call.status()).collect()
    }

    /// Returns the names of the events after this number.
    fn events(journal: &Journal, after: u64) -> Vec<&'static str> {
        let name = |event: &JournalEvent| match event {
            JournalEvent::CallStarted(_) => "started",
            JournalEvent::CallEnded(_) => "ended",
            JournalEvent::Lagged(_) => "lagged",
            other => panic!("{other:?}"),
        };
        journal.since(after, 100).entries.iter().map(|entry| name(&entry.event)).collect()
    }

    fn ids<const N: usize>() -> [ExecutionId; N] {
        std::array::from_fn(|_| ExecutionId::generate().unwrap())
    }

    #[test]
    fn the_state_of_a_replica_replaces_what_was_known_of_it() {
        let (journal, b, [one, two, three, four]) = (Journal::new(Some("a")), other("1"), ids());
        let begin = journal.seq();
        let calls = vec![running(&b, one), running(&b, two), ended(&b, three)];
        journal.record_state(&b, calls, FirstContact::AtStart);
        assert_eq!(events(&journal, begin), ["started", "started"], "old calls are no events");
        let then = journal.seq();
        // While the connection was broken, one call has ended, one was lost, and another came and went.
        let calls = vec![ended(&b, one), ended(&b, three), ended(&b, four)];
        journal.record_state(&b, calls, FirstContact::Later);
        assert_eq!(events(&journal, then), ["ended", "ended", "ended"]);
        let lost = |call: &Arc<JournalCall>| call.end.as_ref().unwrap().certainty == EndCertainty::Unknown;
        let lost: Vec<_> = journal.calls().into_iter().filter(lost).map(|call| call.record.id).collect();
        assert_eq!((lost, journal.calls().len()), (vec![two], 4));
    }

    #[tokio::test]
    async fn a_call_of_a_replica_that_counted_as_dead_is_shown_once_when_it_comes_back() {
        let (journal, yard, [one]) = (Journal::new(Some("a")), Yard::new(YardSettings::default()), ids());
        let (b, again) = (other("1"), other("2"));
        journal.record_start(&b, running(&b, one));
        journal.retain_replicas(&HashSet::new(), &yard);
        assert_eq!(statuses(&journal), [CallStatus::Failed]);
        journal.record_state(&again, vec![running(&again, one)], FirstContact::Later);
        assert_eq!(statuses(&journal), [CallStatus::Running]);
        journal.record_end(&again, ended(&again, one));
        journal.record_end(&again, ended(&again, one));
        assert_eq!(statuses(&journal), [CallStatus::Succeeded]);
        assert_eq!(events(&journal, journal.seq() - 4), ["started", "ended", "started", "ended"]);
    }

    #[test]
    fn lost_events_use_up_their_numbers_and_those_of_others_stay() {
        let (journal, b) = (Journal::new(Some("a")), other("1"));
        let before = journal.seq();
        journal.record_feed_loss(&b, 7);
        let [one] = ids();
        journal.record_start(&b, running(&b, one));
        assert_eq!((journal.seq() - before, journal.since(before, 10).forgotten), (9, 0));
        assert_eq!(events(&journal, before), ["lagged", "started"]);
        journal.set_feed_position(&b, 5);
        assert_eq!(journal.feed_position(&ReplicaId::new("1")), Some(5));
        assert_eq!(journal.feed_position(&ReplicaId::new("2")), None);
    }

    #[test]
    fn a_number_of_one_replica_is_unknown_to_another() {
        let (a, b) = (Journal::new(Some("a")), Journal::new(Some("b")));
        assert!(!a.can_replay_from(b.seq()) && !b.can_replay_from(a.seq()));
    }
}
