//! Watches the yard for the UI. Under any load, the UI receives only a few updates per second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use toolyard_hub::{CallRecord, CallStatus, Principal, TranscriptDirection, Yard, YardEvent};

use crate::log::{UiLogEntry, UiLogKind, new_lines};
use crate::message::{UiMessage, YardSnapshot};

/// The minimum interval between two updates, and the polling interval for state that emits no
/// events.
const OFTEN: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_millis(500);
/// How many log lines one update contains; excess lines are dropped.
const MOST: usize = 500;

/// Takes a snapshot of the yard as this principal sees it.
pub(crate) fn snapshot(yard: &Yard, principal: &Principal) -> YardSnapshot {
    YardSnapshot { view: yard.view(principal), sources: yard.statuses_for(principal) }
}

/// Sends updates to the UI until it is closed.
pub(crate) async fn watch(yard: Arc<Yard>, principal: Principal, ui: mpsc::Sender<UiMessage>) {
    let mut events = yard.events().subscribe();
    let mut seen = SourceCursors::default();
    let mut next = tokio::time::interval(SELDOM);
    loop {
        let mut entries = Vec::new();
        let mut changed = true;
        tokio::select! {
            event = events.recv() => {
                changed = record_event(&yard, event, &mut entries);
                // Events that follow closely are sent in the same update.
                let until = tokio::time::Instant::now() + OFTEN;
                while let Ok(event) = tokio::time::timeout_at(until, events.recv()).await {
                    if matches!(event, Err(RecvError::Closed)) {
                        return;
                    }
                    changed |= record_event(&yard, event, &mut entries);
                }
            }
            _ = next.tick() => {}
        }
        seen.collect(&yard, &principal, &mut entries);
        let left_out = entries.len().saturating_sub(MOST);
        if left_out > 0 {
            entries.drain(..left_out);
            entries.insert(0, own_entry(format!("dropped {left_out} log lines: they arrived too fast")));
        }
        if !entries.is_empty() && ui.send(UiMessage::LogEntries(entries)).await.is_err() {
            return;
        }
        if changed && ui.send(UiMessage::Yard(snapshot(&yard, &principal))).await.is_err() {
            return;
        }
    }
}

/// What was already read of each source.
#[derive(Default)]
struct SourceCursors {
    stderr: HashMap<String, Vec<String>>,
    transcript: HashMap<String, u64>,
}

impl SourceCursors {
    fn collect(&mut self, yard: &Yard, principal: &Principal, entries: &mut Vec<UiLogEntry>) {
        for (name, status) in yard.statuses_for(principal) {
            let source = Some(name.to_string());
            let before = self.stderr.entry(name.to_string()).or_default();
            for line in new_lines(before, &status.stderr) {
                entries.push(UiLogEntry {
                    at: SystemTime::now(),
                    kind: UiLogKind::Stderr,
                    source: source.clone(),
                    text: line.clone(),
                });
            }
            *before = status.stderr;
            let after = self.transcript.get(name.as_str()).copied();
            // A principal without permission to read the transcript still sees the rest of the log.
            let transcript = yard.transcript(principal, name.as_str(), after).unwrap_or_default();
            if let Some(last) = transcript.last() {
                self.transcript.insert(name.to_string(), last.number);
            }
            entries.extend(transcript.into_iter().map(|entry| UiLogEntry {
                at: entry.at,
                kind: match entry.direction {
                    TranscriptDirection::ToSource => UiLogKind::Sent,
                    TranscriptDirection::FromSource => UiLogKind::Received,
                },
                source: source.clone(),
                text: entry.text,
            }));
        }
    }
}

/// Describes the target of a call.
fn describe(call: &CallRecord) -> String {
    format!("{} {}", call.kind.as_str(), call.subject)
}

/// Adds an event to the log; returns whether the yard may have changed.
fn record_event(
    yard: &Yard,
    event: Result<Arc<YardEvent>, RecvError>,
    entries: &mut Vec<UiLogEntry>,
) -> bool {
    let event = match event {
        Ok(event) => event,
        Err(RecvError::Lagged(missed)) => {
            entries.push(own_entry(format!("missed {missed} events: they arrived too fast")));
            return true;
        }
        Err(RecvError::Closed) => return false,
    };
    let (source, text, changed) = match &*event {
        YardEvent::CallStarted(call) => {
            (call.source.as_ref().map(ToString::to_string), format!("{} started", describe(call)), false)
        }
        // The call screen shows its own progress.
        YardEvent::CallProgress { .. } => return false,
        YardEvent::CallEnded { call, ended, error, duration } => {
            let what = describe(call);
            let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let status = CallStatus::from(*ended).as_str();
            (None, format!("{what} {status} after {}{why}", crate::text::format_duration(*duration)), false)
        }
        YardEvent::ResultViolatesSchema { call, violations } => (
            None,
            format!(
                "the result of {} does not match its output schema: {}",
                call.tool_name(),
                violations.join("; ")
            ),
            false,
        ),
        YardEvent::CatalogChanged(change, _) => {
            let lists = [
                (change.tools, "tool list"),
                (change.resources, "resource list"),
                (change.prompts, "prompt list"),
            ];
            let changed: Vec<&str> =
                lists.into_iter().filter(|(yes, _)| *yes).map(|(_, word)| word).collect();
            (None, format!("{} changed", changed.join(", ")), true)
        }
        YardEvent::ResourceUpdated { source, uri } => {
            (Some(source.to_string()), format!("{uri} was updated"), false)
        }
        YardEvent::StatusChanged { source } => {
            let status =
                yard.statuses().into_iter().find(|(name, _)| name == source).map(|(_, status)| status);
            let state = status.as_ref().map_or("removed", |status| status.state.label());
            let reason = status.and_then(|status| status.reason).map(|reason| format!(": {reason}"));
            (Some(source.to_string()), format!("is {state}{}", reason.unwrap_or_default()), true)
        }
    };
    entries.push(UiLogEntry { at: SystemTime::now(), kind: UiLogKind::Event, source, text });
    changed
}

fn own_entry(text: String) -> UiLogEntry {
    UiLogEntry { at: SystemTime::now(), kind: UiLogKind::Own, source: None, text }
}
