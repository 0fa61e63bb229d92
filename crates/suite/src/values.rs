//! Variables of a test: `${name}` in texts and values, and what is captured from results.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolyard_hub::nearest;

/// How often variables inside the values of variables are replaced. More is a cycle.
const DEEPEST: usize = 16;
/// Longer texts are not built from variables.
const LONGEST: usize = 32 << 20;

/// A text or value that cannot be completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    #[error("unknown variable `{name}`{}", hint(.suggestion))]
    Unknown { name: String, suggestion: Option<String> },
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    #[error("`${{` without a closing `}}` in `{0}`")]
    Unclosed(String),
    #[error("the variable `{0}` contains itself")]
    Cycle(String),
    #[error("the text exceeds the limit of {LONGEST} bytes")]
    TooLong,
}

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Protects texts from being read as variables.
pub(crate) fn escape_variables(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("${", "$${")),
        Value::Array(items) => items.iter().map(escape_variables).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, value)| (key.replace("${", "$${"), escape_variables(value))).collect(),
        ),
        other => other.clone(),
    }
}

/// The variables that a step can use.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    values: Map<String, Value>,
    environment: Arc<BTreeMap<String, String>>,
}

impl Variables {
    pub fn new(environment: Arc<BTreeMap<String, String>>) -> Self {
        Self { values: Map::new(), environment }
    }

    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.values.insert(name.into(), value.into());
    }

    pub fn extend(&mut self, values: &Map<String, Value>) {
        self.values.extend(values.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    pub fn has_environment_variable(&self, name: &str) -> bool {
        self.environment.contains_key(name)
    }

    /// Completes a value. A text that is only a variable becomes its value, with its type.
    pub fn complete(&self, value: &Value) -> Result<Value, VariableError> {
        self.complete_value(value, 0)
    }

    /// Completes a text.
    pub fn complete_text(&self, text: &str) -> Result<String, VariableError> {
        self.complete_string(text, 0)
    }

    fn complete_value(&self, value: &Value, depth: usize) -> Result<Value, VariableError> {
        Ok(match value {
            Value::String(text) => match whole_variable(text) {
                Some(name) => self.lookup(name, depth)?,
                None => Value::String(self.complete_string(text, depth)?),
            },
            Value::Array(items) => {
                let items = items.iter().map(|item| self.complete_value(item, depth));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let members = members.iter().map(|(key, value)| {
                    Ok((self.complete_string(key, depth)?, self.complete_value(value, depth)?))
                });
                Value::Object(members.collect::<Result<_, VariableError>>()?)
            }
            other => other.clone(),
        })
    }

    fn complete_string(&self, text: &str, depth: usize) -> Result<String, VariableError> {
        let mut done = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            // `$${` is `${` as a text.
            if rest[..start].ends_with('$') {
                done.push_str(&rest[..start - 1]);
                done.push_str("${");
                rest = &rest[start + 2..];
                continue;
            }
            done.push_str(&rest[..start]);
            let after = &rest[start + 2..];
            let Some(end) = after.find('}') else { return Err(VariableError::Unclosed(text.to_owned())) };
            match self.lookup(&after[..end], depth)? {
                Value::String(value) => done.push_str(&value),
                other => done.push_str(&other.to_string()),
            }
            if done.len() > LONGEST {
                return Err(VariableError::TooLong);
            }
            rest = &after[end + 1..];
        }
        done.push_str(rest);
        Ok(done)
    }

    fn lookup(&self, name: &str, depth: usize) -> Result<Value, VariableError> {
        if depth > DEEPEST {
            return Err(VariableError::Cycle(name.to_owned()));
        }
        if let Some(variable) = name.strip_prefix("env:") {
            let (variable, default) = match variable.split_once(":-") {
                Some((variable, default)) => (variable, Some(default)),
                None => (variable, None),
            };
            let value = self.environment.get(variable).map(String::as_str).or(default);
            return value
                .map(|value| Value::String(value.to_owned()))
                .ok_or_else(|| VariableError::Unset(variable.to_owned()));
        }
        match self.values.get(name) {
            Some(value) => self.complete_value(value, depth + 1),
            None => Err(VariableError::Unknown {
                name: name.to_owned(),
                suggestion: nearest(name, self.values.keys().map(String::as_str)).map(str::to_owned),
            }),
        }
    }
}

/// Returns the name if the text is exactly one variable.
fn whole_variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    (!name.contains(['{', '}', '$'])).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::Variables;

    fn variables() -> Variables {
        let environment = BTreeMap::from([("HOME".to_owned(), "/h".to_owned())]);
        let mut variables = Variables::new(Arc::new(environment));
        variables.set("number", 3);
        variables.set("list", json!([1, "${number}"]));
        variables.set("loop", "${loop}!");
        variables
    }

    #[test]
    fn a_value_that_is_a_variable_keeps_its_type() {
        let value = json!({"a": "${number}", "b": "n=${number}", "c": "${list}", "d${number}": "$${x}"});
        let expected = json!({"a": 3, "b": "n=3", "c": [1, 3], "d3": "${x}"});
        assert_eq!(variables().complete(&value), Ok(expected));
    }

    #[test]
    fn the_environment_has_defaults() {
        let text = variables().complete_text("${env:HOME}/${env:NOT:-x}");
        assert_eq!(text.as_deref(), Ok("/h/x"));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| variables().complete_text(text).unwrap_err().to_string();
        assert_eq!(error("${numbr}"), "unknown variable `numbr`; did you mean `number`?");
        assert_eq!(error("${env:NOT}"), "the environment variable `NOT` is not set");
        assert_eq!(error("a ${b"), "`${` without a closing `}` in `a ${b`");
        assert_eq!(error("${loop}"), "the variable `loop` contains itself");
    }
}
