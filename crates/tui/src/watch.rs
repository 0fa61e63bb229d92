//! Watches the yard for the UI. However much happens there, the UI is told a few times a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use toolyard_hub::{CallRecord, CallStatus, Principal, TranscriptDirection, Yard, YardEvent};

use crate::log::{UiLogEntry, UiLogKind, new_lines};
use crate::message::{UiMessage, YardSnapshot};

/// How often the UI is told at most, and how often what tells nobody is looked at.
const OFTEN: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_millis(500);
/// How many lines of the log are told at once; of a flood the rest is left out.
const MOST: usize = 500;

/// The yard as this principal sees it now.
pub(crate) fn snapshot(yard: &Yard, principal: &Principal) -> YardSnapshot {
    YardSnapshot { view: yard.view(principal), sources: yard.statuses_for(principal) }
}

/// Tells the UI what happens until it is gone.
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
                // What comes close behind is told with it.
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
            entries.insert(0, own_entry(format!("{left_out} lines were left out: too much happens at once")));
        }
        if !entries.is_empty() && ui.send(UiMessage::LogEntries(entries)).await.is_err() {
            return;
        }
        if changed && ui.send(UiMessage::Yard(snapshot(&yard, &principal))).await.is_err() {
            return;
        }
    }
}

/// What was seen of each source.
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
            // Who may not read it sees the rest of the log all the same.
            let said = yard.transcript(principal, name.as_str(), after).unwrap_or_default();
            if let Some(last) = said.last() {
                self.transcript.insert(name.to_string(), last.number);
            }
            entries.extend(said.into_iter().map(|said| UiLogEntry {
                at: said.at,
                kind: match said.direction {
                    TranscriptDirection::ToSource => UiLogKind::Sent,
                    TranscriptDirection::FromSource => UiLogKind::Received,
                },
                source: source.clone(),
                text: said.text,
            }));
        }
    }
}

/// What a call is of, in words.
fn describe(call: &CallRecord) -> String {
    format!("{} {}", call.kind.as_str(), call.subject)
}

/// Writes an event down. Whether the yard may look different after it.
fn record_event(
    yard: &Yard,
    event: Result<Arc<YardEvent>, RecvError>,
    entries: &mut Vec<UiLogEntry>,
) -> bool {
    let event = match event {
        Ok(event) => event,
        Err(RecvError::Lagged(missed)) => {
            entries.push(own_entry(format!("{missed} events were missed: too much happens at once")));
            return true;
        }
        Err(RecvError::Closed) => return false,
    };
    let (source, text, changed) = match &*event {
        YardEvent::CallStarted(call) => {
            (call.source.as_ref().map(ToString::to_string), format!("{} is called", describe(call)), false)
        }
        // The call that is on the screen shows its own progress.
        YardEvent::CallProgress { .. } => return false,
        YardEvent::CallEnded { call, ended, error, duration } => {
            let what = describe(call);
            let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let status = CallStatus::from(*ended).as_str();
            (None, format!("{what} {status} after {}{why}", crate::text::format_duration(*duration)), false)
        }
        YardEvent::ResultViolatesSchema { call, violations } => (
            None,
            format!("the result of {} does not fit its schema: {}", call.tool_name(), violations.join("; ")),
            false,
        ),
        YardEvent::CatalogChanged(change, _) => {
            let lists =
                [(change.tools, "tools"), (change.resources, "resources"), (change.prompts, "prompts")];
            let changed: Vec<&str> =
                lists.into_iter().filter(|(yes, _)| *yes).map(|(_, word)| word).collect();
            (None, format!("there are other {}", changed.join(", ")), true)
        }
        YardEvent::ResourceUpdated { source, uri } => {
            (Some(source.to_string()), format!("{uri} was updated"), false)
        }
        YardEvent::StatusChanged { source } => {
            let status =
                yard.statuses().into_iter().find(|(name, _)| name == source).map(|(_, status)| status);
            let state = status.as_ref().map_or("gone", |status| status.state.label());
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
