//! What can happen to the UI, and what it can want done. The state changes by messages and asks for effects; who carries
//! them out is in `run.rs`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::time::Instant;
use toolyard_hub::{
    CallTarget, CatalogView, HubError, LogLine, Outcome, PastCall, Progress, Question, RawAnswers,
    SourceCommand, SourceName, SourceStatus,
};

use crate::key::KeyPress;
use crate::log::UiLogEntry;

/// Something happened.
#[derive(Debug)]
pub enum UiMessage {
    Key(KeyPress),
    Paste(String),
    /// Time has passed.
    Tick(ClockTime),
    /// The yard is not what it was.
    Yard(YardSnapshot),
    /// Lines for the log.
    LogEntries(Vec<UiLogEntry>),
    /// The yard that is shown runs elsewhere, and this is why it cannot be reached; nothing once it can.
    Connectivity(Option<String>),
    /// The latest calls that the yard remembers, whoever made them, the latest first.
    History(Vec<PastCall>),
    /// Something about a call of ours.
    Call(CallId, UiCallUpdate),
    /// Something was done that the person should know about.
    Done(String),
    /// Something that was wanted could not be done.
    Failed(String),
}

/// What the state wants done.
#[derive(Debug)]
pub enum Effect {
    Call(CallId, CallTarget),
    Cancel(CallId),
    Answer(QuestionId, Result<RawAnswers, HubError>),
    Manage(SourceName, SourceCommand),
    /// Put on the clipboard of the terminal.
    Copy(String),
    /// Write to a file of about this name.
    Save(String, SaveContents),
    /// Stop and let the shell have the terminal.
    Suspend,
    Quit,
}

/// What is written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveContents {
    Text(Arc<str>),
    Base64(Arc<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A question that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub u64);

/// What there is to tell about a call while it runs.
#[derive(Debug)]
pub enum UiCallUpdate {
    Progress(Progress),
    Log(LogLine),
    Chunk(Value),
    Questions(QuestionId, Vec<Question>),
    /// The call stopped waiting for the answer.
    QuestionsWithdrawn(QuestionId),
    Ended(Result<Outcome, HubError>, Duration),
}

/// The same moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct ClockTime {
    pub instant: Instant,
    pub wall: SystemTime,
}

impl ClockTime {
    pub fn now() -> Self {
        Self { instant: Instant::now(), wall: SystemTime::now() }
    }
}

/// The yard at one moment.
#[derive(Debug, Clone)]
pub struct YardSnapshot {
    pub view: CatalogView,
    pub sources: Vec<(SourceName, SourceStatus)>,
}

/// What the UI is told at its start.
#[derive(Debug, Clone, Default)]
pub struct UiSettings {
    /// What stands behind `toolyard call TOOL …` so that it reaches the same servers, such as `--config x.toml`.
    pub call_args: Vec<String>,
    /// The address of the yard, where it is one that runs elsewhere.
    pub yard: Option<String>,
    pub color: ColorMode,
    /// Where files are saved.
    pub folder: PathBuf,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorMode {
    #[default]
    On,
    Off,
}
