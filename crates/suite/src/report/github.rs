//! GitHub Actions: annotations at the lines of failed assertions, and the summary of a step.

use std::fmt::Write;

use toolyard_hub::printable::{clean, clean_line};

use super::{SuiteReport, render_failure, render_failures};
use crate::event::{TestCaseReport, TestOutcome};

/// GitHub shows at most this many annotations of a step.
const MOST_ANNOTATIONS: usize = 10;
/// The size limit of a summary, with room for the summaries of other steps.
const LARGEST_SUMMARY: usize = 512 * 1024;

/// A workflow command that annotates a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation(String);

impl Annotation {
    /// Returns the line to print.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the annotations of failed and flaky tests.
pub fn github_annotations(report: &SuiteReport) -> Vec<Annotation> {
    let failed = report.tests.iter().filter(|test| matches!(test.outcome, TestOutcome::Failed(_)));
    let flaky = report.tests.iter().filter(|test| matches!(test.outcome, TestOutcome::Flaky(_)));
    let all = failed.map(|test| ("error", test)).chain(flaky.map(|test| ("warning", test)));
    all.filter_map(|(level, test)| annotation(level, test)).take(MOST_ANNOTATIONS).collect()
}

fn annotation(level: &str, test: &TestCaseReport) -> Option<Annotation> {
    let failure = test.outcome.failures().first()?;
    let text = render_failure(test, failure);
    let file = property(&test.label.file.to_string_lossy());
    let place = match file.is_empty() {
        true => String::new(),
        false => format!("file={file},line={},col={},", failure.at.line, failure.at.column),
    };
    Some(Annotation(format!(
        "::{level} {place}title={}::{}",
        property(&format!("{} ({})", test.label.title(), test.outcome.as_str())),
        data(&text),
    )))
}

/// Escapes the text of a command, which ends at a newline.
fn data(text: &str) -> String {
    clean(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(&clean_line(text)).replace(':', "%3A").replace(',', "%2C")
}

/// Returns the summary of a step as Markdown.
pub fn github_summary(report: &SuiteReport) -> String {
    let summary = report.summary();
    let failed = summary.failed + summary.not_run > 0 || summary.ran() == 0;
    let mut text = format!("## {} MCP tests: {}\n\n", if failed { "❌" } else { "✅" }, summary.words());
    let _ = writeln!(text, "| File | Passed | Failed | Skipped | Time |\n|---|--:|--:|--:|--:|");
    for (name, tests) in report.suites() {
        let count = |fits: fn(&TestOutcome) -> bool| tests.iter().filter(|test| fits(&test.outcome)).count();
        let passed = count(|outcome| matches!(outcome, TestOutcome::Passed | TestOutcome::Flaky(_)));
        let failed = count(|outcome| matches!(outcome, TestOutcome::Failed(_)));
        let time: f64 = tests.iter().map(|test| test.duration.as_secs_f64()).sum();
        let skipped = tests.len() - passed - failed;
        let _ = writeln!(text, "| {} | {passed} | {failed} | {skipped} | {time:.2} s |", cell(name));
    }
    let tools = report.coverage.tool_count();
    if tools.total > 0 {
        let parameters = report.coverage.parameter_count();
        let _ = writeln!(
            text,
            "\nCoverage: {} of {} tools, {} of {} parameters.",
            tools.covered, tools.total, parameters.covered, parameters.total
        );
    }
    for test in &report.tests {
        if test.outcome.failures().is_empty() {
            continue;
        }
        let details = clean(&render_failures(test)).into_owned();
        let fence = "`".repeat(longest_fence(&details) + 1);
        let entry = format!(
            "\n<details><summary>{}: {} ({})</summary>\n\n{fence}text\n{details}\n{fence}\n\n</details>\n",
            escape(&clean_line(&test.label.suite)),
            escape(&clean_line(&test.label.title())),
            test.outcome.as_str(),
        );
        if text.len() + entry.len() > LARGEST_SUMMARY {
            text.push_str("\nMore failures are in the log.\n");
            break;
        }
        text.push_str(&entry);
    }
    text
}

/// The longest run of backticks, and at least 2.
fn longest_fence(text: &str) -> usize {
    let (mut longest, mut current) = (2, 0);
    for letter in text.chars() {
        current = if letter == '`' { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    longest
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn cell(text: &str) -> String {
    escape(&clean_line(text)).replace('|', "\\|")
}
