//! Tools that calculate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_sdk::{Json, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// The sum of both numbers.
    sum: f64,
}

/// Adds two numbers.
#[tool(title = "Add", category = "numbers", read_only = true, idempotent = true, open_world = false)]
pub(super) async fn add(params: Add) -> Result<Json<Sum>, ToolError> {
    Ok(Json(Sum { sum: params.a + params.b }))
}

#[derive(Deserialize, JsonSchema)]
struct Conversion {
    /// The temperature to convert.
    value: f64,
    /// The unit of the temperature.
    from: Unit,
    /// The unit to convert to.
    to: Unit,
    /// How many digits to keep after the decimal point.
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 10))]
    precision: u8,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Unit {
    Celsius,
    Fahrenheit,
    Kelvin,
}

#[derive(Serialize, JsonSchema)]
struct Temperature {
    /// The converted temperature.
    value: f64,
    /// The unit of the converted temperature.
    unit: Unit,
}

fn two() -> u8 {
    2
}

/// Converts a temperature between Celsius, Fahrenheit and Kelvin.
#[tool(
    title = "Convert temperature",
    category = "numbers",
    tags = ["celsius", "fahrenheit", "kelvin"],
    read_only = true,
    idempotent = true,
    open_world = false
)]
pub(super) async fn convert_temperature(params: Conversion) -> Result<Json<Temperature>, ToolError> {
    let kelvin = match params.from {
        Unit::Celsius => params.value + 273.15,
        Unit::Fahrenheit => (params.value + 459.67) * 5.0 / 9.0,
        Unit::Kelvin => params.value,
    };
    // Absolute zero itself is valid, even if the conversion leaves a rounding error.
    if kelvin < -1e-9 {
        return Err(ToolError::invalid("value", "is below absolute zero", params.value));
    }
    let value = match params.to {
        Unit::Celsius => kelvin - 273.15,
        Unit::Fahrenheit => kelvin * 9.0 / 5.0 - 459.67,
        Unit::Kelvin => kelvin,
    };
    let scale = 10f64.powi(i32::from(params.precision));
    let rounded = (value * scale).round() / scale;
    // Adding zero turns "-0", the result of rounding a tiny negative number, into "0".
    Ok(Json(Temperature { value: rounded + 0.0, unit: params.to }))
}
