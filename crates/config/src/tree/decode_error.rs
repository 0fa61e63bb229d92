//! Decoding errors. No message contains a value that could be a secret.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use super::super::problem::did_you_mean;
use super::{ConfigValue, Span};

/// A value that is invalid for its key.
#[derive(Debug, Clone)]
pub(crate) struct DecodeError {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
    /// Identity of the node. `None` until the error has passed through one.
    pub(super) node: Option<usize>,
}

impl std::error::Error for DecodeError {}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { span: Span { start: 0, end: 0 }, message: message.to_string(), suggestion: None, node: None }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {}, found {}", describe_expected(expected), unexpected(&found)))
    }

    fn invalid_value(_found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {}", describe_expected(expected)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let values = expected.join("`, `");
        let fault = Self::custom(format_args!("invalid value `{variant}`, expected one of `{values}`"));
        Self { suggestion: did_you_mean(variant, expected.iter().copied()), ..fault }
    }
}

/// Describes a type that serde expects in the terms of a configuration file.
fn describe_expected(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "f64" => "a number".to_owned(),
        "u16" => "an integer from 0 to 65535".to_owned(),
        "usize" => "a non-negative integer".to_owned(),
        _ => text,
    }
}

fn unexpected(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a number",
        Unexpected::Str(_) | Unexpected::Char(_) => "a string",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a table",
        Unexpected::Unit | Unexpected::Option => "null",
        _ => "another type",
    }
}

pub(super) fn kind(value: &ConfigValue) -> &'static str {
    match value {
        ConfigValue::Null => "null",
        ConfigValue::Bool(_) => "a boolean",
        ConfigValue::Integer(_) => "an integer",
        ConfigValue::Number(_) => "a number",
        ConfigValue::Text(_) => "a string",
        ConfigValue::List(_) => "a list",
        ConfigValue::Table(_) => "a table",
    }
}
