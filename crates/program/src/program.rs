//! What the engine and the broker say to each other. The engine knows Python, processes and pipes; the broker knows
//! tools, principals and limits; neither knows the other.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::{oneshot, watch};
use toolyard_hub::Raw;

/// One program, ready to run.
#[derive(Debug)]
pub struct Program {
    pub code: String,
    /// The tools whose names the code mentions. Others are asked for when the program looks them up.
    pub bindings: Vec<ToolBinding>,
    pub limits: ProgramLimits,
    /// What it has printed so far, for whoever wants to see it before the end; no more than the limits allow.
    pub printed: watch::Sender<Vec<u8>>,
}

/// What a program sees of a tool.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ToolBinding {
    /// The name by which it is called.
    pub full_name: String,
    /// The names under which the program has it as a function: the full name, and the bare one where it is unique. Each is
    /// a word that Python can spell.
    pub words: Vec<String>,
    /// The parameters in the order in which they can be given without names: required ones first.
    pub parameters: Vec<String>,
    /// How many of them are required. `None` for one of the others means that it is not given.
    pub required: usize,
    /// What `help` shows: signature and description.
    pub about: String,
}

/// What one program may use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramLimits {
    /// The time that it may take, waiting for tools included.
    pub time: Duration,
    pub memory: u64,
    /// How many bytes it may print; what is beyond that is counted and left out.
    pub output: u64,
}

/// A question of a program, and where its answer goes. An answer that nobody waits for any more is not missed.
#[derive(Debug)]
pub struct PendingProgramQuestion {
    pub question: ProgramQuestion,
    pub reply: oneshot::Sender<ProgramReply>,
}

/// Everything in here was written by the program, and is worth as much.
#[derive(Debug)]
pub enum ProgramQuestion {
    Call {
        tool: String,
        arguments: Raw,
    },
    /// What is there under this name?
    Binding {
        tool: String,
    },
    Inspect {
        tool: String,
    },
    Search {
        query: String,
        server: Option<String>,
        limit: Option<u64>,
    },
    /// The program says how far it is.
    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
}

#[derive(Debug)]
pub enum ProgramReply {
    Data(ProgramData),
    Binding(ToolBinding),
    Failed(ToolFailure),
}

/// A result as a program wants it: data, not an envelope.
#[derive(Debug)]
pub enum ProgramData {
    Json(Raw),
    Text(String),
    /// Several pieces, or one that is neither JSON nor text.
    Blocks(Vec<ProgramBlock>),
    /// What a call of an HTTP API gave, with `status` and `headers` of the answer.
    Http {
        data: Box<Self>,
        http: Raw,
    },
}

#[derive(Debug)]
pub enum ProgramBlock {
    Json(Raw),
    Text(String),
    /// An image, a sound or a file: an object with `mime_type` and `data` (bytes).
    Media {
        kind: &'static str,
        mime_type: String,
        base64: String,
        uri: Option<String>,
    },
}

/// What `ToolError` carries.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure {
    pub message: String,
    /// A word for the kind of the error, such as `invalid_arguments`.
    pub kind: String,
    pub tool: String,
    pub details: Option<Value>,
}

/// How a program ended, and what it printed until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOutcome {
    pub printed: ProgramOutput,
    /// Calls that came to nothing, because nobody awaited them.
    pub unawaited: Vec<UnawaitedCall>,
    /// Tasks that were not done when it ended.
    pub unfinished: Vec<UnfinishedTask>,
    /// The value of its last line, where that is an expression and nothing was printed.
    pub value: Option<LastValue>,
    pub exit_reason: ExitReason,
}

impl ProgramOutcome {
    /// One that has printed this and left nothing behind.
    pub fn new(exit_reason: ExitReason, printed: ProgramOutput) -> Self {
        Self { printed, unawaited: Vec::new(), unfinished: Vec::new(), value: None, exit_reason }
    }
}

/// A call that was written down and never made.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnawaitedCall {
    /// The name of the function, as the program has it.
    pub call: String,
    /// The line of the program.
    pub line: u64,
}

/// A task that the program started and that was not done when it ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnfinishedTask {
    /// The name of the function, as the program has it.
    pub call: String,
    /// The line that made it, where it was made in the program.
    pub line: Option<u64>,
    /// The line of the program in which it waits, if it has come that far.
    pub at: Option<u64>,
    pub why: UnfinishedReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnfinishedReason {
    /// It was still being waited for.
    Running,
    /// It waits for something that can never happen.
    Stuck,
    /// What it belongs to has failed.
    Cancelled,
}

/// A value in Python's words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastValue {
    pub text: String,
    /// How many bytes were left out at the end.
    pub left_out: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramOutput {
    pub text: String,
    /// How many bytes were left out at the end.
    pub left_out: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    Finished,
    /// Its last line was done, but some of its tasks can never be.
    Unfinished,
    /// An exception that the program did not catch, in Python's words, with the program's own lines only.
    Raised {
        traceback: String,
    },
    TimedOut,
    /// It used more memory than it may.
    OutOfMemory,
    /// It was stopped, or its process is gone: by a forbidden system call, a crash, or somebody from outside.
    Died {
        why: String,
    },
    /// It said what no honest program says.
    ProtocolViolation {
        why: String,
    },
}

/// Why no program can be run here at all, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SandboxUnavailable {
    pub reason: String,
    pub suggestion: Option<String>,
}
