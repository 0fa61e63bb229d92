//! Runs one test: its steps, assertions, captures and snapshots, under its time limit.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_hub::SchemaCheck;
use toolyard_hub::json::to_raw;

use super::answers::AnswerScript;
use super::session::{SessionOpener, TestSession};
use super::step::{CallRequestSpec, ReadyStep, ToolDefinitions, perform};
use crate::coverage::CoverageLog;
use crate::event::StepReport;
use crate::expect::AssertionFailure;
use crate::expect::check::{FileRoot, check_step};
use crate::expect::diff::shorten;
use crate::expect::matcher::compile;
use crate::expect::observation::{Observation, StepFailure};
use crate::expect::path::{Selected, select};
use crate::file::{
    CaptureSource, FailureExpectation, FilePosition, Redactor, ScriptedAnswers, TestStep, ValueCapture,
    ViolationPolicy,
};
use crate::import::mcp_assert;
use crate::snapshot::{SnapshotFolder, hide_folder, redact, render_value};
use crate::values::Variables;

/// Longer answers are compared between eras by their start and their size.
const LONGEST_ANSWER: usize = 64 * 1024;

/// What the steps of a test need besides the connection.
pub(crate) struct StepContext<'a> {
    pub(crate) test_name: &'a str,
    pub(crate) step_count: usize,
    pub(crate) folder: &'a Path,
    pub(crate) root: FileRoot,
    pub(crate) violations: ViolationPolicy,
    pub(crate) redactors: Vec<&'a Redactor>,
    pub(crate) snapshots: &'a SnapshotFolder,
    pub(crate) coverage: &'a CoverageLog,
    /// The start of the run, from which times in reports count.
    pub(crate) epoch: Instant,
}

/// What a sequence of steps produced.
#[derive(Debug, Default)]
pub(crate) struct StepsOutcome {
    pub(crate) failures: Vec<AssertionFailure>,
    pub(crate) steps: Vec<StepReport>,
    pub(crate) stderr: Vec<String>,
    /// The redacted answers, for comparison with the other era.
    pub(crate) answers: Vec<String>,
    /// Whether the connection may be in an unknown state.
    pub(crate) is_suspect: bool,
}

/// Runs steps until one fails. The caller limits the time of all of them with `limit`.
pub(crate) async fn run_steps(
    steps: &[TestStep],
    session: &mut TestSession,
    opener: &SessionOpener<'_>,
    answers: &ScriptedAnswers,
    variables: &mut Variables,
    context: &StepContext<'_>,
    limit: Duration,
) -> StepsOutcome {
    let deadline = tokio::time::Instant::now() + limit;
    let script = AnswerScript::new(answers, variables, context.folder);
    let mut outcome = StepsOutcome::default();
    for (index, step) in steps.iter().enumerate() {
        let started = Instant::now();
        let ready = match ReadyStep::prepare(&step.action, variables) {
            Ok(ready) => ready,
            Err(reason) => {
                outcome.failures.push(AssertionFailure::new(step.at, reason));
                break;
            }
        };
        let until = step.timeout.map_or(deadline, |own| deadline.min(tokio::time::Instant::now() + own));
        let allowed = until.saturating_duration_since(tokio::time::Instant::now());
        let performing = async {
            if ready == ReadyStep::Reconnect {
                session.close().await;
                return match opener.open().await {
                    Ok(opened) => {
                        *session = opened;
                        Observation { result: Some(json!({})), ..Observation::default() }
                    }
                    Err(error) => {
                        let failure = Some(StepFailure::Other(error.message().to_owned()));
                        Observation { failure, ..Observation::default() }
                    }
                };
            }
            let definitions = match &step.expect.imported {
                Some(_) => ToolDefinitions::Unused,
                None => ToolDefinitions::Needed,
            };
            Box::pin(perform(&ready, session, &script, definitions)).await
        };
        let performed = tokio::time::timeout_at(until, performing).await;
        let mut seen = performed.unwrap_or_else(|_| {
            outcome.is_suspect = true;
            let what = match &ready {
                ReadyStep::Wait { method, .. } => format!("`{method}` did not arrive within"),
                _ => "no answer within".to_owned(),
            };
            let failure = Some(StepFailure::Other(format!("{what} {:.0} ms", allowed.as_secs_f64() * 1e3)));
            Observation { failure, duration: started.elapsed(), ..Observation::default() }
        });
        if seen.stderr.is_empty() {
            seen.stderr = session.link.stderr();
        }
        let mut failures = judge(step, index, &ready, &mut seen, session, &script, variables, context).await;
        outcome.is_suspect |= session.link.disconnect_reason().is_some()
            || matches!(&seen.failure, Some(StepFailure::Other(_)) if !matches!(ready, ReadyStep::Cancel(..)));
        if failures.is_empty() {
            failures.extend(capture_all(&step.captures, &seen, variables));
        }
        if let (Some(result), true) = (&seen.result, failures.is_empty())
            && !matches!(ready, ReadyStep::List(_) | ReadyStep::Subscribe(_) | ReadyStep::Wait { .. })
        {
            outcome.answers.push(comparable(result, context));
        }
        outcome.stderr = std::mem::take(&mut seen.stderr);
        outcome.steps.push(StepReport {
            label: ready.label(),
            started: started.duration_since(context.epoch),
            duration: seen.duration,
            failed: !failures.is_empty(),
        });
        if !failures.is_empty() {
            outcome.failures.extend(failures.into_iter().map(AssertionFailure::shortened));
            break;
        }
    }
    outcome
}

/// Checks everything that a step must fulfill.
#[allow(clippy::too_many_arguments, reason = "these are the parts of one step")]
async fn judge(
    step: &TestStep,
    index: usize,
    ready: &ReadyStep,
    seen: &mut Observation,
    session: &TestSession,
    script: &AnswerScript,
    variables: &Variables,
    context: &StepContext<'_>,
) -> Vec<AssertionFailure> {
    let (asked, unanswered) = script.take();
    seen.questions = asked;
    seen.violations.extend(session.link.violations().take().0);
    let mut failures = Vec::new();
    failures.extend(unanswered.into_iter().map(|problem| AssertionFailure::new(step.at, problem)));
    if context.violations == ViolationPolicy::Fail {
        failures.extend(violation_failures(step.at, &seen.violations));
    }
    if let Some(imported) = &step.expect.imported {
        failures.extend(mcp_assert::check(step.at, imported, seen, variables));
        return failures;
    }
    // What could not be answered explains why the call failed.
    if failures.is_empty() || seen.failure.is_none() {
        failures.extend(check_step(step.at, &step.expect, seen, variables, &context.root));
    }
    if let ReadyStep::Call(CallRequestSpec::Tool { name, arguments }) = ready {
        failures.extend(check_tool(step, name, arguments, seen, session, context).await);
    }
    if let (Some(request), Some(result), true) = (&step.expect.snapshot, &seen.result, failures.is_empty()) {
        let name = match &request.name {
            Some(name) => variables.complete_text(name).map_err(|error| error.to_string()),
            None if context.step_count > 1 => Ok(format!("{} {}", context.test_name, index + 1)),
            None => Ok(context.test_name.to_owned()),
        };
        let redactors = context.redactors.iter().copied().chain(&request.redact);
        let result = hide_folder(result.clone(), &context.root.folder);
        let compared = name.and_then(|name| Ok((name, redact(result, redactors)?)));
        failures.extend(match compared {
            Ok((name, value)) => context.snapshots.check(request.at, &name, &value).err(),
            Err(reason) => Some(AssertionFailure::new(request.at, reason)),
        });
    }
    failures
}

/// Reports each violated rule once.
fn violation_failures(at: FilePosition, violations: &[String]) -> Vec<AssertionFailure> {
    let mut counts: Vec<(&String, usize)> = Vec::new();
    for rule in violations {
        match counts.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, count)) => *count += 1,
            None => counts.push((rule, 1)),
        }
    }
    let messages = counts.into_iter().map(|(rule, count)| match count {
        1 => format!("protocol violation: {rule}"),
        _ => format!("protocol violation, {count} times: {rule}"),
    });
    messages.map(|message| AssertionFailure::new(at, message)).collect()
}

/// Checks the output schema of a tool, and records what was covered.
async fn check_tool(
    step: &TestStep,
    name: &str,
    arguments: &Value,
    seen: &Observation,
    session: &TestSession,
    context: &StepContext<'_>,
) -> Vec<AssertionFailure> {
    if session.link.disconnect_reason().is_some() || matches!(seen.failure, Some(StepFailure::Other(_))) {
        return Vec::new();
    }
    let Some(index) = session.tools() else { return Vec::new() };
    let identity = session.identity();
    let failed = seen.is_tool_error() || seen.failure.is_some();
    context.coverage.record(&identity.name, index, name, arguments, failed);
    let schema = index.tools.get(name).and_then(|tool| tool.output.as_ref());
    let is_checked = !step.expect.skip_output_schema && step.expect.failure == FailureExpectation::Success;
    let (Some(schema), Some(result), false, true) = (schema, &seen.result, failed, is_checked) else {
        return Vec::new();
    };
    let Some(structured) = result.get("structuredContent") else {
        let message = format!("`{name}` has an output schema, but its result has no `structuredContent`");
        return vec![AssertionFailure::new(step.at, message)];
    };
    match schema.check(&to_raw(structured)).await {
        SchemaCheck::Checked(violations) if violations.is_empty() => Vec::new(),
        SchemaCheck::Checked(violations) => {
            let all: Vec<String> = violations.iter().take(10).map(|violation| violation.message()).collect();
            let message = format!("the result violates the output schema of `{name}`: {}", all.join("; "));
            let actual = Some(shorten(&structured.to_string()));
            vec![AssertionFailure { actual, ..AssertionFailure::new(step.at, message) }]
        }
        SchemaCheck::Skipped(problem) => {
            let message = format!("the output schema of `{name}` cannot be used: {problem}");
            vec![AssertionFailure::new(step.at, message)]
        }
    }
}

fn capture_all(
    captures: &[ValueCapture],
    seen: &Observation,
    variables: &mut Variables,
) -> Vec<AssertionFailure> {
    let mut failures = Vec::new();
    for capture in captures {
        match capture_value(&capture.source, seen, variables) {
            Ok(value) => variables.set(capture.name.clone(), value),
            Err(reason) => {
                let message = format!("cannot capture `{}`: {reason}", capture.name);
                let actual = seen.result.as_ref().map(|result| shorten(&result.to_string()));
                failures.push(AssertionFailure { actual, ..AssertionFailure::new(capture.at, message) });
            }
        }
    }
    failures
}

fn capture_value(source: &CaptureSource, seen: &Observation, variables: &Variables) -> Result<Value, String> {
    let complete = |text: &String| variables.complete_text(text).map_err(|error| error.to_string());
    let text = || seen.text().ok_or_else(|| "the result has no text".to_owned());
    let at_path = |path: &str, value: &Value| match select(path, value)? {
        Selected::Nothing => Err(format!("{path} selects nothing")),
        Selected::Many(values) if values.is_empty() => Err(format!("{path} selects nothing")),
        selected => selected.into_value().ok_or_else(|| format!("{path} selects nothing")),
    };
    match source {
        CaptureSource::Result(path) => {
            at_path(&complete(path)?, seen.result.as_ref().ok_or("there is no result")?)
        }
        CaptureSource::TextJson(path) => {
            let value: Value = serde_json::from_str(&text()?)
                .map_err(|error| format!("the text of the result is not JSON: {error}"))?;
            at_path(&complete(path)?, &value)
        }
        CaptureSource::Text(pattern) => {
            let (pattern, text) = (compile(&complete(pattern)?)?, text()?);
            let found = pattern.captures(&text).ok_or_else(|| format!("/{pattern}/ does not match"))?;
            let group = found.get(1).or_else(|| found.get(0));
            Ok(Value::String(group.map_or("", |group| group.as_str()).to_owned()))
        }
    }
}

fn comparable(result: &Value, context: &StepContext<'_>) -> String {
    let result = hide_folder(result.clone(), &context.root.folder);
    let redacted = redact(result, context.redactors.iter().copied());
    let text = redacted.map_or_else(|error| error, |value| render_value(&value));
    match text.char_indices().nth(LONGEST_ANSWER) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
