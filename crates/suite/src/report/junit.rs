//! The JUnit report, which most CI systems read.

use std::borrow::Cow;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};
use toolyard_hub::printable::clean;

use super::{SuiteReport, render_failures};
use crate::event::{TestCaseReport, TestOutcome};

pub(super) fn render(report: &SuiteReport) -> Result<String, String> {
    let mut junit = Report::new("toolyard test");
    junit.set_time(report.duration);
    for (name, tests) in report.suites() {
        let mut suite = TestSuite::new(text(name).into_owned());
        suite.set_time(tests.iter().map(|test| test.duration).sum());
        suite.add_test_cases(tests.into_iter().map(test_case));
        junit.add_test_suite(suite);
    }
    junit.to_string().map_err(|error| format!("cannot write the JUnit report: {error}"))
}

fn test_case(test: &TestCaseReport) -> TestCase {
    let first = || text(test.outcome.failures().first().map_or("", |failure| &failure.message)).into_owned();
    let details = || text(&render_failures(test)).into_owned();
    let status = match &test.outcome {
        TestOutcome::Passed => TestCaseStatus::success(),
        TestOutcome::Flaky(_) => {
            let mut rerun = TestRerun::new(NonSuccessKind::Failure);
            rerun.set_message(first()).set_type("assertion").set_description(details());
            let mut status = TestCaseStatus::success();
            status.add_rerun(rerun);
            status
        }
        TestOutcome::Failed(_) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(first()).set_type("assertion").set_description(details());
            status
        }
        TestOutcome::Skipped(reason) | TestOutcome::NotRun(reason) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(text(reason).into_owned());
            status
        }
    };
    let mut case = TestCase::new(text(&test.label.title()).into_owned(), status);
    let file = text(&test.label.file.to_string_lossy()).into_owned();
    case.set_classname(if file.is_empty() { text(&test.label.suite).into_owned() } else { file.clone() });
    case.set_time(test.duration);
    if !file.is_empty() {
        case.extra.insert("file".into(), file.as_str().into());
        case.extra.insert("line".into(), test.label.at.line.to_string().as_str().into());
    }
    case
}

/// Removes what XML cannot contain, and what deceives readers.
fn text(text: &str) -> Cow<'_, str> {
    clean(text)
}
