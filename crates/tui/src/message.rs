//! What can happen to the UI, and what it can want done. The state changes by messages and asks for effects; who carries
//! them out is in `run.rs`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::time::Instant;
use toolyard_hub::{
    Answers, Error, LogLine, Order, Outcome, PastCall, Progress, Question, SourceName, Status, View, What,
};

use crate::key::Key;
use crate::log::Entry;

/// Something happened.
#[derive(Debug)]
pub enum Message {
    Key(Key),
    Paste(String),
    /// Time has passed.
    Tick(Now),
    /// The yard is not what it was.
    Yard(Snapshot),
    /// Lines for the log.
    Logged(Vec<Entry>),
    /// The yard that is shown runs elsewhere, and this is why it cannot be reached; nothing once it can.
    Away(Option<String>),
    /// The latest calls that the yard remembers, whoever made them, the latest first.
    Past(Vec<PastCall>),
    /// Something about a call of ours.
    Call(CallId, News),
    /// Something was done that the person should know about.
    Done(String),
    /// Something that was wanted could not be done.
    Failed(String),
}

/// What the state wants done.
#[derive(Debug)]
pub enum Effect {
    Call(CallId, What),
    Cancel(CallId),
    Answer(AskId, Result<Answers, Error>),
    Manage(SourceName, Order),
    /// Put on the clipboard of the terminal.
    Copy(String),
    /// Write to a file of about this name.
    Save(String, Contents),
    /// Stop and let the shell have the terminal.
    Suspend,
    Quit,
}

/// What is written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    Text(Arc<str>),
    Base64(Arc<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A question that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AskId(pub u64);

/// What there is to tell about a call while it runs.
#[derive(Debug)]
pub enum News {
    Progress(Progress),
    Log(LogLine),
    Chunk(Value),
    Asked(AskId, Vec<Question>),
    /// The call stopped waiting for the answer.
    Unasked(AskId),
    Ended(Result<Outcome, Error>, Duration),
}

/// The same moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    pub instant: Instant,
    pub wall: SystemTime,
}

impl Now {
    pub fn here() -> Self {
        Self { instant: Instant::now(), wall: SystemTime::now() }
    }
}

/// The yard at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub view: View,
    pub sources: Vec<(SourceName, Status)>,
}

/// What the UI is told at its start.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What stands behind `toolyard call TOOL …` so that it reaches the same servers, such as `--config x.toml`.
    pub call_words: Vec<String>,
    /// The address of the yard, where it is one that runs elsewhere.
    pub yard: Option<String>,
    pub colour: Colour,
    /// Where files are saved.
    pub folder: PathBuf,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colour {
    #[default]
    On,
    Off,
}
