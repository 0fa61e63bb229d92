//! Checks all assertions of a step against what it produced.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::diff::{render_short, shorten};
use super::matcher::{check_matcher, check_path};
use super::messages::{check_log, check_notification, check_progress};
use super::observation::{Observation, StepFailure};
use super::{AssertionFailure, Expectation, ExpectationCheck, FileCheck, ValueTarget};
use crate::file::{FailureExpectation, FilePosition, StepExpectations};
use crate::values::Variables;

/// Larger files are not read.
const LARGEST_FILE: u64 = 64 << 20;

/// Where the files of a test are.
#[derive(Debug, Clone)]
pub(crate) struct FileRoot {
    /// The copy of the fixtures, or the folder of the test file.
    pub(crate) folder: PathBuf,
}

/// Checks whether a step failed as expected, and all of its assertions. `at` is the position of the
/// step.
pub(crate) fn check_step(
    at: FilePosition,
    expect: &StepExpectations,
    seen: &Observation,
    variables: &Variables,
    root: &FileRoot,
) -> Vec<AssertionFailure> {
    let mut failures = Vec::new();
    failures.extend(check_failure(at, expect.failure, seen));
    // Without the expected kind of answer, other assertions would only repeat that.
    let has_answer = failures.is_empty();
    for item in &expect.items {
        if has_answer || !needs_answer(&item.check) {
            failures.extend(check_item(item, seen, variables, root));
        }
    }
    failures
}

fn needs_answer(check: &ExpectationCheck) -> bool {
    match check {
        ExpectationCheck::Value { target, .. } => {
            !matches!(target, ValueTarget::Stderr | ValueTarget::Questions)
        }
        ExpectationCheck::Path { .. }
        | ExpectationCheck::ErrorCode(_)
        | ExpectationCheck::Size(_)
        | ExpectationCheck::Progress(_) => true,
        ExpectationCheck::Notification(_)
        | ExpectationCheck::Log(_)
        | ExpectationCheck::Latency(_)
        | ExpectationCheck::File { .. } => false,
    }
}

fn check_failure(
    at: FilePosition,
    expect: FailureExpectation,
    seen: &Observation,
) -> Option<AssertionFailure> {
    let text = || seen.text().map(|text| shorten(&text));
    match (expect, &seen.failure) {
        (FailureExpectation::ProtocolError, Some(StepFailure::Rpc { .. })) => None,
        (_, Some(failure)) => {
            let expected = match expect {
                FailureExpectation::Success => None,
                FailureExpectation::ToolError => Some("a result with `isError`".to_owned()),
                FailureExpectation::ProtocolError => Some("a protocol error".to_owned()),
                FailureExpectation::Unchecked => None,
            };
            Some(AssertionFailure { expected, ..AssertionFailure::new(at, failure.words()) })
        }
        (FailureExpectation::Success, None) if seen.is_tool_error() => Some(AssertionFailure {
            expected: Some("a result without `isError`".to_owned()),
            actual: text(),
            ..AssertionFailure::new(at, "the tool failed")
        }),
        (FailureExpectation::ToolError, None) if !seen.is_tool_error() => Some(AssertionFailure {
            expected: Some("a result with `isError`".to_owned()),
            actual: text(),
            ..AssertionFailure::new(at, "the tool did not fail")
        }),
        (FailureExpectation::ProtocolError, None) => Some(AssertionFailure {
            expected: Some("a protocol error".to_owned()),
            actual: seen.result.as_ref().map(render_short),
            ..AssertionFailure::new(at, "the server answered with a result")
        }),
        _ => None,
    }
}

fn check_item(
    item: &Expectation,
    seen: &Observation,
    variables: &Variables,
    root: &FileRoot,
) -> Vec<AssertionFailure> {
    let fail = |message: String, expected: Option<String>, actual: Option<String>| {
        vec![AssertionFailure { expected, actual, ..AssertionFailure::new(item.at, message) }]
    };
    match &item.check {
        ExpectationCheck::Value { target, matcher } => match target_value(*target, seen) {
            Ok(value) => check_matcher(matcher, value.as_ref(), &item.label, variables),
            Err((reason, actual)) => fail(reason, None, actual),
        },
        ExpectationCheck::Path { path, matcher } => match &seen.result {
            Some(result) => check_path(item.at, path, matcher, result, variables),
            None => fail("there is no result".to_owned(), None, None),
        },
        ExpectationCheck::ErrorCode(wanted) => match &seen.failure {
            Some(StepFailure::Rpc { code, .. }) if code == wanted => Vec::new(),
            Some(StepFailure::Rpc { code, message, .. }) => fail(
                "the error has another code".to_owned(),
                Some(wanted.to_string()),
                Some(format!("{code}: {}", shorten(message))),
            ),
            _ => fail("there is no protocol error".to_owned(), Some(wanted.to_string()), None),
        },
        ExpectationCheck::Progress(progress) => check_progress(item.at, progress, seen, variables),
        ExpectationCheck::Notification(notification) => check_notification(notification, seen, variables),
        ExpectationCheck::Log(log) => check_log(log, seen, variables),
        ExpectationCheck::Latency(most) if seen.duration > *most => fail(
            "the step took too long".to_owned(),
            Some(format!("at most {} ms", most.as_millis())),
            Some(format!("{} ms", seen.duration.as_millis())),
        ),
        ExpectationCheck::Size(most) if seen.bytes as u64 > *most => fail(
            "the result is too large".to_owned(),
            Some(format!("at most {most} bytes")),
            Some(format!("{} bytes", seen.bytes)),
        ),
        ExpectationCheck::Latency(_) | ExpectationCheck::Size(_) => Vec::new(),
        ExpectationCheck::File { path, check } => check_file(item, path, check, variables, root),
    }
}

/// Returns the value that an assertion is about, or why there is none with an excerpt.
fn target_value(target: ValueTarget, seen: &Observation) -> Result<Option<Value>, (String, Option<String>)> {
    let rpc = || match &seen.failure {
        Some(StepFailure::Rpc { message, data, .. }) => Some((json!(message), data.clone())),
        _ => None,
    };
    Ok(match target {
        ValueTarget::Text => seen.text().map(Value::String),
        ValueTarget::Json => match seen.text() {
            Some(text) => Some(serde_json::from_str(&text).map_err(|error| {
                (format!("the text of the result is not JSON: {error}"), Some(shorten(&text)))
            })?),
            None => None,
        },
        ValueTarget::Structured => {
            seen.result.as_ref().and_then(|result| result.get("structuredContent")).cloned()
        }
        ValueTarget::Result => seen.result.clone(),
        ValueTarget::Names => seen.names.clone(),
        ValueTarget::Questions => Some(json!(seen.questions)),
        ValueTarget::Stderr => Some(seen.stderr_value()),
        ValueTarget::ErrorMessage => rpc().map(|(message, _)| message),
        ValueTarget::ErrorData => rpc().and_then(|(_, data)| data),
    })
}

fn check_file(
    item: &Expectation,
    path: &str,
    check: &FileCheck,
    variables: &Variables,
    root: &FileRoot,
) -> Vec<AssertionFailure> {
    let fail = |message: String| vec![AssertionFailure::new(item.at, message)];
    let path = match variables.complete_text(path) {
        Ok(path) => path,
        Err(error) => return fail(error.to_string()),
    };
    let file = resolve(&root.folder, &path);
    let exists = file.exists();
    match check {
        FileCheck::Exists if exists => Vec::new(),
        FileCheck::Exists => fail(format!("the file {path} does not exist")),
        FileCheck::Missing if exists => fail(format!("the file {path} must not exist")),
        FileCheck::Missing => Vec::new(),
        FileCheck::Text(_) | FileCheck::Json(_) if !exists => Vec::new(),
        FileCheck::Text(matcher) => match read_text(&file) {
            Ok(text) => check_matcher(matcher, Some(&Value::String(text)), &item.label, variables),
            Err(reason) => fail(format!("cannot read the file {path}: {reason}")),
        },
        FileCheck::Json(matcher) => {
            let read = read_text(&file)
                .and_then(|text| serde_json::from_str::<Value>(&text).map_err(|error| error.to_string()));
            match read {
                Ok(value) => check_matcher(matcher, Some(&value), &item.label, variables),
                Err(reason) => fail(format!("cannot read the file {path} as JSON: {reason}")),
            }
        }
    }
}

/// Joins a path, without the `.` components that make messages hard to read.
pub(crate) fn resolve(folder: &Path, path: &str) -> PathBuf {
    let path = Path::new(path);
    let relative = path.components().filter(|component| !matches!(component, Component::CurDir));
    match path.is_absolute() {
        true => path.to_owned(),
        false => folder.join(relative.collect::<PathBuf>()),
    }
}

fn read_text(file: &Path) -> Result<String, String> {
    let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
    // Reading a pipe or a device may never end.
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let size = metadata.len();
    if size > LARGEST_FILE {
        return Err(format!("it has {size} bytes, the limit is {LARGEST_FILE}"));
    }
    let bytes = fs::read(file).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
