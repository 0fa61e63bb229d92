//! The events of a run, in the order in which they happen. Reports and the terminal read the same
//! stream.

use std::path::PathBuf;
use std::time::Duration;

use toolyard_definitions::lint::LintFinding;
use toolyard_upstream::Era;

use crate::coverage::CoverageReport;
use crate::expect::AssertionFailure;
use crate::file::FilePosition;
use crate::run::session::ServerIdentity;

#[derive(Debug, Clone)]
pub enum SuiteEvent {
    RunStarted {
        files: usize,
        tests: usize,
    },
    /// How many tests there are, if that was not known at the start.
    TestsFound(usize),
    TestStarted(TestLabel),
    TestFinished(Box<TestCaseReport>),
    /// The answers of a test differ between the eras.
    ErasDiffer(Box<EraDifference>),
    /// Snapshots that no test of a file uses.
    ObsoleteSnapshots {
        paths: Vec<PathBuf>,
        removed: bool,
    },
    SnapshotsWritten(usize),
    /// What lint found in the definitions of a server.
    LintFindings(Vec<LintFinding>),
    Coverage(CoverageReport),
    RunFinished {
        duration: Duration,
        interrupted: bool,
    },
}

/// Identifies a test in messages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestLabel {
    /// Empty for generic tests, which are in no file.
    pub file: PathBuf,
    /// The title of the file, or the name of the server.
    pub suite: String,
    pub name: String,
    pub at: FilePosition,
    pub era: Option<EraLabel>,
}

/// An era, if a file runs in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EraLabel {
    Legacy,
    Modern,
}

impl EraLabel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl From<Era> for EraLabel {
    fn from(era: Era) -> Self {
        match era {
            Era::Legacy => Self::Legacy,
            Era::Modern => Self::Modern,
        }
    }
}

impl TestLabel {
    /// Returns the name with the era, if there are several.
    pub fn title(&self) -> String {
        match self.era {
            Some(era) => format!("{} [{}]", self.name, era.as_str()),
            None => self.name.clone(),
        }
    }
}

/// How a test ended.
#[derive(Debug, Clone)]
pub struct TestCaseReport {
    pub label: TestLabel,
    pub outcome: TestOutcome,
    /// How often the test ran.
    pub attempts: usize,
    /// When it started, counted from the start of the run.
    pub started: Duration,
    pub duration: Duration,
    pub steps: Vec<StepReport>,
    /// The last lines of the server's standard error, if the test failed.
    pub stderr: Vec<String>,
    /// What was noticed and does not fail the test.
    pub warnings: Vec<AssertionFailure>,
    pub server: Option<ServerIdentity>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TestOutcome {
    Passed,
    /// Passed after it had failed with these failures.
    Flaky(Vec<AssertionFailure>),
    Failed(Vec<AssertionFailure>),
    Skipped(String),
    /// The run ended before the test.
    NotRun(String),
}

impl TestOutcome {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Flaky(_) => "flaky",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
            Self::NotRun(_) => "not run",
        }
    }

    pub fn failures(&self) -> &[AssertionFailure] {
        match self {
            Self::Flaky(failures) | Self::Failed(failures) => failures,
            Self::Passed | Self::Skipped(_) | Self::NotRun(_) => &[],
        }
    }
}

/// One step, for timelines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// What it did, such as `call add`.
    pub label: String,
    /// When it started, counted from the start of the run.
    pub started: Duration,
    pub duration: Duration,
    pub failed: bool,
}

/// Two answers to the same step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EraDifference {
    pub label: TestLabel,
    /// The number of the answer, starting at 1.
    pub step: usize,
    /// The difference, from the legacy to the modern answer.
    pub diff: String,
}
