//! The results of a run, collected from its events, and rendered in the formats that other tools
//! read.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use toolyard_definitions::lint::{LintFinding, render_sarif};

use crate::coverage::CoverageReport;
use crate::event::{EraDifference, SuiteEvent, TestCaseReport, TestOutcome};
use crate::expect::AssertionFailure;

mod github;
mod html;
mod json;
mod junit;
mod tap;

/// Where code scanning shows findings, which are about no file.
const SARIF_ARTIFACT: &str = "toolyard.toml";

pub use github::{Annotation, github_annotations, github_summary};

/// A format of a report file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    Json,
    Junit,
    Tap,
    /// The summary of a GitHub Actions step, as Markdown.
    Github,
    Html,
    /// The findings of lint, for code scanning.
    Sarif,
}

impl ReportFormat {
    pub const ALL: [Self; 6] = [Self::Json, Self::Junit, Self::Tap, Self::Github, Self::Html, Self::Sarif];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Junit => "junit",
            Self::Tap => "tap",
            Self::Github => "github",
            Self::Html => "html",
            Self::Sarif => "sarif",
        }
    }
}

impl FromStr for ReportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| format!("`{text}` is not one of {known}"))
    }
}

/// The results of a run.
#[derive(Debug, Clone, Default)]
pub struct SuiteReport {
    pub tests: Vec<TestCaseReport>,
    pub differences: Vec<EraDifference>,
    pub obsolete_snapshots: Vec<PathBuf>,
    pub removed_snapshots: Vec<PathBuf>,
    pub written_snapshots: usize,
    pub coverage: CoverageReport,
    pub lint: Vec<LintFinding>,
    pub duration: Duration,
    pub interrupted: bool,
}

/// How many tests ended in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SuiteSummary {
    /// Including flaky ones.
    pub passed: usize,
    pub flaky: usize,
    pub failed: usize,
    pub skipped: usize,
    pub not_run: usize,
}

impl SuiteReport {
    /// Adds what an event reports. Tests are in the order of files and positions at the end.
    pub fn apply(&mut self, event: &SuiteEvent) {
        match event {
            SuiteEvent::RunStarted { .. } | SuiteEvent::TestsFound(_) | SuiteEvent::TestStarted(_) => {}
            SuiteEvent::TestFinished(report) => self.tests.push((**report).clone()),
            SuiteEvent::ErasDiffer(difference) => self.differences.push((**difference).clone()),
            SuiteEvent::ObsoleteSnapshots { paths, removed: false } => {
                self.obsolete_snapshots.extend(paths.iter().cloned());
            }
            SuiteEvent::ObsoleteSnapshots { paths, removed: true } => {
                self.removed_snapshots.extend(paths.iter().cloned());
            }
            SuiteEvent::SnapshotsWritten(count) => self.written_snapshots += count,
            SuiteEvent::LintFindings(findings) => {
                // Most findings are the same in every era.
                let key =
                    |finding: &LintFinding| (finding.rule, finding.name.clone(), finding.message.clone());
                let known: HashSet<_> = self.lint.iter().map(key).collect();
                self.lint.extend(findings.iter().filter(|finding| !known.contains(&key(finding))).cloned());
            }
            SuiteEvent::Coverage(coverage) => self.coverage = coverage.clone(),
            SuiteEvent::RunFinished { duration, interrupted } => {
                (self.duration, self.interrupted) = (*duration, *interrupted);
                self.tests.sort_by(|left, right| {
                    let key =
                        |test: &TestCaseReport| (test.label.file.clone(), test.label.at, test.label.era);
                    key(left).cmp(&key(right))
                });
            }
        }
    }

    pub fn summary(&self) -> SuiteSummary {
        let mut summary = SuiteSummary::default();
        for test in &self.tests {
            match &test.outcome {
                TestOutcome::Passed => summary.passed += 1,
                TestOutcome::Flaky(_) => {
                    summary.passed += 1;
                    summary.flaky += 1;
                }
                TestOutcome::Failed(_) => summary.failed += 1,
                TestOutcome::Skipped(_) => summary.skipped += 1,
                TestOutcome::NotRun(_) => summary.not_run += 1,
            }
        }
        summary
    }

    /// The tests of each file, in order.
    fn suites(&self) -> Vec<(&str, Vec<&TestCaseReport>)> {
        let mut suites: Vec<(&str, Vec<&TestCaseReport>)> = Vec::new();
        for test in &self.tests {
            match suites.iter_mut().find(|(name, _)| *name == test.label.suite) {
                Some((_, tests)) => tests.push(test),
                None => suites.push((&test.label.suite, vec![test])),
            }
        }
        suites
    }
}

impl SuiteSummary {
    /// How many tests ran.
    pub fn ran(&self) -> usize {
        self.passed + self.failed
    }

    /// Returns the counts in words, such as `5 passed, 1 failed`.
    pub fn words(&self) -> String {
        let mut words = format!("{} passed, {} failed", self.passed, self.failed);
        for (count, name) in [(self.flaky, "flaky"), (self.skipped, "skipped"), (self.not_run, "not run")] {
            if count > 0 {
                let _ = write!(words, ", {count} {name}");
            }
        }
        words
    }
}

/// Renders a report file.
pub fn render_report(format: ReportFormat, report: &SuiteReport) -> Result<String, String> {
    match format {
        ReportFormat::Json => Ok(json::render(report)),
        ReportFormat::Junit => junit::render(report),
        ReportFormat::Tap => Ok(tap::render(report)),
        ReportFormat::Github => Ok(github_summary(report)),
        ReportFormat::Html => Ok(html::render(report)),
        ReportFormat::Sarif => {
            let sarif = render_sarif(&report.lint, SARIF_ARTIFACT, env!("CARGO_PKG_VERSION"));
            Ok(format!("{sarif:#}\n"))
        }
    }
}

/// Renders a failure as plain text: `file:line:column: message`, then what was expected, what was
/// found, and the difference.
pub fn render_failure(test: &TestCaseReport, failure: &AssertionFailure) -> String {
    let at = failure.at;
    let place = match test.label.file.as_os_str().is_empty() {
        true => String::new(),
        false => format!("{}:{}:{}: ", test.label.file.display(), at.line, at.column),
    };
    let rule = failure.rule.map(|rule| format!(" [{rule}]")).unwrap_or_default();
    let mut text = format!("{place}{}{rule}", failure.message);
    let mut part = |name: &str, value: &Option<String>| {
        if let Some(value) = value {
            let _ = match value.contains('\n') {
                true => write!(text, "\n  {name}:\n{}", indent(value, "    ")),
                false => write!(text, "\n  {name}: {value}"),
            };
        }
    };
    match &failure.diff {
        Some(_) => part("difference (- expected, + got)", &failure.diff),
        None => {
            part("expected", &failure.expected);
            part("got", &failure.actual);
        }
    }
    part("reproduce", &failure.reproduce);
    text
}

/// Renders all failures of a test, and what the server wrote.
fn render_failures(test: &TestCaseReport) -> String {
    let mut text = test
        .outcome
        .failures()
        .iter()
        .map(|failure| render_failure(test, failure))
        .collect::<Vec<_>>()
        .join("\n");
    if !test.stderr.is_empty() {
        let _ = write!(text, "\n  stderr of the server:\n{}", indent(&test.stderr.join("\n"), "    "));
    }
    text
}

fn indent(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use toolyard_definitions::lint::{LintFinding, LintSeverity};

    use super::{ReportFormat, SuiteReport, render_report};
    use crate::event::{EraLabel, StepReport, SuiteEvent, TestCaseReport, TestLabel, TestOutcome};
    use crate::expect::AssertionFailure;
    use crate::file::FilePosition;
    use crate::run::session::ServerIdentity;

    fn test(name: &str, line: usize, outcome: TestOutcome) -> TestCaseReport {
        let ms = Duration::from_millis;
        TestCaseReport {
            label: TestLabel {
                file: "tests/a.mcp.yaml".into(),
                suite: "Suite <a>".to_owned(),
                name: name.to_owned(),
                at: FilePosition { line, column: 5 },
                era: (line > 20).then_some(EraLabel::Modern),
            },
            outcome,
            attempts: 1,
            started: ms(10 * line as u64),
            duration: ms(25),
            steps: vec![StepReport {
                label: "call x".to_owned(),
                started: ms(12),
                duration: ms(20),
                failed: false,
            }],
            warnings: Vec::new(),
            stderr: vec!["warning: \u{1b}[31m%0A".to_owned()],
            server: Some(ServerIdentity {
                name: "hostile </script><b>".to_owned(),
                version: "1".to_owned(),
                protocol: "2025-11-25".to_owned(),
                transport: "stdio".to_owned(),
            }),
        }
    }

    fn report() -> SuiteReport {
        let failure = AssertionFailure {
            expected: Some("\"5\"".to_owned()),
            actual: Some("]]> <img src=x onerror=alert(1)> \u{0} \u{202e}".to_owned()),
            ..AssertionFailure::new(FilePosition { line: 12, column: 7 }, "text is not equal")
        };
        let mut report = SuiteReport::default();
        for test in [
            test("fails # badly", 11, TestOutcome::Failed(vec![failure.clone()])),
            test("adds", 3, TestOutcome::Passed),
            test("sometimes", 21, TestOutcome::Flaky(vec![failure])),
            test("elsewhere", 30, TestOutcome::Skipped("only on macos".to_owned())),
            test("later", 40, TestOutcome::NotRun("the run was interrupted".to_owned())),
        ] {
            report.apply(&SuiteEvent::TestFinished(Box::new(test)));
        }
        report.apply(&SuiteEvent::TestFinished(Box::new(generic_test())));
        report.apply(&SuiteEvent::LintFindings(vec![LintFinding {
            rule: "name-duplicate",
            severity: LintSeverity::Error,
            server: "server".to_owned(),
            kind: None,
            name: String::new(),
            path: "/tools".to_owned(),
            message: "2 tools \u{1b}".to_owned(),
        }]));
        let duration = Duration::from_millis(500);
        report.apply(&SuiteEvent::RunFinished { duration, interrupted: false });
        report
    }

    /// A test that is in no file.
    fn generic_test() -> TestCaseReport {
        let at = FilePosition { line: 2, column: 1 };
        let failure = AssertionFailure {
            rule: Some("crash"),
            reproduce: Some("toolyard test --generic --arguments '{}'".to_owned()),
            ..AssertionFailure::new(at, "the server exited with code 1")
        };
        let warning =
            AssertionFailure { rule: Some("incomplete"), ..AssertionFailure::new(at, "1 of 2 cases ran") };
        let mut test = test("tool a: valid arguments", 2, TestOutcome::Failed(vec![failure]));
        test.label.file = PathBuf::new();
        TestCaseReport { warnings: vec![warning], ..test }
    }

    #[test]
    fn every_format_renders_every_outcome() {
        for format in ReportFormat::ALL {
            let text = render_report(format, &report()).unwrap();
            if !matches!(format, ReportFormat::Html | ReportFormat::Sarif) {
                insta::assert_snapshot!(format.as_str(), text);
            }
            assert!(!text.contains('\u{0}') && !text.contains('\u{1b}'), "{format:?}");
        }
    }

    #[test]
    fn sarif_contains_what_lint_found() {
        let sarif = render_report(ReportFormat::Sarif, &report()).unwrap();
        let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.iter().map(|result| &result["ruleId"]).collect::<Vec<_>>(), ["name-duplicate"]);
        assert_eq!(results[0]["level"], "error");
    }

    #[test]
    fn the_page_contains_no_markup_of_a_server() {
        let page = render_report(ReportFormat::Html, &report()).unwrap();
        assert!(!page.contains("<img") && !page.contains("<b>"), "{page}");
        assert_eq!(page.matches("<script").count(), 0);
        assert!(!page.contains("http://") && !page.contains("https://"));
        assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    }
}
