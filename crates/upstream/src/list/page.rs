//! One page of a list, parsed in one pass: a page with millions of empty items must not cause
//! millions of allocations.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use toolyard_hub::Raw;

/// A page without its items.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListPage {
    /// The cursor of the next page, if there is one.
    pub(super) next: Option<String>,
    /// Whether items beyond the limit were skipped.
    pub(super) truncated: bool,
    /// Whether the page contained a list, possibly an empty one.
    pub(super) has_list: bool,
}

/// Appends the items under `key` to `items`, up to `most` in total.
pub(super) fn read(
    page: &RawValue,
    key: &'static str,
    most: usize,
    items: &mut Vec<Raw>,
) -> serde_json::Result<ListPage> {
    let mut deserializer = serde_json::Deserializer::from_str(page.get());
    PageSeed { key, most, items }.deserialize(&mut deserializer)
}

struct PageSeed<'a> {
    key: &'static str,
    most: usize,
    items: &'a mut Vec<Raw>,
}

impl<'de> DeserializeSeed<'de> for PageSeed<'_> {
    type Value = ListPage;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ListPage, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PageSeed<'_> {
    type Value = ListPage;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListPage, A::Error> {
        let mut page = ListPage { next: None, truncated: false, has_list: false };
        while let Some(key) = map.next_key::<String>()? {
            if key == self.key {
                page.has_list = true;
                page.truncated |= map.next_value_seed(ItemsSeed { most: self.most, items: self.items })?;
            } else if key == "nextCursor" {
                page.next = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(page)
    }
}

/// Reads the items. Returns whether items beyond the limit were skipped.
struct ItemsSeed<'a> {
    most: usize,
    items: &'a mut Vec<Raw>,
}

impl<'de> DeserializeSeed<'de> for ItemsSeed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ItemsSeed<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        while self.items.len() < self.most {
            match items.next_element::<Raw>()? {
                Some(item) => self.items.push(item),
                None => return Ok(false),
            }
        }
        let mut more = false;
        while items.next_element::<IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok(more)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use toolyard_hub::Raw;

    use super::{ListPage, read};

    fn page(text: &str, most: usize) -> Result<(Vec<String>, ListPage), String> {
        let mut items: Vec<Raw> = Vec::new();
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let page = read(&raw, "tools", most, &mut items).map_err(|error| error.to_string())?;
        Ok((items.iter().map(|item| item.get().to_owned()).collect(), page))
    }

    #[test]
    fn items_are_stored_unchanged() {
        let text = r#"{"x":[1],"tools":[{"b":1.0,"a":2},7],"nextCursor":"n","tool":null}"#;
        let expected = vec![r#"{"b":1.0,"a":2}"#.to_owned(), "7".to_owned()];
        assert_eq!(
            page(text, 10).unwrap(),
            (expected, ListPage { next: Some("n".to_owned()), truncated: false, has_list: true })
        );
        let nothing = (Vec::new(), ListPage { next: None, truncated: false, has_list: false });
        assert_eq!(page(r#"{"nextCursor":null}"#, 10).unwrap(), nothing);
        for wrong in ["[]", r#"{"tools":null}"#, r#"{"tools":{}}"#, r#"{"nextCursor":1}"#] {
            assert!(page(wrong, 10).is_err(), "{wrong}");
        }
    }

    #[test]
    fn items_beyond_the_limit_are_skipped() {
        let text = format!(r#"{{"tools":[{}0],"nextCursor":"n"}}"#, "0,".repeat(100_000));
        let (items, page_info) = page(&text, 1_000).unwrap();
        assert_eq!(
            (items.len(), page_info),
            (1_000, ListPage { next: Some("n".to_owned()), truncated: true, has_list: true })
        );
        assert!(!page(r#"{"tools":[1,2]}"#, 2).unwrap().1.truncated);
    }
}
