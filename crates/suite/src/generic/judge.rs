//! What an answer says about a server: every rule for one call.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use toolyard_hub::json::to_raw;
use toolyard_hub::{Raw, Schema, SchemaCheck};

use super::cases::{CaseClass, Mistake};
use super::result_shape::tool_result_problems;
use super::rules::{
    ACCEPTS_INVALID, ACCEPTS_UNKNOWN, CRASH, ENVIRONMENT_LEAKED, ERROR_AS_SUCCESS, GenericRule, HANG,
    INTERNAL_ERROR, NO_RESULT, OUTPUT_SCHEMA, PROGRESS_ORDER, PROTOCOL_VIOLATION, RESULT_SHAPE, RuleSeverity,
    UNHANDLED_ERROR,
};
use super::target::{CallEnd, CallObservation};
use crate::expect::diff::shorten;
use crate::expect::observation::{Observation, StepFailure};

/// A violated rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) rule: GenericRule,
    pub(crate) severity: RuleSeverity,
    pub(crate) message: String,
    /// An excerpt of the answer.
    pub(crate) answer: Option<String>,
    /// Whether only this call gets no answer.
    pub(crate) others_answered: bool,
}

impl Finding {
    pub(crate) fn new(rule: GenericRule, message: impl Into<String>) -> Self {
        Self { rule, severity: rule.severity, message: message.into(), answer: None, others_answered: false }
    }

    /// Whether this is the same failure with other arguments. A server that answers nothing is not
    /// one that is slow with one call.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.rule == other.rule && self.others_answered == other.others_answered
    }

    fn with_answer(self, seen: &Observation) -> Self {
        Self { answer: seen.result.as_ref().map(|result| shorten(&result.to_string())), ..self }
    }
}

/// A tool as the server lists it.
#[derive(Debug)]
pub(crate) struct ToolUnderTest {
    pub(crate) name: String,
    pub(crate) input_value: Value,
    pub(crate) input: Schema,
    pub(crate) output: Option<Schema>,
    pub(crate) is_read_only: bool,
    /// The tool says that it returns environment variables.
    pub(crate) discloses_environment: bool,
}

impl ToolUnderTest {
    /// Reads a definition. Without a name, the tool cannot be called.
    pub(crate) fn read(definition: &Raw) -> Option<Self> {
        static ENVIRONMENT: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"(?i)\benv(ironment)?\b|env[-_ ]?vars?|(get|print)_?env").ok());
        let value: Value = serde_json::from_str(definition.get()).ok()?;
        let name = value.get("name")?.as_str()?.to_owned();
        let description = value.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = format!("{} {description}", name.replace(['-', '_'], " "));
        let schema = |key: &str| value.get(key).filter(|schema| schema.is_object());
        let input_value =
            schema("inputSchema").cloned().unwrap_or_else(|| serde_json::json!({"type": "object"}));
        Some(Self {
            input: Schema::new(to_raw(&input_value)),
            output: schema("outputSchema").map(|schema| Schema::new(to_raw(schema))),
            is_read_only: value.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true)),
            discloses_environment: ENVIRONMENT.as_ref().is_some_and(|pattern| pattern.is_match(&about)),
            input_value,
            name,
        })
    }
}

/// Returns what is wrong with the end of a request, whatever was requested.
pub(crate) fn judge_exchange(record: &CallObservation) -> Vec<Finding> {
    let mut found = Vec::new();
    match &record.end {
        CallEnd::Answered => {}
        CallEnd::Crashed(reason) => found.push(Finding::new(CRASH, reason.clone())),
        CallEnd::Silent { limit, others_answered } => {
            let others = match others_answered {
                true => "other requests are answered",
                false => "other requests get no answer either",
            };
            let message = format!("no answer within {:.1} s; {others}", limit.as_secs_f64());
            found.push(Finding { others_answered: *others_answered, ..Finding::new(HANG, message) });
        }
        // The violation explains why there is no result.
        CallEnd::Unusable(reason) if record.seen.violations.iter().any(|text| reason.contains(text)) => {}
        CallEnd::Unusable(reason) => found.push(Finding::new(NO_RESULT, reason.clone())),
    }
    // A wrong result is described by the rule for its shape.
    for violation in
        record.seen.violations.iter().filter(|text| !text.starts_with("the result of `tools/call`"))
    {
        found.push(Finding::new(PROTOCOL_VIOLATION, violation.clone()));
    }
    found.extend(judge_progress(&record.seen));
    for form in &record.leaks {
        let message = format!("the server sent the value of a secret environment variable {form}");
        found.push(Finding::new(ENVIRONMENT_LEAKED, message));
    }
    found
}

/// Returns what is wrong with the answer of a tool.
pub(crate) async fn judge_call(
    tool: &ToolUnderTest,
    class: CaseClass,
    arguments: &Value,
    record: &CallObservation,
) -> Vec<Finding> {
    let mut found = judge_exchange(record);
    if tool.discloses_environment {
        let leaks = found.iter_mut().filter(|finding| finding.rule == ENVIRONMENT_LEAKED);
        leaks.for_each(|finding| finding.severity = RuleSeverity::Warning);
    }
    let seen = &record.seen;
    if let Some(result) = &seen.result {
        let problems = tool_result_problems(result);
        found.extend(
            problems.into_iter().map(|problem| Finding::new(RESULT_SHAPE, problem).with_answer(seen)),
        );
        if !seen.is_tool_error() {
            found.extend(judge_output(tool, result).await.map(|finding| finding.with_answer(seen)));
        }
    }
    match class {
        CaseClass::Valid => found.extend(judge_valid(arguments, seen)),
        CaseClass::Invalid(mistake) => found.extend(judge_invalid(tool, mistake, arguments, seen).await),
        CaseClass::Unknown => {}
    }
    found
}

fn judge_valid(arguments: &Value, seen: &Observation) -> Option<Finding> {
    static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let words = r"^\s*(Traceback \(most recent call last\)|(fatal |internal |internal server |unexpected )?error\b.{0,3}:|exception:|[A-Z]\w*(Error|Exception)(\(|:))";
        Regex::new(&format!("(?i:{words})")).ok()
    });
    static UNHANDLED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"Traceback \(most recent call last\)|Cannot (read|set) propert|is not a function|is not iterable|'NoneType' object|object has no attribute|list index out of range|division by zero|\bKeyError\b|\bTypeError\b|\bAttributeError\b|\bIndexError\b|RangeError|nil pointer|index out of bounds|panicked at",
        )
        .ok()
    });
    let fits = |pattern: &LazyLock<Option<Regex>>, text: &str| {
        pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
    };
    match &seen.failure {
        Some(StepFailure::Rpc { code: -32603, message, .. }) => Some(Finding::new(
            INTERNAL_ERROR,
            format!("the server answered with an internal error: {message}"),
        )),
        Some(StepFailure::Rpc { code: code @ (-32700 | -32600 | -32601), message, .. }) => {
            let message = format!("the server answered valid arguments with the error {code}: {message}");
            Some(Finding::new(INTERNAL_ERROR, message))
        }
        Some(_) => None,
        None => {
            let text = seen.text()?;
            if seen.is_tool_error() {
                return fits(&UNHANDLED, &text).then(|| {
                    Finding::new(UNHANDLED_ERROR, "the text of the error is that of an unhandled exception")
                        .with_answer(seen)
                });
            }
            let start = &text[..text.char_indices().nth(200).map_or(text.len(), |(end, _)| end)];
            // A message about errors may be what the arguments ask for.
            let is_asked_for = arguments.to_string().to_lowercase().contains("err");
            (fits(&ERROR, start) && !is_asked_for).then(|| {
                let message = "the text is an error message, but the result has no `isError`";
                Finding::new(ERROR_AS_SUCCESS, message).with_answer(seen)
            })
        }
    }
}

async fn judge_invalid(
    tool: &ToolUnderTest,
    mistake: Mistake,
    arguments: &Value,
    seen: &Observation,
) -> Option<Finding> {
    if seen.result.is_none() || seen.is_tool_error() {
        return None;
    }
    let reasons = match tool.input.check(&to_raw(arguments)).await {
        SchemaCheck::Checked(violations) => violations
            .iter()
            .take(3)
            .map(|violation| shorten(&violation.message()))
            .collect::<Vec<_>>()
            .join("; "),
        SchemaCheck::Skipped(problem) => problem,
    };
    let rule = if mistake == Mistake::UnknownProperty { ACCEPTS_UNKNOWN } else { ACCEPTS_INVALID };
    let message = format!("arguments that the input schema excludes were accepted: {reasons}");
    Some(Finding::new(rule, message).with_answer(seen))
}

async fn judge_output(tool: &ToolUnderTest, result: &Value) -> Option<Finding> {
    let schema = tool.output.as_ref()?;
    let Some(structured) = result.get("structuredContent") else {
        let message =
            format!("`{}` has an output schema, but its result has no `structuredContent`", tool.name);
        return Some(Finding::new(OUTPUT_SCHEMA, message));
    };
    match schema.check(&to_raw(structured)).await {
        SchemaCheck::Checked(violations) if !violations.is_empty() => {
            let all: Vec<String> = violations.iter().take(5).map(|each| shorten(&each.message())).collect();
            Some(Finding::new(
                OUTPUT_SCHEMA,
                format!("the result violates the output schema: {}", all.join("; ")),
            ))
        }
        // A schema that cannot be used is reported by lint.
        SchemaCheck::Checked(_) | SchemaCheck::Skipped(_) => None,
    }
}

fn judge_progress(seen: &Observation) -> Option<Finding> {
    let mut last: Vec<(&Value, f64)> = Vec::new();
    for params in seen.progress() {
        let (Some(token), Some(value)) =
            (params.get("progressToken"), params.get("progress").and_then(Value::as_f64))
        else {
            let message = "notifications/progress must have a `progressToken` and a number `progress`";
            return Some(Finding::new(PROTOCOL_VIOLATION, message));
        };
        match last.iter_mut().find(|(known, _)| *known == token) {
            Some((_, before)) if value <= *before => {
                let message = format!("the progress went from {before} to {value}; it must increase");
                return Some(Finding::new(PROGRESS_ORDER, message));
            }
            Some((_, before)) => *before = value,
            None => last.push((token, value)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use toolyard_hub::json::to_raw;

    use super::{ToolUnderTest, judge_call};
    use crate::expect::observation::{Observation, ObservedNotification, StepFailure};
    use crate::generic::cases::classify;
    use crate::generic::target::{CallEnd, CallObservation};

    fn tool() -> ToolUnderTest {
        let definition = json!({
            "name": "add", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
            "outputSchema": {"type": "object", "required": ["sum"], "properties": {"sum": {"type": "integer"}}},
        });
        ToolUnderTest::read(&to_raw(&definition)).unwrap()
    }

    /// The rules that an answer to these arguments violates.
    async fn rules(arguments: Value, record: CallObservation) -> Vec<&'static str> {
        let tool = tool();
        let class = classify(&tool.input, &arguments).await;
        let found = judge_call(&tool, class, &arguments, &record).await;
        found.into_iter().map(|finding| finding.rule.id).collect()
    }

    fn answered(seen: Observation) -> CallObservation {
        CallObservation { end: CallEnd::Answered, seen, leaks: Vec::new() }
    }

    fn result(result: Value) -> CallObservation {
        answered(Observation { result: Some(result), ..Observation::default() })
    }

    fn failure(code: i64) -> CallObservation {
        let failure = StepFailure::Rpc { code, message: "no".to_owned(), data: None };
        answered(Observation { failure: Some(failure), ..Observation::default() })
    }

    fn text(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}], "structuredContent": {"sum": 3}})
    }

    fn error(words: &str) -> Value {
        json!({"isError": true, "content": [{"type": "text", "text": words}]})
    }

    #[tokio::test]
    async fn valid_arguments_may_fail_but_only_in_the_form_of_the_protocol() {
        let rules = |record| rules(json!({"a": 1}), record);
        let nothing: [&str; 0] = [];
        assert_eq!(rules(result(text("3"))).await, nothing);
        assert_eq!(rules(result(error("the file does not exist"))).await, nothing);
        assert_eq!(rules(failure(-32602)).await, nothing);
        assert_eq!(rules(failure(-32002)).await, nothing);
        assert_eq!(rules(failure(-32603)).await, ["internal-error"]);
        assert_eq!(rules(failure(-32601)).await, ["internal-error"]);
        assert_eq!(rules(result(error("'NoneType' object is not subscriptable"))).await, ["unhandled-error"]);
        assert_eq!(rules(result(text("Error: no such user"))).await, ["error-as-success"]);
        assert_eq!(rules(result(text("ValueError: bad"))).await, ["error-as-success"]);
        assert_eq!(rules(result(text("0 errors: all good"))).await, nothing);
        assert_eq!(rules(result(text("Errors are values"))).await, nothing);
    }

    #[tokio::test]
    async fn results_have_the_form_of_the_protocol_and_of_the_output_schema() {
        let rules = |record| rules(json!({"a": 1}), record);
        assert_eq!(rules(result(json!({"structuredContent": {"sum": 1}}))).await, ["result-shape"]);
        let wrong = json!({"content": [{"type": "text", "text": 5}], "structuredContent": {"sum": 1}});
        assert_eq!(rules(result(wrong)).await, ["result-shape"]);
        let wrong = json!({"content": "3", "structuredContent": {"sum": "3"}});
        assert_eq!(rules(result(wrong)).await, ["result-shape", "output-schema"]);
        assert_eq!(rules(result(json!({"content": []}))).await, ["output-schema"]);
        let wrong = json!({"content": [], "isError": "yes", "structuredContent": {"sum": 1}});
        assert_eq!(rules(result(wrong)).await, ["result-shape"]);
    }

    #[tokio::test]
    async fn invalid_arguments_must_be_refused_in_any_form() {
        let rules = |record| rules(json!({"a": "x"}), record);
        let nothing: [&str; 0] = [];
        assert_eq!(rules(result(error("not a number"))).await, nothing);
        assert_eq!(rules(failure(-32602)).await, nothing);
        assert_eq!(rules(failure(-32603)).await, nothing);
        assert_eq!(rules(result(text("Error: not a number"))).await, ["accepts-invalid"]);
    }

    #[tokio::test]
    async fn the_end_of_a_call_is_judged_whatever_the_arguments() {
        let end = |end| CallObservation { end, seen: Observation::default(), leaks: Vec::new() };
        for arguments in [json!({"a": 1}), json!({})] {
            let crashed = end(CallEnd::Crashed("the server exited with code 1".to_owned()));
            assert_eq!(rules(arguments.clone(), crashed).await, ["crash"]);
            let limit = Duration::from_secs(5);
            let silent = end(CallEnd::Silent { limit, others_answered: false });
            assert_eq!(rules(arguments.clone(), silent).await, ["hang"]);
            let leaking = CallObservation { leaks: vec!["in Base64"], ..result(error("no")) };
            assert_eq!(rules(arguments, leaking).await, ["environment-leaked"]);
        }
    }

    #[tokio::test]
    async fn progress_increases_for_each_token() {
        let progress = |values: &[(i64, f64)]| {
            let messages = values
                .iter()
                .map(|(token, value)| ObservedNotification {
                    method: "notifications/progress".to_owned(),
                    params: json!({"progressToken": token, "progress": value}),
                })
                .collect();
            answered(Observation { messages, result: Some(text("3")), ..Observation::default() })
        };
        let rules = |record| rules(json!({"a": 1}), record);
        let nothing: [&str; 0] = [];
        assert_eq!(rules(progress(&[(1, 0.5), (2, 0.0), (1, 0.75), (2, 3.0)])).await, nothing);
        assert_eq!(rules(progress(&[(1, 2.0), (1, 1.0)])).await, ["progress-order"]);
        assert_eq!(rules(progress(&[(1, 2.0), (1, 2.0)])).await, ["progress-order"]);
    }

    #[test]
    fn tools_that_return_the_environment_say_so() {
        let discloses = |name: &str, description: &str| {
            let definition = json!({"name": name, "description": description});
            ToolUnderTest::read(&to_raw(&definition)).unwrap().discloses_environment
        };
        assert!(discloses("get-env", ""));
        assert!(discloses("printEnv", "Prints all environment variables"));
        assert!(!discloses("send_envelope", "Sends a letter"));
    }
}
