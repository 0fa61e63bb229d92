//! The calls of this session: what was asked, how it goes, and what came back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolyard_hub::{Error, Outcome, Progress, Raw, SourceName, What};

use crate::message::{CallId, News, Now};

/// How many calls are remembered, and how many bytes of results.
const MOST: usize = 200;
const MOST_BYTES: usize = 256 * 1024 * 1024;
/// How many log lines and pieces of a result are shown while a call runs.
const MOST_HEARD: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Oldest first.
    all: VecDeque<OneCall>,
    next: u64,
}

/// What is called, in all the names that it has.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) source: SourceName,
    pub(crate) raw_name: String,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) struct OneCall {
    pub(crate) id: CallId,
    pub(crate) subject: Subject,
    pub(crate) began: Now,
    pub(crate) state: CallState,
    pub(crate) progress: Option<Progress>,
    /// What it said while it ran.
    pub(crate) heard: VecDeque<String>,
    pub(crate) cancelling: bool,
}

#[derive(Debug)]
pub(crate) enum CallState {
    Running,
    Answered(Arc<Outcome>, Duration),
    Broken(Arc<Error>, Duration),
    /// Its result was let go of to make room.
    Forgotten(Duration),
}

impl Calls {
    pub(crate) fn begin(&mut self, subject: Subject, now: Now) -> CallId {
        let id = CallId(self.next);
        self.next += 1;
        self.all.push_back(OneCall {
            id,
            subject,
            began: now,
            state: CallState::Running,
            progress: None,
            heard: VecDeque::new(),
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

    pub(crate) fn get(&self, id: CallId) -> Option<&OneCall> {
        self.all.iter().find(|call| call.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: CallId) -> Option<&mut OneCall> {
        self.all.iter_mut().find(|call| call.id == id)
    }

    /// Newest first.
    pub(crate) fn newest(&self) -> impl ExactSizeIterator<Item = &OneCall> {
        self.all.iter().rev()
    }

    pub(crate) fn running(&self) -> usize {
        self.all.iter().filter(|call| call.is_running()).count()
    }

    pub(crate) fn hear(&mut self, id: CallId, news: News) {
        let Some(call) = self.get_mut(id) else { return };
        match news {
            News::Progress(progress) => call.progress = Some(progress),
            News::Log(line) => {
                let said = line.data.as_str().map_or_else(|| line.data.to_string(), str::to_owned);
                call.note(format!("{}: {said}", level(line.level)));
            }
            News::Chunk(chunk) => call.note(chunk_text(&chunk)),
            News::Asked(..) | News::Unasked(_) => {}
            News::Ended(Ok(outcome), took) => call.state = CallState::Answered(Arc::new(outcome), took),
            News::Ended(Err(error), took) => call.state = CallState::Broken(Arc::new(error), took),
        }
        self.make_room();
    }

    /// The results of the oldest calls go first; the newest always stays.
    fn make_room(&mut self) {
        let mut held: usize = 0;
        for call in self.all.iter_mut().rev() {
            let CallState::Answered(outcome, took) = &call.state else { continue };
            let size = outcome.body.get().len();
            if held > 0 && held + size > MOST_BYTES {
                call.state = CallState::Forgotten(*took);
            } else {
                held += size;
            }
        }
    }
}

impl OneCall {
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, CallState::Running)
    }

    fn note(&mut self, text: String) {
        self.heard.push_back(text);
        if self.heard.len() > MOST_HEARD {
            self.heard.pop_front();
        }
    }
}

impl Subject {
    pub(crate) fn arguments(&self) -> Option<&Raw> {
        match &self.what {
            What::Tool { arguments, .. } | What::Prompt { arguments, .. } => arguments.as_ref(),
            What::Resource { .. } | What::Completion { .. } => None,
        }
    }
}

fn level(level: toolyard_hub::Level) -> String {
    serde_json::to_value(level).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn chunk_text(chunk: &Value) -> String {
    match chunk.get("text").and_then(Value::as_str).or_else(|| chunk.as_str()) {
        Some(text) => text.to_owned(),
        None => chunk.to_string(),
    }
}
