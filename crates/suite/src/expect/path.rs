//! JSONPath (RFC 9535) over results.

use serde_json::Value;
use serde_json_path::JsonPath;

/// What a path selects.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selected {
    Nothing,
    One(Value),
    /// The path can select several values, and these are the ones that it does.
    Many(Vec<Value>),
}

impl Selected {
    /// Returns the value that conditions apply to: of a path that can select several, the list.
    pub(crate) fn into_value(self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::One(value) => Some(value),
            Self::Many(values) => Some(Value::Array(values)),
        }
    }
}

/// Evaluates a path. Returns the reason if it is invalid.
pub(crate) fn select(path: &str, value: &Value) -> Result<Selected, String> {
    let parsed =
        JsonPath::parse(path).map_err(|error| format!("invalid JSONPath `{path}`: {}", error.message()))?;
    let mut found = parsed.query(value).all().into_iter().cloned();
    Ok(match is_singular(path) {
        true => found.next().map_or(Selected::Nothing, Selected::One),
        false => Selected::Many(found.collect()),
    })
}

/// Replaces every value that a path selects.
pub(crate) fn replace(path: &str, value: &mut Value, replacement: &Value) -> Result<(), String> {
    let parsed =
        JsonPath::parse(path).map_err(|error| format!("invalid JSONPath `{path}`: {}", error.message()))?;
    let pointers: Vec<String> = parsed
        .query_located(value)
        .locations()
        .map(serde_json_path::NormalizedPath::to_json_pointer)
        .collect();
    for pointer in pointers {
        if let Some(place) = value.pointer_mut(&pointer) {
            *place = replacement.clone();
        }
    }
    Ok(())
}

/// Whether a valid path can select at most one value: it has only names and indexes.
fn is_singular(path: &str) -> bool {
    let mut quote = None;
    let mut escaped = false;
    let mut brackets = 0_usize;
    let mut previous = ' ';
    for letter in path.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) => {
                if letter == open {
                    quote = None;
                }
            }
            None => match letter {
                '\'' | '"' => quote = Some(letter),
                '*' | '?' => return false,
                '.' if previous == '.' => return false,
                '[' => brackets += 1,
                ']' => brackets = brackets.saturating_sub(1),
                ':' | ',' if brackets > 0 => return false,
                _ => {}
            },
        }
        previous = letter;
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Selected, is_singular, replace, select};

    #[test]
    fn a_path_with_names_and_indexes_selects_one_value() {
        for path in ["$", "$.a.b", "$['a']", "$['a,b'][0]", "$[\"*\"]", "$.a[-1]", "$['x\\'*']"] {
            assert!(is_singular(path), "{path}");
        }
        for path in ["$.*", "$..a", "$[*]", "$[0,1]", "$[0:2]", "$[?@.a == 'b']", "$.a[:]"] {
            assert!(!is_singular(path), "{path}");
        }
    }

    #[test]
    fn values_are_selected_and_replaced() {
        let mut value = json!({"a": [{"b": 1}, {"b": 2}]});
        assert_eq!(select("$.a[1].b", &value), Ok(Selected::One(json!(2))));
        assert_eq!(select("$.a[*].b", &value), Ok(Selected::Many(vec![json!(1), json!(2)])));
        assert_eq!(select("$.c", &value), Ok(Selected::Nothing));
        assert_eq!(select("$.c[*]", &value), Ok(Selected::Many(Vec::new())));
        assert!(select("$.", &value).unwrap_err().starts_with("invalid JSONPath `$.`: "));
        replace("$..b", &mut value, &json!("x")).unwrap();
        assert_eq!(value, json!({"a": [{"b": "x"}, {"b": "x"}]}));
    }
}
