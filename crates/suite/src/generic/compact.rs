//! How generated arguments are printed and read back: a long text of one repeated character is
//! `{"$repeat": ["a", 5001]}`, so that a counterexample fits on a line.

use serde_json::{Value, json};

/// Shorter texts are printed as they are.
const SHORTEST: usize = 64;
/// Longer texts are not read.
const LONGEST: usize = 16 << 20;

/// Returns the value in the form that is printed.
pub(crate) fn compact(value: &Value) -> Value {
    match value {
        Value::String(text) => match repeated(text) {
            Some((letter, count)) => json!({"$repeat": [letter.to_string(), count]}),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(compact).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), compact(value))).collect::<Value>()
        }
        _ => value.clone(),
    }
}

/// Returns the letter and the count of a long text of one letter.
pub(crate) fn repeated(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let count = text.chars().count();
    (count >= SHORTEST && text.chars().all(|letter| letter == first)).then_some((first, count))
}

/// Reads arguments as they are printed.
pub fn parse_compact_arguments(text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
    match expand(value)? {
        Value::Object(members) => Ok(Value::Object(members)),
        _ => Err("the arguments must be a JSON object, such as '{\"text\": \"\"}'".to_owned()),
    }
}

fn expand(value: Value) -> Result<Value, String> {
    Ok(match value {
        Value::Array(items) => items.into_iter().map(expand).collect::<Result<_, _>>()?,
        Value::Object(members) => {
            if let (1, Some(Value::Array(parts))) = (members.len(), members.get("$repeat")) {
                return repeat(parts);
            }
            let members = members.into_iter().map(|(key, value)| Ok((key, expand(value)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        other => other,
    })
}

fn repeat(parts: &[Value]) -> Result<Value, String> {
    let [Value::String(text), count] = parts else {
        return Err("`$repeat` takes a text and a count, such as {\"$repeat\": [\"a\", 5000]}".to_owned());
    };
    let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
    match count.and_then(|count| Some((count, count.checked_mul(text.len())?))) {
        Some((count, bytes)) if bytes <= LONGEST => Ok(Value::String(text.repeat(count))),
        _ => Err(format!("the text of `$repeat` exceeds the limit of {LONGEST} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{compact, parse_compact_arguments};

    #[test]
    fn what_is_printed_is_read_back() {
        let value = json!({"a": "é".repeat(5001), "b": ["x", {"c": "y".repeat(63)}], "d": null});
        let printed = compact(&value);
        assert_eq!(printed["a"], json!({"$repeat": ["é", 5001]}));
        assert_eq!(printed["b"], value["b"]);
        assert_eq!(parse_compact_arguments(&printed.to_string()), Ok(value));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text| parse_compact_arguments(text).unwrap_err();
        assert!(error("{").starts_with("invalid JSON"));
        assert!(error("[]").contains("must be a JSON object"));
        assert!(error(r#"{"a": {"$repeat": ["a"]}}"#).contains("takes a text and a count"));
        assert!(error(r#"{"a": {"$repeat": ["ab", 99999999999]}}"#).contains("exceeds the limit"));
    }
}
