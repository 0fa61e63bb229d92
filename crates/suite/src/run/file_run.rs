//! Runs the selected tests of one file in one era.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use toolyard_upstream::{Era, UpstreamContext};

use super::case::{StepContext, StepsOutcome, run_steps};
use super::shared::{ConnectionEnding, OpenServer, ServerFailure, SetupFailure, open_server};
use super::{RunState, SuiteOptions, TEST_TIMEOUT, label};
use crate::event::{SuiteEvent, TestCaseReport, TestLabel, TestOutcome};
use crate::expect::AssertionFailure;
use crate::expect::check::FileRoot;
use crate::file::{FilePosition, RunCondition, StepAction, TestCase, TestFile};
use crate::run::session::ServerIdentity;
use crate::snapshot::SnapshotFolder;

/// How many lines of standard error a failure shows.
const STDERR_LINES: usize = 20;

/// The tests of one file in one era.
pub(crate) struct FileRun<'a> {
    pub(crate) file: &'a TestFile,
    index: usize,
    tests: Vec<(usize, &'a TestCase)>,
    pub(crate) era: Option<Era>,
    pub(crate) options: &'a SuiteOptions,
    pub(crate) common: &'a UpstreamContext,
    state: &'a RunState<'a>,
    snapshots: &'a SnapshotFolder,
    /// Cleared if a test of the file does not pass.
    all_passed: &'a AtomicBool,
    /// The folder of the file.
    pub(crate) folder: PathBuf,
}

/// The connection that tests share, once it is needed. If it cannot be opened, that is not tried
/// again.
type SharedServer<'a> = Option<Result<Box<OpenServer<'a>>, ServerFailure>>;

/// One attempt of a test.
struct Attempt {
    outcome: StepsOutcome,
    identity: Option<ServerIdentity>,
    /// The server does not have the era.
    skipped: Option<String>,
}

impl<'a> FileRun<'a> {
    #[allow(clippy::too_many_arguments, reason = "called once, with everything that a run has")]
    pub(super) fn new(
        file: &'a TestFile,
        index: usize,
        tests: Vec<(usize, &'a TestCase)>,
        era: Option<Era>,
        options: &'a SuiteOptions,
        common: &'a UpstreamContext,
        state: &'a RunState<'a>,
        snapshots: &'a SnapshotFolder,
        all_passed: &'a AtomicBool,
    ) -> Self {
        let folder = file.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        Self { file, index, tests, era, options, common, state, snapshots, all_passed, folder }
    }

    pub(super) fn test_count(&self) -> usize {
        self.tests.len()
    }

    /// Returns the context of steps that belong to no test.
    pub(crate) fn step_context(&self) -> StepContext<'_> {
        StepContext {
            test_name: "",
            step_count: 1,
            folder: &self.folder,
            root: FileRoot { folder: self.folder.clone() },
            violations: self.file.violations,
            redactors: Vec::new(),
            snapshots: self.snapshots,
            coverage: &self.state.coverage,
            epoch: self.state.epoch,
        }
    }

    /// Runs the tests one after the other.
    pub(super) async fn run(&self) {
        let mut shared = None;
        for (position, test) in &self.tests {
            let report = Box::pin(self.run_test(*position, test, &mut shared)).await;
            if !matches!(report.outcome, TestOutcome::Passed) {
                self.all_passed.store(false, Ordering::Relaxed);
            }
            if self.options.fail_fast && matches!(report.outcome, TestOutcome::Failed(_)) {
                self.state.has_failed.store(true, Ordering::Relaxed);
            }
            self.state.send(SuiteEvent::TestFinished(Box::new(report))).await;
        }
        let started = Instant::now();
        if let Some(Ok(open)) = shared {
            let (identity, outcome) = (open.session.identity(), Box::pin(self.close(*open)).await);
            if !outcome.failures.is_empty() {
                let report = self.teardown_report(started, identity, outcome);
                self.state.send(SuiteEvent::TestFinished(Box::new(report))).await;
            }
        }
    }

    async fn close(&self, open: OpenServer<'_>) -> StepsOutcome {
        let ending = match self.state.stop.is_cancelled() {
            true => ConnectionEnding::Broken,
            false => ConnectionEnding::Orderly,
        };
        open.close(self, ending).await
    }

    /// Reports a failed teardown like a test, because it belongs to none.
    fn teardown_report(
        &self,
        started: Instant,
        identity: ServerIdentity,
        outcome: StepsOutcome,
    ) -> TestCaseReport {
        let at = self.file.teardown.first().map_or(FilePosition { line: 1, column: 1 }, |step| step.at);
        let suite = self.file.name.clone().unwrap_or_else(|| self.file.path.to_string_lossy().into_owned());
        let label = TestLabel {
            file: self.file.path.clone(),
            suite,
            name: "(teardown)".to_owned(),
            at,
            era: self.era.map(Into::into),
        };
        TestCaseReport {
            label,
            outcome: TestOutcome::Failed(outcome.failures),
            attempts: 1,
            started: started.duration_since(self.state.epoch),
            duration: started.elapsed(),
            steps: outcome.steps,
            stderr: last_lines(outcome.stderr),
            warnings: Vec::new(),
            server: Some(identity),
        }
    }

    async fn run_test<'r>(
        &'r self,
        position: usize,
        test: &TestCase,
        shared: &mut SharedServer<'r>,
    ) -> TestCaseReport {
        let started = Instant::now();
        let mut report = TestCaseReport {
            label: label(self.file, test, self.era),
            outcome: TestOutcome::Passed,
            attempts: 0,
            started: started.duration_since(self.state.epoch),
            duration: started.elapsed(),
            steps: Vec::new(),
            stderr: Vec::new(),
            warnings: Vec::new(),
            server: None,
        };
        if let Some(reason) = self.skip_reason(test) {
            report.outcome = TestOutcome::Skipped(reason);
            return report;
        }
        if self.state.stop.is_cancelled() {
            report.outcome = TestOutcome::NotRun("the run was interrupted".to_owned());
            return report;
        }
        if self.state.has_failed.load(Ordering::Relaxed) {
            report.outcome = TestOutcome::NotRun("the run ended at the first failure".to_owned());
            return report;
        }
        if let Some(outcome) = decided_outcome(test) {
            report.outcome = outcome;
            return report;
        }
        self.state.send(SuiteEvent::TestStarted(report.label.clone())).await;
        let mut earlier = None;
        for number in 0..=self.options.retries {
            report.attempts = number + 1;
            let attempt = tokio::select! {
                biased;
                attempt = self.attempt(test, number, shared) => attempt,
                () = self.state.stop.cancelled() => {
                    report.outcome = TestOutcome::NotRun("the run was interrupted".to_owned());
                    break;
                }
            };
            let Attempt { outcome, identity, skipped } = attempt;
            report.server = identity;
            report.steps = outcome.steps;
            if let Some(reason) = skipped {
                report.outcome = TestOutcome::Skipped(reason);
                break;
            }
            report.stderr = last_lines(outcome.stderr);
            if outcome.failures.is_empty() {
                report.outcome = earlier.map_or(TestOutcome::Passed, TestOutcome::Flaky);
                let label = report.label.clone();
                self.state
                    .answers
                    .lock()
                    .entry((self.index, position))
                    .or_default()
                    .push((label, outcome.answers));
                break;
            }
            report.outcome = TestOutcome::Failed(outcome.failures.clone());
            // The first failure is the one that a flaky test is known by.
            earlier.get_or_insert(outcome.failures);
        }
        report.duration = started.elapsed();
        report
    }

    /// Runs a test once: on the shared connection, or on one of its own if it is isolated or
    /// repeated.
    async fn attempt<'r>(&'r self, test: &TestCase, number: usize, shared: &mut SharedServer<'r>) -> Attempt {
        if test.isolate || number > 0 {
            let mut own = match Box::pin(open_server(self)).await {
                Ok(own) => own,
                Err(failure) => return failed_attempt(test, &failure),
            };
            let identity = own.session.identity();
            let mut attempt = self.run_on(test, &mut own, identity).await;
            let ending = match attempt.outcome.is_suspect {
                true => ConnectionEnding::Broken,
                false => ConnectionEnding::Orderly,
            };
            let teardown = Box::pin(own.close(self, ending)).await;
            attempt.outcome.failures.extend(teardown.failures);
            attempt.outcome.steps.extend(teardown.steps);
            return attempt;
        }
        let opened = match shared.take() {
            Some(opened) => opened,
            None => Box::pin(open_server(self)).await.map(Box::new),
        };
        let open = match shared.insert(opened) {
            Ok(open) => open,
            Err(failure) => return failed_attempt(test, failure),
        };
        let identity = open.session.identity();
        let attempt = self.run_on(test, open, identity).await;
        // The next test gets a new connection if this one may be in an unknown state.
        if attempt.outcome.is_suspect
            && let Some(Ok(open)) = shared.take()
        {
            Box::pin(open.close(self, ConnectionEnding::Broken)).await;
        }
        attempt
    }

    async fn run_on(&self, test: &TestCase, open: &mut OpenServer<'_>, identity: ServerIdentity) -> Attempt {
        if let Some(reason) = era_reason(&[&self.file.only, &test.only], open.session.era()) {
            let outcome = StepsOutcome::default();
            return Attempt { outcome, identity: Some(identity), skipped: Some(reason) };
        }
        open.session.inbox.clear();
        // Captures of a test are not visible to others, so that tests can run in any selection.
        let mut variables = open.variables.clone();
        variables.extend(&test.vars);
        let context = StepContext {
            test_name: &test.name,
            step_count: test.steps.len(),
            root: open.file_root(),
            redactors: self.file.redact.iter().chain(&test.redact).collect(),
            ..self.step_context()
        };
        let answers = test.answers.as_ref().unwrap_or(&self.file.answers);
        let limit = test.timeout.or(self.file.timeout).unwrap_or(TEST_TIMEOUT);
        let (session, opener) = (&mut open.session, &open.opener);
        let running = run_steps(&test.steps, session, opener, answers, &mut variables, &context, limit);
        let outcome = Box::pin(running).await;
        Attempt { outcome, identity: Some(identity), skipped: None }
    }

    /// Returns why a test is skipped, as far as that is known without a connection.
    fn skip_reason(&self, test: &TestCase) -> Option<String> {
        if let Some(reason) = &test.skip {
            return Some(reason.clone());
        }
        let conditions = [&self.file.only, &test.only];
        for condition in conditions {
            if !condition.os.is_empty() && !condition.os.iter().any(|os| os == std::env::consts::OS) {
                return Some(format!("only on {}", condition.os.join(", ")));
            }
            let missing = condition.env.iter().find(|name| !self.options.environment.contains_key(*name));
            if let Some(name) = missing {
                return Some(format!("the environment variable {name} is not set"));
            }
        }
        self.era.and_then(|era| era_reason(&conditions, era))
    }
}

/// Returns the outcome of a test that needs no server.
fn decided_outcome(test: &TestCase) -> Option<TestOutcome> {
    let mut failures = Vec::new();
    for step in &test.steps {
        match &step.action {
            StepAction::Decided(Ok(())) => {}
            StepAction::Decided(Err(reason)) => failures.push(AssertionFailure::new(step.at, reason.clone())),
            _ => return None,
        }
    }
    Some(if failures.is_empty() { TestOutcome::Passed } else { TestOutcome::Failed(failures) })
}

fn era_reason(conditions: &[&RunCondition], era: Era) -> Option<String> {
    let other = conditions.iter().filter_map(|condition| condition.era).find(|wanted| *wanted != era);
    other.map(|wanted| format!("only in the {} era", wanted.as_str()))
}

/// The attempt of a test whose server cannot be used.
fn failed_attempt(test: &TestCase, failure: &ServerFailure) -> Attempt {
    match failure {
        ServerFailure::MissingEra(reason) => {
            Attempt { outcome: StepsOutcome::default(), identity: None, skipped: Some(reason.clone()) }
        }
        ServerFailure::Failed { failures, stderr } => {
            let failures = failures.iter().map(|failure| match failure {
                SetupFailure::Server(message) => AssertionFailure::new(test.at, message.clone()),
                SetupFailure::Step(failure) => {
                    AssertionFailure { message: format!("setup: {}", failure.message), ..failure.clone() }
                }
            });
            let (failures, stderr) = (failures.collect(), stderr.clone());
            let outcome = StepsOutcome { failures, stderr, ..StepsOutcome::default() };
            Attempt { outcome, identity: None, skipped: None }
        }
    }
}

fn last_lines(mut lines: Vec<String>) -> Vec<String> {
    let first = lines.len().saturating_sub(STDERR_LINES);
    lines.split_off(first)
}
