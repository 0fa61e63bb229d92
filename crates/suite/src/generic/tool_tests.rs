//! Calls a tool with generated arguments, and makes the arguments of a failure as small as possible.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::cases::{CaseClass, GeneratedCase, classify, invalid_cases, valid_cases};
use super::input_schema::{Keywords, properties, types, variants};
use super::judge::{Finding, ToolUnderTest, judge_call};
use super::progress::{GenericProgress, RunningTest};
use super::random::SeededRandom;
use super::rules::{CRASH, GenericRule, HANG, INCOMPLETE, RuleSeverity, SLOW_CALL, START_FAILED};
use super::shrink::Shrinker;
use super::target::GenericTarget;
use crate::expect::JsonType;

/// The time and the attempts for shrinking one failure.
const SHRINK_TIME: Duration = Duration::from_secs(25);
const SHRINK_ATTEMPTS: usize = 300;
/// How many of the smallest arguments are verified on a new server.
const MOST_VERIFIED: usize = 4;
/// After this many crashes and hangs, further cases would only repeat them.
const MOST_BROKEN: usize = 4;

/// Runs the tests of a tool. Returns the number of calls.
pub(crate) async fn run(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    tool: &ToolUnderTest,
) -> usize {
    let (seed, most) = (progress.options.seed, progress.options.cases);
    let mut calls = 0;
    if let Some(arguments) = progress.options.arguments.clone() {
        if let Some(mut test) = progress.begin(&format!("tool {}: arguments", tool.name)).await {
            let class = classify(&tool.input, &arguments).await;
            let cases = [GeneratedCase { class, arguments }];
            calls += run_cases(progress, target, tool, &cases, Counterexamples::AsGiven, &mut test).await;
            progress.finish(test, target.stderr()).await;
        }
        return calls;
    }
    if let Some(mut test) = progress.begin(&format!("tool {}: valid arguments", tool.name)).await {
        let mut random = SeededRandom::new(seed, &tool.name);
        let cases = valid_cases(&tool.input_value, &tool.input, most, &mut random).await;
        calls += run_cases(progress, target, tool, &cases, Counterexamples::Smallest, &mut test).await;
        progress.finish(test, target.stderr()).await;
    }
    let name = format!("tool {}: invalid arguments", tool.name);
    let cases = match progress.has_ended() {
        true => None,
        false => Some(invalid_cases(&tool.input_value, &tool.input, most).await),
    };
    if cases.as_ref().is_some_and(Vec::is_empty) {
        progress.skip(&name, "the input schema allows everything").await;
    } else if let Some(mut test) = progress.begin(&name).await {
        calls += run_cases(
            progress,
            target,
            tool,
            &cases.unwrap_or_default(),
            Counterexamples::Smallest,
            &mut test,
        )
        .await;
        progress.finish(test, target.stderr()).await;
    }
    calls
}

/// Whether the arguments of failures are shrunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counterexamples {
    Smallest,
    AsGiven,
}

async fn run_cases(
    progress: &GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    tool: &ToolUnderTest,
    cases: &[GeneratedCase],
    counterexamples: Counterexamples,
    test: &mut RunningTest,
) -> usize {
    let (started, deadline) = (Instant::now(), progress.test_deadline());
    let mut reported: Vec<GenericRule> = Vec::new();
    let (mut calls, mut broken) = (0, 0);
    for case in cases {
        if Instant::now() >= deadline || broken >= MOST_BROKEN {
            let why = match broken >= MOST_BROKEN {
                true => format!("after {broken} calls without an answer"),
                false => format!("after {:.0} s", started.elapsed().as_secs_f64()),
            };
            let message = format!("{calls} of {} cases ran; the test ended {why}", cases.len());
            test.add(Finding::new(INCOMPLETE, message), None);
            break;
        }
        let record = match target.call_tool(tool, &case.arguments, progress.limit()).await {
            Ok(record) => record,
            Err(reason) => {
                test.add(Finding::new(START_FAILED, reason), None);
                break;
            }
        };
        calls += 1;
        let found = judge_call(tool, case.class, &case.arguments, &record).await;
        broken += usize::from(found.iter().any(|finding| finding.rule == CRASH || finding.rule == HANG));
        for finding in found {
            if reported.contains(&finding.rule) {
                continue;
            }
            reported.push(finding.rule);
            let arguments = case.arguments.clone();
            if counterexamples == Counterexamples::AsGiven || finding.severity == RuleSeverity::Warning {
                let line = progress.options.reproduction.call(&tool.name, &arguments);
                test.add(finding, Some(line));
                continue;
            }
            let shrinking = Instant::now();
            let (finding, line) = explain(progress, target, tool, case, finding).await;
            progress.add_step(test, format!("shrink the arguments for {}", finding.rule.id), shrinking);
            test.add(finding, Some(line));
        }
    }
    progress.add_step(test, format!("{calls} calls of {}", tool.name), started);
    calls
}

/// Finds the smallest arguments that fail in the same way on a new server, and returns the line that
/// repeats the failure.
async fn explain(
    progress: &GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    tool: &ToolUnderTest,
    case: &GeneratedCase,
    finding: Finding,
) -> (Finding, String) {
    let reproduction = &progress.options.reproduction;
    // With a short limit first, because most calls of a search for a hang get no answer.
    let mut limits = vec![progress.limit()];
    if finding.rule == HANG {
        limits.insert(0, target.repeat_limit(progress.limit()));
    }
    for limit in limits {
        let failing = shrink(progress, target, tool, case, &finding, limit).await;
        // A failure can depend on earlier calls, or on a limit that was too short. Larger arguments
        // of a hang take longer.
        let last = failing.len().saturating_sub(1);
        let tried = failing.iter().enumerate().filter(|(index, _)| *index < MOST_VERIFIED || *index == last);
        for (_, arguments) in tried {
            target.abandon();
            if let Some(found) = repeat(target, tool, arguments, &finding, progress.limit()).await {
                let found = forgive_amounts(target, tool, arguments, found, progress.limit()).await;
                return (found, reproduction.call(&tool.name, arguments));
            }
        }
    }
    let message = format!("{} (only after earlier calls)", finding.message);
    let finding = match finding.others_answered {
        // It was slow once.
        true => Finding { rule: SLOW_CALL, severity: SLOW_CALL.severity, ..finding },
        false => finding,
    };
    let line = reproduction.tool(&tool.name, progress.options.seed, progress.options.cases);
    (Finding { message, ..finding }, line)
}

async fn shrink(
    progress: &GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    tool: &ToolUnderTest,
    case: &GeneratedCase,
    finding: &Finding,
    limit: Duration,
) -> Vec<Value> {
    let deadline = progress.deadline.min(Instant::now() + SHRINK_TIME);
    let mut shrinker = Shrinker::new(case.arguments.clone());
    let mut attempts = 0;
    while let Some(candidate) = shrinker.next_candidate() {
        // What is wrong with invalid arguments may change, but they stay invalid.
        if !is_same_class(case.class, classify(&tool.input, &candidate).await) {
            continue;
        }
        attempts += 1;
        if attempts > SHRINK_ATTEMPTS || Instant::now() >= deadline {
            break;
        }
        if repeat(target, tool, &candidate, finding, limit).await.is_some() {
            shrinker.accept(candidate);
        }
    }
    shrinker.into_failing()
}

fn is_same_class(one: CaseClass, other: CaseClass) -> bool {
    match (one, other) {
        (CaseClass::Invalid(one), CaseClass::Invalid(other)) => {
            use super::cases::Mistake::UnknownProperty;
            (one == UnknownProperty) == (other == UnknownProperty)
        }
        _ => one == other,
    }
}

/// Calls once more, and returns the finding if it is the same.
async fn repeat(
    target: &mut GenericTarget<'_>,
    tool: &ToolUnderTest,
    arguments: &Value,
    like: &Finding,
    limit: Duration,
) -> Option<Finding> {
    let record = target.call_tool(tool, arguments, limit).await.ok()?;
    let class = classify(&tool.input, arguments).await;
    let found = judge_call(tool, class, arguments, &record).await;
    found.into_iter().find(|finding| finding.is_like(like))
}

/// A call that is only slow because of a number is not a failure, if the server answers others
/// meanwhile: the number may be a time. A number that is missing may be a time, too.
async fn forgive_amounts(
    target: &mut GenericTarget<'_>,
    tool: &ToolUnderTest,
    arguments: &Value,
    finding: Finding,
    limit: Duration,
) -> Finding {
    let smaller = with_small_numbers(&tool.input_value, arguments);
    if !finding.others_answered || smaller == *arguments {
        return finding;
    }
    match repeat(target, tool, &smaller, &finding, limit).await {
        Some(_) => finding,
        None => Finding { rule: SLOW_CALL, severity: SLOW_CALL.severity, ..finding },
    }
}

/// Returns the arguments with every number of the input schema, as small as possible.
fn with_small_numbers(schema: &Value, arguments: &Value) -> Value {
    let mut smaller = with_numbers_of_one(arguments);
    let is_number = |keywords: &Keywords| {
        types(keywords).iter().any(|kind| matches!(kind, JsonType::Integer | JsonType::Number))
    };
    for keywords in variants(schema, schema) {
        for (name, property) in properties(&keywords) {
            if let Value::Object(members) = &mut smaller
                && variants(schema, property).iter().any(is_number)
            {
                members.entry(name.clone()).or_insert(Value::from(1));
            }
        }
    }
    smaller
}

fn with_numbers_of_one(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_f64().is_some_and(|number| number.abs() > 1.0) => Value::from(1),
        Value::Array(items) => items.iter().map(with_numbers_of_one).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), with_numbers_of_one(value))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::with_small_numbers;

    #[test]
    fn numbers_that_may_be_times_become_small_also_if_they_are_missing() {
        let schema = json!({"properties": {"seconds": {"type": "number"}, "text": {"type": "string"}}});
        assert_eq!(with_small_numbers(&schema, &json!({})), json!({"seconds": 1}));
        assert_eq!(
            with_small_numbers(&schema, &json!({"seconds": 90, "text": "a"})),
            json!({"seconds": 1, "text": "a"})
        );
        assert_eq!(with_small_numbers(&schema, &json!({"seconds": 0.5})), json!({"seconds": 0.5}));
    }
}
