//! The value of a plain YAML scalar in the core schema of YAML 1.2: `y`, `on` and dates are
//! strings, `012` is twelve.

use serde_json::Number;

use super::node::SpecNode;

/// Returns the value of a scalar without quotes and without a tag.
pub(super) fn parse_plain_scalar(text: &str) -> SpecNode {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => SpecNode::Null,
        "true" | "True" | "TRUE" => SpecNode::Bool(true),
        "false" | "False" | "FALSE" => SpecNode::Bool(false),
        _ => parse_number(text).map_or_else(|| SpecNode::String(text.into()), SpecNode::Number),
    }
}

/// Parses a number of the core schema. Numbers beyond the range of a double become the largest
/// double, because JSON has no infinity.
pub(crate) fn parse_number(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if digits.len() == text.len() {
        if let Some(octal) = digits.strip_prefix("0o") {
            return from_radix(octal, 8);
        }
        if let Some(hexadecimal) = digits.strip_prefix("0x") {
            return from_radix(hexadecimal, 16);
        }
    }
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let exact = if negative {
            format!("-{digits}").parse::<i64>().map(Number::from).ok()
        } else {
            digits.parse::<u64>().map(Number::from).ok()
        };
        if exact.is_some() {
            return exact;
        }
    } else if !is_float(digits) {
        return None;
    }
    let value: f64 = digits.parse().ok()?;
    let value = value.min(f64::MAX);
    Number::from_f64(if negative { -value } else { value })
}

fn from_radix(digits: &str, radix: u32) -> Option<Number> {
    let sound = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    sound.then(|| u64::from_str_radix(digits, radix).ok().map(Number::from)).flatten()
}

/// Accepts `12.`, `.5`, `1.5e-3`: digits on at least one side of the point, and digits in the
/// exponent if there is one.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let sound_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && sound_exponent
}
