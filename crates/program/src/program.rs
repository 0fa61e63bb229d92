//! The types that the engine and the broker exchange. The engine deals with Python, processes and
//! pipes; the broker deals with tools, principals and limits. Neither depends on the other.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::{oneshot, watch};
use toolyard_hub::Raw;

/// One program, ready to run.
#[derive(Debug)]
pub struct Program {
    pub code: String,
    /// The tools whose names the code mentions. The program requests others when it looks them up.
    pub bindings: Vec<ToolBinding>,
    pub limits: ProgramLimits,
    /// The output so far, at most as much as the limits allow. Watch it to follow a running program.
    pub printed: watch::Sender<Vec<u8>>,
}

/// A tool as a program sees it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ToolBinding {
    /// The name used in calls.
    pub full_name: String,
    /// The names of the function in the program: the full name, and the bare name if it is unique.
    /// All of them are valid Python identifiers.
    pub words: Vec<String>,
    /// The parameters in positional order, required ones first.
    pub parameters: Vec<String>,
    /// The number of required parameters. `None` for an optional one means that it is not given.
    pub required: usize,
    /// The docstring: signature and description.
    pub about: String,
}

/// The resources that one program may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramLimits {
    /// The wall-clock time, including the time spent waiting for tools.
    pub time: Duration,
    /// Memory in bytes.
    pub memory: u64,
    /// Output in bytes. Further output is counted and discarded.
    pub output: u64,
}

/// A request of a program, and the channel for the reply. The receiver is dropped if the program
/// stops waiting.
#[derive(Debug)]
pub struct PendingProgramQuestion {
    pub question: ProgramQuestion,
    pub reply: oneshot::Sender<ProgramReply>,
}

/// A request of a program. All content is untrusted.
#[derive(Debug)]
pub enum ProgramQuestion {
    Call {
        tool: String,
        arguments: Raw,
    },
    /// Looks up a tool by name.
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
    /// Reports the progress of the program.
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

/// A tool result as data, without the MCP envelope.
#[derive(Debug)]
pub enum ProgramData {
    Json(Raw),
    Text(String),
    /// Several blocks, or one that is neither JSON nor text.
    Blocks(Vec<ProgramBlock>),
    /// The result of an HTTP API, with the `status` and `headers` of the response.
    Http {
        data: Box<Self>,
        http: Raw,
    },
}

#[derive(Debug)]
pub enum ProgramBlock {
    Json(Raw),
    Text(String),
    /// An image, audio or a file: an object with `mime_type` and `data` (bytes).
    Media {
        kind: &'static str,
        mime_type: String,
        base64: String,
        uri: Option<String>,
    },
}

/// The content of a Python `ToolError`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure {
    pub message: String,
    /// The kind of error, such as `invalid_arguments`.
    pub kind: String,
    pub tool: String,
    pub details: Option<Value>,
}

/// The result of a program: how it ended, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOutcome {
    pub printed: ProgramOutput,
    /// Calls that did not run because they were not awaited.
    pub unawaited: Vec<UnawaitedCall>,
    /// Tasks that were not done when the program ended.
    pub unfinished: Vec<UnfinishedTask>,
    /// The value of the last line, if it is an expression and nothing was printed.
    pub value: Option<LastValue>,
    pub exit_reason: ExitReason,
}

impl ProgramOutcome {
    /// Creates an outcome without unawaited calls, unfinished tasks and last value.
    pub fn new(exit_reason: ExitReason, printed: ProgramOutput) -> Self {
        Self { printed, unawaited: Vec::new(), unfinished: Vec::new(), value: None, exit_reason }
    }
}

/// A call whose coroutine was never awaited.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnawaitedCall {
    /// The name of the function in the program.
    pub call: String,
    /// The line of the program.
    pub line: u64,
}

/// A task that was not done when the program ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnfinishedTask {
    /// The name of the function in the program.
    pub call: String,
    /// The line that created the task, if a line of the program did.
    pub line: Option<u64>,
    /// The line of the program in which the task waits, if it has started.
    pub at: Option<u64>,
    pub why: UnfinishedReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnfinishedReason {
    /// The time limit was reached while the task was running.
    Running,
    /// The task waits for something that can never happen.
    Stuck,
    /// The program failed before the task was done.
    Cancelled,
}

/// The `repr` of the last expression.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastValue {
    pub text: String,
    /// The number of bytes that were omitted at the end.
    pub left_out: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramOutput {
    pub text: String,
    /// The number of bytes that were omitted at the end.
    pub left_out: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    Finished,
    /// The last line ran, but some tasks can never finish.
    Unfinished,
    /// An uncaught exception. The traceback contains only lines of the program.
    Raised {
        traceback: String,
    },
    TimedOut,
    OutOfMemory,
    /// The program was canceled, or its process ended: by a forbidden system call, a crash, or a
    /// signal from outside.
    Died {
        why: String,
    },
    /// The program sent a frame that the worker never sends.
    ProtocolViolation {
        why: String,
    },
}

/// The reason why the sandbox cannot run programs, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SandboxUnavailable {
    pub reason: String,
    pub suggestion: Option<String>,
}
