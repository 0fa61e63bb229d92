//! The JSON report.

use serde_json::{Value, json};

use super::SuiteReport;
use crate::event::{TestCaseReport, TestOutcome};
use crate::expect::AssertionFailure;

pub(super) fn render(report: &SuiteReport) -> String {
    let summary = report.summary();
    let differences: Vec<Value> = report
        .differences
        .iter()
        .map(|difference| {
            json!({
                "file": difference.label.file.to_string_lossy(),
                "test": difference.label.name,
                "step": difference.step,
                "diff": difference.diff,
            })
        })
        .collect();
    let value = json!({
        "version": 1,
        "summary": {
            "passed": summary.passed,
            "flaky": summary.flaky,
            "failed": summary.failed,
            "skipped": summary.skipped,
            "not_run": summary.not_run,
        },
        "interrupted": report.interrupted,
        "duration_ms": millis(report.duration),
        "tests": report.tests.iter().map(test).collect::<Vec<_>>(),
        "era_differences": differences,
        "obsolete_snapshots": report.obsolete_snapshots,
        "removed_snapshots": report.removed_snapshots,
        "written_snapshots": report.written_snapshots,
        "coverage": report.coverage.to_json(),
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn test(test: &TestCaseReport) -> Value {
    let steps: Vec<Value> = test
        .steps
        .iter()
        .map(|step| {
            json!({
                "label": step.label,
                "started_ms": millis(step.started),
                "duration_ms": millis(step.duration),
                "failed": step.failed,
            })
        })
        .collect();
    let mut value = json!({
        "file": test.label.file.to_string_lossy(),
        "line": test.label.at.line,
        "suite": test.label.suite,
        "name": test.label.name,
        "era": test.label.era.map(|era| era.as_str()),
        "outcome": test.outcome.as_str(),
        "attempts": test.attempts,
        "started_ms": millis(test.started),
        "duration_ms": millis(test.duration),
        "steps": steps,
    });
    if let TestOutcome::Skipped(reason) | TestOutcome::NotRun(reason) = &test.outcome {
        value["reason"] = json!(reason);
    }
    let failures = test.outcome.failures();
    if !failures.is_empty() {
        value["failures"] = failures.iter().map(failure).collect();
        value["stderr"] = json!(test.stderr);
    }
    if !test.warnings.is_empty() {
        value["warnings"] = test.warnings.iter().map(failure).collect();
    }
    if let Some(server) = &test.server {
        value["server"] = json!({
            "name": server.name,
            "version": server.version,
            "protocol": server.protocol,
            "transport": server.transport,
        });
    }
    value
}

fn failure(failure: &AssertionFailure) -> Value {
    let mut value = json!({
        "line": failure.at.line,
        "column": failure.at.column,
        "message": failure.message,
        "expected": failure.expected,
        "actual": failure.actual,
        "diff": failure.diff,
    });
    if let Some(rule) = failure.rule {
        value["rule"] = json!(rule);
        value["reproduce"] = json!(failure.reproduce);
    }
    value
}

fn millis(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
