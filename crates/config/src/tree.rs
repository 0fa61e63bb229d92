//! A configuration file as a tree in which every value knows its place, whatever the file is written in. What the
//! keys mean does not belong here. The tree has no `Debug`: it holds secrets.

use std::ops::Range;

pub(super) mod decode;
pub(super) mod decode_error;
pub(super) mod json;
pub(super) mod toml;

/// Bytes of the text that a value or a key was read from.
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

/// Why a text is no tree.
pub(super) struct ConfigSyntaxError {
    pub(super) span: Span,
    pub(super) message: String,
}

impl ConfigNode {
    /// What is under a name, where this is a table.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.entries().iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// What is under a name of a table, or at a place of a list.
    pub(super) fn child(&self, step: &str) -> Option<&Self> {
        match &self.value {
            ConfigValue::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => self.get(step),
        }
    }

    /// The entries, where this is a table.
    pub(super) fn entries(&self) -> &[(ConfigKey, Self)] {
        match &self.value {
            ConfigValue::Table(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.value, ConfigValue::Table(_))
    }

    /// The values directly below.
    pub(super) fn children(&self) -> Vec<&Self> {
        match &self.value {
            ConfigValue::List(items) => items.iter().collect(),
            ConfigValue::Table(entries) => entries.iter().map(|(_, node)| node).collect(),
            _ => Vec::new(),
        }
    }

    /// Which node of the tree this is; a tree is never changed once it is made.
    pub(super) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
