//! Named texts: the arguments of a prompt, the values of a template, what a form already holds.

use std::collections::HashMap;

/// Texts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    values: HashMap<String, String>,
}

impl Values {
    /// The value of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The value of that name, or the empty text. Required arguments are always there.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether there are no values at all.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Values {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self { values: pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}
