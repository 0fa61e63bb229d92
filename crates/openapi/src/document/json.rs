//! JSON text to a value, by serde_json, with three things of our own: a depth below which parts are left out instead of
//! the whole document being refused, a count of values, and duplicate keys reported.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::error::Category;

use super::node::{SpecNode, SpecObject};
use super::parse::{ParseContext, ParseRefusal};
use super::references::push_segment;

pub(super) fn read(text: &str, reading: &mut ParseContext) -> Result<SpecNode, ParseRefusal> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The depth is ours to watch; what is deeper is skipped without recursion.
    deserializer.disable_recursion_limit();
    let depth = reading.depth;
    let value = Reader { reading, depth }.deserialize(&mut deserializer);
    let whole = value.and_then(|value| deserializer.end().map(|()| value));
    whole.map_err(|error| {
        match error.classify() {
            // The reader takes any value, unless it is one too many.
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

    /// Puts the way from here before the pointers of what was found below.
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
            return Err(D::Error::custom("more values than are allowed"));
        }
        if self.depth == 0 {
            deserializer.deserialize_ignored_any(IgnoredAny)?;
            let message = "this is nested too deeply; what is here was left out".to_owned();
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
                let message = format!("the key `{key}` is there twice; the last one counts");
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
