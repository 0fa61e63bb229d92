//! A configuration file as a tree in which every value has a span, independent of the file's
//! syntax. The meaning of keys does not belong here. The tree does not implement `Debug` because it
//! can contain secrets.

use std::ops::Range;

pub(super) mod decode;
pub(super) mod decode_error;
pub(super) mod json;
pub(super) mod toml;

/// Byte range in the text.
pub(super) type Span = Range<usize>;

pub(super) struct ConfigNode {
    pub(super) span: Span,
    pub(super) value: ConfigValue,
}

pub(super) enum ConfigValue {
    Null,
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<ConfigNode>),
    Table(Vec<(ConfigKey, ConfigNode)>),
}

#[derive(Clone)]
pub(super) struct ConfigKey {
    pub(super) name: String,
    pub(super) span: Span,
}

/// A syntax error.
pub(super) struct ConfigSyntaxError {
    pub(super) span: Span,
    pub(super) message: String,
}

impl ConfigNode {
    /// Returns the value of a key, if this is a table that contains it.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.entries().iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Returns the value of a key of a table, or at an index of a list.
    pub(super) fn child(&self, step: &str) -> Option<&Self> {
        match &self.value {
            ConfigValue::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => self.get(step),
        }
    }

    /// Returns the entries of a table, or none for other values.
    pub(super) fn entries(&self) -> &[(ConfigKey, Self)] {
        match &self.value {
            ConfigValue::Table(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.value, ConfigValue::Table(_))
    }

    /// Returns the direct children.
    pub(super) fn children(&self) -> Vec<&Self> {
        match &self.value {
            ConfigValue::List(items) => items.iter().collect(),
            ConfigValue::Table(entries) => entries.iter().map(|(_, node)| node).collect(),
            _ => Vec::new(),
        }
    }

    /// Identifies a node by its address. A tree never changes after it is built.
    pub(super) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
