//! Answers: one JSON object, as structured content and as the same text. Content from the server is
//! included unmodified.

use std::time::{Instant, SystemTime};

use serde_json::{Value, json};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Outcome, Raw, Timestamp};

use crate::error::{TesterError, error_json};

/// Formats a time as RFC 3339 with its zone.
pub(crate) fn format_time(at: SystemTime) -> String {
    Timestamp(at).to_string()
}

pub(crate) fn now() -> String {
    Timestamp::now().to_string()
}

/// Measures an operation. Every answer includes the duration.
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

/// The `metadata` of an answer. The duration is added last.
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

    /// Adds a note about the server for the person who tests it.
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

/// An answer under construction.
#[derive(Debug, Default)]
pub(crate) struct TesterAnswer {
    body: Object,
    metadata: Option<AnswerMetadata>,
}

impl TesterAnswer {
    /// Creates an answer that reports success.
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

    /// Adds notes.
    pub(crate) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.metadata.get_or_insert_default().notes.extend(notes);
        self
    }

    /// Converts the answer to the result of the called tool.
    pub(crate) fn into_outcome(mut self, watch: Stopwatch) -> Outcome {
        if let Some(metadata) = self.metadata {
            self.body.set("metadata", metadata.into_raw(watch));
        }
        Outcome::success(result(&self.body.to_raw()).to_raw())
    }
}

/// Builds an answer that reports an error.
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
    // Drop notes that repeat the error message.
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
