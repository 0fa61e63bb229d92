//! Rejects ambiguous JSON. Parsers disagree about which value of a duplicate key counts, so the
//! value validated here might not be the one the tool reads. Unlimited nesting would break other
//! parsers.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Returns the first problem of this text as strict JSON.
pub(super) fn check(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<StrictJson>(text).map(drop)
}

/// A value that is checked and discarded. The parser itself refuses more than 128 levels.
struct StrictJson;

impl<'de> Deserialize<'de> for StrictJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = StrictJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_i64<E>(self, _: i64) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_u64<E>(self, _: u64) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_f64<E>(self, _: f64) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_str<E>(self, _: &str) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_unit<E>(self) -> Result<StrictJson, E> {
        Ok(StrictJson)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<StrictJson, A::Error> {
        while list.next_element::<StrictJson>()?.is_some() {}
        Ok(StrictJson)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StrictJson, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                let short: String = key.chars().take(100).collect();
                return Err(A::Error::custom(format!("duplicate key {short:?}")));
            }
            seen.insert(key);
            map.next_value::<StrictJson>()?;
        }
        Ok(StrictJson)
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    fn problem(text: &str) -> Option<String> {
        check(text).err().map(|error| error.to_string())
    }

    #[test]
    fn what_means_one_thing_passes() {
        assert_eq!(problem(r#"{"a":[1,-1,1.5,"x",null,true,{"a":{}}],"b":18446744073709551616}"#), None);
    }

    #[test]
    fn a_key_that_is_there_twice_is_found_however_deep_and_however_written() {
        let twice = |column| Some(format!(r#"duplicate key "a" at line 1 column {column}"#));
        assert_eq!(problem(r#"{"x":[{"a":1,"a":2}]}"#), twice(16));
        assert_eq!(problem(r#"{"x":[{"a":1,"\u0061":2}]}"#), twice(21));
    }

    #[test]
    fn what_is_nested_too_deep_or_too_large_a_number_is_refused() {
        assert!(problem(&"[".repeat(100_000)).unwrap().contains("recursion limit exceeded"));
        assert!(problem("1e400").unwrap().contains("number out of range"));
    }
}
