//! Assertions on what arrived during a step: progress, notifications and log messages.

use serde_json::{Value, json};

use super::diff::render_short;
use super::matcher::{check_matcher, matches};
use super::observation::Observation;
use super::{AssertionFailure, CountBounds, LogExpectation, NotificationExpectation, ProgressExpectation};
use crate::file::FilePosition;
use crate::values::Variables;

pub(super) fn check_progress(
    at: FilePosition,
    expect: &ProgressExpectation,
    seen: &Observation,
    variables: &Variables,
) -> Vec<AssertionFailure> {
    let reports = seen.progress();
    let values: Vec<f64> =
        reports.iter().filter_map(|params| params.get("progress").and_then(Value::as_f64)).collect();
    let mut failures = Vec::new();
    let shown = || Some(render_short(&json!(values)));
    if !expect.bounds.contains(reports.len()) {
        failures.push(AssertionFailure {
            expected: Some(expect.bounds.words()),
            actual: shown(),
            ..AssertionFailure::new(at, format!("{} progress notifications arrived", reports.len()))
        });
    }
    if expect.increasing && values.windows(2).any(|pair| pair[1] <= pair[0]) {
        failures.push(AssertionFailure {
            expected: Some("each value greater than the one before".to_owned()),
            actual: shown(),
            ..AssertionFailure::new(at, "progress does not increase")
        });
    }
    if let Some(last) = expect.last
        && values.last() != Some(&last)
    {
        failures.push(AssertionFailure {
            expected: Some(last.to_string()),
            actual: shown(),
            ..AssertionFailure::new(at, "the last progress differs")
        });
    }
    if let Some(matcher) = &expect.messages {
        let messages: Value =
            reports.iter().map(|params| params.get("message").cloned().unwrap_or(Value::Null)).collect();
        failures.extend(check_matcher(matcher, Some(&messages), "the list of progress messages", variables));
    }
    failures
}

pub(super) fn check_notification(
    expect: &NotificationExpectation,
    seen: &Observation,
    variables: &Variables,
) -> Vec<AssertionFailure> {
    let all = seen.of_method(&expect.method);
    let fits = |params: &&&Value| {
        expect.params.as_ref().is_none_or(|matcher| matches(matcher, Some(params), variables))
    };
    let count = all.iter().filter(fits).count();
    let what = format!("{count} matching notifications `{}` arrived", expect.method);
    let others: Vec<&str> = seen.messages.iter().map(|message| message.method.as_str()).collect();
    let actual = match all.is_empty() {
        true => json!(others),
        false => json!(all),
    };
    check_count(expect.at, expect.bounds, count, what, &actual).into_iter().collect()
}

pub(super) fn check_log(
    expect: &LogExpectation,
    seen: &Observation,
    variables: &Variables,
) -> Vec<AssertionFailure> {
    let all = seen.of_method("notifications/message");
    let fits = |params: &&&Value| {
        let is = |key: &str, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| params.get(key).and_then(Value::as_str) == Some(wanted))
        };
        is("level", &expect.level)
            && is("logger", &expect.logger)
            && expect.data.as_ref().is_none_or(|matcher| matches(matcher, params.get("data"), variables))
    };
    let count = all.iter().filter(fits).count();
    let what = format!("{count} matching log messages arrived");
    check_count(expect.at, expect.bounds, count, what, &json!(all)).into_iter().collect()
}

fn check_count(
    at: FilePosition,
    bounds: CountBounds,
    count: usize,
    what: String,
    actual: &Value,
) -> Option<AssertionFailure> {
    let (expected, actual) = (Some(bounds.words()), Some(render_short(actual)));
    (!bounds.contains(count)).then(|| AssertionFailure {
        expected,
        actual,
        ..AssertionFailure::new(at, what)
    })
}
