//! Parses JSON with serde_json and three additions: parts below a maximum depth are dropped instead
//! of rejecting the whole document, values are counted, and duplicate keys are reported.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::error::Category;

use super::node::{SpecNode, SpecObject};
use super::parse::{ParseContext, ParseRefusal};
use super::references::push_segment;

pub(super) fn read(text: &str, reading: &mut ParseContext) -> Result<SpecNode, ParseRefusal> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The depth is limited below. Deeper parts are skipped without recursion.
    deserializer.disable_recursion_limit();
    let depth = reading.depth;
    let value = Reader { reading, depth }.deserialize(&mut deserializer);
    let whole = value.and_then(|value| deserializer.end().map(|()| value));
    whole.map_err(|error| {
        match error.classify() {
            // Deserialization only fails if the value limit is exceeded.
            Category::Data => ParseRefusal::TooManyValues,
            Category::Io | Category::Syntax | Category::Eof => ParseRefusal::Syntax(error.to_string()),
        }
    })
}

struct Reader<'a> {
    reading: &'a mut ParseContext,
    depth: usize,
}

impl Reader<'_> {
    fn child(&mut self) -> Reader<'_> {
        Reader { reading: self.reading, depth: self.depth.saturating_sub(1) }
    }

    /// Prepends the current path to the pointers of diagnostics from below.
    fn prefix_pointers(&mut self, from: usize, segment: &str) {
        for found in self.reading.diagnostics.iter_mut().skip(from) {
            let mut pointer = String::new();
            push_segment(&mut pointer, segment);
            pointer.push_str(&found.pointer);
            found.pointer = pointer;
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = SpecNode;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<SpecNode, D::Error> {
        if self.reading.count(1).is_err() {
            return Err(D::Error::custom("the limit for the number of values is exceeded"));
        }
        if self.depth == 0 {
            deserializer.deserialize_ignored_any(IgnoredAny)?;
            let message = "nested too deeply; ignored".to_owned();
            self.reading.warn(String::new(), "too-deep", message);
            return Ok(SpecNode::Null);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = SpecNode;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<SpecNode, E> {
        Ok(SpecNode::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<SpecNode, E> {
        Ok(SpecNode::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<SpecNode, E> {
        Ok(SpecNode::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<SpecNode, E> {
        Ok(SpecNode::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<SpecNode, E> {
        Ok(Number::from_f64(value).map_or(SpecNode::Null, SpecNode::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<SpecNode, E> {
        Ok(SpecNode::String(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<SpecNode, E> {
        Ok(SpecNode::String(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<SpecNode, A::Error> {
        let mut values = Vec::new();
        loop {
            let found = self.reading.diagnostics.len();
            let Some(value) = access.next_element_seed(self.child())? else { break };
            if self.reading.diagnostics.len() > found {
                self.prefix_pointers(found, &values.len().to_string());
            }
            values.push(value);
        }
        Ok(SpecNode::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<SpecNode, A::Error> {
        let mut members = SpecObject::new();
        while let Some(key) = access.next_key::<Box<str>>()? {
            let found = self.reading.diagnostics.len();
            let value = access.next_value_seed(self.child())?;
            if members.contains_key(&key) {
                let message = format!("duplicate key `{key}`; the last one applies");
                self.reading.warn(String::new(), "duplicate-key", message);
            }
            if self.reading.diagnostics.len() > found {
                self.prefix_pointers(found, &key);
            }
            members.insert(key, value);
        }
        Ok(SpecNode::Object(members))
    }
}
