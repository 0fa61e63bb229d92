//! Testing tools: a call goes through a real yard, so that schema errors, permissions, hooks, progress and
//! questions are all there, and comes back as a [`TestReport`].

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{
    CallContext, CallRequest, CallTarget, CallerChannel, CallerUpdate, ClientCapabilities, ClientSession,
    Deadline, ErrorKind, HubError, LogLevel, LogLine, Outcome, Permissions, Principal, Progress, Question,
    QuestionBatch, Raw, Yard, json,
};

use crate::native::NativeSource;
use crate::tool::Tool;

/// How long a call in a test may take.
const TIME: Duration = Duration::from_secs(60);

/// Calls a tool with these arguments, for somebody who may do everything and answers no questions.
pub async fn call(tool: Tool, arguments: impl Serialize) -> TestReport {
    TestCaller::new().call(tool, arguments).await
}

/// Somebody who calls tools in a test.
#[derive(Debug, Clone)]
pub struct TestCaller {
    permissions: Permissions,
    capabilities: ClientCapabilities,
    answers: Vec<(String, Raw)>,
    cancel: CancellationToken,
    meta: Option<Raw>,
    session: Option<ClientSession>,
}

/// What came of a call, and what happened on the way.
#[derive(Debug)]
pub struct TestReport {
    /// The result, or why there is none.
    pub outcome: Result<Outcome, HubError>,
    /// Every report of progress, in order.
    pub progress: Vec<Progress>,
    /// Every piece that was streamed, in order.
    pub chunks: Vec<Value>,
    /// Every log line, in order.
    pub log: Vec<LogLine>,
    /// Every question, in order, whether it was answered or not.
    pub questions: Vec<Question>,
    /// Every permission to hang up and come back, in order.
    pub pauses: Vec<Duration>,
}

impl Default for TestCaller {
    fn default() -> Self {
        Self::new()
    }
}

impl TestCaller {
    /// Somebody who may do everything, reads every log line, and can answer every kind of question once there
    /// are answers.
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

    /// Leaves the caller with these permissions and no others.
    #[must_use]
    pub fn permissions<P: Into<String>>(mut self, permissions: impl IntoIterator<Item = P>) -> Self {
        self.permissions = Permissions::Only(permissions.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves the caller with these abilities and no others.
    #[must_use]
    pub fn capabilities(mut self, abilities: ClientCapabilities) -> Self {
        self.capabilities = abilities;
        self
    }

    /// Answers the question of this key, once. A second answer to the same key is for the second time it is
    /// asked. A question without an answer fails the call.
    #[must_use]
    pub fn answer(mut self, key: impl Into<String>, answer: impl Serialize) -> Self {
        self.answers.push((key.into(), json::to_raw(&answer)));
        self
    }

    /// Cancels the call when this token is cancelled.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sends metadata along.
    #[must_use]
    pub fn meta(mut self, meta: impl Serialize) -> Self {
        self.meta = Some(json::to_raw(&meta));
        self
    }

    /// Calls as the client of this session.
    #[must_use]
    pub fn session(mut self, session: ClientSession) -> Self {
        self.session = Some(session);
        self
    }

    /// Calls a tool with these arguments.
    pub async fn call(self, tool: Tool, arguments: impl Serialize) -> TestReport {
        let what =
            CallTarget::Tool { name: tool.name().to_owned(), arguments: Some(json::to_raw(&arguments)) };
        let yard = Yard::with_sources([NativeSource::new("test").tool(tool).into_source()]);
        self.request(&yard, what).await
    }

    /// Asks a yard for anything: a tool, a resource, a prompt, a completion.
    pub async fn request(self, yard: &Arc<Yard>, what: CallTarget) -> TestReport {
        let (client, updates) = CallerChannel::new(self.capabilities.clone());
        let request = CallRequest {
            deadline: Deadline::after(TIME),
            cancel: self.cancel.clone(),
            meta: self.meta.clone(),
            context: CallContext { client_session: self.session.clone(), ..CallContext::default() },
            client,
            ..CallRequest::new(what, Principal::new("test", self.permissions.clone()))
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

    /// The result object; `null` if there is none.
    pub fn body(&self) -> Value {
        let body = self.outcome.as_ref().ok().map(|outcome| outcome.body.get());
        body.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default()
    }

    /// The texts of the result, one per line.
    pub fn text(&self) -> String {
        let body = self.body();
        let blocks = body.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<_> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
        texts.join("\n")
    }

    /// The structured result; `null` if there is none.
    pub fn structured(&self) -> Value {
        self.body().get("structuredContent").cloned().unwrap_or_default()
    }

    /// Whether the tool answered that it failed.
    pub fn is_failed(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|outcome| outcome.failed)
    }

    /// The kind of error, if there is no result.
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
                // A call that stopped waiting needs no answer.
                let _ = reply.send(answered);
                self.questions.extend(questions);
            }
        }
    }
}

fn take_answer(answers: &mut Vec<(String, Raw)>, key: &str) -> Result<(String, Raw), HubError> {
    let at = answers.iter().position(|(name, _)| name == key);
    let none = || HubError::new(ErrorKind::Cancelled, format!("the test has no answer for {key}"));
    at.map(|at| answers.remove(at)).ok_or_else(none)
}
