//! What a run prints: on a terminal every test and the progress, otherwise only what failed and the
//! summary.

use std::collections::BTreeMap;
use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use toolyard_suite::{
    CoverageReport, EraLabel, SuiteEvent, SuiteReport, TestCaseReport, TestLabel, TestOutcome, render_failure,
};

use crate::Exit;
use crate::args::TestArgs;
use crate::clean::{clean, clean_line};
use crate::error::CommandError;
use crate::terminal::{StdoutWriter, can_animate, format_count};

/// Prints the events of a run.
pub(super) struct SuiteOutput {
    bar: Option<ProgressBar>,
    shows_text: bool,
    shows_coverage: bool,
    /// Whether every skipped test is named.
    names_skipped: bool,
    /// The tests that were skipped for the same reason, by file and era.
    skipped: BTreeMap<(String, Option<EraLabel>, String), Vec<String>>,
}

impl SuiteOutput {
    pub(super) fn new(args: &TestArgs) -> Self {
        let bar = can_animate().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{pos} of {len} tests  {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        let skipped = BTreeMap::new();
        Self {
            bar,
            shows_text: !args.json,
            shows_coverage: args.coverage,
            names_skipped: args.generic.generic,
            skipped,
        }
    }

    pub(super) fn show(&mut self, event: &SuiteEvent) -> Result<(), CommandError> {
        match event {
            SuiteEvent::RunStarted { tests, .. } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(*tests as u64);
                }
            }
            SuiteEvent::TestsFound(tests) => {
                if let Some(bar) = &self.bar {
                    bar.set_length(*tests as u64);
                }
            }
            SuiteEvent::TestStarted(label) => {
                if let Some(bar) = &self.bar {
                    bar.set_message(clean_line(&title(label)));
                    bar.tick();
                }
            }
            SuiteEvent::TestFinished(report) => {
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                }
                if let TestOutcome::Skipped(reason) = &report.outcome {
                    let label = &report.label;
                    let group = (label.suite.clone(), label.era, reason.clone());
                    self.skipped.entry(group).or_default().push(label.name.clone());
                } else if self.shows_text {
                    let mut out = StdoutWriter::new();
                    if let Some(text) = test_text(report, &out) {
                        self.print_above(&mut out, &text)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints while the progress is hidden.
    fn print_above(&self, out: &mut StdoutWriter, text: &str) -> Result<(), CommandError> {
        let mut print = || out.write_line(text).and_then(|()| out.flush());
        match &self.bar {
            Some(bar) => bar.suspend(&mut print)?,
            None => print()?,
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, report: &SuiteReport) -> Result<(), CommandError> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if !self.shows_text {
            return Ok(());
        }
        let mut out = StdoutWriter::new();
        for ((suite, era, reason), names) in &self.skipped {
            let what = match names.as_slice() {
                [only] => format!("{suite} › {only}"),
                several if self.names_skipped => {
                    format!("{} of {suite} ({})", format_count(several.len(), "test"), several.join(", "))
                }
                several => format!("{} of {suite}", format_count(several.len(), "test")),
            };
            let era = era.map(|era| format!(" [{}]", era.as_str())).unwrap_or_default();
            let skip = out.styled(Style::new().bold().fg_color(Some(AnsiColor::Yellow.into())), "skip ");
            out.write_line(&format!("{skip} {}{era}: {}", clean_line(&what), clean_line(reason)))?;
        }
        for difference in &report.differences {
            let name = clean_line(&title(&difference.label));
            out.write_line(&format!("note: {name}: answer {} differs between the eras", difference.step))?;
            out.write_line(&indent(&clean(&difference.diff)))?;
        }
        for path in &report.obsolete_snapshots {
            out.write_line(&format!(
                "note: no test uses the snapshot {}; --update removes it",
                path.display()
            ))?;
        }
        for path in &report.removed_snapshots {
            out.write_line(&format!("removed the snapshot {}", path.display()))?;
        }
        if report.written_snapshots > 0 {
            out.write_line(&format!("wrote {}", format_count(report.written_snapshots, "snapshot")))?;
        }
        if self.shows_coverage {
            out.write_line(coverage_text(&report.coverage).trim_end())?;
        }
        let summary = report.summary();
        let failed = summary.failed + summary.not_run > 0 || summary.ran() == 0;
        let color = if failed { AnsiColor::Red } else { AnsiColor::Green };
        let words = out.styled(Style::new().bold().fg_color(Some(color.into())), &summary.words());
        out.write_line(&format!("{words} in {:.2} s", report.duration.as_secs_f64()))?;
        Ok(out.flush()?)
    }
}

fn title(label: &TestLabel) -> String {
    format!("{} › {}", label.suite, label.title())
}

/// Returns the text for a test, or `None` if there is nothing to say about it.
fn test_text(report: &TestCaseReport, out: &StdoutWriter) -> Option<String> {
    let name = clean_line(&title(&report.label));
    let ms = report.duration.as_secs_f64() * 1e3;
    let colored =
        |color: AnsiColor, text: &str| out.styled(Style::new().bold().fg_color(Some(color.into())), text);
    let mut text = match &report.outcome {
        TestOutcome::Passed if !report.warnings.is_empty() => {
            format!("{} {name} ({ms:.0} ms)", colored(AnsiColor::Yellow, "warn "))
        }
        TestOutcome::Passed if out.is_terminal() => {
            return Some(format!("{} {name} ({ms:.0} ms)", colored(AnsiColor::Green, "ok   ")));
        }
        TestOutcome::Passed => return None,
        TestOutcome::Skipped(_) => return None,
        TestOutcome::NotRun(reason) => {
            return Some(format!("{} {name}: {}", colored(AnsiColor::Yellow, "stop "), clean_line(reason)));
        }
        TestOutcome::Flaky(_) => {
            let attempts = format_count(report.attempts, "attempt");
            format!("{} {name}: passed after {attempts} ({ms:.0} ms)", colored(AnsiColor::Yellow, "flaky"))
        }
        TestOutcome::Failed(_) => format!("{} {name} ({ms:.0} ms)", colored(AnsiColor::Red, "FAIL ")),
    };
    for failure in report.outcome.failures() {
        let _ = write!(text, "\n{}", indent(&clean(&render_failure(report, failure))));
    }
    for warning in &report.warnings {
        let warning = format!("warning: {}", render_failure(report, warning));
        let _ = write!(text, "\n{}", indent(&clean(&warning)));
    }
    if !report.stderr.is_empty() {
        let _ =
            write!(text, "\n  stderr of the server:\n{}", indent(&indent(&clean(&report.stderr.join("\n")))));
    }
    Some(text)
}

fn coverage_text(coverage: &CoverageReport) -> String {
    let mut text = String::new();
    for (server, tools) in &coverage.servers {
        let _ = writeln!(text, "coverage of {}:", clean_line(server));
        for (name, tool) in tools {
            let gaps = tool.gaps();
            let gaps = if gaps.is_empty() { "complete".to_owned() } else { gaps.join(", ") };
            let calls = format_count(tool.calls, "call");
            let _ = writeln!(text, "  {}: {calls}: {}", clean_line(name), clean_line(&gaps));
        }
    }
    let rows = [
        ("tools", coverage.tool_count()),
        ("parameters", coverage.parameter_count()),
        ("enum values", coverage.enum_count()),
        ("error paths", coverage.error_count()),
    ];
    let counts = rows.map(|(name, count)| format!("{name} {}/{}", count.covered, count.total));
    let _ = writeln!(text, "coverage: {:.1} % ({})", coverage.percent(), counts.join(", "));
    text
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Prints the tests that would run.
pub(super) fn print_list(labels: &[TestLabel], json: bool) -> Result<Exit, CommandError> {
    let mut out = StdoutWriter::new();
    if json {
        let tests: Vec<Value> = labels
            .iter()
            .map(|label| {
                json!({
                    "file": label.file.to_string_lossy(),
                    "line": label.at.line,
                    "suite": label.suite,
                    "name": label.name,
                    "era": label.era.map(|era| era.as_str()),
                })
            })
            .collect();
        out.write_line(&serde_json::to_string(&tests).unwrap_or_default())?;
    } else {
        for label in labels {
            let place = format!("{}:{}", label.file.display(), label.at.line);
            out.write_line(&format!("{}\t{}", clean_line(&place), clean_line(&label.title())))?;
        }
    }
    out.flush()?;
    Ok(Exit::Success)
}
