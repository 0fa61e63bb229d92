//! The functions and closures that can be tools: with or without parameters, with or without a
//! [`Context`].

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;
use toolyard_hub::{BoxFuture, ErrorKind, HubError, Raw};

use crate::context::Context;
use crate::error::ToolError;
use crate::output::IntoOutput;
use crate::schema;

/// A function or closure that can be a tool.
///
/// Implemented for async functions that take their parameters, a [`Context`], both in this order,
/// or nothing, and return `Result<O, ToolError>`. `Args` tells these signatures apart and is always
/// inferred.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool",
    note = "a tool is an async function of `(params)`, `(params, Context)`, `(Context)` or `()` that returns `Result<O, ToolError>`",
    note = "the parameters must implement `serde::Deserialize` and `schemars::JsonSchema`",
    note = "a closure must declare the types of its parameters"
)]
pub trait Handler<Args>: Send + Sync + 'static {
    /// The value on success.
    type Output: IntoOutput;

    /// Returns the JSON Schema of the parameters.
    fn input_schema() -> Raw;

    /// Parses the arguments and runs the function.
    fn run(&self, arguments: Raw, context: Context) -> BoxFuture<'static, Result<Self::Output, ToolError>>;
}

/// Marks the signature that takes only the [`Context`].
#[derive(Debug)]
pub struct OnlyContext;

/// Marks the signature that takes nothing.
#[derive(Debug)]
pub struct NoParams;

impl<F, P, Fut, O> Handler<(P, Context)> for F
where
    F: Fn(P, Context) -> Fut + Send + Sync + 'static,
    P: DeserializeOwned + JsonSchema,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoOutput,
{
    type Output = O;

    fn input_schema() -> Raw {
        schema::input_schema::<P>()
    }

    fn run(&self, arguments: Raw, context: Context) -> BoxFuture<'static, Result<O, ToolError>> {
        match parse_arguments(&arguments) {
            Ok(params) => Box::pin(self(params, context)),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }
}

impl<F, P, Fut, O> Handler<(P,)> for F
where
    F: Fn(P) -> Fut + Send + Sync + 'static,
    P: DeserializeOwned + JsonSchema,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoOutput,
{
    type Output = O;

    fn input_schema() -> Raw {
        schema::input_schema::<P>()
    }

    fn run(&self, arguments: Raw, _: Context) -> BoxFuture<'static, Result<O, ToolError>> {
        match parse_arguments(&arguments) {
            Ok(params) => Box::pin(self(params)),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }
}

impl<F, Fut, O> Handler<OnlyContext> for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoOutput,
{
    type Output = O;

    fn input_schema() -> Raw {
        schema::empty_input_schema()
    }

    fn run(&self, _: Raw, context: Context) -> BoxFuture<'static, Result<O, ToolError>> {
        Box::pin(self(context))
    }
}

impl<F, Fut, O> Handler<NoParams> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoOutput,
{
    type Output = O;

    fn input_schema() -> Raw {
        schema::empty_input_schema()
    }

    fn run(&self, _: Raw, _: Context) -> BoxFuture<'static, Result<O, ToolError>> {
        Box::pin(self())
    }
}

/// Parses the arguments. They match the schema already, so an error here is about a rule that the
/// schema cannot express.
fn parse_arguments<P: DeserializeOwned>(arguments: &RawValue) -> Result<P, ToolError> {
    // `()` as the parameter type means no parameters. Serde reads `()` from `null`, but arguments
    // are always an object.
    let nothing = || if is_empty(arguments) { serde_json::from_str("null").ok() } else { None };
    let read = serde_json::from_str(arguments.get()).or_else(|error| nothing().ok_or(error));
    read.or_else(|error| parse_with_integers(arguments).ok_or(error)).map_err(|error| {
        let provided: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
        let details = serde_json::json!({"field": "", "reason": error.to_string(), "provided": provided});
        HubError::new(ErrorKind::InvalidArguments, format!("input validation failed: {error}"))
            .with_details(details)
            .into()
    })
}

/// Reads whole floats as integers: JSON Schema accepts 2.0 as an integer, serde does not.
fn parse_with_integers<P: DeserializeOwned>(arguments: &RawValue) -> Option<P> {
    let mut value: Value = serde_json::from_str(arguments.get()).ok()?;
    normalize_integers(&mut value);
    serde_json::from_value(value).ok()
}

fn normalize_integers(value: &mut Value) {
    /// The largest magnitude up to which every integer has an exact `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0);
            if let Some(float) = whole.filter(|float| float.abs() <= EXACT) {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "the number is whole and its range is checked"
                )]
                let integer = float as i64;
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize_integers),
        Value::Object(members) => members.values_mut().for_each(normalize_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn is_empty(arguments: &RawValue) -> bool {
    Object::parse(arguments).is_ok_and(|members| members.is_empty())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;
    use toolyard_hub::json::to_raw;

    use super::parse_arguments;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Params {
        size: u16,
        share: f64,
    }

    #[test]
    fn a_whole_float_is_read_as_an_integer() {
        let params: Params = parse_arguments(&to_raw(&json!({"size": 201.0, "share": 2.0}))).unwrap();
        assert_eq!(params, Params { size: 201, share: 2.0 });
    }

    #[test]
    fn a_fraction_is_not_read_as_an_integer() {
        assert!(parse_arguments::<Params>(&to_raw(&json!({"size": 201.5, "share": 2.0}))).is_err());
        assert!(parse_arguments::<Params>(&to_raw(&json!({"size": 1e300, "share": 2.0}))).is_err());
    }
}
