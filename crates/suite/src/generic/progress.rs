//! The tests of a generic run as events: which of them run, and how each ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolyard_upstream::Era;

use super::judge::Finding;
use super::rules::RuleSeverity;
use super::{CanaryWatch, GenericOptions, no_file};
use crate::event::{StepReport, SuiteEvent, TestCaseReport, TestLabel, TestOutcome};
use crate::expect::AssertionFailure;
use crate::file::FilePosition;
use crate::run::RunState;
use crate::run::filter::is_name_selected;
use crate::run::session::ServerIdentity;

/// How many lines of standard error a failure shows.
const STDERR_LINES: usize = 20;
/// How many findings a test lists.
const MOST_FINDINGS: usize = 20;

/// Sends the events of the tests of one server in one era.
pub(crate) struct GenericProgress<'a> {
    pub(crate) options: &'a GenericOptions,
    state: &'a RunState<'a>,
    era: Option<Era>,
    canary: Option<Arc<CanaryWatch>>,
    pub(crate) identity: Option<ServerIdentity>,
    /// The number of the last test, by which reports are sorted.
    number: usize,
    /// The test in progress.
    running: Option<TestLabel>,
    /// When no more cases are run.
    pub(crate) deadline: Instant,
}

/// A test that has started.
#[derive(Debug)]
pub(crate) struct RunningTest {
    label: TestLabel,
    started: Instant,
    steps: Vec<StepReport>,
    failures: Vec<AssertionFailure>,
    warnings: Vec<AssertionFailure>,
}

impl RunningTest {
    /// Adds a finding. `reproduce` is the line that repeats it.
    pub(crate) fn add(&mut self, finding: Finding, reproduce: Option<String>) {
        let Finding { rule, severity, message, answer, .. } = finding;
        let failure = AssertionFailure {
            actual: answer,
            rule: Some(rule.id),
            reproduce,
            ..AssertionFailure::new(self.label.at, message)
        };
        self.add_failure(severity, failure);
    }

    pub(crate) fn add_failure(&mut self, severity: RuleSeverity, failure: AssertionFailure) {
        let list = match severity {
            RuleSeverity::Failure => &mut self.failures,
            RuleSeverity::Warning => &mut self.warnings,
        };
        if list.len() < MOST_FINDINGS {
            list.push(failure);
        }
    }

    /// Counts work that was done before the test as part of it.
    pub(crate) fn started_at(&mut self, started: Instant) {
        self.started = started;
    }

    pub(crate) fn at(&self) -> FilePosition {
        self.label.at
    }
}

impl<'a> GenericProgress<'a> {
    pub(crate) fn new(
        options: &'a GenericOptions,
        state: &'a RunState<'a>,
        era: Option<Era>,
        canary: Option<Arc<CanaryWatch>>,
    ) -> Self {
        let deadline = state.epoch + options.max_time;
        Self { options, state, era, canary, identity: None, number: 0, running: None, deadline }
    }

    fn label(&mut self, name: &str) -> TestLabel {
        self.number += 1;
        TestLabel {
            file: no_file(),
            suite: self.options.server.name.to_string(),
            name: name.to_owned(),
            at: FilePosition { line: self.number, column: 1 },
            era: self.era.map(Into::into),
        }
    }

    pub(crate) fn era(&self) -> Option<Era> {
        self.era
    }

    /// Starts a test, or returns `None` if it is not selected or if the run has ended.
    pub(crate) async fn begin(&mut self, name: &str) -> Option<RunningTest> {
        let label = self.label(name);
        if !is_name_selected(&self.options.filters, name) {
            return None;
        }
        self.begin_labeled(label).await
    }

    /// Starts a test that also runs if it is not selected.
    pub(crate) async fn begin_unfiltered(&mut self, name: &str) -> Option<RunningTest> {
        let label = self.label(name);
        self.begin_labeled(label).await
    }

    async fn begin_labeled(&mut self, label: TestLabel) -> Option<RunningTest> {
        let reason = match (self.has_failed(), Instant::now() >= self.deadline) {
            (true, _) => "the run ended at the first failure",
            (_, true) => "the time of the run was over; increase --max-time",
            _ => {
                self.running = Some(label.clone());
                self.state.send(SuiteEvent::TestStarted(label.clone())).await;
                let (steps, failures, warnings) = Default::default();
                return Some(RunningTest { label, started: Instant::now(), steps, failures, warnings });
            }
        };
        self.report(label, Instant::now(), TestOutcome::NotRun(reason.to_owned())).await;
        None
    }

    /// Whether no more tests are run.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_failed() || Instant::now() >= self.deadline
    }

    /// Whether a test failed, with `--fail-fast`.
    fn has_failed(&self) -> bool {
        self.state.has_failed.load(Ordering::Relaxed)
    }

    /// Reports a test that is not run.
    pub(crate) async fn skip(&mut self, name: &str, reason: &str) {
        let label = self.label(name);
        if is_name_selected(&self.options.filters, name) {
            self.report(label, Instant::now(), TestOutcome::Skipped(reason.to_owned())).await;
        }
    }

    /// Announces how many tests there are.
    pub(crate) async fn announce(&self, tests: usize) {
        self.state.send(SuiteEvent::TestsFound(tests)).await;
    }

    /// Adds a step, for timelines.
    pub(crate) fn add_step(&self, test: &mut RunningTest, label: String, started: Instant) {
        test.steps.push(StepReport {
            label,
            started: started.duration_since(self.state.epoch),
            duration: started.elapsed(),
            failed: !test.failures.is_empty(),
        });
    }

    /// Reports a test.
    pub(crate) async fn finish(&mut self, test: RunningTest, stderr: Vec<String>) {
        self.running = None;
        let RunningTest { label, started, steps, failures, warnings } = test;
        let failed = !failures.is_empty();
        if failed && self.options.fail_fast {
            self.state.has_failed.store(true, Ordering::Relaxed);
        }
        let mask = |failure: AssertionFailure| self.mask_failure(failure).shortened();
        let failures: Vec<AssertionFailure> = failures.into_iter().map(mask).collect();
        let outcome = if failed { TestOutcome::Failed(failures) } else { TestOutcome::Passed };
        let first = stderr.len().saturating_sub(STDERR_LINES);
        let stderr = stderr.get(first..).unwrap_or_default().iter().map(|line| self.mask(line));
        let report = TestCaseReport {
            outcome,
            steps,
            stderr: if failed { stderr.collect() } else { Vec::new() },
            warnings: warnings.into_iter().map(mask).collect(),
            ..self.empty_report(label, started)
        };
        self.state.send(SuiteEvent::TestFinished(Box::new(report))).await;
    }

    async fn report(&self, label: TestLabel, started: Instant, outcome: TestOutcome) {
        let report = TestCaseReport { outcome, ..self.empty_report(label, started) };
        self.state.send(SuiteEvent::TestFinished(Box::new(report))).await;
    }

    fn empty_report(&self, label: TestLabel, started: Instant) -> TestCaseReport {
        TestCaseReport {
            label,
            outcome: TestOutcome::Passed,
            attempts: 1,
            started: started.saturating_duration_since(self.state.epoch),
            duration: started.elapsed(),
            steps: Vec::new(),
            stderr: Vec::new(),
            warnings: Vec::new(),
            server: self.identity.clone(),
        }
    }

    /// Reports the test in progress as interrupted.
    pub(crate) async fn interrupt(&mut self) {
        if let Some(label) = self.running.take() {
            let outcome = TestOutcome::NotRun("the run was interrupted".to_owned());
            self.report(label, Instant::now(), outcome).await;
        }
    }

    pub(crate) async fn send_lint(&self, findings: Vec<toolyard_definitions::lint::LintFinding>) {
        self.state.send(SuiteEvent::LintFindings(findings)).await;
    }

    pub(crate) fn has_canary(&self) -> bool {
        self.canary.is_some()
    }

    /// Removes the canary, which must not be in reports either.
    pub(crate) fn mask(&self, text: &str) -> String {
        self.canary.as_ref().map_or_else(|| text.to_owned(), |canary| canary.mask(text))
    }

    fn mask_failure(&self, failure: AssertionFailure) -> AssertionFailure {
        let mask = |text: Option<String>| text.map(|text| self.mask(&text));
        AssertionFailure {
            message: self.mask(&failure.message),
            expected: mask(failure.expected),
            actual: mask(failure.actual),
            diff: mask(failure.diff),
            ..failure
        }
    }

    /// Returns when the cases of a test that starts now must end.
    pub(crate) fn test_deadline(&self) -> Instant {
        self.deadline.min(Instant::now() + self.options.test_time)
    }

    pub(crate) fn limit(&self) -> Duration {
        self.options.call_timeout
    }
}
