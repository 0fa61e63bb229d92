//! Test files as values: what a file contains once it is read. `file/read` reads YAML into these
//! types; an import of another format, or a generator of tests, can build them too.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use toolyard_hub::{ClientCapabilities, LogLevel};
use toolyard_upstream::{EnvInheritance, Era, ServerListKind};

use crate::expect::Expectation;
use crate::import::mcp_assert::McpAssertExpect;
use crate::snapshot::SnapshotRequest;

mod keys;
mod problem;
mod read;
mod read_expect;
mod read_step;
mod read_value;
mod reference;
mod units;
pub(crate) mod yaml;

pub use problem::TestFileProblem;
pub use read::parse_test_file;
pub use reference::{test_file_reference, test_file_schema};
pub(crate) use units::parse_duration;
pub use yaml::FilePosition;

/// A file of tests for one server.
#[derive(Debug, Clone, Default)]
pub struct TestFile {
    /// The path as given, for reports and messages.
    pub path: PathBuf,
    /// The title in reports. Default: the path.
    pub name: Option<String>,
    /// The server under test. A server of the command line replaces it.
    pub server: Option<ServerSpec>,
    /// The eras to run in. `None` uses the newest that the server has.
    pub eras: Option<Vec<Era>>,
    /// The time limit of a test.
    pub timeout: Option<Duration>,
    pub start_timeout: Option<Duration>,
    /// Folders that are copied for each run, relative to the folder of the file.
    pub fixtures: Vec<PathBuf>,
    pub vars: Map<String, Value>,
    pub answers: ScriptedAnswers,
    /// What the client declares. `None` declares what is answered.
    pub capabilities: Option<ClientCapabilities>,
    pub log_level: Option<LogLevel>,
    pub violations: ViolationPolicy,
    pub redact: Vec<Redactor>,
    pub only: RunCondition,
    pub tags: Vec<String>,
    pub setup: Vec<TestStep>,
    pub teardown: Vec<TestStep>,
    pub tests: Vec<TestCase>,
}

/// How a file names its server.
#[derive(Debug, Clone)]
pub enum ServerSpec {
    /// A server of the configuration.
    Configured(String),
    Command {
        program: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<String>,
        inherit: EnvInheritance,
    },
    Url {
        url: String,
        headers: Vec<(String, String)>,
        /// Whether only the old HTTP+SSE transport is used.
        sse: bool,
    },
}

/// Whether violations of the protocol fail a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViolationPolicy {
    #[default]
    Fail,
    Ignore,
}

/// Where a test or file runs. Empty fields do not restrict it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunCondition {
    /// Names as in `std::env::consts::OS`, such as `linux`.
    pub os: Vec<String>,
    pub era: Option<Era>,
    /// Environment variables that must be set.
    pub env: Vec<String>,
}

/// One test: steps that run in order on a connection.
#[derive(Debug, Clone)]
pub struct TestCase {
    pub name: String,
    pub at: FilePosition,
    /// Whether the test has a connection and fixtures of its own.
    pub isolate: bool,
    /// Why the test is skipped.
    pub skip: Option<String>,
    pub only: RunCondition,
    pub tags: Vec<String>,
    pub timeout: Option<Duration>,
    pub vars: Map<String, Value>,
    /// Replaces the answers of the file.
    pub answers: Option<ScriptedAnswers>,
    pub redact: Vec<Redactor>,
    pub steps: Vec<TestStep>,
}

/// One step of a test.
#[derive(Debug, Clone)]
pub struct TestStep {
    pub at: FilePosition,
    pub action: StepAction,
    pub timeout: Option<Duration>,
    pub expect: StepExpectations,
    pub captures: Vec<ValueCapture>,
}

/// What a step does. Texts and values can contain variables.
#[derive(Debug, Clone)]
pub enum StepAction {
    Call {
        tool: String,
        arguments: Value,
    },
    Read {
        uri: String,
    },
    Prompt {
        name: String,
        arguments: Value,
    },
    Complete(CompletionStep),
    List(ServerListKind),
    /// Subscribes to resources, and in the modern era also to list changes.
    Subscribe {
        uris: Vec<String>,
    },
    Unsubscribe {
        uris: Vec<String>,
    },
    /// Waits for a notification that arrived after the previous `wait` step, or will.
    Wait {
        method: String,
        params: Option<Value>,
    },
    /// Starts a call and cancels it.
    Cancel {
        tool: String,
        arguments: Value,
        after: Duration,
    },
    /// Closes the connection and opens another.
    Reconnect,
    /// A check that needs no server, such as that of a recorded sequence of calls.
    Decided(Result<(), String>),
}

#[derive(Debug, Clone)]
pub struct CompletionStep {
    pub reference: CompletionTargetSpec,
    pub argument: String,
    pub value: String,
    /// Arguments that are already known.
    pub context: Option<Value>,
}

#[derive(Debug, Clone)]
pub enum CompletionTargetSpec {
    Prompt(String),
    Template(String),
}

/// What the result of a step must be.
#[derive(Debug, Clone, Default)]
pub struct StepExpectations {
    /// Whether the step must fail. `Unchecked` leaves that to the assertions.
    pub failure: FailureExpectation,
    pub items: Vec<Expectation>,
    /// Whether a result must match the output schema of the tool.
    pub skip_output_schema: bool,
    pub snapshot: Option<SnapshotRequest>,
    /// Assertions of an imported file, with the semantics of their own runner.
    pub imported: Option<Box<McpAssertExpect>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailureExpectation {
    /// The request succeeds, and the result of a tool does not say `isError`.
    #[default]
    Success,
    /// The result says `isError`.
    ToolError,
    /// The server answers with a protocol error.
    ProtocolError,
    /// A protocol error fails the step, a result with `isError` does not.
    Unchecked,
}

/// Stores a part of a result in a variable.
#[derive(Debug, Clone)]
pub struct ValueCapture {
    pub name: String,
    pub at: FilePosition,
    pub source: CaptureSource,
}

#[derive(Debug, Clone)]
pub enum CaptureSource {
    /// A JSONPath in the result.
    Result(String),
    /// A JSONPath in the text of the result, parsed as JSON.
    TextJson(String),
    /// The first group of a regular expression over the text of the result.
    Text(String),
}

/// Answers to the questions of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptedAnswers {
    pub elicitation: AnswerSequence,
    pub sampling: AnswerSequence,
    /// The result of `roots/list`.
    pub roots: Option<Value>,
}

/// The results that questions of one kind get.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum AnswerSequence {
    /// Such questions cannot be answered, and the capability is not declared.
    #[default]
    None,
    /// Every question gets this answer.
    Always(Value),
    /// Each question gets the next answer.
    InOrder(Vec<Value>),
}

impl AnswerSequence {
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Replaces what changes from run to run, before values are compared with a snapshot or with the
/// other era.
#[derive(Debug, Clone)]
pub struct Redactor {
    pub target: RedactionTarget,
    pub replacement: String,
}

#[derive(Debug, Clone)]
pub enum RedactionTarget {
    /// Every value that a JSONPath selects.
    Path(String),
    /// Every match of a regular expression in a text.
    Pattern(String),
}
