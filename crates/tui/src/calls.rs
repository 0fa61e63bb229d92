//! The calls of this session: their arguments, progress and results.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolyard_hub::{CallEndReason, CallStatus, CallTarget, HubError, Outcome, Progress, Raw, SourceName};

use crate::message::{CallId, ClockTime, UiCallUpdate};

/// How many calls and how many bytes of results are retained.
const MOST: usize = 200;
const MOST_BYTES: usize = 256 * 1024 * 1024;
/// How many log lines and output chunks are shown while a call runs.
const MOST_HEARD: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct SessionCalls {
    /// Oldest first.
    all: VecDeque<SessionCall>,
    next: u64,
}

/// The target of a call, with all of its names.
#[derive(Debug, Clone)]
pub(crate) struct CallSpec {
    pub(crate) source: SourceName,
    pub(crate) raw_name: String,
    pub(crate) target: CallTarget,
}

#[derive(Debug)]
pub(crate) struct SessionCall {
    pub(crate) id: CallId,
    pub(crate) subject: CallSpec,
    pub(crate) began: ClockTime,
    pub(crate) state: CallState,
    pub(crate) progress: Option<Progress>,
    /// The output received while the call runs.
    pub(crate) output_lines: VecDeque<String>,
    pub(crate) cancelling: bool,
}

#[derive(Debug)]
pub(crate) enum CallState {
    Running,
    Answered(Arc<Outcome>, Duration),
    Errored(Arc<HubError>, Duration),
    /// The result was dropped to stay within the memory limit.
    Evicted(CallStatus, Duration),
}

impl SessionCalls {
    pub(crate) fn begin(&mut self, subject: CallSpec, now: ClockTime) -> CallId {
        let id = CallId(self.next);
        self.next += 1;
        self.all.push_back(SessionCall {
            id,
            subject,
            began: now,
            state: CallState::Running,
            progress: None,
            output_lines: VecDeque::new(),
            cancelling: false,
        });
        while self.all.len() > MOST {
            match self.all.iter().position(|call| !call.is_running()) {
                Some(at) => drop(self.all.remove(at)),
                None => break,
            }
        }
        id
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&SessionCall> {
        self.all.iter().find(|call| call.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: CallId) -> Option<&mut SessionCall> {
        self.all.iter_mut().find(|call| call.id == id)
    }

    /// Returns the calls, newest first.
    pub(crate) fn newest_first(&self) -> impl ExactSizeIterator<Item = &SessionCall> {
        self.all.iter().rev()
    }

    pub(crate) fn running_count(&self) -> usize {
        self.all.iter().filter(|call| call.is_running()).count()
    }

    pub(crate) fn apply(&mut self, id: CallId, news: UiCallUpdate) {
        let Some(call) = self.get_mut(id) else { return };
        match news {
            UiCallUpdate::Progress(progress) => call.progress = Some(progress),
            UiCallUpdate::Log(line) => {
                let text = line.data.as_str().map_or_else(|| line.data.to_string(), str::to_owned);
                call.push_output_line(format!("{}: {text}", level_name(line.level)));
            }
            UiCallUpdate::Chunk(chunk) => call.push_output_line(chunk_text(&chunk)),
            UiCallUpdate::Questions(..) | UiCallUpdate::QuestionsWithdrawn(_) => {}
            UiCallUpdate::Ended(Ok(outcome), took) => {
                call.state = CallState::Answered(Arc::new(outcome), took)
            }
            UiCallUpdate::Ended(Err(error), took) => call.state = CallState::Errored(Arc::new(error), took),
        }
        self.evict_results();
    }

    /// Drops the results of the oldest calls first; the newest result is always retained.
    fn evict_results(&mut self) {
        let mut held: usize = 0;
        for call in self.all.iter_mut().rev() {
            let CallState::Answered(outcome, took) = &call.state else { continue };
            let size = outcome.body.get().len();
            if held > 0 && held + size > MOST_BYTES {
                call.state = CallState::Evicted(call.status(), *took);
            } else {
                held += size;
            }
        }
    }
}

impl SessionCall {
    pub(crate) fn status(&self) -> CallStatus {
        match &self.state {
            CallState::Running => CallStatus::Running,
            CallState::Answered(outcome, _) if outcome.failed => CallStatus::Failed,
            CallState::Answered(..) => CallStatus::Succeeded,
            CallState::Errored(error, _) => CallEndReason::Error(error.kind()).into(),
            CallState::Evicted(status, _) => *status,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, CallState::Running)
    }

    fn push_output_line(&mut self, text: String) {
        self.output_lines.push_back(text);
        if self.output_lines.len() > MOST_HEARD {
            self.output_lines.pop_front();
        }
    }
}

impl CallSpec {
    pub(crate) fn arguments(&self) -> Option<&Raw> {
        match &self.target {
            CallTarget::Tool { arguments, .. } | CallTarget::Prompt { arguments, .. } => arguments.as_ref(),
            CallTarget::Resource { .. } | CallTarget::Completion { .. } => None,
        }
    }
}

fn level_name(level: toolyard_hub::LogLevel) -> String {
    serde_json::to_value(level).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn chunk_text(chunk: &Value) -> String {
    match chunk.get("text").and_then(Value::as_str).or_else(|| chunk.as_str()) {
        Some(text) => text.to_owned(),
        None => chunk.to_string(),
    }
}
