//! The parameter styles of the OpenAPI specification. A value is parsed once and serialized for its
//! location.

use serde_json::value::RawValue;

use super::escape::{EncodeSet, percent_encode, percent_encode_into};
use super::shallow_value::{ShallowValue, to_plain_text};
use crate::operation::ParameterStyle;

/// Maximum nesting depth of a parameter value.
const DEEPEST: usize = 64;

/// A value that a style can serialize. Null has no representation, and null
/// members are dropped.
#[derive(Debug, PartialEq)]
enum StyleValue {
    One(String),
    List(Vec<String>),
    Members(Vec<(String, String)>),
}

impl StyleValue {
    fn read(raw: &RawValue) -> Option<Self> {
        match ShallowValue::read(raw) {
            ShallowValue::List(items) => {
                Some(Self::List(items.into_iter().filter_map(to_plain_text).collect()))
            }
            ShallowValue::Object(members) => Some(Self::Members(
                members
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, to_plain_text(&value)?)))
                    .collect(),
            )),
            _ => to_plain_text(raw).map(Self::One),
        }
    }

    /// As in RFC 6570, an empty list counts as a missing value.
    fn is_empty(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::List(items) => items.is_empty(),
            Self::Members(members) => members.is_empty(),
        }
    }
}

/// How a parameter is serialized.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParameterSerializer<'a> {
    pub(crate) name: &'a str,
    pub(crate) style: ParameterStyle,
    pub(crate) explode: bool,
    pub(crate) allow: EncodeSet,
}

impl ParameterSerializer<'_> {
    /// Serializes for a path or a header, where a value is one piece of text. `None` if there is no
    /// value.
    pub(crate) fn serialize_text(&self, raw: &RawValue) -> Option<String> {
        let parts = StyleValue::read(raw).filter(|parts| !parts.is_empty())?;
        let name = percent_encode(self.name, self.allow);
        let mut piece = String::new();
        let (start, between) = match (self.style, self.explode) {
            (ParameterStyle::Label, true) => (".", "."),
            (ParameterStyle::Label, false) => (".", ","),
            (ParameterStyle::Matrix, true) => (";", ";"),
            (ParameterStyle::Matrix, false) => (";", ","),
            _ => ("", ","),
        };
        piece.push_str(start);
        let matrix = self.style == ParameterStyle::Matrix;
        if matrix && !self.explode {
            piece.push_str(&name);
            // As in RFC 6570, an empty value has no equals sign here.
            if parts != StyleValue::One(String::new()) {
                piece.push('=');
            }
        }
        match &parts {
            StyleValue::One(text) => {
                if matrix && self.explode {
                    piece.push_str(&name);
                    piece.push_str(if text.is_empty() { "" } else { "=" });
                }
                percent_encode_into(text, self.allow, &mut piece);
            }
            StyleValue::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    piece.push_str(if at > 0 { between } else { "" });
                    if matrix && self.explode {
                        piece.push_str(&name);
                        piece.push_str(if item.is_empty() { "" } else { "=" });
                    }
                    percent_encode_into(item, self.allow, &mut piece);
                }
            }
            StyleValue::Members(members) => {
                for (at, (member, value)) in members.iter().enumerate() {
                    piece.push_str(if at > 0 { between } else { "" });
                    percent_encode_into(member, self.allow, &mut piece);
                    piece.push_str(if self.explode { "=" } else { "," });
                    percent_encode_into(value, self.allow, &mut piece);
                }
            }
        }
        Some(piece)
    }

    /// Serializes for a query, a cookie or a form: encoded pairs.
    pub(crate) fn serialize_pairs(&self, raw: &RawValue) -> Vec<(String, String)> {
        let name = percent_encode(self.name, EncodeSet::Unreserved);
        if self.style == ParameterStyle::DeepObject && raw.get().starts_with(['{', '[']) {
            let mut pairs = Vec::new();
            self.serialize_deep_object(&name, raw, 0, &mut pairs);
            return pairs;
        }
        let Some(parts) = StyleValue::read(raw).filter(|parts| !parts.is_empty()) else { return Vec::new() };
        let value = |text: &str| percent_encode(text, self.allow);
        let between = match self.style {
            ParameterStyle::SpaceDelimited => "%20",
            ParameterStyle::PipeDelimited => "%7C",
            ParameterStyle::TabDelimited => "%09",
            _ => ",",
        };
        match parts {
            StyleValue::One(text) => vec![(name, value(&text))],
            StyleValue::List(items) if self.explode => {
                items.iter().map(|item| (name.clone(), value(item))).collect()
            }
            StyleValue::List(items) => {
                let items: Vec<String> = items.iter().map(|item| value(item)).collect();
                vec![(name, items.join(between))]
            }
            StyleValue::Members(members) if self.explode => members
                .iter()
                .map(|(name, text)| (percent_encode(name, EncodeSet::Unreserved), value(text)))
                .collect(),
            StyleValue::Members(members) => {
                let flat: Vec<String> =
                    members.iter().flat_map(|(name, text)| [value(name), value(text)]).collect();
                vec![(name, flat.join(between))]
            }
        }
    }

    /// `name[member]=value`, and further down `name[member][0]=value`. The specification does not
    /// define levels below the first; this is what servers that support them accept.
    fn serialize_deep_object(
        &self,
        name: &str,
        raw: &RawValue,
        depth: usize,
        pairs: &mut Vec<(String, String)>,
    ) {
        if depth >= DEEPEST {
            pairs.push((name.to_owned(), percent_encode(raw.get(), self.allow)));
            return;
        }
        match ShallowValue::read(raw) {
            ShallowValue::Object(members) => {
                for (member, value) in &members {
                    let below = format!("{name}%5B{}%5D", percent_encode(member, EncodeSet::Unreserved));
                    self.serialize_deep_object(&below, value, depth + 1, pairs);
                }
            }
            ShallowValue::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.serialize_deep_object(&format!("{name}%5B{at}%5D"), item, depth + 1, pairs);
                }
            }
            _ => pairs
                .extend(to_plain_text(raw).map(|text| (name.to_owned(), percent_encode(&text, self.allow)))),
        }
    }
}

#[cfg(test)]
mod tests;
