//! Replaces one value in a JSON text and keeps the rest of the text.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Replaces the value at this path of object keys. Returns `None` if the path leads to no value.
pub(crate) fn replace_value(text: &str, path: &[&str], replacement: &str) -> Option<String> {
    let span = find_value(text, path)?;
    Some(format!("{}{replacement}{}", &text[..span.start], &text[span.end..]))
}

/// Returns the text of the value at this path of object keys.
pub(crate) fn value_at<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    text.get(find_value(text, path)?)
}

fn find_value(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let mut current = text;
    for key in path {
        current = member(current, key)?;
    }
    let start = current.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    Some(start..start + current.len())
}

/// Returns the text of a member of an object. Of a repeated key, the last one counts.
fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let members: BorrowedMembers<'a> = serde_json::from_str(object).ok()?;
    members.0.into_iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.get())
}

struct BorrowedMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for BorrowedMembers<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MemberVisitor;
        impl<'de> serde::de::Visitor<'de> for MemberVisitor {
            type Value = BorrowedMembers<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(BorrowedMembers(members))
            }
        }
        deserializer.deserialize_map(MemberVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::{replace_value, value_at};

    #[test]
    fn only_the_value_changes() {
        let text = r#"{ "id" : 1, "params":{"_meta" : {"a/b":"x"}, "y":[1.0]} }"#;
        assert_eq!(value_at(text, &["params", "_meta", "a/b"]), Some("\"x\""));
        let expect = r#"{ "id" : 1, "params":{"_meta" : {"a/b":7}, "y":[1.0]} }"#;
        assert_eq!(replace_value(text, &["params", "_meta", "a/b"], "7").as_deref(), Some(expect));
        let expect = r#"{ "id" : "a", "params":{"_meta" : {"a/b":"x"}, "y":[1.0]} }"#;
        assert_eq!(replace_value(text, &["id"], "\"a\"").as_deref(), Some(expect));
        assert_eq!(replace_value(text, &["params", "z"], "1"), None);
        assert_eq!(replace_value("[1]", &["id"], "1"), None);
    }
}
