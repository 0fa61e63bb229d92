//! Compares a recorded value with a current one. A masked secret stands for any text.

use serde_json::Value;
use toolyard_hub::REDACTED;

/// Whether `actual` is what was recorded. A value that was masked as a whole matches any value, and
/// a masked part of a text matches any text. Numbers are compared by value.
pub fn is_equal_except_masked(recorded: &Value, actual: &Value) -> bool {
    match (recorded, actual) {
        (Value::String(recorded), _) if recorded == REDACTED => true,
        (Value::String(recorded), Value::String(actual)) => matches_text(recorded, actual),
        (Value::Array(recorded), Value::Array(actual)) => {
            recorded.len() == actual.len()
                && recorded
                    .iter()
                    .zip(actual)
                    .all(|(recorded, actual)| is_equal_except_masked(recorded, actual))
        }
        (Value::Object(recorded), Value::Object(actual)) => {
            recorded.len() == actual.len()
                && recorded.iter().all(|(key, recorded)| {
                    actual.get(key).is_some_and(|actual| is_equal_except_masked(recorded, actual))
                })
        }
        (Value::Number(recorded), Value::Number(actual)) => {
            recorded == actual || recorded.as_f64().is_some_and(|recorded| actual.as_f64() == Some(recorded))
        }
        _ => recorded == actual,
    }
}

fn matches_text(recorded: &str, actual: &str) -> bool {
    let mut parts = recorded.split(REDACTED);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_equal_except_masked;

    #[test]
    fn masked_values_stand_for_anything() {
        for (recorded, actual, expect) in [
            (json!({"a": "[redacted]", "b": 1}), json!({"b": 1.0, "a": [7]}), true),
            (json!("key=[redacted]; x"), json!("key=abc; x"), true),
            (json!("[redacted]-[redacted]"), json!("a-b"), true),
            (json!("key=[redacted]; x"), json!("key=abc; y"), false),
            (json!("a"), json!("ab"), false),
            (json!(["a"]), json!(["a", "b"]), false),
            (json!({"a": 1}), json!({"b": 1}), false),
            (json!(1), json!(2), false),
            (json!(null), json!(null), true),
        ] {
            assert_eq!(is_equal_except_masked(&recorded, &actual), expect, "{recorded} {actual}");
        }
    }
}
