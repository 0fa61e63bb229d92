//! Named strings: the arguments of a prompt or the variables of a resource template.

use std::collections::HashMap;

/// The arguments of a prompt or the variables of a resource template, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    values: HashMap<String, String>,
}

impl Values {
    /// Returns the value with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns the value with this name, or an empty string. Required arguments are always present.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Values {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self { values: pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}
