//! JSON Schemas of tools, compiled once each and only when first needed.

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

/// How many violations the message of one error tells about, and how many its details list.
const TOLD: usize = 10;
const LISTED: usize = 100;
/// Longer arguments are not repeated in errors: every violation would carry a copy of them.
const REPEATED: usize = 4096;
/// Checks within this budget are made where they are asked for: they take less than a millisecond.
const INLINE: CheckBudget = CheckBudget { steps: 20_000, depth: 250 };
/// Checks beyond this one are not made at all: they would take longer than about half a second.
const MOST: CheckBudget = CheckBudget { steps: 10_000_000, depth: 1_000 };
/// Where a value does not match is only looked for within so many steps: all violations are found at once, and each
/// takes more time and memory than many steps.
const LOCATED_STEPS: u64 = 50_000;
/// How deep a value may be nested for its check not to be counted first.
const SHALLOW: u64 = 8;
/// Longer texts are not even parsed on the runtime's threads, and longer schemas not compiled.
const INLINE_TEXT: usize = 128 * 1024;
const INLINE_SCHEMA: usize = 16 * 1024;
/// Larger schemas are not used at all: compiling them takes too much time and memory.
const LARGEST_SCHEMA: usize = 1024 * 1024;

/// A schema that belongs to nothing in the catalog.
#[derive(Debug)]
pub struct Schema {
    text: Raw,
    compiled: Arc<CompiledSchema>,
}

/// What became of a check.
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaCheck {
    /// Where the value does not match; nowhere if it does.
    Checked(Vec<SchemaViolation>),
    /// It was not checked, for this reason.
    Skipped(String),
}

impl SchemaCheck {
    /// Where the value is known not to match.
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

    /// As it was given.
    pub fn text(&self) -> &RawValue {
        &self.text
    }

    /// Why it cannot be used, if it cannot, or why a value was not checked against it.
    pub fn problem(&self) -> Option<&str> {
        self.compiled.problem(&self.text)
    }

    /// Checks a value; long checks run beside the runtime. Dropping the future abandons the check.
    pub async fn check(&self, value: &Raw) -> SchemaCheck {
        self.compiled.check_value(&self.text, value).await
    }

    /// Where a value does not match it; nowhere if the schema cannot be used, or would take too long to use. For
    /// callers that may wait: this can take as long as the longest check.
    pub fn violations(&self, value: &RawValue) -> Vec<SchemaViolation> {
        let inline = self.compiled.check_inline(&self.text, value);
        let waited =
            inline.or_else(|| offload::run_blocking(|| self.compiled.check_blocking(&self.text, value)));
        waited.map(SchemaCheck::violations).unwrap_or_default()
    }
}

/// A schema of a tool, compiled when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct CompiledSchema {
    checker: OnceLock<Result<Checker, String>>,
    /// Why a value was not checked, once that has happened.
    skipped: OnceLock<String>,
}

#[derive(Debug)]
struct Checker {
    validator: Validator,
    schema: Value,
    cost: SchemaCost,
}

impl CompiledSchema {
    /// Why the schema cannot be used, if it cannot, or why a value was not checked. Such a schema blocks nothing.
    pub(crate) fn problem(&self, schema: &RawValue) -> Option<&str> {
        match self.get_or_compile(schema) {
            Ok(_) => self.skipped.get().map(String::as_str),
            Err(problem) => Some(problem),
        }
    }

    /// Checks arguments against the declared dialect, else 2020-12.
    pub(crate) async fn check(
        self: &Arc<Self>,
        tool: &str,
        schema: &RawValue,
        arguments: &RawValue,
    ) -> Result<(), HubError> {
        let invalid = |message| HubError::new(ErrorKind::InvalidArguments, message);
        if !arguments.get().starts_with('{') {
            return Err(invalid(format!("arguments of {tool} must be an object")));
        }
        let violations = self.check_value(schema, arguments).await.violations();
        let Some(first) = violations.first() else { return Ok(()) };
        let told = violations.iter().take(TOLD).map(SchemaViolation::message).collect::<Vec<_>>().join("; ");
        let details = serde_json::json!({
            "field": first.field,
            "reason": first.reason,
            "provided": first.provided,
            "violations": violations,
        });
        Err(invalid(format!("invalid arguments for {tool}: {told}")).with_details(details))
    }

    /// In what a tool's structured result does not fit the schema.
    pub(crate) async fn result_violations(
        self: &Arc<Self>,
        schema: &RawValue,
        result: &RawValue,
    ) -> Vec<String> {
        let violations = self.check_value(schema, result).await.violations();
        violations.iter().map(SchemaViolation::message).collect()
    }

    /// Small checks are made right here; others get a thread, and a turn among those that run.
    async fn check_value(self: &Arc<Self>, schema: &RawValue, value: &RawValue) -> SchemaCheck {
        if let Some(verdict) = self.check_inline(schema, value) {
            return verdict;
        }
        let (this, schema, value) = (Arc::clone(self), schema.to_owned(), value.to_owned());
        // In a box, because every call would carry what only few need.
        let done = Box::pin(offload::run(move || this.check_blocking(&schema, &value))).await;
        done.unwrap_or_else(|| SchemaCheck::Skipped("the check could not be made".to_owned()))
    }

    /// The verdict, if it is known to take only a moment.
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

    /// The verdict, however long it takes, unless that is too long.
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
                    "a value of {bytes} bytes was not checked: that would take more than {} steps",
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
                return Err(format!("it is larger than {LARGEST_SCHEMA} bytes"));
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
            // Matches that ran into their limit cannot be told from violations here.
            if self.cost.patterns.may_backtrack() {
                return SchemaCheck::Skipped("a pattern took too long to match".to_owned());
            }
            let reason = "does not match the schema, and is too large to say where";
            return SchemaCheck::Checked(vec![SchemaViolation::new("", reason, Value::Null)]);
        }
        let repeat = if text.get().len() > REPEATED { ValueEcho::Nothing } else { ValueEcho::Arguments };
        // A match that ran into its limit says nothing about the value.
        let is_decided = |error: &jsonschema::ValidationError<'_>| {
            !matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. })
        };
        let errors = self.validator.iter_errors(value).filter(is_decided).take(LISTED);
        SchemaCheck::Checked(
            errors.map(|error| SchemaViolation::from_validation_error(&error, repeat)).collect(),
        )
    }
}

/// Parses a value, or says that it is none.
fn parse_value(text: &RawValue) -> Result<Value, SchemaCheck> {
    serde_json::from_str(text.get()).map_err(|error| {
        SchemaCheck::Checked(vec![SchemaViolation::new("", format!("cannot be read: {error}"), Value::Null)])
    })
}

/// Whether compiling takes only a moment. Regular expressions can take longer.
fn is_quick_to_compile(schema: &RawValue) -> bool {
    let text = schema.get();
    text.len() <= INLINE_SCHEMA && memchr::memmem::find(text.as_bytes(), b"\"pattern").is_none()
}

/// One way in which a value does not match a schema.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SchemaViolation {
    /// Where, as a JSON pointer; what is missing is pointed at where it should be.
    pub pointer: String,
    /// The same for people.
    pub field: String,
    pub reason: String,
    /// What is there; nothing where it is missing or too large to repeat.
    pub provided: Value,
}

impl SchemaViolation {
    pub fn new(pointer: impl Into<String>, reason: impl Into<String>, provided: Value) -> Self {
        let pointer = pointer.into();
        let field = pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~");
        Self { pointer, field, reason: reason.into(), provided }
    }

    pub fn message(&self) -> String {
        if self.field.is_empty() { self.reason.clone() } else { format!("{}: {}", self.field, self.reason) }
    }
}

/// Whether a violation repeats what was given.
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
