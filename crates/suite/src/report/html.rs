//! The HTML report: one page without scripts and without requests to the network. All texts are
//! escaped, because servers choose many of them.

use std::fmt::Write;
use std::time::Duration;

use toolyard_hub::printable::clean;

use super::{SuiteReport, render_failure, render_failures};
use crate::event::{TestCaseReport, TestOutcome};

const STYLE: &str = include_str!("html/style.css");

pub(super) fn render(report: &SuiteReport) -> String {
    let summary = report.summary();
    let mut page = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    let _ = write!(
        page,
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{}</title><style>{STYLE}</style></head><body>",
        escape(&summary.words())
    );
    let _ = write!(
        page,
        "<h1>MCP tests</h1><p class=\"summary\">{} in {}</p>",
        summary.words(),
        time(report.duration)
    );
    add_outcome_chart(&mut page, report);
    add_slowest(&mut page, report);
    add_coverage(&mut page, report);
    for (name, tests) in report.suites() {
        let _ = write!(page, "<h2>{}</h2>", escape(name));
        add_timeline(&mut page, &tests);
        tests.iter().for_each(|test| add_test(&mut page, test));
    }
    if !report.differences.is_empty() {
        page.push_str("<h2>Differences between the eras</h2>");
        for difference in &report.differences {
            let _ = write!(
                page,
                "<details><summary>{}, answer {}</summary><pre>{}</pre></details>",
                escape(&difference.label.name),
                difference.step,
                escape(&difference.diff)
            );
        }
    }
    page.push_str("</body></html>\n");
    page
}

/// One bar with a part for each outcome.
fn add_outcome_chart(page: &mut String, report: &SuiteReport) {
    let summary = report.summary();
    let parts = [
        ("passed", summary.passed - summary.flaky),
        ("flaky", summary.flaky),
        ("failed", summary.failed),
        ("skipped", summary.skipped),
        ("not-run", summary.not_run),
    ];
    let total = report.tests.len().max(1) as f64;
    page.push_str("<svg class=\"chart\" viewBox=\"0 0 1000 24\" preserveAspectRatio=\"none\" role=\"img\">");
    let _ = write!(page, "<title>{}</title>", escape(&summary.words()));
    let mut x = 0.0;
    for (class, count) in parts {
        let width = count as f64 * 1000.0 / total;
        if count > 0 {
            let _ = write!(
                page,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"24\"/>"
            );
        }
        x += width;
    }
    page.push_str("</svg>");
}

/// The slowest tests as bars.
fn add_slowest(page: &mut String, report: &SuiteReport) {
    const SHOWN: usize = 10;
    let mut tests: Vec<&TestCaseReport> =
        report.tests.iter().filter(|test| !test.duration.is_zero()).collect();
    tests.sort_by_key(|test| std::cmp::Reverse(test.duration));
    let Some(longest) = tests.first().map(|test| test.duration.as_secs_f64()) else { return };
    page.push_str("<details open><summary>Slowest tests</summary><table class=\"bars\">");
    for test in tests.into_iter().take(SHOWN) {
        let share = test.duration.as_secs_f64() * 100.0 / longest.max(1e-9);
        let _ = write!(
            page,
            "<tr><td>{}</td><td class=\"bar\"><span class=\"{}\" style=\"width:{share:.1}%\"></span></td><td>{}</td></tr>",
            escape(&test.label.title()),
            class(&test.outcome),
            time(test.duration)
        );
    }
    page.push_str("</table></details>");
}

fn add_coverage(page: &mut String, report: &SuiteReport) {
    let coverage = &report.coverage;
    if coverage.tool_count().total == 0 {
        return;
    }
    let _ = write!(
        page,
        "<details><summary>Coverage: {:.1} %</summary><table class=\"bars\">",
        coverage.percent()
    );
    let rows = [
        ("Tools", coverage.tool_count()),
        ("Parameters", coverage.parameter_count()),
        ("Enum values", coverage.enum_count()),
        ("Error paths", coverage.error_count()),
    ];
    for (name, count) in rows {
        let _ = write!(
            page,
            "<tr><td>{name}</td><td class=\"bar\"><span class=\"passed\" style=\"width:{:.1}%\"></span></td>\
             <td>{} of {}</td></tr>",
            count.percent(),
            count.covered,
            count.total
        );
    }
    page.push_str("</table><ul>");
    for (server, tools) in &coverage.servers {
        for (tool, covered) in tools {
            let gaps = covered.gaps();
            if !gaps.is_empty() {
                let (server, tool) = (escape(server), escape(tool));
                let _ = write!(page, "<li>{server}: <code>{tool}</code>: {}</li>", escape(&gaps.join(", ")));
            }
        }
    }
    page.push_str("</ul></details>");
}

/// The tests of a file over time, one row each, with their steps.
fn add_timeline(page: &mut String, tests: &[&TestCaseReport]) {
    let ran: Vec<&&TestCaseReport> = tests.iter().filter(|test| !test.duration.is_zero()).collect();
    let (Some(start), Some(end)) = (
        ran.iter().map(|test| test.started).min(),
        ran.iter().map(|test| test.started + test.duration).max(),
    ) else {
        return;
    };
    let span = (end - start).as_secs_f64().max(1e-9);
    let x = |at: Duration| at.saturating_sub(start).as_secs_f64() * 1000.0 / span;
    let width = |duration: Duration| (duration.as_secs_f64() * 1000.0 / span).max(1.0);
    let _ = write!(
        page,
        "<svg class=\"timeline\" viewBox=\"0 0 1000 {}\" style=\"height:{}px\" preserveAspectRatio=\"none\" role=\"img\">",
        ran.len() * 14,
        ran.len() * 14
    );
    for (row, test) in ran.iter().enumerate() {
        let y = row * 14 + 2;
        let _ = write!(
            page,
            "<rect class=\"{}\" x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"10\"><title>{}: {}</title></rect>",
            class(&test.outcome),
            x(test.started),
            width(test.duration),
            escape(&test.label.title()),
            time(test.duration)
        );
        for step in &test.steps {
            let _ = write!(
                page,
                "<rect class=\"step\" x=\"{:.1}\" y=\"{}\" width=\"{:.1}\" height=\"4\"><title>{}: {}</title></rect>",
                x(step.started),
                y + 3,
                width(step.duration),
                escape(&step.label),
                time(step.duration)
            );
        }
    }
    page.push_str("</svg>");
}

fn add_test(page: &mut String, test: &TestCaseReport) {
    let is_open = if matches!(test.outcome, TestOutcome::Failed(_)) { " open" } else { "" };
    let _ = write!(
        page,
        "<details class=\"test\"{is_open}><summary><span class=\"mark {}\">{}</span> {} <small>{}</small></summary>",
        class(&test.outcome),
        test.outcome.as_str(),
        escape(&test.label.title()),
        time(test.duration)
    );
    let _ = match test.label.file.as_os_str().is_empty() {
        true => write!(page, "<p>{}", escape(&test.label.suite)),
        false => write!(page, "<p>{}:{}", escape(&test.label.file.to_string_lossy()), test.label.at.line),
    };
    if let Some(server) = &test.server {
        let words =
            format!("{} {}, {} over {}", server.name, server.version, server.protocol, server.transport);
        let _ = write!(page, " · {}", escape(&words));
    }
    if test.attempts > 1 {
        let _ = write!(page, " · {} attempts", test.attempts);
    }
    page.push_str("</p>");
    if let TestOutcome::Skipped(reason) | TestOutcome::NotRun(reason) = &test.outcome {
        let _ = write!(page, "<p>{}</p>", escape(reason));
    }
    if !test.outcome.failures().is_empty() {
        let _ = write!(page, "<pre>{}</pre>", escape(&render_failures(test)));
    }
    for warning in &test.warnings {
        let _ = write!(page, "<pre>warning: {}</pre>", escape(&render_failure(test, warning)));
    }
    if !test.steps.is_empty() {
        page.push_str("<ol>");
        for step in &test.steps {
            let failed = if step.failed { " class=\"failed-step\"" } else { "" };
            let _ = write!(
                page,
                "<li{failed}>{} <small>{}</small></li>",
                escape(&step.label),
                time(step.duration)
            );
        }
        page.push_str("</ol>");
    }
    page.push_str("</details>");
}

fn class(outcome: &TestOutcome) -> &'static str {
    match outcome {
        TestOutcome::Passed => "passed",
        TestOutcome::Flaky(_) => "flaky",
        TestOutcome::Failed(_) => "failed",
        TestOutcome::Skipped(_) => "skipped",
        TestOutcome::NotRun(_) => "not-run",
    }
}

fn time(duration: Duration) -> String {
    match duration.as_millis() {
        0..1_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{:.2} s", duration.as_secs_f64()),
    }
}

fn escape(text: &str) -> String {
    clean(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
