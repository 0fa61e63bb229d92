//! Computes the cost of the regular expressions in a schema. Expressions that a linear-time engine
//! can run are charged by the size of their program. Look-around and backreferences need
//! backtracking, which runs under a hard limit.

use std::collections::BTreeMap;

use jsonschema::PatternOptions;
use serde_json::Value;

use crate::json;

/// Maximum number of backtracking steps per match. Enough for the look-ahead of common patterns,
/// such as those for email addresses.
const MOST_BACKTRACKS: usize = 1_000;
/// Maximum size of the program of one expression, in bytes.
const LARGEST_PROGRAM: usize = 1024 * 1024;
/// Maximum total length of all expressions of a schema, in bytes.
const LONGEST_TEXT: usize = 32 * 1024;
const MOST_PATTERNS: usize = 200;
/// Each class escape (`\d`, `\w`, …) is translated in a separate pass over the expression. Maximum
/// number of bytes parsed for all of them.
const MOST_TRANSLATED: usize = 2 * 1024 * 1024;
/// Programs up to this size are small. Only a few larger ones are compiled for one schema.
const SMALL_PROGRAM: usize = 64 * 1024;
const MOST_LARGE: usize = 8;

/// The options for every schema: linear-time where the expression allows it, and always limited.
pub(super) fn options() -> PatternOptions<jsonschema::FancyRegex> {
    PatternOptions::fancy_regex()
        .backtrack_limit(MOST_BACKTRACKS)
        .size_limit(LARGEST_PROGRAM)
        .dfa_size_limit(LARGEST_PROGRAM)
}

/// The expressions of a schema, with the number of steps that each takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PatternWeights {
    weights: BTreeMap<String, Weight>,
    backtracks: bool,
    /// Whether strings are validated as regular expressions themselves.
    checks_expressions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// The number of steps per 16 bytes.
    Linear(u64),
    Backtracking,
}

const SMALL: Weight = Weight::Linear((SMALL_PROGRAM / 1024) as u64);
const LARGE: Weight = Weight::Linear((LARGEST_PROGRAM / 1024) as u64);

impl PatternWeights {
    /// Measures every expression, or returns why there are too many or they are too large.
    pub(super) fn measure(schema: &Value) -> Result<Self, String> {
        let mut all = Self { checks_expressions: has_regex_format(schema), ..Self::default() };
        let mut text = 0;
        visit_patterns(schema, &mut |pattern| {
            if !all.weights.contains_key(pattern) {
                text += pattern.len();
                all.weights.insert(pattern.to_owned(), Weight::Backtracking);
            }
            text <= LONGEST_TEXT && all.weights.len() <= MOST_PATTERNS
        });
        if all.weights.len() > MOST_PATTERNS {
            return Err(format!("it has more than {MOST_PATTERNS} patterns"));
        }
        if text > LONGEST_TEXT {
            return Err(format!("its patterns exceed {LONGEST_TEXT} bytes in total"));
        }
        if all.weights.keys().map(|pattern| translated_len(pattern)).fold(0, usize::saturating_add)
            > MOST_TRANSLATED
        {
            return Err("its patterns have too many class escapes".to_owned());
        }
        let mut large = 0;
        for (pattern, weight) in &mut all.weights {
            *weight = weigh(pattern)?;
            large += usize::from(*weight == LARGE);
            if large > MOST_LARGE {
                return Err(format!("more than {MOST_LARGE} of its patterns are large"));
            }
            all.backtracks |= *weight == Weight::Backtracking;
        }
        Ok(all)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.weights.is_empty() && !self.checks_expressions
    }

    /// Returns whether any expression may reach the backtracking limit.
    pub(super) fn may_backtrack(&self) -> bool {
        self.backtracks
    }

    /// Returns the maximum number of steps for matching this expression against a string of this
    /// many bytes.
    pub(super) fn steps(&self, pattern: &str, bytes: usize) -> u64 {
        let pieces = bytes as u64 / 16 + 1;
        match self.weights.get(pattern) {
            Some(Weight::Linear(weight)) => weight.saturating_mul(pieces),
            Some(Weight::Backtracking) | None => (MOST_BACKTRACKS as u64 / 2).saturating_mul(pieces),
        }
    }
}

/// Returns how many bytes are parsed to translate an expression from the ECMA dialect. Each escape
/// makes the expression longer.
fn translated_len(pattern: &str) -> usize {
    let escapes = pattern.matches('\\').count();
    escapes.saturating_mul(pattern.len() + 12 * escapes)
}

/// Returns the cost of an expression, based on the smallest limit under which it compiles.
fn weigh(pattern: &str) -> Result<Weight, String> {
    let schema = serde_json::json!({"pattern": pattern});
    let is_linear_in = |size| {
        let options = PatternOptions::regex().size_limit(size).dfa_size_limit(size);
        jsonschema::options().with_pattern_options(options).build(&schema).is_ok()
    };
    if is_linear_in(SMALL_PROGRAM) {
        Ok(SMALL)
    } else if is_linear_in(LARGEST_PROGRAM) {
        Ok(LARGE)
    } else if jsonschema::options().with_pattern_options(options()).build(&schema).is_ok() {
        Ok(Weight::Backtracking)
    } else {
        let pattern = json::truncate_for_message(pattern);
        Err(format!(
            "pattern {pattern:?} is not a valid regular expression, or exceeds {LARGEST_PROGRAM} bytes when compiled"
        ))
    }
}

fn has_regex_format(part: &Value) -> bool {
    match part {
        Value::Array(parts) => parts.iter().any(has_regex_format),
        Value::Object(members) => {
            members.get("format").is_some_and(|format| format == "regex")
                || members.values().any(has_regex_format)
        }
        _ => false,
    }
}

/// Calls `take` for every expression until it returns false.
fn visit_patterns(part: &Value, take: &mut impl FnMut(&str) -> bool) -> bool {
    match part {
        Value::Array(parts) => parts.iter().all(|part| visit_patterns(part, take)),
        Value::Object(members) => members.iter().all(|(key, value)| {
            let goes_on = match (key.as_str(), value) {
                ("pattern", Value::String(pattern)) => take(pattern),
                ("patternProperties", Value::Object(patterns)) => {
                    patterns.keys().all(|pattern| take(pattern))
                }
                _ => true,
            };
            goes_on && visit_patterns(value, take)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{LARGE, PatternWeights, SMALL, Weight, weigh};

    #[test]
    fn only_look_around_and_backreferences_need_backtracking() {
        for linear in ["^a*$", r"^\d{4}-\d{2}-\d{2}$", "(a+)+b", "^(a|a)*b$|^a*$", r"^[\w.-]+@[\w-]+\.\w+$"] {
            assert_eq!(weigh(linear), Ok(SMALL), "{linear}");
        }
        for hard in [r"^(?=.*\d).{8,}$", r"^(?!x)", r"(a)\1", "^((?=a)a|a)*b$|^a*$"] {
            assert_eq!(weigh(hard), Ok(Weight::Backtracking), "{hard}");
        }
        assert_eq!(weigh(r"^\p{L}{10}$"), Ok(LARGE));
    }

    #[test]
    fn too_many_and_too_large_expressions_are_refused() {
        let long = PatternWeights::measure(&json!({"pattern": "a".repeat(40_000)})).unwrap_err();
        assert_eq!(long, "its patterns exceed 32768 bytes in total");
        let large: Vec<_> = (0..30).map(|at| json!({"pattern": format!(r"^\p{{L}}{{10}}{at}$")})).collect();
        let error = PatternWeights::measure(&json!({"anyOf": large})).unwrap_err();
        assert_eq!(error, "more than 8 of its patterns are large");
        for escape in [r"\d", r"\w", r"\cA", r"[\s]"] {
            let error = PatternWeights::measure(&json!({"pattern": escape.repeat(5_000)})).unwrap_err();
            assert_eq!(error, "its patterns have too many class escapes", "{escape}");
            assert!(PatternWeights::measure(&json!({"pattern": escape.repeat(100)})).is_ok(), "{escape}");
        }
        let many: Vec<_> = (0..300).map(|at| json!({"pattern": format!("a{at}")})).collect();
        assert_eq!(
            PatternWeights::measure(&json!({"anyOf": many})).unwrap_err(),
            "it has more than 200 patterns"
        );
        for bad in ["(", "(((((a{100}){100}){100}){100}){100}){100}"] {
            let error = PatternWeights::measure(&json!({"pattern": bad})).unwrap_err();
            assert!(error.contains("is not a valid regular expression, or exceeds 1048576 bytes"), "{error}");
        }
    }

    #[test]
    fn the_same_expression_is_counted_once_wherever_it_is() {
        let pattern = "a".repeat(20_000);
        let schema = json!({"pattern": pattern, "patternProperties": {"^x": {"pattern": pattern}}});
        assert_eq!(PatternWeights::measure(&schema).unwrap().weights.len(), 2);
    }
}
