//! The query string. Unknown parameters are refused, because a misspelled filter would otherwise
//! return everything.

use serde_json::Value;
use toolyard_hub::SchemaViolation;

use super::errors::RestError;

/// The parameters of a request that have not been taken yet.
#[derive(Debug)]
pub(super) struct Query {
    pairs: Vec<(String, String)>,
    violations: Vec<SchemaViolation>,
}

impl Query {
    pub(super) fn read(text: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(text.unwrap_or_default().as_bytes()).into_owned().collect();
        Self { pairs, violations: Vec::new() }
    }

    /// Takes all values of a parameter.
    pub(super) fn all(&mut self, name: &str) -> Vec<String> {
        let (taken, left) = std::mem::take(&mut self.pairs).into_iter().partition(|(key, _)| key == name);
        self.pairs = left;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes the value of a parameter that must not be repeated.
    pub(super) fn one(&mut self, name: &str) -> Option<String> {
        let mut all = self.all(name);
        if all.len() > 1 {
            self.add_violation(name, "must not be repeated", &all[1]);
        }
        if all.is_empty() { None } else { Some(all.swap_remove(0)) }
    }

    /// Takes a value and parses it with a function that returns the violation.
    pub(super) fn read_one<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.one(name)?;
        match read(&text) {
            Ok(value) => Some(value),
            Err(reason) => {
                self.add_violation(name, reason, &text);
                None
            }
        }
    }

    /// Takes a value that must be one of the given keywords.
    pub(super) fn take_keyword<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        self.read_one(name, |text| {
            let known = words.iter().find(|(word, _)| *word == text);
            let all = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            known.map(|(_, value)| *value).ok_or_else(|| format!("must be one of: {}", all()))
        })
    }

    /// Returns all violations, including parameters that were not taken.
    pub(super) fn finish(mut self) -> Result<(), RestError> {
        for (name, value) in std::mem::take(&mut self.pairs) {
            self.add_violation(&name, "unknown parameter", &value);
        }
        if self.violations.is_empty() { Ok(()) } else { Err(RestError::invalid(&self.violations)) }
    }

    fn add_violation(&mut self, name: &str, reason: impl Into<String>, provided: &str) {
        let short = |text: &str| text.chars().take(200).collect::<String>();
        self.violations.push(SchemaViolation::new(short(name), reason, Value::from(short(provided))));
    }
}

/// Parses a page size.
pub(super) fn parse_page_size(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=1_000).contains(limit));
    limit.ok_or_else(|| "must be an integer from 1 to 1000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Query, parse_page_size};

    #[test]
    fn repeated_and_unknown_parameters_are_refused() {
        let mut query = Query::read(Some("tag=a&tag=b%20c&q=x+y&limit=0&q=z&color=red"));
        assert_eq!(query.all("tag"), ["a", "b c"]);
        assert_eq!(query.one("q").as_deref(), Some("x y"));
        assert_eq!(query.read_one("limit", parse_page_size), None);
        let failure = query.finish().unwrap_err();
        assert_eq!(
            failure.message,
            "invalid request: `q` must not be repeated; `limit` must be an integer from 1 to 1000; \
             `color`: unknown parameter"
        );
    }

    #[test]
    fn an_absent_query_is_valid() {
        assert!(Query::read(None).finish().is_ok());
    }
}
