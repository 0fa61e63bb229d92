//! Decodes a tree into the key types with serde. An invalid value does not stop decoding: it is
//! recorded and left out, so that all errors are reported together. No message contains a value
//! that could be a secret.

use std::cell::RefCell;
use std::collections::HashSet;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::super::problem::did_you_mean;
use super::decode_error::{DecodeError, kind};
use super::{ConfigKey, ConfigNode, ConfigValue};

/// Errors and unknown keys found while decoding.
#[derive(Default)]
pub(crate) struct DecodeReport {
    pub(crate) errors: Vec<DecodeError>,
    pub(crate) unknown: Vec<UnknownKey>,
}

/// A key that the target type does not have.
pub(crate) struct UnknownKey {
    pub(crate) key: ConfigKey,
    pub(crate) suggestion: Option<String>,
}

/// Decodes a tree, except for the nodes in `apart`, which are decoded elsewhere. Returns `None`
/// only if the root has an invalid type.
pub(crate) fn decode<T: DeserializeOwned>(
    root: &ConfigNode,
    apart: &[&ConfigNode],
) -> (Option<T>, DecodeReport) {
    let mut findings = DecodeReport::default();
    let mut skipped: HashSet<usize> = apart.iter().map(|node| node.identity()).collect();
    let mut wrong = HashSet::new();
    loop {
        let pass = DecodePass { skipped: &skipped, unknown: RefCell::default() };
        let result = T::deserialize(NodeDeserializer { node: root, pass: &pass, place: None });
        let unknown = pass.unknown.into_inner();
        match result {
            Ok(value) => {
                findings.unknown = unknown;
                return (Some(value), findings);
            }
            Err(fault) => {
                let node = fault.node.unwrap_or_else(|| root.identity());
                // A key that is missing because its value was invalid has already been reported.
                let echo = find(root, node).is_some_and(|node| {
                    node.children().iter().any(|child| wrong.contains(&child.identity()))
                });
                if !echo {
                    findings.errors.push(fault);
                }
                wrong.insert(node);
                if node == root.identity() || !skipped.insert(node) {
                    return (None, findings);
                }
            }
        }
    }
}

fn find(root: &ConfigNode, identity: usize) -> Option<&ConfigNode> {
    if root.identity() == identity {
        return Some(root);
    }
    root.children().into_iter().find_map(|child| find(child, identity))
}

/// One attempt to decode the tree.
struct DecodePass<'a> {
    skipped: &'a HashSet<usize>,
    unknown: RefCell<Vec<UnknownKey>>,
}

/// The key of a value, and the known keys of its table.
#[derive(Clone, Copy)]
struct KeyContext<'a> {
    key: &'a ConfigKey,
    known: &'static [&'static str],
}

struct NodeDeserializer<'a> {
    node: &'a ConfigNode,
    pass: &'a DecodePass<'a>,
    place: Option<KeyContext<'a>>,
}

impl<'a> NodeDeserializer<'a> {
    fn entries<'de, V: Visitor<'de>>(
        &self,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let entries: Vec<&'a (ConfigKey, ConfigNode)> = self
            .node
            .entries()
            .iter()
            .filter(|(_, node)| !self.pass.skipped.contains(&node.identity()))
            .collect();
        visitor.visit_map(Entries { rest: entries.into_iter(), value: None, known, pass: self.pass })
    }

    fn items(&self) -> Vec<&'a ConfigNode> {
        let skipped = |node: &&ConfigNode| !self.pass.skipped.contains(&node.identity());
        self.node.children().into_iter().filter(skipped).collect()
    }

    /// Sets the location of an error to the innermost value that it passes through.
    fn with_location<T>(node: &ConfigNode, result: Result<T, DecodeError>) -> Result<T, DecodeError> {
        result.map_err(|fault| match fault.node {
            Some(_) => fault,
            None => DecodeError { span: node.span.clone(), node: Some(node.identity()), ..fault },
        })
    }
}

impl<'de> Deserializer<'de> for NodeDeserializer<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let result = match &self.node.value {
            ConfigValue::Null => visitor.visit_unit(),
            ConfigValue::Bool(flag) => visitor.visit_bool(*flag),
            ConfigValue::Integer(number) => match u64::try_from(*number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(*number),
            },
            ConfigValue::Number(number) => visitor.visit_f64(*number),
            ConfigValue::Text(text) => visitor.visit_str(text),
            ConfigValue::List(_) => {
                visitor.visit_seq(Items { rest: self.items().into_iter(), pass: self.pass })
            }
            ConfigValue::Table(_) => self.entries(&[], visitor),
        };
        Self::with_location(self.node, result)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node.value {
            ConfigValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            ConfigValue::Table(_) => Self::with_location(self.node, self.entries(fields, visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let result = match &self.node.value {
            ConfigValue::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            other => Err(DecodeError::custom(format_args!("expected a string, found {}", kind(other)))),
        };
        Self::with_location(self.node, result)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if let Some(slot) = self.place {
            let suggestion = did_you_mean(&slot.key.name, slot.known.iter().copied());
            self.pass.unknown.borrow_mut().push(UnknownKey { key: slot.key.clone(), suggestion });
        }
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier
    }
}

struct Entries<'a> {
    rest: std::vec::IntoIter<&'a (ConfigKey, ConfigNode)>,
    value: Option<&'a (ConfigKey, ConfigNode)>,
    known: &'static [&'static str],
    pass: &'a DecodePass<'a>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        self.value = self.rest.next();
        self.value.map(|(key, _)| seed.deserialize(key.name.as_str().into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        let (key, node) = self.value.take().ok_or_else(|| DecodeError::custom("value without a key"))?;
        let place = Some(KeyContext { key, known: self.known });
        NodeDeserializer::with_location(
            node,
            seed.deserialize(NodeDeserializer { node, pass: self.pass, place }),
        )
    }
}

struct Items<'a> {
    rest: std::vec::IntoIter<&'a ConfigNode>,
    pass: &'a DecodePass<'a>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let read = |node| {
            NodeDeserializer::with_location(
                node,
                seed.deserialize(NodeDeserializer { node, pass: self.pass, place: None }),
            )
        };
        self.rest.next().map(read).transpose()
    }
}
