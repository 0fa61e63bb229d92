//! Tests for tools without a client. A call goes through a real yard, with schema validation,
//! permissions, hooks, progress and questions, and returns a [`TestReport`].
//!
//! ```
//! use toolyard_sdk::testing::TestCaller;
//! use toolyard_sdk::{Context, ElicitResult, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Person {
//!     name: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let greet = Tool::new("greet", |ctx: Context| async move {
//!     match ctx.elicit::<Person>("person", "What is your name?").await? {
//!         ElicitResult::Accepted(person) => Ok(format!("Hello, {}!", person.name)),
//!         _ => Ok("Hello!".to_owned()),
//!     }
//! });
//! let answer = serde_json::json!({"action": "accept", "content": {"name": "Ada"}});
//! let report = TestCaller::new().answer("person", answer).call(greet, serde_json::json!({})).await;
//! assert_eq!(report.text(), "Hello, Ada!");
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
pub use toolyard_hub::LogLine;
use toolyard_hub::{
    CallContext, CallRequest, CallTarget, CallerChannel, CallerUpdate, ClientCapabilities, ClientSession,
    Deadline, ErrorKind, HubError, LogLevel, Outcome, Permissions, Principal, Progress, Question,
    QuestionBatch, Raw, Yard, json,
};
pub use toolyard_serve::testing::{RestApp, RestResponse};

use crate::native::NativeSource;
use crate::tool::Tool;

/// The deadline of a call in a test.
const TIME: Duration = Duration::from_secs(60);

/// Calls a tool as a caller with all permissions that answers no questions.
///
/// ```
/// use toolyard_sdk::{ErrorKind, Tool, testing};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Square {
///     #[schemars(range(max = 100))]
///     number: u32,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let square = || Tool::new("square", |p: Square| async move { Ok((p.number * p.number).to_string()) });
/// assert_eq!(testing::call(square(), serde_json::json!({"number": 7})).await.text(), "49");
/// let report = testing::call(square(), serde_json::json!({"number": 101})).await;
/// assert_eq!(report.error_kind(), Some(ErrorKind::InvalidArguments));
/// # }
/// ```
pub async fn call(tool: Tool, arguments: impl Serialize) -> TestReport {
    TestCaller::new().call(tool, arguments).await
}

/// A caller of tools in a test.
#[derive(Debug, Clone)]
pub struct TestCaller {
    permissions: Permissions,
    capabilities: ClientCapabilities,
    answers: Vec<(String, Raw)>,
    cancel: CancellationToken,
    meta: Option<Raw>,
    session: Option<ClientSession>,
}

/// The outcome of a call, and everything the tool sent before it.
#[derive(Debug)]
pub struct TestReport {
    /// The result, or the error if there is no result.
    pub outcome: Result<Outcome, HubError>,
    /// All progress reports, in order.
    pub progress: Vec<Progress>,
    /// All partial results, in order.
    pub chunks: Vec<Value>,
    /// All log messages, in order.
    pub log: Vec<LogLine>,
    /// All questions, in order, whether answered or not.
    pub questions: Vec<Question>,
    /// The retry times of all pauses, in order. See [`Context::pause`](crate::Context::pause).
    pub pauses: Vec<Duration>,
}

impl Default for TestCaller {
    fn default() -> Self {
        Self::new()
    }
}

impl TestCaller {
    /// Creates a caller with all permissions and all client capabilities that receives every log
    /// message.
    pub fn new() -> Self {
        let capabilities = ClientCapabilities {
            elicit_form: true,
            elicit_url: true,
            sample: true,
            roots: true,
            log_level: Some(LogLevel::Debug),
        };
        Self {
            permissions: Permissions::All,
            capabilities,
            answers: Vec::new(),
            cancel: CancellationToken::new(),
            meta: None,
            session: None,
        }
    }

    /// Replaces the permissions of the caller.
    #[must_use]
    pub fn permissions<P: Into<String>>(mut self, permissions: impl IntoIterator<Item = P>) -> Self {
        self.permissions = Permissions::Only(permissions.into_iter().map(Into::into).collect());
        self
    }

    /// Replaces the capabilities of the client.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Adds the answer to one question with this key. Add a second answer for a question that is
    /// asked twice. A question without an answer fails the call.
    #[must_use]
    pub fn answer(mut self, key: impl Into<String>, answer: impl Serialize) -> Self {
        self.answers.push((key.into(), json::to_raw(&answer)));
        self
    }

    /// Cancels the call when this token is canceled.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sends this `_meta` object with the call.
    #[must_use]
    pub fn meta(mut self, meta: impl Serialize) -> Self {
        self.meta = Some(json::to_raw(&meta));
        self
    }

    /// Makes the call as part of this client session.
    #[must_use]
    pub fn session(mut self, session: ClientSession) -> Self {
        self.session = Some(session);
        self
    }

    /// Calls a tool.
    pub async fn call(self, tool: Tool, arguments: impl Serialize) -> TestReport {
        let target =
            CallTarget::Tool { name: tool.name().to_owned(), arguments: Some(json::to_raw(&arguments)) };
        let yard = Yard::with_sources([NativeSource::new("test").tool(tool).into_source()]);
        self.request(&yard, target).await
    }

    /// Sends a request for a tool, a resource, a prompt or a completion to a yard.
    pub async fn request(self, yard: &Arc<Yard>, target: CallTarget) -> TestReport {
        let (client, updates) = CallerChannel::new(self.capabilities.clone());
        let request = CallRequest {
            deadline: Deadline::after(TIME),
            cancel: self.cancel.clone(),
            meta: self.meta.clone(),
            context: CallContext { client_session: self.session.clone(), ..CallContext::default() },
            client,
            ..CallRequest::new(target, Principal::new("test", self.permissions.clone()))
        };
        self.collect_report(yard.call(request), updates).await
    }

    async fn collect_report(
        self,
        call: impl Future<Output = Result<Outcome, HubError>>,
        mut updates: Receiver<CallerUpdate>,
    ) -> TestReport {
        let mut answers = self.answers;
        let mut report = TestReport::empty();
        let mut call = std::pin::pin!(call);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(update) = updates.recv() => report.record(update, &mut answers),
                outcome = &mut call => break outcome,
            }
        };
        while let Ok(update) = updates.try_recv() {
            report.record(update, &mut answers);
        }
        report.outcome = outcome;
        report
    }
}

impl TestReport {
    fn empty() -> Self {
        Self {
            outcome: Err(HubError::new(ErrorKind::Bug, "the call has not ended")),
            progress: Vec::new(),
            chunks: Vec::new(),
            log: Vec::new(),
            questions: Vec::new(),
            pauses: Vec::new(),
        }
    }

    /// Returns the result object, or `null` if the call failed without one.
    pub fn body(&self) -> Value {
        let body = self.outcome.as_ref().ok().map(|outcome| outcome.body.get());
        body.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default()
    }

    /// Returns the text blocks of the result joined by newlines.
    pub fn text(&self) -> String {
        let body = self.body();
        let blocks = body.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<_> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
        texts.join("\n")
    }

    /// Returns the structured result, or `null` if the result has only content.
    pub fn structured(&self) -> Value {
        self.body().get("structuredContent").cloned().unwrap_or_default()
    }

    /// Returns whether the tool reported a failure.
    pub fn is_failed(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|outcome| outcome.failed)
    }

    /// Returns the kind of the error if there is no result.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        self.outcome.as_ref().err().map(HubError::kind)
    }

    fn record(&mut self, update: CallerUpdate, answers: &mut Vec<(String, Raw)>) {
        match update {
            CallerUpdate::Progress(progress) => self.progress.push(progress),
            CallerUpdate::Chunk(chunk) => self.chunks.push(chunk),
            CallerUpdate::Log(line) => self.log.push(line),
            CallerUpdate::Pause(pause) => self.pauses.push(pause.retry),
            CallerUpdate::Ask(QuestionBatch { questions, reply }) => {
                let answered = questions.iter().map(|question| take_answer(answers, &question.key)).collect();
                // A call that has stopped waiting does not need the answer.
                let _ = reply.send(answered);
                self.questions.extend(questions);
            }
        }
    }
}

fn take_answer(answers: &mut Vec<(String, Raw)>, key: &str) -> Result<(String, Raw), HubError> {
    let at = answers.iter().position(|(name, _)| name == key);
    let none = || HubError::new(ErrorKind::Cancelled, format!("the test has no answer for `{key}`"));
    at.map(|at| answers.remove(at)).ok_or_else(none)
}
