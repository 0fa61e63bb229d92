//! The server of a generic run: calls it under time limits, finds out whether it is still alive, and
//! starts it again after a failure.

use std::time::{Duration, Instant};

use serde_json::Value;
use toolyard_hub::Raw;
use toolyard_hub::json::Object;
use toolyard_upstream::{Era, ServerListKind};

use super::judge::{Finding, ToolUnderTest};
use super::rules::{CRASH, HANG, START_FAILED};
use crate::coverage::CoverageLog;
use crate::expect::observation::{Observation, StepFailure};
use crate::run::answers::AnswerScript;
use crate::run::session::{SessionOpener, TestSession};
use crate::run::step::{CallRequestSpec, ReadyStep, ToolDefinitions, perform};

/// How long a server may take to answer a request that asks for nothing.
const ALIVE: Duration = Duration::from_secs(2);
/// How many calls are remembered, and how quickly they were answered.
const MOST_QUICK: usize = 4;
const QUICK: Duration = Duration::from_millis(300);
/// How often a call may get more time because of its progress.
const MOST_EXTENSIONS: usize = 5;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// With a result or an error, and the server is still alive.
    Answered,
    Crashed(String),
    /// There was no answer in time.
    Silent {
        limit: Duration,
        others_answered: bool,
    },
    /// The answer cannot be used.
    Unusable(String),
}

/// What a call produced.
#[derive(Debug, Clone)]
pub(crate) struct CallObservation {
    pub(crate) end: CallEnd,
    pub(crate) seen: Observation,
    /// The forms in which the canary came back.
    pub(crate) leaks: Vec<&'static str>,
}

/// A server under test.
pub(crate) struct GenericTarget<'a> {
    opener: SessionOpener<'a>,
    session: Option<TestSession>,
    script: std::sync::Arc<AnswerScript>,
    coverage: &'a CoverageLog,
    /// The longest time of an answered call.
    slowest: Duration,
    /// Calls that had a result quickly, one for each tool.
    quick: Vec<(String, Value)>,
    /// The last lines of standard error of the process that ended last.
    stderr: Vec<String>,
    /// Violations and leaks that belong to no call.
    stray_violations: Vec<String>,
    stray_leaks: Vec<&'static str>,
}

impl<'a> GenericTarget<'a> {
    pub(crate) fn new(opener: SessionOpener<'a>, coverage: &'a CoverageLog) -> Self {
        let script = std::sync::Arc::default();
        Self {
            opener,
            session: None,
            script,
            coverage,
            slowest: Duration::ZERO,
            quick: Vec::new(),
            stderr: Vec::new(),
            stray_violations: Vec::new(),
            stray_leaks: Vec::new(),
        }
    }

    /// Returns the open connection, or opens one.
    pub(crate) async fn session(&mut self) -> Result<&mut TestSession, String> {
        let is_broken = self.session.as_ref().is_some_and(|open| open.link.disconnect_reason().is_some());
        if is_broken {
            self.abandon();
        }
        let session = match self.session.take() {
            Some(session) => session,
            None => Box::pin(self.opener.open()).await.map_err(|error| {
                let lines = error.details().and_then(|details| details.get("stderr")?.as_array().cloned());
                let lines = lines.into_iter().flatten().filter_map(|line| line.as_str().map(str::to_owned));
                self.stderr = lines.collect();
                let suggestion = error.suggestion().map(|text| format!("; {text}")).unwrap_or_default();
                format!("cannot connect to the server: {}{suggestion}", error.message())
            })?,
        };
        Ok(self.session.insert(session))
    }

    /// Returns the violations that belong to no call.
    pub(crate) fn take_violations(&mut self) -> Vec<String> {
        let new = self.session.as_ref().map(|session| session.link.violations().take().0);
        let mut all = std::mem::take(&mut self.stray_violations);
        all.extend(new.unwrap_or_default());
        all
    }

    /// Returns the leaks that belong to no call.
    pub(crate) fn take_leaks(&mut self) -> Vec<&'static str> {
        let mut all = std::mem::take(&mut self.stray_leaks);
        all.extend(self.new_leaks());
        all.dedup();
        all
    }

    fn new_leaks(&self) -> Vec<&'static str> {
        self.opener.canary.as_ref().map(|canary| canary.take()).unwrap_or_default()
    }

    /// Returns what the server wrote to standard error.
    pub(crate) fn stderr(&self) -> Vec<String> {
        let current = self.session.as_ref().map(|session| session.link.stderr()).unwrap_or_default();
        if current.is_empty() { self.stderr.clone() } else { current }
    }

    /// Ends the process without waiting for it, because it may hang.
    pub(crate) fn abandon(&mut self) {
        if let Some(session) = self.session.take() {
            self.stderr = session.link.stderr();
        }
    }

    pub(crate) async fn close(&mut self) {
        if let Some(mut session) = self.session.take() {
            session.close().await;
        }
    }

    /// Returns a limit for repetitions of a call that gets no answer: much longer than the slowest
    /// answer so far.
    pub(crate) fn repeat_limit(&self, limit: Duration) -> Duration {
        (self.slowest * 10).max(Duration::from_millis(400)).min(limit)
    }

    fn remember(&mut self, tool: &ToolUnderTest, arguments: &Value) {
        let is_known = self.quick.iter().any(|(name, _)| *name == tool.name);
        // The environment that a tool discloses would look like a leak.
        if !is_known && !tool.discloses_environment && self.quick.len() < MOST_QUICK {
            self.quick.push((tool.name.clone(), arguments.clone()));
        }
    }

    /// Returns calls that had a result quickly, of different tools.
    pub(crate) fn quick_calls(&self) -> Vec<(String, Value)> {
        self.quick.clone()
    }

    /// Sends a request with a method of any name. Returns its result, or `None` for an error.
    pub(crate) async fn send(
        &mut self,
        method: &'static str,
        params: Object,
        limit: Duration,
    ) -> Result<Option<Raw>, Finding> {
        let session = self.session().await.map_err(|reason| Finding::new(START_FAILED, reason))?;
        let link = std::sync::Arc::clone(&session.link);
        let end = match tokio::time::timeout(limit, link.request(method, params)).await {
            Ok(Ok(result)) => return Ok(Some(result)),
            Ok(Err(error)) => match link.disconnect_reason() {
                Some(reason) if error.source_error().is_none() => Finding::new(CRASH, reason),
                _ => return Ok(None),
            },
            Err(_) => Finding::new(HANG, format!("no answer within {:.1} s", limit.as_secs_f64())),
        };
        self.abandon();
        Err(end)
    }

    /// Calls a tool.
    pub(crate) async fn call_tool(
        &mut self,
        tool: &ToolUnderTest,
        arguments: &Value,
        limit: Duration,
    ) -> Result<CallObservation, String> {
        let request = CallRequestSpec::Tool { name: tool.name.clone(), arguments: arguments.clone() };
        let started = Instant::now();
        let record = self.request(request, limit).await?;
        let has_result = record.end == CallEnd::Answered && record.seen.result.is_some();
        if has_result && !record.seen.is_tool_error() && started.elapsed() < QUICK {
            self.remember(tool, arguments);
        }
        if let (Some(session), CallEnd::Answered) = (&self.session, &record.end)
            && let Some(index) = session.tools()
        {
            let failed = record.seen.is_tool_error() || record.seen.failure.is_some();
            self.coverage.record(&session.identity().name, index, &tool.name, arguments, failed);
        }
        Ok(record)
    }

    /// Sends a request, and looks whether the server is still alive. Fails if the server cannot be
    /// started.
    pub(crate) async fn request(
        &mut self,
        request: CallRequestSpec,
        limit: Duration,
    ) -> Result<CallObservation, String> {
        let script = std::sync::Arc::clone(&self.script);
        self.session().await?;
        // Owned meanwhile, so that the process ends if the run is interrupted.
        let Some(mut session) = self.session.take() else { return Err("there is no connection".to_owned()) };
        // Reading the definitions is not part of the call.
        let reading = tokio::time::timeout(limit.max(ALIVE), session.read_tools()).await;
        session.inbox.clear();
        self.stray_violations.extend(session.link.violations().take().0);
        self.stray_leaks.extend(self.new_leaks());
        let before = session.inbox.mark();
        let started = Instant::now();
        let step = ReadyStep::Call(request);
        let inbox = std::sync::Arc::clone(&session.inbox);
        let link = std::sync::Arc::clone(&session.link);
        let performed = match reading {
            Ok(()) => {
                let performing = perform(&step, &mut session, &script, ToolDefinitions::Needed);
                within(performing, limit, || inbox.since(before).0.len()).await
            }
            Err(_) => None,
        };
        let is_silent = performed.is_none();
        let mut seen = performed.unwrap_or_default();
        let (_, problems) = script.take();
        if is_silent {
            (seen.messages, seen.dropped) = inbox.since(before);
        }
        let mut end = match (&seen.failure, link.disconnect_reason()) {
            (Some(StepFailure::Other(reason)), Some(_)) => CallEnd::Crashed(reason.clone()),
            // The test offers no answers to questions, so such a call cannot have a result.
            (Some(StepFailure::Other(_)), None) if !problems.is_empty() => CallEnd::Answered,
            (Some(StepFailure::Other(reason)), None) => CallEnd::Unusable(reason.clone()),
            _ => CallEnd::Answered,
        };
        let liveness = match end {
            CallEnd::Crashed(_) => Liveness::Answers,
            // A busy machine must not make a server that has answered look dead.
            _ if is_silent => is_alive(&link, session.era(), limit.min(ALIVE)).await,
            _ => is_alive(&link, session.era(), limit.max(ALIVE)).await,
        };
        match (liveness, is_silent) {
            (Liveness::Ended(reason), _) => end = CallEnd::Crashed(reason),
            (liveness, true) => {
                end = CallEnd::Silent { limit, others_answered: liveness == Liveness::Answers };
            }
            (Liveness::Silent, false) => {
                let limit = limit.max(ALIVE);
                end = CallEnd::Silent { limit, others_answered: false };
            }
            (Liveness::Answers, false) => {}
        }
        seen.violations.extend(link.violations().take().0);
        let leaks = self.new_leaks();
        self.session = Some(session);
        match end {
            CallEnd::Answered => self.slowest = self.slowest.max(started.elapsed()),
            CallEnd::Unusable(_) => {}
            // The next call gets a new server.
            CallEnd::Crashed(_) | CallEnd::Silent { .. } => self.abandon(),
        }
        Ok(CallObservation { end, seen, leaks })
    }
}

/// Waits for a call, longer if it makes progress.
async fn within(
    performing: impl Future<Output = Observation>,
    limit: Duration,
    message_count: impl Fn() -> usize,
) -> Option<Observation> {
    let mut performing = Box::pin(performing);
    let mut known = 0;
    for _ in 0..=MOST_EXTENSIONS {
        if let Ok(seen) = tokio::time::timeout(limit, &mut performing).await {
            return Some(seen);
        }
        let count = message_count();
        if count == known {
            break;
        }
        known = count;
    }
    None
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Liveness {
    Answers,
    Silent,
    Ended(String),
}

/// Asks the server for nothing.
async fn is_alive(link: &toolyard_upstream::DirectConnection, era: Era, limit: Duration) -> Liveness {
    let asking = async {
        match era {
            Era::Legacy => link.request("ping", Object::default()).await.map(drop),
            // The modern protocol has no ping.
            Era::Modern => link.list(ServerListKind::Tools).await.map(drop),
        }
    };
    match tokio::time::timeout(limit, asking).await {
        Err(_) => Liveness::Silent,
        Ok(Ok(())) => Liveness::Answers,
        // An error is an answer too.
        Ok(Err(error)) if error.source_error().is_some() || link.disconnect_reason().is_none() => {
            Liveness::Answers
        }
        Ok(Err(error)) => Liveness::Ended(error.message().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{MOST_EXTENSIONS, within};
    use crate::expect::observation::Observation;

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_call_without_answer_ends_at_its_limit() {
        let started = Instant::now();
        let ended = within(std::future::pending(), LIMIT, || 0).await;
        assert!(ended.is_none());
        assert_eq!(started.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_limit_but_not_forever() {
        let answer = async {
            tokio::time::sleep(3 * LIMIT).await;
            Observation::default()
        };
        let messages = Cell::new(0);
        let count = || {
            messages.set(messages.get() + 1);
            messages.get()
        };
        assert!(within(answer, LIMIT, count).await.is_some());
        let started = Instant::now();
        assert!(within(std::future::pending(), LIMIT, count).await.is_none());
        assert_eq!(started.elapsed().as_secs(), 5 * (MOST_EXTENSIONS as u64 + 1));
    }
}
