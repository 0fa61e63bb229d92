//! Assertions on the result of a step, and how they are checked.

use std::time::Duration;

use serde_json::Value;

use crate::file::FilePosition;
use diff::shorten;

pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod matcher;
pub(crate) mod messages;
pub(crate) mod observation;
pub(crate) mod path;

/// One assertion.
#[derive(Debug, Clone)]
pub struct Expectation {
    pub at: FilePosition,
    /// What it is about, such as `text` or a JSONPath.
    pub label: String,
    pub check: ExpectationCheck,
}

#[derive(Debug, Clone)]
pub enum ExpectationCheck {
    Value {
        target: ValueTarget,
        matcher: Matcher,
    },
    /// Values in the result.
    Path {
        path: String,
        matcher: Matcher,
    },
    ErrorCode(i64),
    Progress(ProgressExpectation),
    Notification(NotificationExpectation),
    Log(LogExpectation),
    Latency(Duration),
    Size(u64),
    File {
        path: String,
        check: FileCheck,
    },
}

/// A part of what a step produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueTarget {
    Text,
    Json,
    Structured,
    Result,
    Names,
    Questions,
    Stderr,
    ErrorMessage,
    ErrorData,
}

#[derive(Debug, Clone)]
pub enum FileCheck {
    Exists,
    Missing,
    Text(Matcher),
    Json(Matcher),
}

/// Conditions that all must hold for one value.
#[derive(Debug, Clone)]
pub struct Matcher {
    pub conditions: Vec<Condition>,
}

#[derive(Debug, Clone)]
pub struct Condition {
    pub at: FilePosition,
    pub kind: ConditionKind,
}

#[derive(Debug, Clone)]
pub enum ConditionKind {
    Equals(Value),
    /// Equal to a recorded value, in which masked secrets stand for anything.
    EqualsRecorded(Value),
    NotEquals(Value),
    OneOf(Vec<Value>),
    Contains(Vec<Value>),
    NotContains(Vec<Value>),
    Matches(Vec<String>),
    NotMatches(Vec<String>),
    InOrder(Vec<Value>),
    Type(JsonType),
    Length(CountBounds),
    Min(f64),
    Max(f64),
    Order(SortOrder),
    Schema(Value),
    Exists(bool),
    Paths(Vec<(String, Matcher)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl JsonType {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Returns the most specific type of a value.
    pub(crate) fn classify(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_i64() || number.is_u64() => Self::Integer,
            Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => {
                Self::Integer
            }
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortOrder {
    Ascending,
    Descending,
}

/// A range of counts. Empty fields do not restrict it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountBounds {
    pub min: Option<usize>,
    pub max: Option<usize>,
}

impl CountBounds {
    pub fn exactly(count: usize) -> Self {
        Self { min: Some(count), max: Some(count) }
    }

    pub(crate) fn contains(&self, count: usize) -> bool {
        self.min.is_none_or(|min| count >= min) && self.max.is_none_or(|max| count <= max)
    }

    pub(crate) fn words(&self) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => min.to_string(),
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, Some(max)) => format!("at most {max}"),
            (None, None) => "any number".to_owned(),
        }
    }
}

/// What the progress notifications of a step must be.
#[derive(Debug, Clone)]
pub struct ProgressExpectation {
    pub bounds: CountBounds,
    pub increasing: bool,
    pub last: Option<f64>,
    pub messages: Option<Matcher>,
}

/// How many notifications must match.
#[derive(Debug, Clone)]
pub struct NotificationExpectation {
    pub at: FilePosition,
    pub method: String,
    pub params: Option<Matcher>,
    pub bounds: CountBounds,
}

/// How many log messages must match.
#[derive(Debug, Clone)]
pub struct LogExpectation {
    pub at: FilePosition,
    pub level: Option<String>,
    pub logger: Option<String>,
    pub data: Option<Matcher>,
    pub bounds: CountBounds,
}

/// An assertion that does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct AssertionFailure {
    pub at: FilePosition,
    /// What failed, in one line.
    pub message: String,
    pub expected: Option<String>,
    pub actual: Option<String>,
    /// The difference between the two, if both are long.
    pub diff: Option<String>,
    /// The rule of a generic test.
    pub rule: Option<&'static str>,
    /// The command that repeats the failure.
    pub reproduce: Option<String>,
}

impl AssertionFailure {
    pub fn new(at: FilePosition, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            expected: None,
            actual: None,
            diff: None,
            rule: None,
            reproduce: None,
        }
    }

    /// Shortens texts that a server chose, because reports keep all of them.
    pub(crate) fn shortened(self) -> Self {
        let short = |text: Option<String>| text.map(|text| shorten(&text));
        Self {
            at: self.at,
            message: shorten(&self.message),
            expected: short(self.expected),
            actual: short(self.actual),
            // Its number of lines and their lengths are limited already.
            diff: self.diff,
            rule: self.rule,
            reproduce: self.reproduce,
        }
    }
}
