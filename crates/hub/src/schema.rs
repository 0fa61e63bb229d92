//! JSON Schemas of tools. Each is compiled once, when it is first used.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use serde_json::value::RawValue;

use self::cost::SchemaCost;
use self::estimate::{CheckBudget, Estimate, depth, estimate, size};
use crate::error::{ErrorKind, HubError};
use crate::json::{self, Raw};

mod cost;
mod estimate;
mod offload;
mod pattern;

/// Maximum number of violations in an error message, and in its details.
const MAX_IN_MESSAGE: usize = 10;
const LISTED: usize = 100;
/// Longer arguments are not included in errors, because every violation would contain a copy.
const REPEATED: usize = 4096;
/// Checks within this budget run inline: they take less than a millisecond.
const INLINE: CheckBudget = CheckBudget { steps: 20_000, depth: 250 };
/// Checks beyond this budget are skipped: they would take longer than about half a second.
const MOST: CheckBudget = CheckBudget { steps: 10_000_000, depth: 1_000 };
/// Violations are located only within this many steps: all of them are collected at once, and each
/// takes more time and memory than many steps.
const LOCATED_STEPS: u64 = 50_000;
/// Values up to this depth are checked without estimating the cost first.
const SHALLOW: u64 = 8;
/// Longer texts are not parsed on the threads of the runtime, and longer schemas are not compiled
/// there.
const INLINE_TEXT: usize = 128 * 1024;
const INLINE_SCHEMA: usize = 16 * 1024;
/// Larger schemas are not used: compiling them takes too much time and memory.
const LARGEST_SCHEMA: usize = 1024 * 1024;

/// A schema that does not belong to a catalog entry.
#[derive(Debug)]
pub struct Schema {
    text: Raw,
    compiled: Arc<CompiledSchema>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaCheck {
    /// The violations. Empty if the value matches.
    Checked(Vec<SchemaViolation>),
    /// The value was not checked, for this reason.
    Skipped(String),
}

impl SchemaCheck {
    /// Returns the known violations.
    pub fn violations(self) -> Vec<SchemaViolation> {
        match self {
            Self::Checked(violations) => violations,
            Self::Skipped(_) => Vec::new(),
        }
    }
}

impl Schema {
    pub fn new(text: Raw) -> Self {
        Self { text, compiled: Arc::default() }
    }

    /// The schema as given.
    pub fn text(&self) -> &RawValue {
        &self.text
    }

    /// Why the schema cannot be used, or why a value was not checked against it.
    pub fn problem(&self) -> Option<&str> {
        self.compiled.problem(&self.text)
    }

    /// Checks a value. Long checks run outside the runtime. Dropping the future abandons the check.
    pub async fn check(&self, value: &Raw) -> SchemaCheck {
        self.compiled.check_value(&self.text, value).await
    }

    /// Checks a value and blocks for as long as the longest check takes. Returns no violations if
    /// the schema cannot be used or the check would take too long.
    pub fn violations(&self, value: &RawValue) -> Vec<SchemaViolation> {
        let inline = self.compiled.check_inline(&self.text, value);
        let waited =
            inline.or_else(|| offload::run_blocking(|| self.compiled.check_blocking(&self.text, value)));
        waited.map(SchemaCheck::violations).unwrap_or_default()
    }
}

/// A schema of a tool, compiled when it is first used.
#[derive(Debug, Default)]
pub(crate) struct CompiledSchema {
    checker: OnceLock<Result<Checker, String>>,
    /// Why a value was not checked, if that has happened.
    skipped: OnceLock<String>,
}

#[derive(Debug)]
struct Checker {
    validator: Validator,
    schema: Value,
    cost: SchemaCost,
}

impl CompiledSchema {
    /// Why the schema cannot be used, or why a value was not checked. Such a schema never causes a
    /// rejection.
    pub(crate) fn problem(&self, schema: &RawValue) -> Option<&str> {
        match self.get_or_compile(schema) {
            Ok(_) => self.skipped.get().map(String::as_str),
            Err(problem) => Some(problem),
        }
    }

    /// Checks arguments against the declared dialect. Default: 2020-12.
    pub(crate) async fn check(
        self: &Arc<Self>,
        tool: &str,
        schema: &RawValue,
        arguments: &RawValue,
    ) -> Result<(), HubError> {
        let invalid = |message| HubError::new(ErrorKind::InvalidArguments, message);
        if !arguments.get().starts_with('{') {
            return Err(invalid(format!("arguments of `{tool}` must be an object")));
        }
        let violations = self.check_value(schema, arguments).await.violations();
        let Some(first) = violations.first() else { return Ok(()) };
        let reasons = violations
            .iter()
            .take(MAX_IN_MESSAGE)
            .map(SchemaViolation::message)
            .collect::<Vec<_>>()
            .join("; ");
        let details = serde_json::json!({
            "field": first.field,
            "reason": first.reason,
            "provided": first.provided,
            "violations": violations,
        });
        Err(invalid(format!("invalid arguments for `{tool}`: {reasons}")).with_details(details))
    }

    /// Returns the violations in the structured result of a tool.
    pub(crate) async fn result_violations(
        self: &Arc<Self>,
        schema: &RawValue,
        result: &RawValue,
    ) -> Vec<String> {
        let violations = self.check_value(schema, result).await.violations();
        violations.iter().map(SchemaViolation::message).collect()
    }

    /// Checks a value inline if that is cheap, otherwise on a separate thread, with a limited
    /// number of concurrent checks.
    async fn check_value(self: &Arc<Self>, schema: &RawValue, value: &RawValue) -> SchemaCheck {
        if let Some(verdict) = self.check_inline(schema, value) {
            return verdict;
        }
        let (this, schema, value) = (Arc::clone(self), schema.to_owned(), value.to_owned());
        // Boxed, because few calls need it and every call would carry its size.
        let done = Box::pin(offload::run(move || this.check_blocking(&schema, &value))).await;
        done.unwrap_or_else(|| SchemaCheck::Skipped("the check could not be run".to_owned()))
    }

    /// Checks inline if that is known to be fast.
    fn check_inline(&self, schema: &RawValue, text: &RawValue) -> Option<SchemaCheck> {
        if text.get().len() > INLINE_TEXT || (self.checker.get().is_none() && !is_quick_to_compile(schema)) {
            return None;
        }
        let checker = match self.get_or_compile(schema) {
            Ok(checker) => checker,
            Err(problem) => return Some(SchemaCheck::Skipped(problem.clone())),
        };
        let value = match parse_value(text) {
            Ok(value) => value,
            Err(verdict) => return Some(verdict),
        };
        let is_small = checker.cost.is_simple()
            && checker.cost.max_steps(size(&value)) <= INLINE.steps
            && depth(&value) <= SHALLOW;
        if is_small {
            return Some(checker.check(&value, text, INLINE.steps));
        }
        match checker.estimate(&value, INLINE) {
            Estimate::Steps(steps) => Some(checker.check(&value, text, steps)),
            Estimate::OverBudget => None,
        }
    }

    /// Checks regardless of the duration, up to the maximum budget.
    fn check_blocking(&self, schema: &RawValue, text: &RawValue) -> SchemaCheck {
        let checker = match self.get_or_compile(schema) {
            Ok(checker) => checker,
            Err(problem) => return SchemaCheck::Skipped(problem.clone()),
        };
        let value = match parse_value(text) {
            Ok(value) => value,
            Err(verdict) => return verdict,
        };
        match checker.estimate(&value, MOST) {
            Estimate::Steps(steps) => checker.check(&value, text, steps),
            Estimate::OverBudget => {
                let bytes = text.get().len();
                let problem = format!(
                    "a value of {bytes} bytes was not checked: the check would exceed the limit of {} steps",
                    MOST.steps
                );
                SchemaCheck::Skipped(self.skipped.get_or_init(|| problem).clone())
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn address(&self) -> Option<*const Validator> {
        let checker = self.checker.get().and_then(|checker| checker.as_ref().ok());
        checker.map(|checker| std::ptr::from_ref(&checker.validator))
    }

    fn get_or_compile(&self, schema: &RawValue) -> &Result<Checker, String> {
        self.checker.get_or_init(|| {
            if schema.get().len() > LARGEST_SCHEMA {
                return Err(format!("it exceeds the limit of {LARGEST_SCHEMA} bytes"));
            }
            let schema: Value = serde_json::from_str(schema.get()).map_err(|error| error.to_string())?;
            let cost = SchemaCost::measure(&schema)?;
            let options = jsonschema::options().with_pattern_options(pattern::options());
            let validator = options.build(&schema).map_err(|error| error.to_string())?;
            Ok(Checker { validator, schema, cost })
        })
    }
}

impl Checker {
    fn estimate(&self, value: &Value, budget: CheckBudget) -> Estimate {
        estimate(&self.schema, &self.cost.patterns, value, budget)
    }

    fn check(&self, value: &Value, text: &RawValue, steps: u64) -> SchemaCheck {
        if self.validator.is_valid(value) {
            return SchemaCheck::Checked(Vec::new());
        }
        if steps > LOCATED_STEPS {
            // At this point, matches that reached the backtracking limit cannot be distinguished
            // from violations.
            if self.cost.patterns.may_backtrack() {
                return SchemaCheck::Skipped("a pattern took too long to match".to_owned());
            }
            let reason = "does not match the schema; the value is too large to locate the violations";
            return SchemaCheck::Checked(vec![SchemaViolation::new("", reason, Value::Null)]);
        }
        let repeat = if text.get().len() > REPEATED { ValueEcho::Nothing } else { ValueEcho::Arguments };
        // A match that reached the limit says nothing about the value.
        let is_decided = |error: &jsonschema::ValidationError<'_>| {
            !matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. })
        };
        let errors = self.validator.iter_errors(value).filter(is_decided).take(LISTED);
        SchemaCheck::Checked(
            errors.map(|error| SchemaViolation::from_validation_error(&error, repeat)).collect(),
        )
    }
}

/// Parses a value, or returns a violation if it is not valid JSON.
fn parse_value(text: &RawValue) -> Result<Value, SchemaCheck> {
    serde_json::from_str(text.get()).map_err(|error| {
        SchemaCheck::Checked(vec![SchemaViolation::new("", format!("invalid JSON: {error}"), Value::Null)])
    })
}

/// Returns whether compiling the schema is fast. Regular expressions can take longer.
fn is_quick_to_compile(schema: &RawValue) -> bool {
    let text = schema.get();
    text.len() <= INLINE_SCHEMA && memchr::memmem::find(text.as_bytes(), b"\"pattern").is_none()
}

/// One violation of a schema.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SchemaViolation {
    /// The location as a JSON pointer. For a missing member, where it should be.
    pub pointer: String,
    /// The location in readable form.
    pub field: String,
    pub reason: String,
    /// The value found. `null` if it is missing or too large to include.
    pub provided: Value,
}

impl SchemaViolation {
    pub fn new(pointer: impl Into<String>, reason: impl Into<String>, provided: Value) -> Self {
        let pointer = pointer.into();
        let field = pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~");
        Self { pointer, field, reason: reason.into(), provided }
    }

    pub fn message(&self) -> String {
        let Self { field, reason, .. } = self;
        // Other reasons have their own subject.
        let is_predicate = ["is ", "must ", "does not "].iter().any(|start| reason.starts_with(start));
        match field.as_str() {
            "" => reason.clone(),
            _ if is_predicate => format!("`{field}` {reason}"),
            _ => format!("`{field}`: {reason}"),
        }
    }
}

/// Whether a violation includes the given value.
#[derive(Clone, Copy)]
enum ValueEcho {
    Arguments,
    Nothing,
}

impl SchemaViolation {
    fn from_validation_error(error: &jsonschema::ValidationError<'_>, repeat: ValueEcho) -> Self {
        let mut pointer = error.instance_path().as_str().to_owned();
        if let ValidationErrorKind::Required { property } = error.kind() {
            let property = property.as_str().unwrap_or_default();
            pointer.push('/');
            pointer.push_str(&property.replace('~', "~0").replace('/', "~1"));
        }
        let (reason, provided) = match (error.kind(), repeat) {
            (ValidationErrorKind::Required { .. }, _) => ("is required".to_owned(), Value::Null),
            (_, ValueEcho::Arguments) => (error.to_string(), error.instance().as_ref().clone()),
            (_, ValueEcho::Nothing) => {
                (json::truncate_for_message(&error.masked().to_string()).into_owned(), Value::Null)
            }
        };
        Self::new(pointer, reason, provided)
    }
}

#[cfg(test)]
mod tests;
