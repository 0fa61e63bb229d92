//! Answers: one JSON object, as structured content and as the same text. Server's words go in as they came.

use std::time::{Instant, SystemTime};

use serde_json::{Value, json};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Outcome, Raw, Timestamp};

use crate::error::{TesterError, error_json};

/// A moment as RFC 3339, with its zone.
pub(crate) fn format_time(at: SystemTime) -> String {
    Timestamp(at).to_string()
}

pub(crate) fn now() -> String {
    Timestamp::now().to_string()
}

/// When an operation began; what it took is told in every answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn milliseconds(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The `metadata` of an answer, to which the time is added last.
#[derive(Debug, Default)]
pub(crate) struct AnswerMetadata {
    members: Object,
    notes: Vec<String>,
}

impl AnswerMetadata {
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.members.set(key, to_raw(&value.into()));
        self
    }

    /// Something about the server that whoever tests it should know.
    pub(crate) fn add_note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn into_raw(mut self, watch: Stopwatch) -> Raw {
        self.members.set("request_time_ms", to_raw(&watch.milliseconds()));
        if !self.notes.is_empty() {
            self.members.set("notes", to_raw(&self.notes));
        }
        self.members.to_raw()
    }
}

/// An answer that is being put together.
#[derive(Debug, Default)]
pub(crate) struct TesterAnswer {
    body: Object,
    metadata: Option<AnswerMetadata>,
}

impl TesterAnswer {
    /// One that says that it worked.
    pub(crate) fn success() -> Self {
        Self::default().with("success", to_raw(&true))
    }

    pub(crate) fn with(mut self, key: &str, value: Raw) -> Self {
        self.body.set(key, value);
        self
    }

    pub(crate) fn with_metadata(mut self, metadata: AnswerMetadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same with more notes.
    pub(crate) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.metadata.get_or_insert_default().notes.extend(notes);
        self
    }

    /// The result of the tool that was called.
    pub(crate) fn into_outcome(mut self, watch: Stopwatch) -> Outcome {
        if let Some(metadata) = self.metadata {
            self.body.set("metadata", metadata.into_raw(watch));
        }
        Outcome::success(result(&self.body.to_raw()).to_raw())
    }
}

/// The answer that says what went wrong.
pub(crate) fn failure(fault: &TesterError, mut notes: Vec<String>, watch: Stopwatch) -> Outcome {
    let mut body = Object::default();
    body.set("success", to_raw(&false));
    body.set("error", error_json(&fault.error));
    if let Some(connection) = &fault.connection {
        body.set("connection", connection.summary_json());
    }
    for (key, value) in &fault.extra_members {
        body.set(key, value.clone());
    }
    // What the message says already is not said again.
    notes.retain(|note| !fault.error.message().contains(note.as_str()));
    let metadata = AnswerMetadata { notes, ..AnswerMetadata::default() };
    body.set("metadata", metadata.into_raw(watch));
    let mut result = result(&body.to_raw());
    result.set("isError", to_raw(&true));
    Outcome::failure(result.to_raw())
}

fn result(body: &Raw) -> Object {
    let mut result = Object::default();
    result.set("content", to_raw(&json!([{"type": "text", "text": body.get()}])));
    result.set("structuredContent", body.clone());
    result
}
