//! The event subscriptions of one socket, and the delivery of events.

use serde_json::{Map, Value, json};
use toolyard_hub::{CatalogView, OBSERVE, Principal, Timestamp, Visibility, Yard, YardScope};

use super::errors::{ControlError, missing_permission};
use super::journal::{Journal, JournalEntry, JournalEvent};
use super::outbox::Outbox;
use super::render;

/// Maximum number of entries that are processed before other tasks run.
const BATCH: usize = 256;
/// Maximum number of names in a request.
const MOST_NAMES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlEventName {
    Server,
    Changed,
    Resource,
    CallStarted,
    CallProgress,
    CallEnded,
    Log,
    Stderr,
    Replicas,
    Lagged,
}

impl ControlEventName {
    const ALL: [Self; 10] = [
        Self::Server,
        Self::Changed,
        Self::Resource,
        Self::CallStarted,
        Self::CallProgress,
        Self::CallEnded,
        Self::Log,
        Self::Stderr,
        Self::Replicas,
        Self::Lagged,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Changed => "changed",
            Self::Resource => "resource",
            Self::CallStarted => "call_started",
            Self::CallProgress => "call_progress",
            Self::CallEnded => "call_ended",
            Self::Log => "log",
            Self::Stderr => "stderr",
            Self::Replicas => "replicas",
            Self::Lagged => "lagged",
        }
    }

    fn from_event(event: &JournalEvent) -> Self {
        match event {
            JournalEvent::Server(..) => Self::Server,
            JournalEvent::CatalogChanged(..) => Self::Changed,
            JournalEvent::Resource(..) => Self::Resource,
            JournalEvent::CallStarted(_) => Self::CallStarted,
            JournalEvent::CallProgress(..) => Self::CallProgress,
            JournalEvent::CallEnded(_) => Self::CallEnded,
            JournalEvent::Log(_) => Self::Log,
            JournalEvent::Stderr(_) => Self::Stderr,
            JournalEvent::Replicas(_) => Self::Replicas,
            JournalEvent::Lagged(_) => Self::Lagged,
        }
    }
}

/// Returns the names of all events.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ControlEventName::ALL.into_iter().map(ControlEventName::as_str)
}

/// Whether events remain to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backlog {
    Empty,
    More,
    NoRoom,
}

/// The subscribed events of one socket and the last delivered number.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    names: Vec<ControlEventName>,
    last_seq: u64,
    /// Number of events that were lost since the last report.
    missed: u64,
}

impl Subscription {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Subscribes to more events, starting now or after the event with this number.
    pub(super) fn add(
        &mut self,
        names: &[String],
        after: Option<u64>,
        journal: &Journal,
        principal: &Principal,
    ) -> Result<Value, ControlError> {
        for name in read(names)? {
            let needs_observe =
                matches!(name, ControlEventName::Log | ControlEventName::Stderr | ControlEventName::Replicas);
            if needs_observe && !principal.has_permission(OBSERVE) {
                return Err(missing_permission(OBSERVE));
            }
            if !self.names.contains(&name) {
                if self.names.is_empty() {
                    self.last_seq = journal.seq();
                }
                self.names.push(name);
            }
        }
        let is_complete = after.is_none_or(|after| journal.can_replay_from(after));
        if let (Some(after), true) = (after, is_complete) {
            self.last_seq = after;
        }
        Ok(json!({"subscribed": self.event_names(), "seq": journal.seq(), "missed": !is_complete}))
    }

    /// Unsubscribes from these events, or from all if `names` is `None`.
    pub(super) fn remove(&mut self, names: Option<&[String]>) -> Result<Value, ControlError> {
        match names {
            Some(names) => {
                let removed = read(names)?;
                self.names.retain(|name| !removed.contains(name));
            }
            None => self.names.clear(),
        }
        Ok(json!({"subscribed": self.event_names()}))
    }

    fn event_names(&self) -> Vec<&'static str> {
        self.names.iter().map(|name| name.as_str()).collect()
    }

    /// Delivers the new events as far as there is room. The others stay in the journal for as long
    /// as it retains them.
    pub(super) fn deliver(
        &mut self,
        journal: &Journal,
        yard: &Yard,
        principal: &Principal,
        outbox: &Outbox,
    ) -> Backlog {
        let since = journal.since(self.last_seq, BATCH);
        let visibility = yard.visibility(principal);
        self.missed += since.forgotten;
        for entry in &since.entries {
            if !outbox.has_room() {
                return Backlog::NoRoom;
            }
            if let JournalEvent::Lagged(missed) = entry.event {
                self.missed += missed;
            }
            self.report_missed(entry.seq.saturating_sub(1), outbox);
            self.last_seq = entry.seq;
            if self.names.contains(&ControlEventName::from_event(&entry.event))
                && let Some(message) = event(entry, (yard, journal), principal, &visibility)
            {
                outbox.push(message);
            }
        }
        if since.entries.len() == BATCH { Backlog::More } else { Backlog::Empty }
    }

    /// Reports the number of lost events before later events are delivered.
    fn report_missed(&mut self, seq: u64, outbox: &Outbox) {
        if self.missed > 0 {
            let more = Map::from_iter([("missed".to_owned(), self.missed.into())]);
            outbox.push(write("lagged", seq, Timestamp::now(), more));
            self.missed = 0;
        }
    }
}

fn read(names: &[String]) -> Result<Vec<ControlEventName>, ControlError> {
    if names.len() > MOST_NAMES {
        return Err(ControlError::invalid_at("events", "must contain at most 64 names"));
    }
    let parse = |text: &String| {
        ControlEventName::ALL.into_iter().find(|name| name.as_str() == text).ok_or_else(|| {
            let all: Vec<&str> = ControlEventName::ALL.iter().map(|name| name.as_str()).collect();
            ControlError::invalid_at("events", "contains an unknown event")
                .suggest(format!("use one of: {}", all.join(", ")))
        })
    };
    names.iter().map(parse).collect()
}

/// Renders an event for the principal, or returns `None` if the principal may not see it.
fn event(
    entry: &JournalEntry,
    (yard, journal): (&Yard, &Journal),
    principal: &Principal,
    visibility: &Visibility,
) -> Option<String> {
    let name = ControlEventName::from_event(&entry.event);
    let members = match &entry.event {
        JournalEvent::Server(source, status) => match status {
            Some(status) => {
                if !visibility.sees_source(source) {
                    return None;
                }
                let view = CatalogView::new(yard.catalog(), principal.clone())
                    .with_scope(YardScope::Source(source.clone()));
                let mut status = (**status).clone();
                visibility.hide_warnings_about_others(&mut status);
                let server = render::server(source, &status, &view, &journal.servers_elsewhere(source));
                return Some(format!(
                    r#"{{"type":"event","event":"server","seq":{},"at":"{}","server":{server}}}"#,
                    entry.seq,
                    Timestamp(entry.at),
                ));
            }
            None if !visibility.sees_changes_of(source) => return None,
            None => json!({"serverName": source.as_str(), "gone": true}),
        },
        JournalEvent::CatalogChanged(change, sources) => {
            if !visibility.sees_changes(sources, &YardScope::All) {
                return None;
            }
            json!({"tools": change.tools, "resources": change.resources, "prompts": change.prompts})
        }
        JournalEvent::Resource(source, uri) => {
            if !visibility.sees_update(source, uri) {
                return None;
            }
            json!({"serverName": source.as_str(), "uri": uri})
        }
        JournalEvent::CallStarted(call) | JournalEvent::CallEnded(call)
            if visibility.sees_call(&call.as_recorded_call()) =>
        {
            json!({"call": render::call(call)})
        }
        JournalEvent::CallProgress(call, progress) if visibility.sees_call(&call.as_recorded_call()) => {
            let mut members = Map::from_iter([("id".to_owned(), render::execution(call.record.id).into())]);
            members.extend(render::progress(progress));
            with_replica(members, entry).into()
        }
        JournalEvent::Log(line) if visibility.sees_log_line(line.source.as_deref()) => {
            let members = [("level", line.level), ("target", &line.target), ("message", &line.message)];
            with_replica(text_members(members), entry).into()
        }
        JournalEvent::Stderr(line) if visibility.observes_source(&line.source) => {
            let members = [("serverName", line.source.as_str()), ("line", &line.line)];
            with_replica(text_members(members), entry).into()
        }
        JournalEvent::Replicas(list) if principal.has_permission(OBSERVE) => (**list).clone(),
        _ => return None,
    };
    let Value::Object(members) = members else { return None };
    Some(write(name.as_str(), entry.seq, Timestamp(entry.at), members))
}

fn text_members<const N: usize>(members: [(&str, &str); N]) -> Map<String, Value> {
    members.into_iter().map(|(key, text)| (key.to_owned(), text.into())).collect()
}

/// Adds where it happened, if there are several replicas.
fn with_replica(members: Map<String, Value>, entry: &JournalEntry) -> Map<String, Value> {
    let mut members = members;
    if let Some(replica) = &entry.replica {
        members.insert("replica".to_owned(), (&*replica.name).into());
    }
    members
}

fn write(name: &str, seq: u64, at: Timestamp, more: Map<String, Value>) -> String {
    let mut event = json!({"type": "event", "event": name, "seq": seq, "at": at.to_string()});
    if let Value::Object(event) = &mut event {
        event.extend(more);
    }
    event.to_string()
}
