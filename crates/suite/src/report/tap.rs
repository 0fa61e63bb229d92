//! The TAP 14 report.

use std::fmt::Write;
use std::time::Duration;

use toolyard_hub::printable::{clean, clean_line};

use super::{SuiteReport, indent, render_failures};
use crate::event::{TestCaseReport, TestOutcome};

pub(super) fn render(report: &SuiteReport) -> String {
    let mut text = format!("TAP version 14\n1..{}\n", report.tests.len());
    for (index, test) in report.tests.iter().enumerate() {
        add_test(&mut text, index + 1, test);
    }
    if report.interrupted {
        text.push_str("Bail out! interrupted\n");
    }
    text
}

fn add_test(text: &mut String, number: usize, test: &TestCaseReport) {
    let name = escape(&clean_line(&format!("{}: {}", test.label.suite, test.label.title())));
    let (status, directive) = match &test.outcome {
        TestOutcome::Passed | TestOutcome::Flaky(_) => ("ok", String::new()),
        TestOutcome::Failed(_) => ("not ok", String::new()),
        TestOutcome::Skipped(reason) => ("ok", format!(" # SKIP {}", escape(&clean_line(reason)))),
        TestOutcome::NotRun(reason) => ("not ok", format!(" # SKIP {}", escape(&clean_line(reason)))),
    };
    let _ = writeln!(text, "{status} {number} - {name}{directive}");
    let _ = writeln!(text, "  ---\n  duration_ms: {}", millis(test.duration));
    if !test.label.file.as_os_str().is_empty() {
        let _ =
            writeln!(text, "  at: {}:{}", clean_line(&test.label.file.to_string_lossy()), test.label.at.line);
    }
    if test.attempts > 1 {
        let _ = writeln!(text, "  attempts: {}", test.attempts);
    }
    if !test.outcome.failures().is_empty() {
        let _ = writeln!(text, "  message: |\n{}", indent(&clean(&render_failures(test)), "    "));
    }
    text.push_str("  ...\n");
}

/// Escapes the characters that have a meaning in descriptions.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#")
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
