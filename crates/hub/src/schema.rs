//! JSON Schemas of tools, compiled once each and only when first needed.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;
use serde_json::value::RawValue;

use self::cost::Cost;
use crate::error::{Error, Kind};
use crate::json::{self, Raw};

mod cost;

/// How many violations the message of one error tells about, and how many its details list.
const TOLD: usize = 10;
const LISTED: usize = 100;
/// Longer arguments are not repeated in errors: every violation would carry a copy of them.
const REPEATED: usize = 4096;

/// A schema that belongs to nothing in the catalog.
#[derive(Debug)]
pub struct Schema {
    text: Raw,
    compiled: Compiled,
}

impl Schema {
    pub fn new(text: Raw) -> Self {
        Self { text, compiled: Compiled::default() }
    }

    /// As it was given.
    pub fn text(&self) -> &RawValue {
        &self.text
    }

    /// Why it cannot be used, if it cannot.
    pub fn problem(&self) -> Option<&str> {
        self.compiled.problem(&self.text)
    }

    /// Where a value does not match it; nowhere if the schema cannot be used, or would take for ever to use.
    pub fn violations(&self, value: &RawValue) -> Vec<Violation> {
        match serde_json::from_str(value.get()) {
            Ok(read) => self.compiled.violations(&self.text, &read, value.get().len()),
            Err(error) => vec![Violation::new("", format!("cannot be read: {error}"), Value::Null)],
        }
    }
}

/// A schema of a tool, compiled when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    validator: OnceLock<Result<(Validator, Cost), String>>,
}

impl Compiled {
    /// Why the schema cannot be used, if it cannot. Such a schema blocks nothing.
    pub(crate) fn problem(&self, schema: &RawValue) -> Option<&str> {
        self.get(schema).as_ref().err().map(String::as_str)
    }

    /// Checks arguments against the declared dialect, else 2020-12.
    pub(crate) fn check(&self, tool: &str, schema: &RawValue, arguments: &RawValue) -> Result<(), Error> {
        let invalid = |message| Error::new(Kind::InvalidArguments, message);
        let value: Value = serde_json::from_str(arguments.get())
            .map_err(|error| invalid(format!("arguments of {tool} cannot be read: {error}")))?;
        if !value.is_object() {
            return Err(invalid(format!("arguments of {tool} must be an object")));
        }
        let violations = self.violations(schema, &value, arguments.get().len());
        let Some(first) = violations.first() else { return Ok(()) };
        let told = violations.iter().take(TOLD).map(Violation::sentence).collect::<Vec<_>>().join("; ");
        let details = serde_json::json!({
            "field": first.field,
            "reason": first.reason,
            "provided": first.provided,
            "violations": violations,
        });
        Err(invalid(format!("invalid arguments for {tool}: {told}")).with_details(details))
    }

    /// In what a tool's structured result does not fit the schema.
    pub(crate) fn result_violations(&self, schema: &RawValue, result: &RawValue) -> Vec<String> {
        match serde_json::from_str(result.get()) {
            Ok(value) => {
                self.violations(schema, &value, result.get().len()).iter().map(Violation::sentence).collect()
            }
            Err(error) => vec![format!("it cannot be read: {error}")],
        }
    }

    fn violations(&self, schema: &RawValue, value: &Value, size: usize) -> Vec<Violation> {
        let Ok((validator, cost)) = self.get(schema) else { return Vec::new() };
        // What would take too long to check is for the source to judge, like a schema that cannot be used.
        if !cost.bears(value) || validator.is_valid(value) {
            return Vec::new();
        }
        let repeat = if size > REPEATED { Repeat::Nothing } else { Repeat::Arguments };
        validator.iter_errors(value).take(LISTED).map(|error| Violation::of(&error, repeat)).collect()
    }

    #[cfg(test)]
    pub(crate) fn address(&self) -> Option<*const Validator> {
        self.validator
            .get()
            .and_then(|validator| validator.as_ref().ok())
            .map(|(validator, _)| std::ptr::from_ref(validator))
    }

    fn get(&self, schema: &RawValue) -> &Result<(Validator, Cost), String> {
        self.validator.get_or_init(|| {
            let schema: Value = serde_json::from_str(schema.get()).map_err(|error| error.to_string())?;
            let cost = Cost::of(&schema)?;
            let validator = jsonschema::options().build(&schema).map_err(|error| error.to_string())?;
            Ok((validator, cost))
        })
    }
}

/// One way in which a value does not match a schema.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Violation {
    /// Where, as a JSON pointer; what is missing is pointed at where it should be.
    pub pointer: String,
    /// The same for people.
    pub field: String,
    pub reason: String,
    /// What is there; nothing where it is missing or too large to repeat.
    pub provided: Value,
}

impl Violation {
    pub fn new(pointer: impl Into<String>, reason: impl Into<String>, provided: Value) -> Self {
        let pointer = pointer.into();
        let field = pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~");
        Self { pointer, field, reason: reason.into(), provided }
    }

    pub fn sentence(&self) -> String {
        if self.field.is_empty() { self.reason.clone() } else { format!("{}: {}", self.field, self.reason) }
    }
}

/// Whether a violation repeats what was given.
#[derive(Clone, Copy)]
enum Repeat {
    Arguments,
    Nothing,
}

impl Violation {
    fn of(error: &jsonschema::ValidationError<'_>, repeat: Repeat) -> Self {
        use jsonschema::error::ValidationErrorKind;
        let mut pointer = error.instance_path().as_str().to_owned();
        if let ValidationErrorKind::Required { property } = error.kind() {
            let property = property.as_str().unwrap_or_default();
            pointer.push('/');
            pointer.push_str(&property.replace('~', "~0").replace('/', "~1"));
        }
        let (reason, provided) = match (error.kind(), repeat) {
            (ValidationErrorKind::Required { .. }, _) => ("is required".to_owned(), Value::Null),
            (_, Repeat::Arguments) => (error.to_string(), error.instance().as_ref().clone()),
            (_, Repeat::Nothing) => (json::short(&error.masked().to_string()).into_owned(), Value::Null),
        };
        Self::new(pointer, reason, provided)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Compiled;
    use crate::json::from_text;

    fn check(schema: &str, arguments: &str) -> Result<(), (String, serde_json::Value)> {
        Compiled::default()
            .check("t", &from_text(schema.to_owned()), &from_text(arguments.to_owned()))
            .map_err(|error| (error.message().to_owned(), error.details().cloned().unwrap_or_default()))
    }

    /// The details of an error about this one thing.
    fn details(violation: &serde_json::Value) -> serde_json::Value {
        json!({
            "field": violation["field"],
            "reason": violation["reason"],
            "provided": violation["provided"],
            "violations": [violation],
        })
    }

    #[test]
    fn every_violation_is_listed_with_a_pointer_that_leads_to_it() {
        let schema = r#"{"properties":{"a/b":{"properties":{"n":{"type":"integer"}},"required":["~m"]},"list":{"items":{"type":"string"}}}}"#;
        let (_, told) = check(schema, r#"{"a/b":{"n":"x"},"list":["fine",7]}"#).unwrap_err();
        let mut listed: Vec<_> = told["violations"].as_array().unwrap().clone();
        listed.sort_by_key(|violation| violation["pointer"].as_str().unwrap().to_owned());
        assert_eq!(
            listed,
            [
                json!({"pointer": "/a~1b/n", "field": "a/b.n", "reason": "\"x\" is not of type \"integer\"", "provided": "x"}),
                json!({"pointer": "/a~1b/~0m", "field": "a/b.~m", "reason": "is required", "provided": null}),
                json!({"pointer": "/list/1", "field": "list.1", "reason": "7 is not of type \"string\"", "provided": 7}),
            ]
        );
    }

    #[test]
    fn tells_which_field_why_and_what_was_given() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
        assert_eq!(check(schema, r#"{"n":1}"#), Ok(()));
        assert_eq!(
            check(schema, r#"{"n":"x"}"#),
            Err((
                "invalid arguments for t: n: \"x\" is not of type \"integer\"".to_owned(),
                details(&json!({
                    "pointer": "/n",
                    "field": "n",
                    "reason": "\"x\" is not of type \"integer\"",
                    "provided": "x",
                })),
            ))
        );
        assert_eq!(
            check(schema, "{}"),
            Err((
                "invalid arguments for t: n: is required".to_owned(),
                details(&json!({"pointer": "/n", "field": "n", "reason": "is required", "provided": null}),),
            ))
        );
    }

    #[test]
    fn obeys_the_declared_dialect() {
        let tuple = r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{"type":"string"}]}}}"#;
        assert!(check(tuple, r#"{"a":[1]}"#).is_err());
        let prefix = r#"{"properties":{"a":{"prefixItems":[{"type":"string"}]}}}"#;
        assert!(check(prefix, r#"{"a":[1]}"#).is_err());
    }

    #[test]
    fn a_schema_that_does_not_compile_blocks_nothing_and_says_why() {
        let broken = from_text(r#"{"type":"object","properties":{"a":{"type":7}}}"#.to_owned());
        let compiled = Compiled::default();
        assert!(compiled.problem(&broken).is_some());
        assert!(compiled.check("t", &broken, &from_text(r#"{"a":1}"#.to_owned())).is_ok());
        let remote = from_text(r#"{"$ref":"https://example.com/schema.json"}"#.to_owned());
        assert!(Compiled::default().problem(&remote).is_some());
    }

    #[test]
    fn arguments_that_are_no_object_are_refused() {
        assert_eq!(check("{}", "[1]").unwrap_err().0, "arguments of t must be an object");
    }

    #[test]
    fn long_arguments_are_not_repeated_in_the_error() {
        let long = format!(r#"{{"n":"{}"}}"#, "x".repeat(100_000));
        let (message, told) = check(r#"{"properties":{"n":{"type":"integer"}}}"#, &long).unwrap_err();
        assert_eq!(message, "invalid arguments for t: n: value is not of type \"integer\"");
        let reason = "value is not of type \"integer\"";
        assert_eq!(
            told,
            details(&json!({"pointer": "/n", "field": "n", "reason": reason, "provided": null}))
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_without_end_does_no_harm() {
        for schema in [
            r##"{"$ref":"#"}"##,
            r##"{"allOf":[{"$ref":"#"}]}"##,
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
            r##"{"not":{"$ref":"#"}}"##,
            r##"{"$dynamicRef":"#x","$dynamicAnchor":"x"}"##,
        ] {
            let _ = check(schema, r#"{"a":1}"#);
        }
    }
}
