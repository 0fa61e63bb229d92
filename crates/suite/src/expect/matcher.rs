//! Checks conditions on one value.

use std::cmp::Ordering;

use regex::RegexBuilder;
use serde_json::Value;
use toolyard_cassette::is_equal_except_masked;
use toolyard_hub::Schema;
use toolyard_hub::json::to_raw;

use super::diff::{diff, render, render_short, shorten};
use super::path::select;
use super::{AssertionFailure, Condition, ConditionKind, JsonType, Matcher, SortOrder};
use crate::file::FilePosition;
use crate::values::Variables;

/// The size limit of a compiled regular expression, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// Checks all conditions. `label` names the value in messages.
pub(crate) fn check_matcher(
    matcher: &Matcher,
    value: Option<&Value>,
    label: &str,
    variables: &Variables,
) -> Vec<AssertionFailure> {
    let mut failures = Vec::new();
    for condition in &matcher.conditions {
        failures.extend(check_condition(condition, value, label, variables));
    }
    failures
}

/// Whether all conditions hold. Conditions that cannot be checked do not.
pub(crate) fn matches(matcher: &Matcher, value: Option<&Value>, variables: &Variables) -> bool {
    check_matcher(matcher, value, "value", variables).is_empty()
}

fn check_condition(
    condition: &Condition,
    value: Option<&Value>,
    label: &str,
    variables: &Variables,
) -> Vec<AssertionFailure> {
    let at = condition.at;
    if let ConditionKind::Exists(exists) = &condition.kind {
        return match (exists, value) {
            (true, Some(_)) | (false, None) => Vec::new(),
            (true, None) => vec![AssertionFailure::new(at, format!("{label} is missing"))],
            (false, Some(value)) => vec![AssertionFailure {
                actual: Some(render_short(value)),
                ..AssertionFailure::new(at, format!("{label} must not exist"))
            }],
        };
    }
    if let ConditionKind::Paths(paths) = &condition.kind {
        let Some(value) = value else { return vec![missing(at, label, &condition.kind)] };
        return paths
            .iter()
            .flat_map(|(path, matcher)| check_path(at, path, matcher, value, variables))
            .collect();
    }
    let Some(value) = value else { return vec![missing(at, label, &condition.kind)] };
    match check_value(&condition.kind, value, label, variables) {
        Ok(None) => Vec::new(),
        Ok(Some(mismatch)) => vec![mismatch.at(at)],
        Err(reason) => vec![AssertionFailure::new(at, format!("{label} was not checked: {reason}"))],
    }
}

/// Checks the value that a path selects.
pub(crate) fn check_path(
    at: FilePosition,
    path: &str,
    matcher: &Matcher,
    value: &Value,
    variables: &Variables,
) -> Vec<AssertionFailure> {
    let selected = variables
        .complete_text(path)
        .map_err(|error| error.to_string())
        .and_then(|path| select(&path, value).map(|selected| (path, selected)));
    match selected {
        Ok((path, selected)) => check_matcher(matcher, selected.into_value().as_ref(), &path, variables),
        Err(reason) => vec![AssertionFailure::new(at, reason)],
    }
}

fn missing(at: FilePosition, label: &str, kind: &ConditionKind) -> AssertionFailure {
    let expected = match kind {
        ConditionKind::Equals(value) | ConditionKind::EqualsRecorded(value) => Some(render_short(value)),
        _ => None,
    };
    AssertionFailure { expected, ..AssertionFailure::new(at, format!("{label} is missing")) }
}

/// A condition that does not hold, before it has a position.
struct Mismatch {
    message: String,
    expected: Option<String>,
    actual: Option<String>,
    diff: Option<String>,
}

impl Mismatch {
    fn at(self, at: FilePosition) -> AssertionFailure {
        let Self { message, expected, actual, diff } = self;
        AssertionFailure { expected, actual, diff, ..AssertionFailure::new(at, message) }
    }
}

fn check_value(
    kind: &ConditionKind,
    value: &Value,
    label: &str,
    variables: &Variables,
) -> Result<Option<Mismatch>, String> {
    let complete = |wanted: &Value| variables.complete(wanted).map_err(|error| error.to_string());
    let complete_all = |wanted: &[Value]| wanted.iter().map(complete).collect::<Result<Vec<_>, _>>();
    let wrong = |message: String, expected: Option<String>| {
        Ok(Some(Mismatch { message, expected, actual: Some(render_short(value)), diff: None }))
    };
    match kind {
        ConditionKind::Equals(wanted) | ConditionKind::EqualsRecorded(wanted) => {
            let wanted = complete(wanted)?;
            let fits = match kind {
                ConditionKind::EqualsRecorded(_) => is_equal_except_masked(&wanted, value),
                _ => is_equal(&wanted, value),
            };
            if fits {
                return Ok(None);
            }
            Ok(Some(Mismatch {
                message: format!("{label} is not equal"),
                diff: diff(&render(&wanted), &render(value)),
                expected: Some(render_short(&wanted)),
                actual: Some(render_short(value)),
            }))
        }
        ConditionKind::NotEquals(unwanted) => {
            let unwanted = complete(unwanted)?;
            match is_equal(&unwanted, value) {
                true => wrong(
                    format!("{label} must not be equal"),
                    Some(format!("not {}", render_short(&unwanted))),
                ),
                false => Ok(None),
            }
        }
        ConditionKind::OneOf(choices) => {
            let choices = complete_all(choices)?;
            if choices.iter().any(|choice| is_equal(choice, value)) {
                return Ok(None);
            }
            let expected = choices.iter().map(render_short).collect::<Vec<_>>().join(", ");
            wrong(format!("{label} is not one of the allowed values"), Some(expected))
        }
        ConditionKind::Contains(parts) => {
            let parts = complete_all(parts)?;
            match parts.iter().find(|part| !contains(value, part)) {
                Some(part) => {
                    wrong(format!("{label} does not contain what it must"), Some(render_short(part)))
                }
                None => Ok(None),
            }
        }
        ConditionKind::NotContains(parts) => {
            let parts = complete_all(parts)?;
            match parts.iter().find(|part| contains(value, part)) {
                Some(part) => wrong(
                    format!("{label} contains what it must not"),
                    Some(format!("nothing like {}", render_short(part))),
                ),
                None => Ok(None),
            }
        }
        ConditionKind::Matches(patterns) => {
            match first_pattern(patterns, value, variables, |found| !found)? {
                Some(pattern) => wrong(format!("{label} does not match"), Some(format!("/{pattern}/"))),
                None => Ok(None),
            }
        }
        ConditionKind::NotMatches(patterns) => {
            match first_pattern(patterns, value, variables, |found| found)? {
                Some(pattern) => {
                    wrong(format!("{label} must not match"), Some(format!("no match of /{pattern}/")))
                }
                None => Ok(None),
            }
        }
        ConditionKind::InOrder(parts) => {
            let parts = complete_all(parts)?;
            match first_out_of_order(value, &parts) {
                Some(part) => wrong(
                    format!("{label} does not contain all parts in this order"),
                    Some(format!("{} after those before it", render_short(part))),
                ),
                None => Ok(None),
            }
        }
        ConditionKind::Type(wanted) => {
            let found = JsonType::classify(value);
            let fits = found == *wanted || (*wanted == JsonType::Number && found == JsonType::Integer);
            match fits {
                true => Ok(None),
                false => wrong(
                    format!("{label} has the type {}", found.as_str()),
                    Some(wanted.as_str().to_owned()),
                ),
            }
        }
        ConditionKind::Length(bounds) => match length(value) {
            Some(count) if bounds.contains(count) => Ok(None),
            Some(count) => wrong(format!("{label} has the length {count}"), Some(bounds.words())),
            None => wrong(format!("{label} has no length"), Some("a text, a list or an object".to_owned())),
        },
        ConditionKind::Min(min) => match value.as_f64() {
            Some(number) if number >= *min => Ok(None),
            _ => wrong(format!("{label} is too small"), Some(format!("at least {min}"))),
        },
        ConditionKind::Max(max) => match value.as_f64() {
            Some(number) if number <= *max => Ok(None),
            _ => wrong(format!("{label} is too large"), Some(format!("at most {max}"))),
        },
        ConditionKind::Order(order) => match value.as_array().map(|items| is_sorted(items, *order)) {
            Some(true) => Ok(None),
            _ => {
                let words = match order {
                    SortOrder::Ascending => "ascending",
                    SortOrder::Descending => "descending",
                };
                wrong(format!("{label} is not sorted"), Some(format!("a list in {words} order")))
            }
        },
        ConditionKind::Schema(schema) => {
            let schema = Schema::new(to_raw(&complete(schema)?));
            let violations = schema.violations(&to_raw(value));
            if let Some(problem) = schema.problem() {
                return Err(format!("the schema cannot be used: {problem}"));
            }
            if violations.is_empty() {
                return Ok(None);
            }
            let all: Vec<String> = violations.iter().take(10).map(|violation| violation.message()).collect();
            wrong(format!("{label} violates the schema: {}", all.join("; ")), None)
        }
        ConditionKind::Exists(_) | ConditionKind::Paths(_) => Ok(None),
    }
}

/// Compares values. Numbers are equal if their values are, such as 1 and 1.0.
pub(crate) fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right
                || (!(left.is_i64() || left.is_u64()) || !(right.is_i64() || right.is_u64()))
                    && left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| is_equal(left, right)))
        }
        (left, right) => left == right,
    }
}

/// Whether a text contains a text, a list an element, or an object these members.
pub(crate) fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => whole.contains(part),
        // A number in a text, because YAML reads `contains: 5` as a number.
        (Value::String(whole), Value::Number(part)) => whole.contains(&part.to_string()),
        (Value::String(whole), Value::Bool(part)) => whole.contains(&part.to_string()),
        (Value::Array(items), part) => items.iter().any(|item| is_superset(item, part)),
        (whole @ Value::Object(_), part @ Value::Object(_)) => is_superset(whole, part),
        (Value::Object(members), Value::String(key)) => members.contains_key(key),
        _ => false,
    }
}

/// Whether a value is equal to `part`, apart from additional members of objects.
pub(crate) fn is_superset(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| is_superset(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| is_superset(whole, part))
        }
        (whole, part) => is_equal(whole, part),
    }
}

/// Returns the first pattern with the unwanted outcome.
fn first_pattern(
    patterns: &[String],
    value: &Value,
    variables: &Variables,
    is_unwanted: impl Fn(bool) -> bool,
) -> Result<Option<String>, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    for pattern in patterns {
        let pattern = variables.complete_text(pattern).map_err(|error| error.to_string())?;
        if is_unwanted(compile(&pattern)?.is_match(&text)) {
            return Ok(Some(shorten(&pattern)));
        }
    }
    Ok(None)
}

/// Compiles a regular expression of bounded size.
pub(crate) fn compile(pattern: &str) -> Result<regex::Regex, String> {
    let compiled = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
    compiled.map_err(|error| format!("invalid regular expression `{}`: {error}", shorten(pattern)))
}

/// Returns the first part that does not follow those before it.
fn first_out_of_order<'p>(value: &Value, parts: &'p [Value]) -> Option<&'p Value> {
    match value {
        Value::String(text) => {
            let mut from = 0;
            parts.iter().find(|part| {
                let part = match part {
                    Value::String(part) => part.clone(),
                    other => other.to_string(),
                };
                match text[from..].find(&part) {
                    Some(at) => {
                        from += at + part.len();
                        false
                    }
                    None => true,
                }
            })
        }
        Value::Array(items) => {
            let mut rest = items.iter();
            parts.iter().find(|part| !rest.any(|item| is_superset(item, part)))
        }
        _ => parts.first(),
    }
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(members) => Some(members.len()),
        _ => None,
    }
}

/// Whether all elements are numbers or all are texts, in this order.
fn is_sorted(items: &[Value], order: SortOrder) -> bool {
    items.windows(2).all(|pair| {
        let compared = match (&pair[0], &pair[1]) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (left, right) => {
                left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
            }
        };
        match order {
            SortOrder::Ascending => matches!(compared, Some(Ordering::Less | Ordering::Equal)),
            SortOrder::Descending => matches!(compared, Some(Ordering::Greater | Ordering::Equal)),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{check_matcher, contains, is_equal};
    use crate::expect::{ExpectationCheck, Matcher};
    use crate::file::parse_test_file;
    use crate::values::Variables;

    /// Reads a matcher as it is written in a test file.
    fn matcher(yaml: &str) -> Matcher {
        let text = format!("tests:\n  - name: a\n    call: b\n    expect:\n      result: {yaml}\n");
        let file = parse_test_file(Path::new("a.mcp.yaml"), &text);
        let file = file.unwrap_or_else(|problems| panic!("{}", problems[0]));
        match &file.tests[0].steps[0].expect.items[0].check {
            ExpectationCheck::Value { matcher, .. } => matcher.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn verdict(yaml: &str, value: &Value) -> Vec<String> {
        let failures = check_matcher(&matcher(yaml), Some(value), "it", &Variables::default());
        failures.into_iter().map(|failure| failure.message).collect()
    }

    #[test]
    fn each_condition_holds_or_says_why_not() {
        let people = json!({"people": [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 41}]});
        for (yaml, right, wrong, message) in [
            ("5", json!(5.0), json!("5"), "it is not equal"),
            ("{not_equals: a}", json!("b"), json!("a"), "it must not be equal"),
            ("{one_of: [a, b]}", json!("b"), json!("c"), "it is not one of the allowed values"),
            ("{contains: b}", json!("abc"), json!("ac"), "it does not contain what it must"),
            ("{contains: [a, 5]}", json!("a5"), json!("a"), "it does not contain what it must"),
            (
                "{contains: {a: 1}}",
                json!([{"a": 1, "b": 2}]),
                json!([{"a": 2}]),
                "it does not contain what it must",
            ),
            ("{not_contains: x}", json!(["y"]), json!(["x"]), "it contains what it must not"),
            ("{matches: '^a+$'}", json!("aaa"), json!("b"), "it does not match"),
            ("{not_matches: a}", json!("b"), json!("a"), "it must not match"),
            ("{in_order: [a, b]}", json!("a b"), json!("b a"), "it does not contain all parts in this order"),
            ("{type: number}", json!(1), json!("1"), "it has the type string"),
            ("{type: integer}", json!(1.0), json!(1.5), "it has the type number"),
            ("{length: 2}", json!("äö"), json!([1]), "it has the length 1"),
            ("{length: {min: 1, max: 2}}", json!([1]), json!([]), "it has the length 0"),
            ("{min: 2}", json!(2), json!(1.9), "it is too small"),
            ("{max: 2}", json!(2), json!("x"), "it is too large"),
            ("{order: ascending}", json!([1, 1, 2]), json!([2, 1]), "it is not sorted"),
            ("{order: descending}", json!(["b", "a"]), json!([2, "a"]), "it is not sorted"),
            (
                "{schema: {type: object, required: [a]}}",
                json!({"a": 1}),
                json!({}),
                "it violates the schema: `a` is required",
            ),
            ("{exists: false}", json!(null), json!(1), "it must not exist"),
            (
                "{jsonpath: {'$.people[?@.age > 40].name': [Bob]}}",
                people,
                json!({"people": []}),
                "$.people[?@.age > 40].name is not equal",
            ),
        ] {
            if !yaml.contains("exists") {
                assert_eq!(verdict(yaml, &right), Vec::<String>::new(), "{yaml}");
            }
            let found = verdict(yaml, &wrong);
            assert_eq!(found.len(), 1, "{yaml}");
            assert!(found[0].starts_with(message), "{yaml}: {found:?}");
        }
    }

    #[test]
    fn a_missing_value_fails_every_condition_but_one() {
        let check = |yaml: &str| check_matcher(&matcher(yaml), None, "it", &Variables::default());
        assert_eq!(check("{type: string}")[0].message, "it is missing");
        assert_eq!(check("{exists: true}")[0].message, "it is missing");
        assert!(check("{exists: false}").is_empty());
    }

    #[test]
    fn large_integers_are_not_rounded() {
        assert!(!is_equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
        assert!(is_equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(contains(&json!({"a": 1}), &json!("a")));
    }
}
