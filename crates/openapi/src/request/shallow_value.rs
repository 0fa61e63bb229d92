//! Argument values, parsed one level at a time. Numbers keep their text: `1e3` is not `1000`, and a
//! number of forty digits keeps them all.

use serde_json::value::RawValue;
use toolyard_hub::json::Object;

/// A JSON value whose children are not parsed yet.
#[derive(Debug)]
pub(crate) enum ShallowValue<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(String),
    List(Vec<&'a RawValue>),
    Object(Vec<(String, Box<RawValue>)>),
}

impl<'a> ShallowValue<'a> {
    pub(crate) fn read(raw: &'a RawValue) -> Self {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'"') => Self::Text(serde_json::from_str(text).unwrap_or_default()),
            Some(b'[') => Self::List(serde_json::from_str(text).unwrap_or_default()),
            Some(b'{') => {
                let object = Object::parse(raw).unwrap_or_default();
                Self::Object(
                    object.members().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                )
            }
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number(text),
        }
    }
}

/// Returns a scalar as its text and other values as JSON. `None` for null.
pub(crate) fn to_plain_text(raw: &RawValue) -> Option<String> {
    match ShallowValue::read(raw) {
        ShallowValue::Null => None,
        ShallowValue::Bool(flag) => Some(flag.to_string()),
        ShallowValue::Number(number) => Some(number.to_owned()),
        ShallowValue::Text(text) => Some(text),
        ShallowValue::List(_) | ShallowValue::Object(_) => Some(raw.get().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::to_plain_text;

    #[test]
    fn numbers_stay_as_they_were_written() {
        let plain = |text: &str| to_plain_text(&RawValue::from_string(text.to_owned()).unwrap());
        for number in ["1e3", "1.0", "-0", "9223372036854775808123", "1E+400", "0.10"] {
            assert_eq!(plain(number).as_deref(), Some(number));
        }
        assert_eq!(plain("null"), None);
        assert_eq!(plain(r#""aA""#).as_deref(), Some("aA"));
        assert_eq!(plain(r#"{"a" :1e3}"#).as_deref(), Some(r#"{"a" :1e3}"#));
    }
}
