//! JSON kept as the text it arrived as. [`Object`] edits the top level of an object and leaves every byte of
//! the other members alone. Typed models of payloads do not belong here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Up to this many keys are compared one by one. Keys come from strangers: comparing each of very many with all
/// before it would take the square of them.
const FEW: usize = 32;

/// Text that is JSON nested deeper than this stays text: most readers give up there.
const DEEPEST: usize = 128;

/// One JSON value as the text it arrived as.
pub type Raw = Box<RawValue>;

/// The empty object, for calls without arguments.
pub fn empty_object() -> Raw {
    from_text("{}".to_owned())
}

/// Serialises a value that cannot fail to serialise (maps with string keys, numbers, strings).
/// A value that does fail becomes `null`: it is a bug of ours, and the callers' tests would see it.
pub fn to_raw<T: Serialize + ?Sized>(value: &T) -> Raw {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| from_text("null".to_owned()))
}

/// Wraps text that this house wrote itself. Text that is no JSON becomes `null`.
pub fn from_text(text: String) -> Raw {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The JSON that a text of a stranger's is, if it is any, and none that readers give up on.
pub fn parse_untrusted(text: &str) -> Option<Raw> {
    if depth(text) > DEEPEST {
        return None;
    }
    serde_json::from_str::<Raw>(text).ok()
}

/// Whether these words are anywhere in it: a cheap look at what is seldom there, before it is read.
pub fn contains_text(raw: &RawValue, words: &str) -> bool {
    memchr::memmem::find(raw.get().as_bytes(), words.as_bytes()).is_some()
}

/// How deep it is nested, counted without looking at what it means.
fn depth(text: &str) -> usize {
    let (mut now, mut most, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' if !quoted => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// The beginning of a text that a stranger chose, for messages.
pub fn truncate_for_message(text: &str) -> Cow<'_, str> {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A JSON object whose members are untouched text in their original order.
#[derive(Debug, Clone, Default)]
pub struct Object {
    members: Vec<(String, Raw)>,
}

impl Object {
    pub fn parse(raw: &RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(raw.get())
    }

    /// The members of an object other than these.
    pub fn parse_without(raw: &RawValue, keys: &[&str]) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(raw.get());
        let object = deserializer.deserialize_map(MembersVisitor { without: keys })?;
        deserializer.end().map(|()| object)
    }

    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Replaces the member in its place, or appends it.
    pub fn set(&mut self, key: &str, value: Raw) {
        match self.members.iter_mut().find(|(name, _)| name == key) {
            Some(slot) => slot.1 = value,
            None => self.members.push((key.to_owned(), value)),
        }
    }

    /// Takes the member out, if it is there.
    pub fn remove(&mut self, key: &str) -> Option<Raw> {
        let at = self.members.iter().position(|(name, _)| name == key)?;
        Some(self.members.remove(at).1)
    }

    pub fn members(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.members.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn to_raw(&self) -> Raw {
        to_raw(self)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.members())
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor { without: &[] })
    }
}

struct MembersVisitor<'k> {
    without: &'k [&'k str],
}

impl<'de> Visitor<'de> for MembersVisitor<'_> {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut members: Vec<(String, Raw)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if self.without.contains(&key.as_str()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value()?;
            let known = if members.len() < FEW {
                members.iter().position(|(name, _)| *name == key)
            } else {
                let unseen = members.iter().enumerate().skip(places.len());
                places.extend(unseen.map(|(at, (name, _))| (name.clone(), at)));
                places.get(&key).copied()
            };
            match known {
                Some(at) => members[at].1 = value,
                None => members.push((key, value)),
            }
        }
        Ok(Object { members })
    }
}

#[cfg(test)]
mod tests {
    use super::{Object, from_text};

    #[test]
    fn editing_one_member_leaves_the_text_of_the_others_alone() {
        let raw =
            from_text(r#"{"b": 9007199254740993123, "name":"old", "a":{"z":1.0,"y" : 1e400}}"#.to_owned());
        let mut object = Object::parse(&raw).unwrap();
        object.set("name", super::to_raw("new"));
        object.set("last", super::to_raw(&true));
        assert_eq!(
            object.to_raw().get(),
            r#"{"b":9007199254740993123,"name":"new","a":{"z":1.0,"y" : 1e400},"last":true}"#
        );
    }

    #[test]
    fn members_that_are_left_out_leave_the_others_alone() {
        let raw = from_text(r#"{"b": 1e400, "a":{"b":[1]}, "c":"\u0062","b":2}"#.to_owned());
        assert_eq!(
            Object::parse_without(&raw, &["b", "x"]).unwrap().to_raw().get(),
            r#"{"a":{"b":[1]},"c":"\u0062"}"#
        );
        assert!(Object::parse_without(&from_text("[]".to_owned()), &["b"]).is_err());
    }

    #[test]
    fn a_repeated_key_keeps_its_first_place_and_its_last_value() {
        let object = Object::parse(&from_text(r#"{"a":1,"b":2,"a":3}"#.to_owned())).unwrap();
        assert_eq!(object.to_raw().get(), r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn an_object_with_very_many_keys_is_read_in_good_time() {
        let members: Vec<String> = (0..200_000).map(|at| format!(r#""{at}":{at}"#)).collect();
        let raw = from_text(format!("{{{}}}", members.join(",")));
        let began = std::time::Instant::now();
        assert_eq!(Object::parse(&raw).unwrap().to_raw().get(), raw.get());
        // A minute if every key is looked for among all others; well under a second otherwise.
        assert!(began.elapsed() < std::time::Duration::from_secs(10));
    }
}
