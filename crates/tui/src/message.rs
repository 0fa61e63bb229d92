//! The messages that change the state of the UI, and the effects that it requests. `run.rs`
//! executes the effects.

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

/// An input of the UI.
#[derive(Debug)]
pub enum UiMessage {
    Key(KeyPress),
    Paste(String),
    /// Time has passed.
    Tick(ClockTime),
    /// The yard changed.
    Yard(YardSnapshot),
    /// Lines for the log.
    LogEntries(Vec<UiLogEntry>),
    /// Why the remote yard that is shown cannot be reached; `None` once it can be reached again.
    Connectivity(Option<String>),
    /// The replicas of the remote yard; `None` if it runs as one process.
    Replicas(Option<UiReplicas>),
    /// The latest calls that the yard recorded, from all callers, newest first.
    History(Vec<PastCall>),
    /// An update on a call of this UI.
    Call(CallId, UiCallUpdate),
    /// A notice about something that succeeded.
    Done(String),
    /// A notice about something that failed.
    Failed(String),
}

/// The replicas of the yard that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiReplicas {
    pub count: usize,
    /// What needs attention, the most important first.
    pub problems: Vec<String>,
}

/// An effect that the state requests.
#[derive(Debug)]
pub enum Effect {
    Call(CallId, CallTarget),
    Cancel(CallId),
    Answer(QuestionId, Result<RawAnswers, HubError>),
    Manage(SourceName, SourceCommand),
    /// Copy to the clipboard of the terminal.
    Copy(String),
    /// Write to a file with a name based on this one.
    Save(String, SaveContents),
    /// Suspend the process and return the terminal to the shell.
    Suspend,
    Quit,
}

/// The contents of a file to save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveContents {
    Text(Arc<str>),
    Base64(Arc<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// Identifies a question that a call is waiting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub u64);

/// An update on a running call.
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

/// The same moment on the monotonic and the wall clock.
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

/// A snapshot of the yard.
#[derive(Debug, Clone)]
pub struct YardSnapshot {
    pub view: CatalogView,
    pub sources: Vec<(SourceName, SourceStatus)>,
}

/// The settings of the UI.
#[derive(Debug, Clone, Default)]
pub struct UiSettings {
    /// The options after `toolyard call TOOL …` that reach the same servers, such as `--config
    /// x.toml`.
    pub call_args: Vec<String>,
    /// The address of the yard, if it is a remote one.
    pub yard: Option<String>,
    pub color: ColorMode,
    /// The folder for saved files.
    pub folder: PathBuf,
    /// How calls are copied as tests.
    pub test_writer: Option<UiTestWriter>,
}

/// Writes a call and its result as a test file. The format is the business of the owner of the UI.
#[derive(Clone)]
pub struct UiTestWriter(Arc<UiTestFormat>);

type UiTestFormat = dyn Fn(&UiTestCall<'_>) -> String + Send + Sync;

/// A call to write as a test.
#[derive(Debug)]
pub struct UiTestCall<'a> {
    pub server: &'a str,
    /// The name that the server uses, for tools and prompts.
    pub raw_name: &'a str,
    pub target: &'a CallTarget,
    /// The result as JSON.
    pub result: &'a str,
}

impl UiTestWriter {
    pub fn new(format: impl Fn(&UiTestCall<'_>) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(format))
    }

    pub(crate) fn write(&self, call: &UiTestCall<'_>) -> String {
        (self.0)(call)
    }
}

impl std::fmt::Debug for UiTestWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UiTestWriter").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorMode {
    #[default]
    On,
    Off,
}
